//! The maximum number of queues.

use crate::engine::error::{Error, Result};
use crate::engine::model::job::QueueKey;
use crate::engine::{Engine, Options};

/// The default of [`Options::max_queues`](crate::engine::Options::max_queues).
pub const MAX_QUEUES: u32 = 100_000;

/// What there are too many of, in [`Error::TooMany`].
pub const QUEUES: &str = "queues";

/// The maximum number of queues.
pub fn max_queues(options: &Options) -> usize {
    let max = options.max_queues.unwrap_or(MAX_QUEUES);
    usize::try_from(max).unwrap_or(usize::MAX)
}

impl Engine {
    /// Fails if one of the queues does not exist and there is no room for it. For requests that create queues, before
    /// they change anything. Requests that run at the same time can exceed the limit by the queues that they create.
    ///
    /// # Errors
    /// [`Error::TooMany`].
    pub fn check_room<'a>(&self, queues: impl IntoIterator<Item = &'a QueueKey>) -> Result<()> {
        let max = self.0.max_queues;
        match self.known_queues().has_room(queues.into_iter(), max) {
            true => Ok(()),
            false => Err(Error::TooMany { what: QUEUES, max }),
        }
    }
}
