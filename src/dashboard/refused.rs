//! What is refused, for the audit: counted by the minute, so that refusals never push out what was done.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::engine::{Actor, Engine};
use crate::secret::Hash;

/// Kinds of refusals, by name and action, that have an entry of their own in a minute. Others share one for each name.
const KINDS_MAX: usize = 200;

/// The action of an entry that several kinds of refusals share.
const VARIOUS: &str = "various";

const MINUTE_US: i64 = 60_000_000;

/// Counts refusals.
#[derive(Debug, Default)]
pub struct Refused(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    minute: i64,
    /// How many, by who asked for what.
    kinds: HashMap<(String, String), u64>,
}

impl Refused {
    /// Notes in the audit that an action was refused. The same principal's refusals of an action share an entry in each
    /// minute. It is written at the first of them and whenever their number has doubled.
    pub async fn note(&self, engine: &Engine, actor: &Actor, why: &str) {
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

    /// Counts a refusal. The action under which it is noted and the number, if that is to be written.
    fn count(&self, minute: i64, who: &str, action: &str) -> Option<(String, u64)> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.minute != minute {
            counts.minute = minute;
            counts.kinds.clear();
        }
        let mut kind = (who.to_owned(), action.to_owned());
        if counts.kinds.len() >= KINDS_MAX && !counts.kinds.contains_key(&kind) {
            kind.1 = VARIOUS.to_owned();
        }
        let action = kind.1.clone();
        let count = counts.kinds.entry(kind).or_default();
        *count += 1;
        count.is_power_of_two().then_some((action, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_written_when_their_number_has_doubled() {
        let refused = Refused::default();
        let counts: Vec<u64> = (0..100)
            .filter_map(|_| refused.count(1, "vera", "cancel"))
            .map(|(_, count)| count)
            .collect();
        assert_eq!(counts, [1, 2, 4, 8, 16, 32, 64]);
        let other = refused.count(1, "olga", "cancel");
        assert_eq!(other, Some(("cancel".to_owned(), 1)));
        let later = refused.count(2, "vera", "cancel");
        assert_eq!(later, Some(("cancel".to_owned(), 1)));
    }

    #[test]
    fn actions_that_are_made_up_share_an_entry() {
        let refused = Refused::default();
        let written = (0..10_000)
            .filter(|n| refused.count(1, "vera", &format!("action-{n}")).is_some())
            .count();
        assert!(written < KINDS_MAX + 20, "{written}");
        // 200 of their own, and the one that the others share.
        assert_eq!(refused.0.lock().unwrap().kinds.len(), 201);
    }
}
