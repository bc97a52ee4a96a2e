//! Rejected actions in the audit log. They are counted per minute, so that they cannot displace entries of actions.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::engine::{Actor, Engine};
use crate::secret::Hash;

/// Maximum number of audit entries per minute, one for each user and action. Entries without a role (failed sign-ins)
/// have a limit of their own of this size, because clients without credentials cause them. Further rejections share one
/// entry per user.
const KINDS_MAX: usize = 200;

/// The action of a shared entry.
pub const VARIOUS: &str = "various";

const MINUTE_US: i64 = 60_000_000;

#[derive(Debug, Default)]
pub struct Rejections(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    minute: i64,
    /// The number of rejections by user and action.
    kinds: HashMap<(String, String), u64>,
    /// The same for rejections without a role, apart from the others, so that they cannot hide them, nor be hidden.
    without_role: HashMap<(String, String), u64>,
}

impl Rejections {
    /// Records a rejected action. Rejections of the same action by the same user share one entry per minute. The entry
    /// is written at the first rejection, and again whenever the number has doubled.
    pub async fn record(&self, engine: &Engine, actor: &Actor, why: &str) {
        let minute = engine.now(None).0.div_euclid(MINUTE_US);
        let has_role = !actor.role.is_empty();
        let Some((action, count)) = self.count(minute, has_role, &actor.who, &actor.action) else {
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
    fn count(&self, minute: i64, has_role: bool, who: &str, action: &str) -> Option<(String, u64)> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.minute != minute {
            *counts = Counts {
                minute,
                ..Counts::default()
            };
        }
        let kinds = match has_role {
            true => &mut counts.kinds,
            false => &mut counts.without_role,
        };
        let mut kind = (who.to_owned(), action.to_owned());
        if kinds.len() >= KINDS_MAX && !kinds.contains_key(&kind) {
            kind.1 = VARIOUS.to_owned();
        }
        let action = kind.1.clone();
        let count = kinds.entry(kind).or_default();
        *count += 1;
        count.is_power_of_two().then_some((action, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_written_whenever_the_number_has_doubled() {
        let rejections = Rejections::default();
        let counts: Vec<u64> = (0..100)
            .filter_map(|_| rejections.count(1, true, "vera", "cancel"))
            .map(|(_, count)| count)
            .collect();
        assert_eq!(counts, [1, 2, 4, 8, 16, 32, 64]);
        let other = rejections.count(1, true, "olga", "cancel");
        assert_eq!(other, Some(("cancel".to_owned(), 1)));
        let later = rejections.count(2, true, "vera", "cancel");
        assert_eq!(later, Some(("cancel".to_owned(), 1)));
    }

    #[test]
    fn invented_actions_share_an_entry() {
        let rejections = Rejections::default();
        let written = (0..10_000)
            .filter(|n| {
                rejections
                    .count(1, true, "vera", &format!("action-{n}"))
                    .is_some()
            })
            .count();
        assert!(written < KINDS_MAX + 20, "{written}");
        // 200 entries, and the shared entry.
        assert_eq!(rejections.0.lock().unwrap().kinds.len(), 201);
        let sign_in = rejections.count(1, false, "ada", "sign_in");
        assert_eq!(sign_in, Some(("sign_in".to_owned(), 1)), "not hidden");
    }
}
