//! The target of an import: collects jobs into batches, writes them, and counts.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::report::Report;
use super::{ImportError, Result};
use crate::engine::{
    Engine, Error, Import, ImportedDependencies, ImportedRecurring, NAME_BYTES_MAX, Protocol,
    RECURRING_ID_BYTES_MAX, invalid_name_reason,
};

/// Jobs, and bytes of their texts, that are collected before they are written.
const BATCH: usize = 250;
const BATCH_BYTES: usize = 2 << 20;

/// How often the registration on a shared database is renewed.
const RENEWAL: Duration = Duration::from_secs(10);

/// The longest ID or queue name of Relay.
const RELAY_NAME_CHARS_MAX: usize = 1_024;

/// The number of rows by protocol and state.
pub type Rows = BTreeMap<(&'static str, &'static str), u64>;

pub struct Target<'a> {
    /// `None` for a dry run.
    engine: Option<Engine>,
    pub report: Report,
    batch: Vec<Import>,
    bytes: usize,
    renewed: Instant,
    on_progress: &'a mut (dyn FnMut(&Report) + Send),
}

impl<'a> Target<'a> {
    pub fn new(
        engine: Option<Engine>,
        on_progress: &'a mut (dyn FnMut(&Report) + Send),
    ) -> Target<'a> {
        Target {
            engine,
            report: Report::default(),
            batch: Vec::new(),
            bytes: 0,
            renewed: Instant::now(),
            on_progress,
        }
    }

    /// The engine; `None` for a dry run.
    pub fn engine(&self) -> Option<&Engine> {
        self.engine.as_ref()
    }

    pub fn finish(self) -> Report {
        (self.on_progress)(&self.report);
        self.report
    }

    /// Adds a job that was found in the source.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub async fn job(&mut self, import: Import) -> Result<()> {
        let (protocol, state) = kind(&import);
        self.report.count(protocol, state).found += 1;
        if let Some(reason) = wrong(&import) {
            let id = import.job.key.id;
            self.report.skip(protocol, state, &id, reason);
            return Ok(());
        }
        self.bytes += import.job.text_bytes();
        self.batch.push(import);
        if self.batch.len() >= BATCH || self.bytes >= BATCH_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    /// Counts a job that was found in the source and cannot be imported.
    pub fn skip(&mut self, protocol: Protocol, state: &'static str, id: &str, reason: &str) {
        let protocol = protocol.name();
        self.report.count(protocol, state).found += 1;
        self.report.skip(protocol, state, id, reason);
    }

    /// Writes the collected jobs.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub async fn flush(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        self.bytes = 0;
        if batch.is_empty() {
            return Ok(());
        }
        let kinds: Vec<_> = batch
            .iter()
            .map(|import| (kind(import), import.job.key.id.clone()))
            .collect();
        let added = match &self.engine {
            Some(engine) => engine.import_jobs(batch).await?,
            None => batch.iter().map(|_| Ok(true)).collect(),
        };
        for (((protocol, state), id), added) in kinds.into_iter().zip(added) {
            match added {
                Ok(true) => self.report.count(protocol, state).imported += 1,
                Ok(false) => self.report.count(protocol, state).existing += 1,
                Err(error) => {
                    let reason = of_item(error)?;
                    self.report.skip(protocol, state, &id, reason);
                }
            }
        }
        (self.on_progress)(&self.report);
        self.renew().await
    }

    async fn renew(&mut self) -> Result<()> {
        if let Some(engine) = &self.engine
            && self.renewed.elapsed() >= RENEWAL
        {
            engine.is_alone().await?;
            self.renewed = Instant::now();
        }
        Ok(())
    }

    /// Adds the dependencies of jobs that have been imported.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub async fn dependencies(&mut self, jobs: Vec<ImportedDependencies>) -> Result<()> {
        let ids: Vec<_> = jobs.iter().map(|job| job.id.clone()).collect();
        let count = self.report.count(Protocol::Qless.name(), DEPENDENCIES);
        count.found += ids.len() as u64;
        let added = match &self.engine {
            Some(engine) => engine.import_dependencies(jobs).await?,
            None => ids.iter().map(|_| Ok(())).collect(),
        };
        for (id, added) in ids.iter().zip(added) {
            match added {
                Ok(()) => self.count_imported(DEPENDENCIES),
                Err(error) => {
                    let reason = of_item(error)?;
                    let reason =
                        format!("{reason}; the job waits until its dependencies are removed");
                    self.report
                        .skip(Protocol::Qless.name(), DEPENDENCIES, id, reason);
                }
            }
        }
        self.renew().await
    }

    /// Adds a recurring job.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub async fn recurring(&mut self, import: ImportedRecurring) -> Result<()> {
        let protocol = Protocol::Qless.name();
        self.report.count(protocol, RECURRING).found += 1;
        let id = import.recurring.id.clone();
        let class = import.recurring.klass.as_ref();
        let wrong = name("its ID", &id, RECURRING_ID_BYTES_MAX)
            .or_else(|| name("its queue", &import.queue.name, NAME_BYTES_MAX))
            .or_else(|| name("its class", class?, NAME_BYTES_MAX))
            .or_else(|| names("a tag", &import.recurring.tags));
        if let Some(reason) = wrong {
            self.report.skip(protocol, RECURRING, &id, reason);
            return Ok(());
        }
        let added = match &self.engine {
            Some(engine) => engine.import_recurring(vec![import]).await?.pop(),
            None => Some(Ok(true)),
        };
        match added {
            Some(Ok(true)) => self.count_imported(RECURRING),
            Some(Err(error)) => {
                let reason = of_item(error)?;
                self.report.skip(protocol, RECURRING, &id, reason);
            }
            Some(Ok(false)) | None => self.report.count(protocol, RECURRING).existing += 1,
        }
        Ok(())
    }

    /// Counts a thing of qless that was imported.
    pub fn count_imported(&mut self, kind: &'static str) {
        self.report.count(Protocol::Qless.name(), kind).imported += 1;
    }

    /// The number of jobs in the target; none for a dry run.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn count_rows(&self, protocols: &[Protocol]) -> Result<Rows> {
        let mut rows = Rows::new();
        for protocol in protocols {
            for state in STATES {
                rows.insert((protocol.name(), state), 0);
            }
            if let Some(engine) = &self.engine {
                let counts = engine.job_rows_by_state(*protocol).await?;
                let named = counts.into_iter();
                rows.extend(named.map(|(state, count)| ((protocol.name(), state), count)));
            }
        }
        Ok(rows)
    }

    /// Checks that the target has as many jobs as `before` and the imported ones together, of each kind.
    ///
    /// # Errors
    /// If a number differs.
    pub async fn verify(&self, before: &Rows) -> Result<()> {
        if self.engine.is_none() {
            return Ok(());
        }
        let protocols = Protocol::ALL.into_iter();
        let protocols: Vec<_> = protocols
            .filter(|protocol| before.keys().any(|(name, _)| *name == protocol.name()))
            .collect();
        for ((protocol, state), count) in self.count_rows(&protocols).await? {
            let was = before.get(&(protocol, state)).copied().unwrap_or_default();
            let (found, imported) = (
                count.saturating_sub(was),
                self.report.imported(protocol, state),
            );
            if found != imported {
                return Err(ImportError::Mismatch {
                    protocol,
                    state,
                    found,
                    imported,
                });
            }
        }
        Ok(())
    }
}

