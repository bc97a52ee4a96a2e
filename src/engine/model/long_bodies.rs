//! The table `long_bodies`: bodies over 16 KiB, apart from the rows of their jobs. SQLite writes a whole row with each
//! change, and walks through a long text to reach the columns after it.

use std::sync::Arc;

use crate::engine::model::job::Job;
use crate::store::{Arg, Statement};

/// The body of a job, from `jobs AS j`. A long one is in `long_bodies`, and its row has a stub (`Body::column`).
macro_rules! body {
    // The whole text. A lost one is null, as after a repair (`consistency.rs`), so that its queue stays usable.
    () => {
        "CASE WHEN substr(j.body, 1, 1) = '<'
              THEN coalesce((SELECT b.body FROM long_bodies AS b WHERE b.job = j.seq), 'null') ELSE j.body END"
    };
    // The first 1,000 characters.
    (start) => {
        "substr(j.body, CASE WHEN substr(j.body, 1, 1) = '<' THEN 12 ELSE 1 END, 1000)"
    };
    // The size in bytes.
    (bytes) => {
        "CASE WHEN substr(j.body, 1, 1) = '<' THEN CAST(substr(j.body, 2, 10) AS BIGINT) ELSE octet_length(j.body) END"
    };
}
pub(crate) use body;

/// Long bodies to write or delete.
#[derive(Default)]
pub struct LongBodies {
    written: Vec<(i64, Arc<str>)>,
    deleted: Vec<(i64,)>,
}

impl LongBodies {
    /// Compares the body of a job before and after the transaction.
    pub fn compare(&mut self, before: Option<&Job>, after: Option<&Job>) {
        let is_long = |job: &&Job| job.body.is_long();
        let (had, has) = (
            before.filter(is_long),
            after.filter(|job| job.body.is_long()),
        );
        match (had, has) {
            (Some(before), Some(after)) if before.body == after.body => {}
            (_, Some(job)) => self
                .written
                .extend(job.body.shared().map(|text| (job.seq, text))),
            (Some(job), None) => self.deleted.push((job.seq,)),
            (None, None) => {}
        }
    }

    /// The statements that write and delete them. Each body is a parameter of its own, so that no set copies it.
    pub fn statements(self) -> impl Iterator<Item = Statement> {
        let written = self.written.into_iter();
        let set = |(seq, text): (i64, Arc<str>)| {
            Statement::new(SET_BODY, [seq.into(), Arg::Shared(text)])
        };
        let deleted = (!self.deleted.is_empty()).then(|| delete_bodies(&self.deleted));
        deleted.into_iter().chain(written.map(set))
    }
}

/// Deletes the long bodies of jobs by `seq`.
pub fn delete_bodies(jobs: &[(i64,)]) -> Statement {
    Statement::of_rows(DELETE_BODIES, jobs)
}

/// Bodies by `seq`.
pub const BODIES: &str = concat!(
    "SELECT j.seq, ",
    body!(),
    " FROM rows($1) AS k CROSS JOIN jobs AS j WHERE j.seq = k.int(0)"
);

/// Follows a statement that checks the version of the job. An equal body is only compared.
const SET_BODY: &str = "
INSERT INTO long_bodies (job, body) VALUES ($1, $2)
ON CONFLICT (job) DO UPDATE SET body = excluded.body WHERE long_bodies.body <> excluded.body";

/// Follows a statement that checks the versions of the jobs.
const DELETE_BODIES: &str = "DELETE FROM long_bodies WHERE job IN (SELECT int(0) FROM rows($1))";
