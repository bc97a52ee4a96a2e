//! Options: defaults, values that were set, and values per queue. The table `config` is cached here. A change applies
//! to later claims, heartbeats and completions, not to existing leases (qless-core, Configuration Options).

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use crate::engine::error::{Error, Result};
use crate::engine::model::job::{NAME_BYTES_MAX, Protocol, QueueKey};
use crate::store::{Row, Statement, StoreError};

/// The longest option name in bytes: a queue's name with the longest suffix.
pub const OPTION_BYTES_MAX: usize = NAME_BYTES_MAX + "-max-concurrency".len();

/// The longest value in bytes, as JSON text.
const VALUE_BYTES_MAX: usize = 4_096;

/// The names and values of all options that are set, in bytes. Several requests read or reload all of them at once.
pub const OPTIONS_BYTES_MAX: usize = 4 << 20;

/// The greatest value of `<queue>-max-concurrency` that limits the running jobs.
const CONCURRENCY_MAX: usize = 10_000;

/// Options that can be set per queue, as `<queue>-<option>` (a heartbeat also as `heartbeat-<queue>`).
const PER_QUEUE: [&str; 3] = ["heartbeat", "cutoff", "max-concurrency"];

/// The options that the server uses, with their defaults. All are numbers.
const DEFAULTS: [(&str, i64); 8] = [
    ("grace-period", 0),
    ("heartbeat", 60),
    ("histogram-history", 7),
    ("jobs-history", 604_800),
    ("jobs-history-count", 50_000),
    ("max-job-history", 100),
    ("max-worker-age", 86_400),
    ("stats-history", 30),
];

/// An option that clients of qless-core expect, and its value as JSON text. It has no effect.
const APPLICATION: (&str, &str) = ("application", "\"qless\"");

/// The options that were set. Values are JSON text, verbatim.
#[derive(Debug, Default)]
pub struct Config(RwLock<Set>);

#[derive(Debug, Default)]
struct Set {
    values: BTreeMap<String, String>,
    /// The size of all names and values.
    bytes: usize,
}

impl Set {
    fn new(values: BTreeMap<String, String>) -> Set {
        let sizes = values.iter().map(|(option, value)| size(option, value));
        let bytes = sizes.sum();
        Set { values, bytes }
    }

    /// The size of an option that is set; 0 of another one.
    fn size_of(&self, option: &str) -> usize {
        let value = self.values.get(option);
        value.map_or(0, |value| size(option, value))
    }
}

fn size(option: &str, value: &str) -> usize {
    option.len() + value.len()
}

impl Config {
    /// Replaces the options with the result of [`ALL`].
    pub fn reload(&self, rows: &[Row]) -> Result<(), StoreError> {
        let set = rows.iter().map(|row| Ok((row.text(0)?, row.text(1)?)));
        let set: BTreeMap<_, _> = set.collect::<Result<_, StoreError>>()?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Set::new(set);
        Ok(())
    }

    /// The option's value, or its default, if any.
    pub fn get(&self, option: &str) -> Option<String> {
        let set = self
            .0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .values
            .get(option)
            .cloned();
        set.or_else(|| default(option))
    }

    /// All options with a value or a default.
    pub fn all(&self) -> BTreeMap<String, String> {
        let mut all = defaults();
        all.extend(
            self.0
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .values
                .clone(),
        );
        all
    }

    /// Validates a value, which is JSON text.
    ///
    /// # Errors
    /// [`Error::BadOption`].
    pub fn check(option: &str, value: &str) -> Result<()> {
        Config::check_sizes(option, value)?;
        let bad = |why: String| Err(Error::BadOption { why });
        let is_number = || value.parse::<f64>().is_ok_and(f64::is_finite);
        if Config::is_number(option) && !is_number() {
            return bad(format!("the option {option} must be a number"));
        }
        Ok(())
    }

    /// Checks the sizes of an option and its value, so that a long value is refused before it is copied or parsed.
    ///
    /// # Errors
    /// [`Error::BadOption`].
    pub fn check_sizes(option: &str, value: &str) -> Result<()> {
        let bad = |why: String| Err(Error::BadOption { why });
        if option.is_empty() || option.len() > OPTION_BYTES_MAX {
            return bad(format!(
                "the option name must have 1 to {OPTION_BYTES_MAX} bytes"
            ));
        }
        if value.len() > VALUE_BYTES_MAX {
            return bad(format!("the value must not exceed {VALUE_BYTES_MAX} bytes"));
        }
        Ok(())
    }

    pub fn default_value(option: &str) -> Option<String> {
        default(option)
    }

    pub fn is_set(&self, option: &str) -> bool {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .values
            .contains_key(option)
    }

    /// The number of options that are set, and the size of their names and values.
    pub fn count_set(&self) -> (usize, usize) {
        let set = self.0.read().unwrap_or_else(PoisonError::into_inner);
        (set.values.len(), set.bytes)
    }

    /// Whether this change is too large: it adds bytes beyond [`OPTIONS_BYTES_MAX`]. Options that exceed it already can
    /// still become smaller.
    pub(in crate::engine) fn exceeds_total(&self, option: &str, value: &str) -> bool {
        let set = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let (old, new) = (set.size_of(option), size(option, value));
        new > old && set.bytes - old + new > OPTIONS_BYTES_MAX
    }

