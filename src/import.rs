//! Copies the jobs of an existing installation of qless, lmstfy or Relay into a database of Switchyard. The source is
//! only read, in batches, and no job that the target has is changed, so an import that was interrupted can be
//! repeated.
//!
//! `import/redis.rs` reads from a Redis server, `import/keys.rs` finds what it holds, `import/qless.rs` and
//! `import/lmstfy.rs` translate it, `import/relay.rs` translates Relay's table, and `import/target.rs` writes.

mod keys;
mod lmstfy;
mod qless;
mod redis;
mod relay;
mod report;
mod target;

use redis::{Redis, RedisError};
pub use report::Report;
use target::Target;

use crate::engine::{Engine, EngineSettings, Error, Protocol};
use crate::store::{RelayTable, StoreError, without_password};

/// IDs that an error names.
const NAMED_MAX: usize = 10;

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("{0}")]
    Redis(#[from] RedisError),
    #[error("cannot read the source: {0}")]
    Source(StoreError),
    #[error("cannot write to the target: {}", .0.detail())]
    Target(#[from] Error),
    #[error(
        "a server is using the target; stop it first (a killed server counts as stopped after 60 s)"
    )]
    InUse,
    #[error(
        "{} is a temporary database that only its server can open",
        without_password(.0)
    )]
    Temporary(String),
    #[error("the database has no table of Relay")]
    NoRelayTable,
    #[error(
        "nothing was imported: the target already has {count} of the source's jobs, such as {}; use an empty database, \
         or --existing keep to keep them and import the others",
        examples.join(", ")
    )]
    Exists { count: u64, examples: Vec<String> },
    #[error(
        "the number of {protocol} jobs in the state {state} has grown by {found}, but {imported} were imported; \
         restore the target, and import again"
    )]
    Mismatch {
        protocol: &'static str,
        state: &'static str,
        found: u64,
        imported: u64,
    },
    #[error(
        "the source changed during the import, from {before} to {after} listed jobs; stop its workers and producers, \
         and import again into a new database"
    )]
    Changed { before: usize, after: usize },
}

type Result<T> = std::result::Result<T, ImportError>;

/// What happens to a job that the target already has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Existing {
    /// Import nothing
    #[default]
    Refuse,
    /// Leave these jobs unchanged, and import the others
    Keep,
}

/// Where to import to, and how.
#[derive(Clone, Debug)]
pub struct Import {
    /// The target: `sqlite://FILE` or `postgres://USER@HOST/DATABASE`.
    pub database: String,
    pub existing: Existing,
    /// Only counts what would be imported. Does not open the target.
    pub dry_run: bool,
    /// The pool of lmstfy whose tokens to import.
    pub lmstfy_pool: String,
}

impl Import {
    /// Imports the qless and lmstfy keys of a Redis server.
    ///
    /// # Errors
    /// If the source cannot be read or the target cannot be written. What has been imported until then stays.
    pub async fn from_redis(
        &self,
        url: &str,
        on_progress: &mut (dyn FnMut(&Report) + Send),
    ) -> Result<Report> {
        let mut redis = Redis::connect(url).await?;
        let engine = self.open().await?;
        let done = self
            .import_keys(&mut redis, engine.as_ref(), on_progress)
            .await;
        if let Some(engine) = engine {
            engine.close().await;
        }
        done
    }

    async fn import_keys(
        &self,
        redis: &mut Redis,
        engine: Option<&Engine>,
        on_progress: &mut (dyn FnMut(&Report) + Send),
    ) -> Result<Report> {
        let keys = keys::find(redis, engine).await?;
        self.check_existing(keys.existing, &keys.examples)?;
        let mut target = Target::new(engine.cloned(), on_progress);
        let before = target
            .count_rows(&[Protocol::Qless, Protocol::Lmstfy])
            .await?;
        let listed = keys.count_listed(redis).await?;
        qless::import_settings(redis, &keys, &mut target).await?;
        qless::import_jobs(redis, &keys, &mut target).await?;
        lmstfy::import(redis, &keys, &self.lmstfy_pool, &mut target).await?;
        target.flush().await?;
        target.verify(&before).await?;
        qless::import_rest(redis, &keys, &mut target).await?;
        let after = keys.count_listed(redis).await?;
        if after != listed {
            return Err(ImportError::Changed {
                before: listed,
                after,
            });
        }
        keys.note_rest(&mut target.report);
        Ok(target.finish())
    }

    /// Imports the table of a Relay server.
    ///
    /// # Errors
    /// As [`Import::from_redis`].
    pub async fn from_postgres(
        &self,
        url: &str,
        on_progress: &mut (dyn FnMut(&Report) + Send),
    ) -> Result<Report> {
        let table = RelayTable::open(url).await.map_err(ImportError::Source)?;
        let mut table = table.ok_or(ImportError::NoRelayTable)?;
        let engine = self.open().await?;
        let done = self
            .import_table(&mut table, engine.as_ref(), on_progress)
            .await;
        if let Some(engine) = engine {
            engine.close().await;
        }
        let report = done?;
        table.close().await.map_err(ImportError::Source)?;
        Ok(report)
    }

    async fn import_table(
        &self,
        table: &mut RelayTable,
        engine: Option<&Engine>,
        on_progress: &mut (dyn FnMut(&Report) + Send),
    ) -> Result<Report> {
        if let Some(engine) = engine {
            let (existing, examples) = relay::count_existing(table, engine).await?;
            self.check_existing(existing, &examples)?;
        }
        let mut target = Target::new(engine.cloned(), on_progress);
        let before = target.count_rows(&[Protocol::Relay]).await?;
        relay::import(table, &mut target).await?;
        target.flush().await?;
        target.verify(&before).await?;
        Ok(target.finish())
    }

    /// Opens the target, which no server may use; `None` for a dry run.
    async fn open(&self) -> Result<Option<Engine>> {
        if self.dry_run {
            return Ok(None);
        }
        if self.database.contains(":memory:") {
            return Err(ImportError::Temporary(self.database.clone()));
        }
        let options = EngineSettings {
            database: self.database.clone(),
            offline: true,
            ..EngineSettings::default()
        };
        let engine = Engine::open(&options).await?;
        if !engine.is_alone().await? {
            engine.close().await;
            return Err(ImportError::InUse);
        }
        Ok(Some(engine))
    }

    fn check_existing(&self, count: u64, examples: &[String]) -> Result<()> {
        if count == 0 || self.existing == Existing::Keep {
            return Ok(());
        }
        let examples = examples.iter().take(NAMED_MAX).cloned().collect();
        Err(ImportError::Exists { count, examples })
    }
}
