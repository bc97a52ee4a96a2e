//! The login throttle: a client that sends too many wrong credentials has to wait.
//!
//! Failures count per address and name, so that wrong passwords of one user do not lock out another user behind the
//! same address. They also count per address, with a higher limit, because a client can invent names. Correct
//! credentials reset both counts.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::request::network_of;
use crate::secret::Hash;

/// Failures of the login form per name and address within [`WINDOW`].
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

/// Counts failures and sign-ins of the last minute.
#[derive(Debug, Default)]
pub struct LoginThrottle(Mutex<HashMap<Key, Counter>>);

/// What a counter counts: failures or logged rejections of an address, or failures or sign-ins of a name (its hash)
/// from an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Address(IpAddr),
    Name(IpAddr, String),
    SignIn(IpAddr, String),
    Logged(IpAddr),
}

/// The part of a request that has the credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialSource {
    /// In the login form.
    Form,
    /// In the `Authorization` header.
    Header,
}

#[derive(Debug)]
struct Counter {
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
        let keys = [Key::Address(from), Key::Name(from, name.hex())];
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name_max = match source {
            CredentialSource::Form => FORM_FAILURES_MAX,
            CredentialSource::Header => HEADER_FAILURES_MAX,
        };
        let waits = keys.iter().zip([ADDRESS_FAILURES_MAX, name_max]);
        if let Some(wait) = waits.filter_map(|(key, max)| wait(&all, key, max)).max() {
            return Err(wait);
        }
        if let Some(found) = check() {
            for key in &keys {
                all.remove(key);
            }
            return Ok(Some(found));
        }
        keys.into_iter().for_each(|key| count(&mut all, key));
        Ok(None)
    }

    /// Counts a sign-in of `name`.
    ///
    /// # Errors
    /// How long the client has to wait, if it signs in too often.
    pub fn sign_in(&self, from: Option<IpAddr>, name: Hash) -> Result<(), Duration> {
        let key = Key::SignIn(network_of(from), name.hex());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wait) = wait(&all, &key, SIGN_INS_MAX) {
            return Err(wait);
        }
        count(&mut all, key);
        Ok(())
    }

    /// Whether to log that a request of this address was rejected, for example for wrong credentials or a wrong host.
    /// A client that repeats such requests must not fill the log.
    pub fn may_log(&self, from: Option<IpAddr>) -> bool {
        let key = Key::Logged(network_of(from));
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if wait(&all, &key, LOGGED_MAX).is_some() {
            return false;
        }
        count(&mut all, key);
        true
    }
}

/// The time until the counter restarts, if it is at its limit.
fn wait(all: &HashMap<Key, Counter>, key: &Key, max: u32) -> Option<Duration> {
    let counter = all.get(key).filter(|counter| counter.n >= max)?;
    let wait = WINDOW.checked_sub(counter.since.elapsed())?;
    (!wait.is_zero()).then_some(wait)
}

fn count(all: &mut HashMap<Key, Counter>, key: Key) {
    if all.len() >= COUNTERS_MAX && !all.contains_key(&key) {
        make_room(all);
    }
    let new = || Counter {
        since: Instant::now(),
        n: 0,
    };
    let counter = all.entry(key).or_insert_with(new);
    if counter.since.elapsed() >= WINDOW {
        *counter = new();
    }
    counter.n += 1;
}

/// Removes expired counters, or else the oldest one.
fn make_room(all: &mut HashMap<Key, Counter>) {
    all.retain(|_, counter| counter.since.elapsed() < WINDOW);
    if all.len() >= COUNTERS_MAX {
        let first = all.iter().min_by_key(|(_, counter)| counter.since);
        if let Some(first) = first.map(|(key, _)| key.clone()) {
            all.remove(&first);
        }
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
        assert_eq!(known.len(), 10_000);
        let first = Key::Address(IpAddr::from(0_u32.to_be_bytes()));
        assert!(!known.contains_key(&first));
    }
}
