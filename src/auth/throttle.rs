//! The login throttle: a client that sends too many wrong credentials has to wait.
//!
//! Failures count per address and name, so that wrong passwords of one user do not lock out another user behind the
//! same address. They also count per address, with a higher limit, because a client can invent names. Correct
//! credentials reset both counts.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::request::network_of;
use crate::secret::Hash;

/// Failures of the sign-in form per name and address within [`WINDOW`].
const FORM_FAILURES_MAX: u32 = 10;
/// Failures of request headers per name and address within [`WINDOW`]; more, because programs repeat requests.
const HEADER_FAILURES_MAX: u32 = 30;

/// Failures per address within [`WINDOW`].
const ADDRESS_FAILURES_MAX: u32 = 100;

const WINDOW: Duration = Duration::from_secs(60);

/// Sign-ins per name and address within [`WINDOW`].
const SIGN_INS_MAX: u32 = 30;

/// Rejections per address that are logged within [`WINDOW`].
const LOGGED_MAX: u32 = 10;

const COUNTERS_MAX: usize = 10_000;

/// Expired counters that are removed for each new one. With two, they become fewer, however many there are.
const EXPIRED_AT_ONCE: usize = 2;

/// Counts failures and sign-ins of the last minute.
#[derive(Debug, Default)]
pub struct LoginThrottle(Mutex<Counters>);

/// All counters. Requests without credentials add counters, so no step depends on how many there are.
#[derive(Debug, Default)]
struct Counters {
    by_key: HashMap<Key, Counter>,
    /// The keys of the counters by their number, so the oldest counter is first.
    by_age: BTreeMap<u64, Key>,
    next: u64,
}

/// What a counter counts: failures or logged rejections of an address, or failures or sign-ins of a name (its hash)
/// from an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Address(IpAddr),
    Name(IpAddr, [u8; 32]),
    SignIn(IpAddr, [u8; 32]),
    Logged(IpAddr),
}

/// The part of a request that has the credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialSource {
    /// In the sign-in form.
    Form,
    /// In the `Authorization` header.
    Header,
}

#[derive(Debug)]
struct Counter {
    number: u64,
    since: Instant,
    n: u32,
}

impl LoginThrottle {
    /// Runs `check` on credentials, unless there were too many failures. `name` is the hash of the user name.
    ///
    /// # Errors
    /// How long the client has to wait; `check` was not run.
    pub fn attempt<T>(
        &self,
        from: Option<IpAddr>,
        name: Hash,
        source: CredentialSource,
        check: impl FnOnce() -> Option<T>,
    ) -> Result<Option<T>, Duration> {
        let from = network_of(from);
        let keys = [Key::Address(from), Key::Name(from, name.bytes())];
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name_max = match source {
            CredentialSource::Form => FORM_FAILURES_MAX,
            CredentialSource::Header => HEADER_FAILURES_MAX,
        };
        let waits = keys.iter().zip([ADDRESS_FAILURES_MAX, name_max]);
        if let Some(wait) = waits.filter_map(|(key, max)| all.wait(key, max)).max() {
            return Err(wait);
        }
        if let Some(found) = check() {
            for key in &keys {
                all.remove(key);
            }
            return Ok(Some(found));
        }
        keys.into_iter().for_each(|key| all.count(key));
        Ok(None)
    }

    /// Counts a sign-in of `name`.
    ///
    /// # Errors
    /// How long the client has to wait, if it signs in too often.
    pub fn sign_in(&self, from: Option<IpAddr>, name: Hash) -> Result<(), Duration> {
        let key = Key::SignIn(network_of(from), name.bytes());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wait) = all.wait(&key, SIGN_INS_MAX) {
            return Err(wait);
        }
        all.count(key);
        Ok(())
    }

    /// Whether to log that a request of this address was rejected, for example for wrong credentials or a wrong host.
    /// A client that repeats such requests must not fill the log.
    pub fn may_log(&self, from: Option<IpAddr>) -> bool {
        let key = Key::Logged(network_of(from));
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.wait(&key, LOGGED_MAX).is_some() {
            return false;
        }
        all.count(key);
        true
    }
}

