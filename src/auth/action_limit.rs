//! Limits how many dashboard actions a user takes, because each is an entry of the audit log that is kept for weeks.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::keys::Identity;
use super::role::Role;

/// Actions that a user can take at once, after a pause. The command line takes one for each ID that it reads.
const AT_ONCE_MAX: u32 = 5_000;

/// After [`AT_ONCE_MAX`] actions, a user can take one per this time.
const INTERVAL: Duration = Duration::from_secs(30);

/// Users that are counted. The configured keys name them, so there are few.
const USERS_MAX: usize = 1_000;

/// Counts the actions of each user on this server.
#[derive(Debug, Default)]
pub struct ActionLimit(Mutex<HashMap<(String, Role), Instant>>);

impl ActionLimit {
    /// Counts `actions` actions of a user.
    ///
    /// # Errors
    /// How long the user has to wait, if these are too many; they are not counted then.
    pub fn count(&self, user: &Identity, actions: u32) -> Result<(), Duration> {
        let now = Instant::now();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= USERS_MAX {
            all.retain(|_, free_at| *free_at > now);
        }
        // Each action postpones by one interval the time at which the user has all actions again.
        let free_at = all.entry((user.name.clone(), user.role)).or_insert(now);
        let next = now.max(*free_at) + INTERVAL * actions;
        let wait = next.saturating_duration_since(now + INTERVAL * AT_ONCE_MAX);
        if !wait.is_zero() {
            return Err(wait);
        }
        *free_at = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str, role: Role) -> Identity {
        let name = name.to_owned();
        Identity { name, role }
    }

    #[tokio::test(start_paused = true)]
    async fn after_5000_actions_a_user_can_take_one_in_30_seconds() {
        let limit = ActionLimit::default();
        let olga = user("olga", Role::Operator);
        for _ in 0..5_000 {
            assert_eq!(limit.count(&olga, 1), Ok(()));
        }
        assert_eq!(limit.count(&olga, 1), Err(INTERVAL));
        assert_eq!(limit.count(&olga, 1), Err(INTERVAL), "not counted");
        assert_eq!(limit.count(&user("ada", Role::Operator), 1), Ok(()));
        assert_eq!(limit.count(&user("olga", Role::Admin), 1), Ok(()));
        tokio::time::advance(Duration::from_secs(29)).await;
        assert_eq!(limit.count(&olga, 1), Err(Duration::from_secs(1)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(limit.count(&olga, 2), Err(INTERVAL), "two at once");
        assert_eq!(limit.count(&olga, 1), Ok(()));
        assert_eq!(limit.count(&olga, 1), Err(INTERVAL));
        tokio::time::advance(INTERVAL * 6_000).await;
        for _ in 0..2_500 {
            assert_eq!(limit.count(&olga, 2), Ok(()));
        }
        assert_eq!(limit.count(&olga, 1), Err(INTERVAL));
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_counted_users_is_limited() {
        let limit = ActionLimit::default();
        for n in 0..3_000 {
            let user = user(&n.to_string(), Role::Operator);
            assert_eq!(limit.count(&user, 1), Ok(()));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert!(limit.0.lock().unwrap().len() <= USERS_MAX);
    }
}
