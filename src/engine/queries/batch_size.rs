//! Batch sizes of scans: few rows at first, then more, up to about 2 MiB of them.

/// The most rows of a batch.
const MAX: usize = 1_000;
/// Bytes of a batch, by the average size of the rows read so far.
const BYTES: usize = 2 << 20;

/// The rows that a scan has read so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchSizer {
    pub rows: usize,
    pub bytes: usize,
}

impl BatchSizer {
    /// Rows of the first batch. Each later batch has up to four times as many as all before it together.
    pub const FIRST: usize = 16;

    /// Counts a row.
    pub fn count_row(&mut self, bytes: usize) {
        self.rows += 1;
        self.bytes += bytes;
    }

    /// The number of rows to read next; at least 1.
    pub fn next(&self) -> usize {
        let Some(each) = self.bytes.checked_div(self.rows) else {
            return BatchSizer::FIRST;
        };
        let grown = self.rows.saturating_mul(4);
        (BYTES / (each + 1)).min(grown).clamp(1, MAX)
    }

    /// How many of the rows with these sizes to read at once; at least 1, unless there are none.
    pub fn fitting(sizes: &[i64]) -> usize {
        let mut bytes: i64 = 0;
        let fits = |size: &&i64| {
            bytes = bytes.saturating_add(**size);
            bytes <= BYTES as i64
        };
        let fitting = sizes.iter().take_while(fits).count();
        fitting.max(1).min(sizes.len())
    }

    /// Like [`BatchSizer::fitting`], with the bytes of these rows.
    pub fn fitting_bytes(sizes: &[i64]) -> (usize, usize) {
        let fitting = BatchSizer::fitting(sizes);
        let bytes: i64 = sizes.iter().take(fitting).sum();
        (fitting, usize::try_from(bytes).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_grow_while_rows_are_small() {
        for (rows, bytes, expected) in [
            (0, 0, 16),
            (1, 0, 4),
            (16, 1_600, 64),
            (80, 8_000, 320),
            (400, 40_000, 1_000),
            (16, 16 << 20, 1),
            (16, 16 << 18, 7),
        ] {
            assert_eq!(
                BatchSizer { rows, bytes }.next(),
                expected,
                "{rows} {bytes}"
            );
        }
    }

    #[test]
    fn a_batch_stops_before_it_exceeds_its_bytes() {
        let half = 1 << 20;
        for (second, expected) in [(half - 1, 3), (half, 2), (half + 1, 1)] {
            assert_eq!(
                BatchSizer::fitting(&[half, second, 1]),
                expected,
                "{second}"
            );
        }
        assert_eq!(BatchSizer::fitting(&[8 << 20, 1]), 1);
        assert_eq!(BatchSizer::fitting(&[1, 1]), 2);
        assert_eq!(BatchSizer::fitting(&[]), 0);
    }
}