impl Counters {
    /// The time until the counter restarts, if it is at its limit.
    fn wait(&self, key: &Key, max: u32) -> Option<Duration> {
        let counter = self.by_key.get(key).filter(|counter| counter.n >= max)?;
        let wait = WINDOW.checked_sub(counter.since.elapsed())?;
        (!wait.is_zero()).then_some(wait)
    }

    fn count(&mut self, key: Key) {
        if let Some(counter) = self.by_key.get_mut(&key)
            && counter.since.elapsed() < WINDOW
        {
            counter.n += 1;
            return;
        }
        self.remove(&key);
        self.make_room();
        let counter = Counter {
            number: self.next,
            since: Instant::now(),
            n: 1,
        };
        self.by_age.insert(counter.number, key);
        self.by_key.insert(key, counter);
        self.next += 1;
    }

    fn remove(&mut self, key: &Key) {
        if let Some(counter) = self.by_key.remove(key) {
            self.by_age.remove(&counter.number);
        }
    }

    /// Removes some expired counters, and the oldest one if there are too many.
    fn make_room(&mut self) {
        for _ in 0..EXPIRED_AT_ONCE {
            let Some(oldest) = self.oldest() else {
                return;
            };
            let is_expired = |counter: &Counter| counter.since.elapsed() >= WINDOW;
            if self.by_key.len() >= COUNTERS_MAX || self.by_key.get(&oldest).is_some_and(is_expired)
            {
                self.remove(&oldest);
            }
        }
    }