    /// Whether the option's value must be a number.
    pub fn is_number(option: &str) -> bool {
        let of_queue = |name: &&str| {
            option
                .strip_suffix(*name)
                .is_some_and(|rest| rest.ends_with('-'))
        };
        DEFAULTS.iter().any(|(name, _)| *name == option)
            || PER_QUEUE.iter().any(of_queue)
            || option.starts_with("heartbeat-")
    }

    /// Seconds until a worker of the queue must heartbeat. If negative, leases expire at once.
    pub fn heartbeat_s(&self, queue: &str) -> f64 {
        self.of_queue(|| format!("{queue}-heartbeat"))
            .or_else(|| self.of_queue(|| format!("heartbeat-{queue}")))
            .unwrap_or_else(|| self.number("heartbeat"))
    }

    /// The limit in seconds on a run of a job of the queue, regardless of heartbeats.
    pub fn cutoff_s(&self, queue: &str) -> Option<f64> {
        self.of_queue(|| format!("{queue}-cutoff"))
    }

    /// The limit on running jobs of the queue, if any. Only queues of qless can have one. Claims count the running jobs, so larger numbers than
    /// [`CONCURRENCY_MAX`] are no limit.
    pub fn concurrency_max(&self, queue: &QueueKey) -> Option<usize> {
        if queue.protocol != Protocol::Qless {
            return None;
        }
        self.of_queue(|| format!("{}-max-concurrency", queue.name))
            .filter(|max| *max > 0.0)
            .map(whole)
            .filter(|max| *max <= CONCURRENCY_MAX)
    }

    /// An option with a default, as a whole number; negative values count as 0.
    pub fn whole_number(&self, option: &str) -> usize {
        whole(self.number(option))
    }

    /// An option with a default.
    pub fn number(&self, option: &str) -> f64 {
        self.parse(option).unwrap_or_default()
    }

    fn parse(&self, option: &str) -> Option<f64> {
        let set = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match set.values.get(option) {
            Some(value) => value.parse().ok(),
            None => default_number(option).map(|value| value as f64),
        }
    }

    /// The value of an option without a default. `option` builds its name, and is called only if any option is set.
    fn of_queue(&self, option: impl FnOnce() -> String) -> Option<f64> {
        let set = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match set.values.is_empty() {
            true => None,
            false => set.values.get(&option())?.parse().ok(),
        }
    }

    /// Applies a committed change. Returns the qless queue of which more jobs may be claimed now, if any.
    pub fn apply<'a>(&self, option: &'a str, value: Option<String>) -> Option<&'a str> {
        let mut set = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_changed = set.values.get(option) != value.as_ref();
        set.bytes -= set.size_of(option);
        match value {
            Some(value) => {
                set.bytes += size(option, &value);
                set.values.insert(option.to_owned(), value)
            }
            None => set.values.remove(option),
        };
        Config::limited_queue(option).filter(|_| is_changed)
    }

    /// The qless queue whose number of running jobs the option limits, if any.
    pub fn limited_queue(option: &str) -> Option<&str> {
        option.strip_suffix("-max-concurrency")
    }

    /// Forgets all options, after a flush.
    pub fn clear(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Set::default();
    }
}

/// The defaults as JSON text.
fn defaults() -> BTreeMap<String, String> {
    let numbers = DEFAULTS
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.to_string()));
    let (name, value) = APPLICATION;
    numbers
        .chain([(name.to_owned(), value.to_owned())])
        .collect()
}

/// The default of an option that is a number.
pub fn default_number(option: &str) -> Option<i64> {
    let default = DEFAULTS.iter().find(|(name, _)| *name == option);
    default.map(|(_, value)| *value)
}

fn default(option: &str) -> Option<String> {
    default_number(option)
        .map(|value| value.to_string())
        .or_else(|| (option == APPLICATION.0).then(|| APPLICATION.1.to_owned()))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count; a cast that saturates is right"
)]
fn whole(number: f64) -> usize {
    number as usize
}

/// The statement that stores an option, or deletes it.
pub fn save(option: &str, value: Option<&str>) -> Statement {
    match value {
        Some(value) => Statement::new(SET, [option.into(), value.into()]),
        None => Statement::new(UNSET, [option.into()]),
    }
}

pub const ALL: &str = "SELECT option, value FROM config";

const SET: &str = "
INSERT INTO config (option, value) VALUES ($1, $2)
ON CONFLICT (option) DO UPDATE SET value = excluded.value";

const UNSET: &str = "DELETE FROM config WHERE option = $1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_are_too_large_together_can_become_smaller() {
        let config = Config::default();
        config.apply("old", Some("1".repeat(2 * OPTIONS_BYTES_MAX)));
        assert_eq!(config.count_set(), (1, 2 * OPTIONS_BYTES_MAX + 3));
        assert!(config.exceeds_total("new", "1"));
        assert!(!config.exceeds_total("old", &"2".repeat(2 * OPTIONS_BYTES_MAX - 1)));
        config.apply("old", None);
        assert_eq!(config.count_set(), (0, 0));
        assert!(!config.exceeds_total("new", "1"));
    }

    #[test]
    fn an_option_has_271_bytes_and_a_value_4096() {
        let is_good = |option: usize, value: usize| {
            Config::check(&"o".repeat(option), &"1".repeat(value)).is_ok()
        };
        for (option, expected) in [
            (0, false),
            (1, true),
            (270, true),
            (271, true),
            (272, false),
        ] {
            assert_eq!(is_good(option, 1), expected, "{option} bytes");
        }
        for (value, expected) in [(4_095, true), (4_096, true), (4_097, false)] {
            assert_eq!(is_good(1, value), expected, "{value} bytes");
        }
    }
}
