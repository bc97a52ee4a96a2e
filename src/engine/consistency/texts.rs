//! Finds tags and histories that cannot be parsed. Only the code that reads them knows whether they can, so this part
//! of the check reads all jobs, in batches.

use serde::Serialize;

use crate::engine::Engine;
use crate::engine::consistency::Inconsistency;
use crate::engine::error::Result;
use crate::engine::model::history::History;
use crate::engine::model::job_rows;
use crate::store::{Row, Statement, StoreError};

/// Jobs in a batch. Their texts have at most about 3 MiB, so parsing them takes a few milliseconds.
const BATCH: i64 = 200;

/// Maximum number of problems that are found at once, and of bytes that their repair takes.
const FOUND_MAX: usize = 1_000;
const BYTES_MAX: usize = 4 << 20;

/// What was found.
#[derive(Debug, Default)]
pub struct Damaged {
    pub problems: Vec<Inconsistency>,
    /// The numbers of the jobs whose tags cannot be parsed.
    pub tags: Vec<(i64,)>,
    /// Whether there may be more.
    pub is_cut: bool,
    bytes: usize,
}

impl Engine {
    /// All tags and histories that cannot be parsed, up to [`FOUND_MAX`].
    pub(in crate::engine) async fn damaged_texts(&self) -> Result<Damaged> {
        let (mut found, mut last) = (Damaged::default(), i64::MIN);
        while !found.is_cut {
            let batch = Statement::new(NEXT, [last.into(), BATCH.into()]);
            let rows = self.readers().rows(batch).await?;
            for row in &rows {
                last = row.int(0)?;
                if row.text_or_null(2)?.is_some() {
                    self.check_texts(row, &mut found).await?;
                    continue;
                }
                // Too long for a batch.
                let long = Statement::new(ONE, [last.into()]);
                for row in self.readers().rows(long).await? {
                    self.check_texts(&row, &mut found).await?;
                }
            }
            if (rows.len() as i64) < BATCH {
                break;
            }
        }
        Ok(found)
    }

    /// Checks the texts of a job. The row has its number, ID, tags, history and version.
    async fn check_texts(&self, row: &Row, found: &mut Damaged) -> Result<()> {
        let (seq, mut version) = (row.int(0)?, row.int(4)?);
        if job_rows::tags(&row.text(2)?).is_none() {
            let indexed = Statement::new(INDEXED, [seq.into()]);
            let rows = self.readers().rows(indexed).await?;
            let indexed = rows.iter().map(|row| row.text(0));
            let indexed = indexed.collect::<Result<Vec<_>, StoreError>>()?;
            let tags = serde_json::to_string(&indexed).unwrap_or_default();
            found.tags.push((seq,));
            found.add(TAGS, &row.text(1)?, &(seq, version, tags));
            // The repair of the tags comes first, and increases it.
            version += 1;
        }
        if !History::from_text(row.text(3)?).is_readable() {
            found.add(HISTORY, &row.text(1)?, &(seq, version));
        }
        Ok(())
    }
}

impl Damaged {
    /// Adds a problem of the job with this ID.
    fn add(&mut self, (kind, text): (&'static str, &str), id: &str, concerns: &impl Serialize) {
        let concerns = serde_json::to_string(concerns).unwrap_or_default();
        self.bytes += concerns.len();
        self.problems.push(Inconsistency {
            kind,
            message: format!("job \"{id}\" has {text} that cannot be read"),
            concerns,
        });
        self.is_cut = self.problems.len() >= FOUND_MAX || self.bytes >= BYTES_MAX;
    }
}

/// The kinds of problems, and how messages name the texts.
const TAGS: (&str, &str) = ("tags", "tags");
const HISTORY: (&str, &str) = ("history", "a history");

/// The statements that replace the texts of jobs that have not changed since, by kind. The tag index still has the
/// tags.
pub const REPAIRS: [(&str, &str); 2] = [
    (
        TAGS.0,
        "UPDATE jobs SET tags = k.text(2), version = jobs.version + 1
FROM rows($1) AS k WHERE jobs.seq = k.int(0) AND jobs.version = k.int(1)",
    ),
    (
        HISTORY.0,
        "UPDATE jobs SET version = jobs.version + 1,
    history = '[[\"note\",' || CAST($2 AS TEXT) || ',\"the earlier history could not be read and was removed\",null]]'
FROM rows($1) AS k WHERE jobs.seq = k.int(0) AND jobs.version = k.int(1)",
    ),
];

const NEXT: &str = "
SELECT seq, id, CASE WHEN octet_length(tags) + octet_length(history) <= {long} THEN tags END,
    CASE WHEN octet_length(tags) + octet_length(history) <= {long} THEN history END, version
FROM jobs WHERE seq > $1 ORDER BY seq LIMIT $2 + 0";

const ONE: &str = "SELECT seq, id, tags, history, version FROM jobs WHERE seq = $1";

const INDEXED: &str = "SELECT tag FROM tags WHERE job = $1 ORDER BY tag LIMIT 10000";
