//! Pages of lists.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetPage {
    pub offset: usize,
    pub limit: usize,
}

/// The longest list of workers, and of failure groups.
pub const LISTED_MAX: usize = 10_000;

/// The position of a row in a list: its sort key and its number. No two rows have the same position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// 0 in lists that are sorted by time only. Negative infinity for waiting jobs that `/timeout` took from their
    /// workers, because they precede all others.
    pub priority: f64,
    pub time: i64,
    pub seq: i64,
}

impl Position {
    /// Before all rows.
    pub const START: Position = Position {
        priority: f64::NEG_INFINITY,
        time: i64::MIN,
        seq: i64::MIN,
    };

    /// After all rows.
    pub const END: Position = Position {
        priority: f64::INFINITY,
        time: i64::MAX,
        seq: i64::MAX,
    };

    /// A position in a list that is sorted by time.
    pub fn at(time: i64, seq: i64) -> Position {
        Position {
            priority: 0.0,
            time,
            seq,
        }
    }

    /// The order by priority, time and number.
    pub fn order(&self, other: &Position) -> Ordering {
        let order = self.priority.total_cmp(&other.priority);
        order.then((self.time, self.seq).cmp(&(other.time, other.seq)))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let priority = self.priority.to_bits();
        write!(f, "{priority:x}.{}.{}", self.time, self.seq)
    }
}

impl FromStr for Position {
    type Err = ();

    fn from_str(text: &str) -> Result<Position, ()> {
        let mut parts = text.split('.');
        let mut part = || parts.next().ok_or(());
        let bits = u64::from_str_radix(part()?, 16).map_err(|_| ())?;
        let position = Position {
            priority: f64::from_bits(bits),
            time: part()?.parse().map_err(|_| ())?,
            seq: part()?.parse().map_err(|_| ())?,
        };
        let is_valid = !position.priority.is_nan() && parts.next().is_none();
        is_valid.then_some(position).ok_or(())
    }
}

/// Which page of a list: the first one, the one after a row, or the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum PageStart {
    #[default]
    First,
    /// Begins after the row with this position.
    After(Position),
    /// Ends before the row with this position.
    Before(Position),
}

/// The direction in which a list is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Ascending,
    Descending,
}

/// The statements of the pages by offset of a list.
pub struct OffsetPageStatements {
    /// The whole rows.
    pub whole: &'static str,
    pub ids: &'static str,
    /// The total size of the whole rows in bytes.
    pub bytes: &'static str,
}

/// The statements of the pages by key of a list: in its order, and against it.
pub struct PageStatements {
    pub direction: Direction,
    pub forward: &'static str,
    pub backward: &'static str,
}

/// A page of a list, and the positions before which and after which the neighboring pages are.
#[derive(Clone, Debug, PartialEq)]
pub struct PageOf<T> {
    pub rows: Vec<T>,
    /// `None` on the first page.
    pub previous: Option<Position>,
    /// `None` on the last page.
    pub next: Option<Position>,
}

impl<T> Default for PageOf<T> {
    fn default() -> Self {
        PageOf {
            rows: Vec::new(),
            previous: None,
            next: None,
        }
    }
}

impl<T> PageOf<T> {
    /// The page with a part of each row.
    pub fn map<U>(self, part: impl FnMut(T) -> U) -> PageOf<U> {
        PageOf {
            rows: self.rows.into_iter().map(part).collect(),
            previous: self.previous,
            next: self.next,
        }
    }

    /// The page of the rows that a read returned. The read requested one row more than `limit`; it was against the
    /// direction of the list if the page ends before a position. `None` if such a read reached the start of the list,
    /// so that the first page is the one to show.
    pub fn new(
        mut rows: Vec<T>,
        place: PageStart,
        direction: Direction,
        limit: usize,
        position: impl Fn(&T) -> Position,
    ) -> Option<PageOf<T>> {
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        if let PageStart::Before(_) = place {
            if !has_more {
                return None;
            }
            rows.reverse();
            return Some(PageOf {
                previous: rows.first().map(&position),
                next: rows.last().map(&position),
                rows,
            });
        }
        let previous = match place {
            PageStart::After(after) => {
                let first = rows.first().map(&position);
                Some(first.unwrap_or(just_behind(after, direction)))
            }
            PageStart::First | PageStart::Before(_) => None,
        };
        Some(PageOf {
            previous,
            next: rows.last().filter(|_| has_more).map(position),
            rows,
        })
    }
}

