//! Options: set and unset.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::events::LogEvent;
use crate::engine::model::config::{Config, OPTIONS_BYTES_MAX};
use crate::engine::unit_of_work::{Needs, UnitOfWork};

impl Engine {
    /// Sets an option to a value, which is JSON text, or resets it to its default (`None`).
    pub async fn configure(
        &self,
        option: &str,
        value: Option<String>,
        now: Option<Time>,
    ) -> Result<()> {
        match &value {
            Some(value) => Config::check(option, value)?,
            None => Config::check_sizes(option, "")?,
        }
        let option = option.to_owned();
        self.write(Needs::default(), now, 1, move |work| {
            configure(work, &option, value.clone())
        })
        .await
    }
}

/// The number of options that may be set.
const OPTIONS_MAX: usize = 10_000;

/// Sets an option, or resets it to its default.
///
/// # Errors
/// [`Error::BadOption`]; [`Error::TooMany`] above [`OPTIONS_MAX`] or [`OPTIONS_BYTES_MAX`]. Changes in one transaction do
/// not see each other, so together they can exceed these limits a little.
pub fn configure(work: &mut UnitOfWork, option: &str, value: Option<String>) -> Result<()> {
    match &value {
        Some(value) => {
            Config::check(option, value)?;
            if !work.config.is_set(option) && work.config.count_set().0 >= OPTIONS_MAX {
                return Err(Error::TooMany {
                    what: "options",
                    max: OPTIONS_MAX,
                });
            }
            if work.config.exceeds_total(option, value) {
                return Err(Error::TooMany {
                    what: "bytes of options",
                    max: OPTIONS_BYTES_MAX,
                });
            }
            work.events.config_set(option, value);
        }
        None => work.events.log(&LogEvent::ConfigUnset { option }),
    }
    work.configure(option, value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::engine_without_tasks;
    use crate::engine::model::config::OPTION_BYTES_MAX;

    #[tokio::test]
    async fn an_option_with_a_long_name_is_neither_set_nor_unset() {
        let engine = engine_without_tasks().await;
        for (bytes, is_refused) in [(OPTION_BYTES_MAX, false), (OPTION_BYTES_MAX + 1, true)] {
            for value in [None, Some("1".to_owned())] {
                let done = engine.configure(&"o".repeat(bytes), value, None).await;
                let refused = matches!(done, Err(Error::BadOption { .. }));
                assert_eq!(refused, is_refused, "{bytes} bytes: {done:?}");
            }
        }
        engine.close().await;
    }

    #[tokio::test]
    async fn the_options_have_4_mib_together() {
        let engine = engine_without_tasks().await;
        let set = async |option: &str, bytes: usize| {
            let value = (bytes > 0).then(|| "1".repeat(bytes));
            engine.configure(option, value, None).await
        };
        // Names of 8 bytes and values of 4,088.
        for n in 0..OPTIONS_BYTES_MAX / 4_096 {
            set(&format!("{n:08}"), 4_088).await.unwrap();
        }
        let refused = Error::TooMany {
            what: "bytes of options",
            max: OPTIONS_BYTES_MAX,
        };
        assert_eq!(set("x", 1).await, Err(refused.clone()));
        assert_eq!(set("00000000", 4_089).await, Err(refused));
        assert_eq!(set("00000000", 4_088).await, Ok(()));
        assert_eq!(set("00000000", 4_086).await, Ok(()));
        assert_eq!(set("x", 1).await, Ok(()));
        assert_eq!(set("00000001", 0).await, Ok(()));
        assert_eq!(set("y", 4_088).await, Ok(()));
    }
}
