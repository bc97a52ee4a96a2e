//! Requests that the server refused because the database was too slow. A client that is refused does not know whether
//! the request had an effect, and tries again. Each refusal must be explained by the log.

use std::sync::{Mutex, PoisonError};

use tracing_subscriber::fmt::{MakeWriter, TestWriter};

use super::*;

/// A log line explains the refusals of this time after it.
const EXPLAINED: Duration = Duration::from_secs(10);

/// When the last warning or error was logged.
#[derive(Clone, Debug, Default)]
pub struct LogTime(Arc<Mutex<Option<Instant>>>);

impl LogTime {
    /// Starts the log, which is shown if the test fails.
    pub fn start() -> LogTime {
        let time = LogTime::default();
        let log = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN);
        log.with_writer(time.clone()).try_init().ok();
        time
    }
}

impl MakeWriter<'_> for LogTime {
    type Writer = TestWriter;

    fn make_writer(&self) -> TestWriter {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        TestWriter::default()
    }
}

/// Counts refusals.
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    count: Arc<AtomicU64>,
    log: LogTime,
}

impl Refusals {
    pub fn explained_by(log: LogTime) -> Refusals {
        Refusals {
            log,
            ..Refusals::default()
        }
    }

    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Counts a refusal.
    ///
    /// # Panics
    /// If the log does not explain it.
    fn add(&self) {
        let logged = *self.log.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_explained = logged.is_some_and(|logged| logged.elapsed() < EXPLAINED);
        assert!(
            is_explained,
            "a request was refused, and nothing was logged"
        );
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Storm {
    /// The result of a call; `None` if it was refused, so that its outcome is unknown.
    ///
    /// # Panics
    /// On other errors, and if the log does not explain the refusal.
    pub fn response<T>(&self, result: Result<T, Error>) -> Option<T> {
        if let Err(Error::Unavailable) = result {
            self.refusals.add();
            return None;
        }
        Some(result.unwrap_or_else(|error| panic!("{error:?}")))
    }

    /// Records that a call which would have ended the job was refused.
    ///
    /// # Panics
    /// As [`Storm::response`].
    pub fn may_have_ended(&self, token: Option<Token>, error: Error) {
        self.response::<()>(Err(error));
        if let Some(token) = token {
            self.record.may_have_ended(token);
        }
    }
}

#[test]
#[should_panic(expected = "nothing was logged")]
fn a_refusal_that_is_not_logged_fails_the_test() {
    Storm::default().response::<()>(Err(Error::Unavailable));
}
