//! Rejected actions in the audit log. They are counted per minute, so that they cannot displace entries of actions.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::engine::{Actor, Engine};
use crate::secret::Hash;

/// Maximum number of actions of a user with an audit entry of their own, per minute. Further ones share one entry. The
/// limit is not one of all users together, so that no user can hide what others are refused.
const KINDS_MAX: usize = 200;

/// The action of a shared entry.
pub const VARIOUS: &str = "various";

const MINUTE_US: i64 = 60_000_000;

#[derive(Debug, Default)]
pub struct Rejections(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    minute: i64,
    /// The number of rejections by user and action. Users are names of keys, and `unknown`.
    kinds: HashMap<String, HashMap<String, u64>>,
}

impl Rejections {
    /// Records a rejected action. Rejections of the same action by the same user share one entry per minute. The entry
    /// is written at the first rejection, and again whenever the number has doubled.
    pub async fn record(&self, engine: &Engine, actor: &Actor, why: &str) {
        let minute = engine.now(None).0.div_euclid(MINUTE_US);
        let Some((action, count)) = self.count(minute, &actor.who, &actor.action) else {
            return;
        };
        let shared = Hash::of(format!("{minute} {} {action}", actor.who)).hex();
        let actor = Actor {
            id: shared.get(..32).unwrap_or(&shared).to_owned(),
            action,
            ..actor.clone()
        };
        let why = match count {
            1 => why.to_owned(),
            _ => format!("{why} Rejected at least {count} times within 1 minute."),
        };
        if let Err(error) = engine.record_outcome(&actor, false, &why).await {
            tracing::error!(%error, "failed to write the audit log");
        }
    }

    /// Counts a rejection. Returns the action and the number if the entry is to be written.
    fn count(&self, minute: i64, who: &str, action: &str) -> Option<(String, u64)> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.minute != minute {
            counts.minute = minute;
            counts.kinds.clear();
        }
        let kinds = counts.kinds.entry(who.to_owned()).or_default();
        let is_known = kinds.len() < KINDS_MAX || kinds.contains_key(action);
        let action = if is_known { action } else { VARIOUS };
        let count = kinds.entry(action.to_owned()).or_default();
        *count += 1;
        count.is_power_of_two().then(|| (action.to_owned(), *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_written_whenever_the_number_has_doubled() {
        let rejections = Rejections::default();
        let counts: Vec<u64> = (0..100)
            .filter_map(|_| rejections.count(1, "vera", "cancel"))
            .map(|(_, count)| count)
            .collect();
        assert_eq!(counts, [1, 2, 4, 8, 16, 32, 64]);
        let other = rejections.count(1, "olga", "cancel");
        assert_eq!(other, Some(("cancel".to_owned(), 1)));
        let later = rejections.count(2, "vera", "cancel");
        assert_eq!(later, Some(("cancel".to_owned(), 1)));
    }

    #[test]
    fn invented_actions_share_an_entry() {
        let rejections = Rejections::default();
        let written = (0..10_000)
            .filter(|n| {
                rejections
                    .count(1, "vera", &format!("action-{n}"))
                    .is_some()
            })
            .count();
        assert!(written < KINDS_MAX + 20, "{written}");
        // 200 entries, and the shared entry.
        assert_eq!(rejections.0.lock().unwrap().kinds["vera"].len(), 201);
        // Those of others keep their names.
        let other = rejections.count(1, "olga", "cancel");
        assert_eq!(other, Some(("cancel".to_owned(), 1)));
    }
}