/// The states that imported jobs have.
const STATES: [&str; 8] = [
    "waiting",
    "scheduled",
    "depends",
    "running",
    "failed",
    "complete",
    "stalled",
    "dead",
];

/// Kinds of things other than jobs.
pub const DEPENDENCIES: &str = "dependent jobs";
pub const RECURRING: &str = "recurring";

fn kind(import: &Import) -> (&'static str, &'static str) {
    (import.queue.protocol.name(), import.job.state.as_str())
}

/// Why the job cannot be imported, if so.
fn wrong(import: &Import) -> Option<String> {
    let (id, queue, tags) = (&import.job.key.id, &import.queue.name, &import.job.tags);
    if import.queue.protocol == Protocol::Relay {
        let is_long = |text: &String| text.chars().count() > RELAY_NAME_CHARS_MAX;
        let is_long = is_long(id) || is_long(queue);
        return is_long.then(|| "its ID or queue has more than 1,024 characters".to_owned());
    }
    let worker = import.job.lease.as_ref().map(|lease| &lease.worker);
    let worker = worker.filter(|worker| !worker.is_empty());
    let optional = |what, text: Option<&String>| name(what, text?, NAME_BYTES_MAX);
    name("its ID", id, NAME_BYTES_MAX)
        .or_else(|| name("its queue", queue, NAME_BYTES_MAX))
        .or_else(|| optional("its class", import.job.klass.as_ref()))
        .or_else(|| optional("its worker", worker))
        .or_else(|| names("a tag", tags))
}

fn name(what: &str, text: &str, bytes_max: usize) -> Option<String> {
    invalid_name_reason(text, bytes_max).map(|wrong| format!("{what} {wrong}"))
}

fn names(what: &str, texts: &[String]) -> Option<String> {
    let mut wrong = texts.iter().map(|text| name(what, text, NAME_BYTES_MAX));
    wrong.find_map(|wrong| wrong)
}

/// The reason why one item was not imported.
///
/// # Errors
/// The error itself, if it is one of the database.
fn of_item(error: Error) -> Result<String> {
    match error {
        Error::TooMany { .. }
        | Error::Oversized
        | Error::NameTooLong
        | Error::DependencyCycle { .. } => Ok(error.to_string()),
        error => Err(error.into()),
    }
}
