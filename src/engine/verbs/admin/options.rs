//! Options: set and unset.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::events::LogEvent;
use crate::engine::model::config::Config;
use crate::engine::unit_of_work::{Needs, UnitOfWork};

impl Engine {
    /// Sets an option to a value, which is JSON text, or resets it to its default (`None`).
    pub async fn configure(
        &self,
        option: &str,
        value: Option<String>,
        now: Option<Time>,
    ) -> Result<()> {
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
/// [`Error::BadOption`]; [`Error::TooMany`] above [`OPTIONS_MAX`].
pub fn configure(work: &mut UnitOfWork, option: &str, value: Option<String>) -> Result<()> {
    match &value {
        Some(value) => {
            Config::check(option, value)?;
            if !work.config.is_set(option) && work.config.count_set() >= OPTIONS_MAX {
                return Err(Error::TooMany {
                    what: "options",
                    max: OPTIONS_MAX,
                });
            }
            work.events.config_set(option, value);
        }
        None => work.events.log(&LogEvent::ConfigUnset { option }),
    }
    work.configure(option, value);
    Ok(())
}