    fn oldest(&self) -> Option<Key> {
        self.by_age.first_key_value().map(|(_, key)| *key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An attempt of `name` from `from`, with the right key or not.
    fn attempt(
        throttle: &LoginThrottle,
        from: &str,
        name: &str,
        right: bool,
    ) -> Result<Option<()>, Duration> {
        let from = from.parse().ok();
        throttle.attempt(from, Hash::of(name), CredentialSource::Form, || {
            right.then_some(())
        })
    }

    #[tokio::test(start_paused = true)]
    async fn after_ten_failures_in_a_minute_a_name_has_to_wait() {
        let throttle = LoginThrottle::default();
        let try_as = |from, name, right| attempt(&throttle, from, name, right);
        let from = "192.0.2.1";
        for _ in 0..10 {
            assert_eq!(try_as(from, "ada", false), Ok(None));
        }
        assert_eq!(try_as(from, "ada", false), Err(WINDOW));
        assert_eq!(try_as(from, "ada", true), Err(WINDOW), "nor the right key");
        assert_eq!(try_as(from, "bob", false), Ok(None), "another name");
        assert_eq!(try_as("192.0.2.2", "ada", true), Ok(Some(())));
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(try_as(from, "ada", true), Err(Duration::from_secs(1)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(try_as(from, "ada", true), Ok(Some(())));
    }

    #[tokio::test(start_paused = true)]
    async fn ten_rejections_of_an_address_are_logged_in_a_minute() {
        let throttle = LoginThrottle::default();
        let may_log = |from: &str| throttle.may_log(from.parse().ok());
        assert!((0..10).all(|_| may_log("192.0.2.1")));
        assert!(!may_log("192.0.2.1"));
        assert!(may_log("192.0.2.2"), "another address");
        tokio::time::advance(WINDOW).await;
        assert!(may_log("192.0.2.1"));
    }

    #[tokio::test(start_paused = true)]
    async fn headers_have_a_higher_limit_and_correct_credentials_reset_it() {
        let throttle = LoginThrottle::default();
        let send = |right: bool| {
            let from = "192.0.2.1".parse().ok();
            throttle.attempt(from, Hash::of("ada"), CredentialSource::Header, || {
                right.then_some(())
            })
        };
        for _ in 0..10 {
            for _ in 0..29 {
                assert_eq!(send(false), Ok(None));
            }
            assert_eq!(send(true), Ok(Some(())));
        }
        for _ in 0..30 {
            assert_eq!(send(false), Ok(None));
        }
        assert_eq!(send(true), Err(WINDOW));
    }

    #[tokio::test(start_paused = true)]
    async fn invented_names_do_not_avoid_the_throttle() {
        let throttle = LoginThrottle::default();
        for n in 0..100 {
            let name = format!("name-{n}");
            assert_eq!(attempt(&throttle, "192.0.2.1", &name, false), Ok(None));
        }
        assert_eq!(
            attempt(&throttle, "192.0.2.1", "another", true),
            Err(WINDOW)
        );
        assert_eq!(
            attempt(&throttle, "192.0.2.2", "another", true),
            Ok(Some(()))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_ipv6_network_counts_as_one_address() {
        let throttle = LoginThrottle::default();
        for host in 0..10 {
            let from = format!("2001:db8:1:2::{host}");
            assert_eq!(attempt(&throttle, &from, "ada", false), Ok(None));
        }
        assert!(attempt(&throttle, "2001:db8:1:2:ffff::1", "ada", false).is_err());
        assert_eq!(
            attempt(&throttle, "2001:db8:1:3::1", "ada", false),
            Ok(None)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn sign_ins_are_limited() {
        let throttle = LoginThrottle::default();
        let from = "192.0.2.1".parse().ok();
        for _ in 0..30 {
            assert_eq!(throttle.sign_in(from, Hash::of("vera")), Ok(()));
        }
        assert_eq!(throttle.sign_in(from, Hash::of("vera")), Err(WINDOW));
        assert_eq!(throttle.sign_in(from, Hash::of("olga")), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_counters_is_limited() {
        let throttle = LoginThrottle::default();
        for n in 0..6_000_u32 {
            let from = Some(IpAddr::from(n.to_be_bytes()));
            let wrong =
                throttle.attempt(from, Hash::of("ada"), CredentialSource::Form, || None::<()>);
            assert_eq!(wrong, Ok(None));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        let known = throttle.0.lock().unwrap();
        assert_eq!(known.by_key.len(), 10_000);
        assert_eq!(known.by_age.len(), 10_000);
        let first = Key::Address(IpAddr::from(0_u32.to_be_bytes()));
        assert!(!known.by_key.contains_key(&first));
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_counter_removes_at_most_two_expired_ones() {
        let throttle = LoginThrottle::default();
        let log = |n: u32| throttle.may_log(Some(n.to_be_bytes().into()));
        let known = || {
            let known = throttle.0.lock().unwrap();
            assert_eq!(known.by_key.len(), known.by_age.len());
            known.by_key.len()
        };
        assert!((0..10_000).all(log));
        assert!(log(0), "known");
        assert_eq!(known(), 10_000);
        tokio::time::advance(WINDOW).await;
        for n in 1..=5_000 {
            assert!(log((1 << 20) + n));
            assert_eq!(known(), 10_000 - usize::try_from(n).unwrap());
        }
        assert!(log(2 << 20));
        assert_eq!(known(), 5_001, "no counter has expired");
        tokio::time::advance(WINDOW).await;
        assert!(log(2 << 20), "restarted");
        assert_eq!(known(), 4_999);
    }

    #[tokio::test(start_paused = true)]
    async fn correct_credentials_remove_both_counters() {
        let throttle = LoginThrottle::default();
        for _ in 0..3 {
            assert_eq!(attempt(&throttle, "192.0.2.1", "ada", false), Ok(None));
            assert_eq!(attempt(&throttle, "192.0.2.1", "ada", true), Ok(Some(())));
            let known = throttle.0.lock().unwrap();
            assert!(known.by_key.is_empty() && known.by_age.is_empty());
        }
    }
}
