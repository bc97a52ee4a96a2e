//! How often somebody has typed what is no key: whoever guesses has to wait.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::server::network;

/// So many wrong tries an address has in a minute.
const TRIES_MAX: u32 = 10;
const WITHIN: Duration = Duration::from_secs(60);

/// The most addresses that are kept in mind.
const ADDRESSES_MAX: usize = 10_000;

/// The wrong tries of a minute.
#[derive(Default)]
pub struct Tries(Mutex<HashMap<IpAddr, Wrong>>);

struct Wrong {
    since: Instant,
    tries: u32,
}

impl Tries {
    /// Tries `key`, unless this address has tried in vain too often.
    ///
    /// # Errors
    /// How long it has to wait.
    pub fn attempt<T>(
        &self,
        from: IpAddr,
        key: impl FnOnce() -> Option<T>,
    ) -> Result<Option<T>, Duration> {
        let from = network(from);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wrong) = all.get(&from)
            && wrong.tries >= TRIES_MAX
            && let Some(wait) = WITHIN.checked_sub(wrong.since.elapsed())
            && !wait.is_zero()
        {
            return Err(wait);
        }
        if let Some(found) = key() {
            return Ok(Some(found));
        }
        if all.len() >= ADDRESSES_MAX && !all.contains_key(&from) {
            make_room(&mut all);
        }
        let wrong = all.entry(from).or_insert_with(Wrong::none);
        if wrong.since.elapsed() >= WITHIN {
            *wrong = Wrong::none();
        }
        wrong.tries += 1;
        Ok(None)
    }
}

impl Wrong {
    fn none() -> Wrong {
        Wrong {
            since: Instant::now(),
            tries: 0,
        }
    }
}

/// Forgets what is over; if nothing is, what began first.
fn make_room(all: &mut HashMap<IpAddr, Wrong>) {
    all.retain(|_, wrong| wrong.since.elapsed() < WITHIN);
    if all.len() >= ADDRESSES_MAX {
        let first = all.iter().min_by_key(|(_, wrong)| wrong.since);
        if let Some(first) = first.map(|(from, _)| *from) {
            all.remove(&first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn after_ten_wrong_tries_in_a_minute_one_has_to_wait() {
        let tries = Tries::default();
        let from = address("192.0.2.1");
        let wrong = |from| tries.attempt(from, || None::<()>);
        let right = |from| tries.attempt(from, || Some(()));
        for _ in 0..10 {
            assert_eq!(right(from), Ok(Some(())), "who has the key may go on");
            assert_eq!(wrong(from), Ok(None));
        }
        assert_eq!(wrong(from), Err(WITHIN));
        assert_eq!(right(from), Err(WITHIN), "nor is the right one tried");
        assert_eq!(wrong(address("192.0.2.2")), Ok(None), "another one");
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(wrong(from), Err(Duration::from_secs(1)));
        tokio::time::advance(Duration::from_secs(1)).await;
        for _ in 0..10 {
            assert_eq!(wrong(from), Ok(None));
        }
        assert_eq!(wrong(from), Err(WITHIN));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_one_persons_counts_as_one() {
        let tries = Tries::default();
        let wrong = |from: &str| tries.attempt(address(from), || None::<()>);
        for host in 0..10 {
            assert_eq!(wrong(&format!("2001:db8:1:2::{host}")), Ok(None));
        }
        assert!(wrong("2001:db8:1:2:ffff::1").is_err());
        assert_eq!(wrong("2001:db8:1:3::1"), Ok(None));
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_addresses_are_kept_in_mind_than_there_is_room_for() {
        let tries = Tries::default();
        let wrong = |n: u32| tries.attempt(IpAddr::from(n.to_be_bytes()), || None::<()>);
        for n in 0..12_000 {
            assert_eq!(wrong(n), Ok(None));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        let known = tries.0.lock().unwrap();
        assert_eq!(known.len(), ADDRESSES_MAX);
        assert!(!known.contains_key(&IpAddr::from(0_u32.to_be_bytes())));
    }
}