/// The position just behind this one, so that the page before an empty page ends with the row at `position`.
fn just_behind(position: Position, direction: Direction) -> Position {
    let seq = match direction {
        Direction::Ascending => position.seq.saturating_add(1),
        Direction::Descending => position.seq.saturating_sub(1),
    };
    Position { seq, ..position }
}

/// The positions between which the rows of a page are, both excluded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    pub from: Position,
    pub to: Position,
}

impl Range {
    /// The rows that a page with this place can contain.
    pub fn of(place: PageStart, direction: Direction) -> Range {
        let all = Range {
            from: Position::START,
            to: Position::END,
        };
        match (place, direction) {
            (PageStart::First, _) => all,
            (PageStart::After(from), Direction::Ascending)
            | (PageStart::Before(from), Direction::Descending) => Range { from, ..all },
            (PageStart::After(to), Direction::Descending)
            | (PageStart::Before(to), Direction::Ascending) => Range { to, ..all },
        }
    }
}

/// A page of a list in memory that is sorted by position, greatest first.
pub fn page_of_newest<T: Clone>(
    list: &[T],
    place: PageStart,
    limit: usize,
    position: impl Fn(&T) -> Position,
) -> PageOf<T> {
    let direction = Direction::Descending;
    let is_at_or_before = |row: &T, at: &Position, least| position(row).order(at) >= least;
    let rows: Vec<T> = match place {
        PageStart::First => list.iter().take(limit + 1).cloned().collect(),
        PageStart::After(at) => {
            let start = list.partition_point(|row| is_at_or_before(row, &at, Ordering::Equal));
            list.iter().skip(start).take(limit + 1).cloned().collect()
        }
        PageStart::Before(at) => {
            let end = list.partition_point(|row| is_at_or_before(row, &at, Ordering::Greater));
            let before = list.iter().take(end).rev();
            before.take(limit + 1).cloned().collect()
        }
    };
    let page = PageOf::new(rows, place, direction, limit, &position);
    page.unwrap_or_else(|| page_of_newest(list, PageStart::First, limit, position))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_restored_from_its_text() {
        let waiting = |priority| Position {
            priority,
            ..Position::at(1_793_500_000_000_000, 7)
        };
        for position in [
            Position::START,
            Position::END,
            Position::at(-5, 0),
            waiting(-0.5),
            waiting(f64::NEG_INFINITY),
        ] {
            assert_eq!(position.to_string().parse(), Ok(position), "{position}");
        }
        for text in ["", "0", "0.1", "0.1.2.3", "0.1.x", "7ff8000000000000.1.2"] {
            assert_eq!(text.parse::<Position>(), Err(()), "{text}");
        }
    }

    #[test]
    fn pages_of_a_list_in_memory_meet() {
        // Two rows of each time.
        let list: Vec<i64> = (0..25).rev().collect();
        let position = |n: &i64| Position::at(n / 2, *n);
        let page = |place| page_of_newest(&list, place, 10, position);
        let first = page(PageStart::First);
        assert_eq!((first.previous, &*first.rows), (None, &list[..10]));
        let second = page(PageStart::After(first.next.unwrap()));
        assert_eq!(&*second.rows, &list[10..20]);
        let third = page(PageStart::After(second.next.unwrap()));
        assert_eq!((&*third.rows, third.next), (&list[20..], None));
        assert_eq!(page(PageStart::Before(third.previous.unwrap())), second);
        assert_eq!(page(PageStart::Before(second.previous.unwrap())), first);
        // The page before one that has become empty ends with the last row.
        let empty = page(PageStart::After(position(&0)));
        assert_eq!((empty.rows.len(), empty.next), (0, None));
        let last = page(PageStart::Before(empty.previous.unwrap()));
        assert_eq!(&*last.rows, &list[15..]);
    }
}
