//! Scripts: which text of qless-core a client has loaded. No Lua is run. A script is recognized by markers in its text,
//! and its SHA-1 is remembered in the database, because some clients load a script only once.

use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLock};

use sha1::{Digest, Sha1};

use crate::engine::{Engine, Result};

/// Maximum size of a script, in bytes; the largest of qless-core has 90 kB.
pub const SCRIPT_BYTES_MAX: usize = 1 << 20;

/// Characters of the name of a script, its SHA-1.
const SHA_CHARS: usize = 40;

/// A version of qless-core, as far as clients can tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// qless-core since 2014: messages name the job.
    Current,
    /// 2013: messages do not name the job.
    Terse,
    /// qless-py 0.10.0 to 0.11.4: like [`Dialect::Terse`]; also, `put` takes no worker.
    Workerless,
    /// The fork of qless-php. Handled like [`Dialect::Current`]: the commands that only the fork has do not exist here.
    Php,
}

/// Each dialect, its name in the database, and a text that only its scripts have.
const DIALECTS: [(Dialect, &str, &str); 4] = [
    (Dialect::Php, "php", "QlessAPI.popByJid"),
    (
        Dialect::Workerless,
        "workerless",
        "QlessAPI.put = function(now, queue,",
    ),
    (Dialect::Terse, "terse", "Complete(): Job does not exist"),
    (Dialect::Current, "current", "QlessAPI"),
];

impl Dialect {
    /// The dialect of a script; `None` if it is not one of qless-core.
    fn of(script: &str) -> Option<Dialect> {
        let found = DIALECTS.iter().find(|(.., marker)| script.contains(marker));
        found.map(|(dialect, ..)| *dialect)
    }

    fn parse(name: &str) -> Option<Dialect> {
        let found = DIALECTS.iter().find(|(_, its, _)| *its == name);
        found.map(|(dialect, ..)| *dialect)
    }

    fn as_str(self) -> &'static str {
        let found = DIALECTS.iter().find(|(its, ..)| *its == self);
        found.map_or("", |(_, name, _)| name)
    }
}

/// The scripts that clients have loaded, by SHA-1.
#[derive(Debug, Default)]
pub struct Scripts(RwLock<HashMap<String, Dialect>>);

/// The error for a script that is not one of qless-core.
pub const FOREIGN: &str =
    "ERR Error compiling script: this server accepts only the scripts of qless-core";

impl Scripts {
    /// Remembers a script. Returns its SHA-1 and its dialect; `None` if it is not one of qless-core.
    pub async fn load(&self, engine: &Engine, script: &str) -> Result<Option<(String, Dialect)>> {
        let Some(dialect) = Dialect::of(script) else {
            return Ok(None);
        };
        let sha = sha(script);
        if self.known(&sha).is_none() {
            engine.save_script(&sha, dialect.as_str()).await?;
            self.remember(&sha, dialect);
        }
        Ok(Some((sha, dialect)))
    }

    /// The dialect of a script that was loaded, on any server and at any time.
    pub async fn dialect(&self, engine: &Engine, sha: &str) -> Result<Option<Dialect>> {
        if sha.len() != SHA_CHARS {
            return Ok(None);
        }
        let sha = sha.to_ascii_lowercase();
        if let Some(dialect) = self.known(&sha) {
            return Ok(Some(dialect));
        }
        let name = engine.script(&sha).await?;
        let dialect = name.as_deref().and_then(Dialect::parse);
        if let Some(dialect) = dialect {
            self.remember(&sha, dialect);
        }
        Ok(dialect)
    }

    /// Whether these scripts were loaded. Reads the database at most once.
    pub async fn exist(&self, engine: &Engine, shas: &[String]) -> Result<Vec<bool>> {
        let shas: Vec<String> = shas.iter().map(|sha| sha.to_ascii_lowercase()).collect();
        let stored = match shas.iter().all(|sha| self.known(sha).is_some()) {
            true => HashSet::new(),
            false => engine.scripts().await?,
        };
        let exists = |sha: &String| self.known(sha).is_some() || stored.contains(sha);
        Ok(shas.iter().map(exists).collect())
    }

    /// Forgets all scripts.
    pub async fn flush(&self, engine: &Engine) -> Result<()> {
        engine.delete_scripts().await?;
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        Ok(())
    }

    fn known(&self, sha: &str) -> Option<Dialect> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.get(sha).copied()
    }

    /// Caches the dialect of a script. At the maximum number of stored scripts, clears the cache first; they are read
    /// from the database again.
    fn remember(&self, sha: &str, dialect: Dialect) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= crate::engine::SCRIPTS_MAX {
            known.clear();
        }
        known.insert(sha.to_owned(), dialect);
    }
}

fn sha(script: &str) -> String {
    let digest = Sha1::digest(script.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
