//! Measures how much a database writes to its write-ahead log.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tokio::time::{Instant, interval};

use super::Result;

/// The time between two readings of the position in SQLite's log. Writes after the last reading before the log starts
/// again from its beginning are missed: about 1 %.
const INTERVAL: Duration = Duration::from_millis(5);

/// Bytes of the header of a page in SQLite's log.
const HEADER_BYTES: f64 = 24.0;

/// The position of the size of a page in SQLite's index of the log (`szPage`).
const PAGE_SIZE_AT: u64 = 14;

/// The position of the number of pages in SQLite's index of the log (`mxFrame` in "WAL-mode File Format").
const PAGES_AT: u64 = 16;

/// Where a database's log is.
pub enum Log {
    None,
    /// The index of SQLite's log (`-shm`).
    Sqlite(File),
    /// The address of a Postgres database.
    Postgres(String),
}

impl Log {
    /// The log of the SQLite database at `path`, which exists.
    pub fn of_file(path: &Path) -> Result<Log> {
        let mut index = path.as_os_str().to_owned();
        index.push("-shm");
        Ok(Log::Sqlite(File::open(index)?))
    }

    /// Waits this long. Returns the bytes that were written to the log meanwhile.
    pub async fn written(&self, during: Duration) -> Result<f64> {
        let file = match self {
            Log::None => {
                tokio::time::sleep(during).await;
                return Ok(0.0);
            }
            Log::Postgres(address) => {
                let before = position(address)?;
                tokio::time::sleep(during).await;
                return Ok(position(address)? - before);
            }
            Log::Sqlite(file) => file,
        };
        let (end, mut ticks) = (Instant::now() + during, interval(INTERVAL));
        let (mut last, mut pages) = (pages(file)?, 0);
        while Instant::now() < end {
            ticks.tick().await;
            let now = self::pages(file)?;
            // With fewer pages, the log has started again.
            pages += u64::from(now.checked_sub(last).unwrap_or(now));
            last = now;
        }
        let mut page_bytes = [0; 2];
        file.read_exact_at(&mut page_bytes, PAGE_SIZE_AT)?;
        let frame_bytes = f64::from(u16::from_ne_bytes(page_bytes)) + HEADER_BYTES;
        Ok(pages as f64 * frame_bytes)
    }
}

fn pages(index: &File) -> Result<u32> {
    let mut number = [0; 4];
    index.read_exact_at(&mut number, PAGES_AT)?;
    Ok(u32::from_ne_bytes(number))
}

/// The bytes that Postgres has written to its log since its first start.
fn position(address: &str) -> Result<f64> {
    let statement = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn";
    let mut query = Command::new("psql");
    let output = query.args([address, "-Atc", statement]).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}
