//! The consistency check: compares derived data with its source on one snapshot while the server runs, and repairs
//! differences.
//!
//! Most kinds of problems have two statements. `find` returns a JSON array with the keys of the problem, and a
//! sentence. `repair` takes a JSON array of such arrays and checks the condition again, because the server may have
//! changed the rows meanwhile. Texts that cannot be parsed are found by `consistency/texts.rs`.

mod texts;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::maintenance::SystemTask;
use crate::engine::model::damage;
use crate::store::{Connection, Statement, StoreError};

/// Rounds of repair: repairing a job may change the counters it belongs to.
const ROUNDS_MAX: usize = 4;

/// The turn of the check that runs. Checks run one at a time: each reads the whole database.
#[derive(Debug)]
pub struct CheckTurn(Arc<Semaphore>);

impl Default for CheckTurn {
    fn default() -> Self {
        CheckTurn(Arc::new(Semaphore::new(1)))
    }
}

/// Time limit for the statements of a check.
const CHECK_TIME_MAX: Duration = Duration::from_secs(60);

/// How long a check waits for another one to end.
const CHECK_WAIT_MAX: Duration = Duration::from_secs(2);

/// A difference between derived data and its source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Inconsistency {
    /// The name of one of [`KINDS`] or [`texts::REPAIRS`].
    pub kind: &'static str,
    /// What is wrong, as a sentence.
    pub message: String,
    /// The keys of the affected rows, as the text of a JSON array.
    concerns: String,
}

/// Parameters of the check's statements.
#[derive(Clone, Copy, Debug)]
pub struct CheckParameters {
    /// `$1` of `find`, `$2` of `repair`.
    pub now: Time,
    /// The last UTC day whose histograms may have been deleted; `$2` of `find`, `$3` of `repair`.
    pub pruned: i64,
    /// Whether requests carry the client's time, which may run backwards; `$3` of `find`, `$4` of `repair`.
    pub trust_client_clock: bool,
}

impl CheckParameters {
    fn args(self) -> [crate::store::Arg; 3] {
        [
            self.now.0.into(),
            self.pruned.into(),
            i64::from(self.trust_client_clock).into(),
        ]
    }
}

impl Engine {
    /// All inconsistencies, up to 1,000 of each kind.
    ///
    /// # Errors
    /// [`Error::Busy`] if another check is running.
    pub async fn check(&self, now: Option<Time>) -> Result<Vec<Inconsistency>> {
        let turn = Arc::clone(&self.0.long_reads.check_turn.0).acquire_owned();
        let turn = timeout(CHECK_WAIT_MAX, turn).await;
        let turn = turn.map_err(|_| Error::Busy)?;
        let engine = self.clone();
        // A task, because a client that disconnects does not end the statements: the next check waits until they end.
        // Otherwise abandoned checks would occupy all connections for long reads.
        let checking = tokio::spawn(async move {
            let found = engine.find_inconsistencies(now).await;
            drop(turn);
            found
        });
        checking.await.map_err(|_| Error::Unavailable)?
    }

    async fn find_inconsistencies(&self, now: Option<Time>) -> Result<Vec<Inconsistency>> {
        self.refresh_cache().await?;
        let parameters = self.check_parameters(now);
        let texts = self.damaged_texts().await?;
        let damaged = serde_json::to_string(&texts.tags).unwrap_or_default();
        let find = |kind: &&Kind| Statement::new(kind.find, parameters.args()).with(&*damaged);
        // With tags that cannot be parsed, those statements would fail.
        let kinds: Vec<&Kind> = KINDS
            .iter()
            .filter(|kind| !(texts.is_cut && READING_TAGS.contains(&kind.name)))
            .collect();
        let statements = kinds.iter().map(find).collect();
        let answers = self.readers().read_within(CHECK_TIME_MAX, statements);
        let answers = answers.await?;
        let mut problems = texts.problems;
        for (kind, answer) in kinds.into_iter().zip(answers) {
            for row in answer.rows {
                problems.push(Inconsistency {
                    kind: kind.name,
                    concerns: row.text(0)?,
                    message: row.text(1)?,
                });
            }
        }
        Ok(problems)
    }

    /// Checks and repairs. Returns all inconsistencies found, and how many of them are resolved.
    pub async fn repair(&self, now: Option<Time>) -> Result<(Vec<Inconsistency>, usize)> {
        let (mut found, mut known) = (Vec::new(), HashSet::new());
        let mut left = self.check(now).await?;
        for _ in 0..ROUNDS_MAX {
            let new = left
                .iter()
                .filter(|problem| known.insert((*problem).clone()));
            found.extend(new.cloned().collect::<Vec<_>>());
            if left.is_empty() {
                break;
            }
            self.repair_problems(self.check_parameters(now), left)
                .await?;
            left = self.check(now).await?;
        }
        damage::forget();
        let resolved = found.len().saturating_sub(left.len());
        Ok((found, resolved))
    }

    /// Repairs those of the problems that still exist.
    async fn repair_problems(
        &self,
        parameters: CheckParameters,
        problems: Vec<Inconsistency>,
    ) -> Result<()> {
        let repair = SystemTask::Repair(parameters, problems.into());
        self.run_system_task(repair).await.map(drop)
    }

    fn check_parameters(&self, now: Option<Time>) -> CheckParameters {
        let now = self.now(now);
        let days =
            i64::try_from(self.config().whole_number("histogram-history")).unwrap_or(i64::MAX);
        CheckParameters {
            now,
            pruned: now.day().saturating_sub(days),
            trust_client_clock: self.trusts_client_clock(),
        }
    }
}

/// Runs the repair statements for the problems.
pub async fn repair(
    connection: &mut Connection,
    parameters: CheckParameters,
    problems: &[Inconsistency],
) -> Result<(), StoreError> {
    // While other servers cannot change the jobs, the repairs see what they have changed before.
    let of_jobs = problems.iter();
    let of_jobs = of_jobs.filter(|problem| CHANGING_JOBS.contains(&problem.kind));
    let of_jobs: Vec<_> = of_jobs.map(|problem| problem.concerns.as_str()).collect();
    if !of_jobs.is_empty() {
        let set = format!("[{}]", of_jobs.join(","));
        connection
            .run(vec![Statement::new(LOCK_JOBS, [set.into()])])
            .await?;
    }
    let of_kinds = KINDS.iter().map(|kind| (kind.name, kind.repair));
    for (name, repair) in texts::REPAIRS.into_iter().chain(of_kinds) {
        let of_kind = problems.iter().filter(|problem| problem.kind == name);
        let concerns: Vec<_> = of_kind.map(|problem| problem.concerns.as_str()).collect();
        if concerns.is_empty() {
            continue;
        }
        let set = format!("[{}]", concerns.join(","));
        let [now, pruned, clients] = parameters.args();
        let statement = Statement::new(repair, [set.into(), now, pruned, clients]);
        connection.run(vec![statement]).await?;
    }
    Ok(())
}

/// A kind of inconsistency.
struct Kind {
    name: &'static str,
    find: &'static str,
    repair: &'static str,
}

/// The kinds that parse tags. They leave out the jobs in `$4`, whose tags cannot be parsed.
const READING_TAGS: [&str; 2] = ["tag", "tagged"];

/// The kinds that concern jobs, by `seq`, and change them or rows that belong to them. Transactions that change such
/// rows also write the job.
const CHANGING_JOBS: [&str; 8] = [
    "lease",
    "failure",
    "dependency",
    "depends",
    "body",
    "lost-body",
    "tag",
    "tagged",
];

const LOCK_JOBS: &str =
    "SELECT seq FROM jobs WHERE seq IN (SELECT k.int(0) FROM rows($1) AS k) ORDER BY seq {locked}";

/// In the order of repair: jobs first, then the counters derived from them.
const KINDS: [Kind; 16] = [
    Kind {
        name: "queue",
        find: "
SELECT list(j.queue), 'jobs refer to queue number ' || j.queue || ', which does not exist'
FROM (SELECT queue FROM jobs UNION SELECT queue FROM recurring) AS j
LEFT JOIN queues AS q ON q.id = j.queue WHERE q.id IS NULL LIMIT 1000",
        repair: "
INSERT INTO queues (id, protocol, namespace, name, first_seen)
SELECT k.int(0), 'qless', '', 'recovered-' || k.int(0), $2 FROM rows($1) AS k WHERE true
ON CONFLICT DO NOTHING",
    },
    Kind {
        name: "number",
        find: "
SELECT list(q.id), 'queue \"' || q.name || '\" records ' || q.last_number || ' as its last job ID, but has job '
    || j.last
FROM (SELECT queue, max(CAST(id AS BIGINT)) AS last FROM jobs WHERE state = {record} GROUP BY queue) AS j
JOIN queues AS q ON q.id = j.queue WHERE j.last > q.last_number LIMIT 1000",
        repair: "
UPDATE queues SET last_number = (SELECT max(CAST(j.id AS BIGINT)) FROM jobs AS j WHERE j.queue = queues.id AND j.state = {record})
WHERE id IN (SELECT k.int(0) FROM rows($1) AS k)
    AND last_number < (SELECT max(CAST(j.id AS BIGINT)) FROM jobs AS j WHERE j.queue = queues.id AND j.state = {record})",
    },
    Kind {
        name: "lease",
        find: "
SELECT list(seq), CASE WHEN state = {running} THEN 'job \"' || id || '\" is running without a lease'
    ELSE 'job \"' || id || '\" is not running but has a lease' END
FROM jobs WHERE (state = {running}) <> (worker IS NOT NULL AND lease_id IS NOT NULL AND lease_until IS NOT NULL)
    OR state <> {running} AND (worker IS NOT NULL OR lease_id IS NOT NULL OR lease_until IS NOT NULL) LIMIT 1000",
        repair: "
UPDATE jobs SET state = CASE WHEN jobs.state = {running} THEN {waiting} ELSE jobs.state END, worker = NULL, lease_id = NULL,
    lease_until = NULL, warned = 0, version = jobs.version + 1
FROM rows($1) AS k JOIN jobs AS j ON j.seq = k.int(0) WHERE jobs.seq = j.seq AND jobs.version = j.version
    AND (jobs.state <> {running} OR jobs.worker IS NULL OR jobs.lease_id IS NULL OR jobs.lease_until IS NULL)",
    },
    Kind {
        name: "failure",
        find: "
SELECT list(seq), 'job \"' || id || '\" is failed but has no failure group or time'
FROM jobs WHERE state = {failed} AND (failure_group IS NULL OR failure_at IS NULL) LIMIT 1000",
        repair: "
UPDATE jobs SET failure_group = coalesce(jobs.failure_group, 'unknown'),
    failure_at = coalesce(jobs.failure_at, jobs.since), version = jobs.version + 1
FROM rows($1) AS k JOIN jobs AS j ON j.seq = k.int(0) WHERE jobs.seq = j.seq AND jobs.version = j.version
    AND jobs.state = {failed}",
    },
    Kind {
        name: "dependency",
        find: "
SELECT list(d.job, d.needs),
    CASE WHEN j.id IS NULL THEN 'a job that does not exist depends on \"' || coalesce(n.id, 'unknown') || '\"'
         WHEN n.id IS NULL THEN 'job \"' || j.id || '\" depends on a job that does not exist'
         WHEN n.state = {complete} THEN 'job \"' || j.id || '\" depends on \"' || n.id || '\", which is complete'
         ELSE 'job \"' || j.id || '\" has a dependency on \"' || n.id || '\" but is not in state depends' END
FROM dependencies AS d LEFT JOIN jobs AS j ON j.seq = d.job LEFT JOIN jobs AS n ON n.seq = d.needs
WHERE j.id IS NULL OR n.id IS NULL OR n.state = {complete} OR j.state <> {depends} LIMIT 1000",
        repair: "
DELETE FROM dependencies WHERE (job, needs) IN (
    SELECT k.int(0), k.int(1) FROM rows($1) AS k
    LEFT JOIN jobs AS j ON j.seq = k.int(0) LEFT JOIN jobs AS n ON n.seq = k.int(1)
    WHERE j.id IS NULL OR n.id IS NULL OR n.state = {complete} OR j.state <> {depends})",
    },
    Kind {
        name: "depends",
        find: "
SELECT list(seq), 'job \"' || id || '\" is in state depends but has no dependencies'
FROM jobs WHERE state = {depends} AND NOT EXISTS (SELECT 1 FROM dependencies AS d WHERE d.job = jobs.seq) LIMIT 1000",
        repair: "
UPDATE jobs SET state = CASE WHEN jobs.ready_at > $2 THEN {scheduled} ELSE {waiting} END, version = jobs.version + 1
FROM rows($1) AS k JOIN jobs AS j ON j.seq = k.int(0) WHERE jobs.seq = j.seq AND jobs.version = j.version
    AND jobs.state = {depends}
    AND NOT EXISTS (SELECT 1 FROM dependencies AS d WHERE d.job = jobs.seq)",
    },
    Kind {
        name: "body",
        find: "
SELECT list(b.job), 'a long body belongs to job number ' || b.job
    || CASE WHEN j.id IS NULL THEN ', which does not exist' ELSE ', which has another body' END
FROM long_bodies AS b LEFT JOIN jobs AS j ON j.seq = b.job
WHERE j.id IS NULL OR substr(j.body, 1, 1) <> '<' LIMIT 1000",
        repair: "
DELETE FROM long_bodies WHERE job IN (
    SELECT k.int(0) FROM rows($1) AS k LEFT JOIN jobs AS j ON j.seq = k.int(0)
    WHERE j.id IS NULL OR substr(j.body, 1, 1) <> '<')",
    },
    Kind {
        name: "lost-body",
        find: "
SELECT list(j.seq), 'job \"' || j.id || '\" has lost its body of ' || CAST(substr(j.body, 2, 10) AS BIGINT)
    || ' bytes; a repair sets it to null'
FROM jobs AS j WHERE substr(j.body, 1, 1) = '<' AND NOT EXISTS (SELECT 1 FROM long_bodies AS b WHERE b.job = j.seq)
LIMIT 1000",
        repair: "
UPDATE jobs SET body = 'null', version = jobs.version + 1
FROM rows($1) AS k JOIN jobs AS j ON j.seq = k.int(0) WHERE jobs.seq = j.seq AND jobs.version = j.version
    AND substr(jobs.body, 1, 1) = '<' AND NOT EXISTS (SELECT 1 FROM long_bodies AS b WHERE b.job = jobs.seq)",
    },
    Kind {
        name: "tag",
        find: "
SELECT list(j.seq, t.value), 'job \"' || j.id || '\" has the tag \"' || t.value || '\" but is missing from the tag index'
FROM (SELECT seq, id, CASE WHEN seq IN (SELECT k.int(0) FROM rows($4) AS k) THEN '[]' ELSE tags END AS tags FROM jobs) AS j,
    elements(j.tags) AS t
WHERE NOT EXISTS (SELECT 1 FROM tags AS x WHERE x.job = j.seq AND x.tag = t.value) LIMIT 1000",
        repair: "
INSERT INTO tags (job, tag, tagged_at, id)
SELECT j.seq, k.text(1), $2, j.id FROM rows($1) AS k JOIN jobs AS j ON j.seq = k.int(0)
WHERE EXISTS (SELECT 1 FROM elements(j.tags) AS t WHERE t.value = k.text(1))
ON CONFLICT DO NOTHING",
    },
    // Comparing the tags of a job with the index parses them once for each tag, so the numbers are compared first.
    Kind {
        name: "tagged",
        find: "
SELECT list(x.job, x.tag), 'job \"' || x.id || '\" is in the tag index for \"' || x.tag || '\" but does not have the tag'
FROM (
    SELECT t.job FROM tags AS t GROUP BY t.job HAVING count(*) <> (
        SELECT count(DISTINCT e.value) FROM (
            SELECT seq, CASE WHEN seq IN (SELECT k.int(0) FROM rows($4) AS k) THEN '[]' ELSE tags END AS tags FROM jobs
        ) AS i, elements(i.tags) AS e WHERE i.seq = t.job)
) AS s JOIN tags AS x ON x.job = s.job LEFT JOIN (
    SELECT seq, id, CASE WHEN seq IN (SELECT k.int(0) FROM rows($4) AS k) THEN NULL ELSE tags END AS tags FROM jobs
) AS j ON j.seq = x.job
WHERE j.id IS NULL
    OR j.tags IS NOT NULL AND NOT EXISTS (SELECT 1 FROM elements(j.tags) AS t WHERE t.value = x.tag) LIMIT 1000",
        repair: "
DELETE FROM tags WHERE (job, tag) IN (
    SELECT k.int(0), k.text(1) FROM rows($1) AS k LEFT JOIN jobs AS j ON j.seq = k.int(0)
    WHERE j.id IS NULL OR NOT EXISTS (SELECT 1 FROM elements(j.tags) AS t WHERE t.value = k.text(1)))",
    },
    Kind {
        name: "tag-count",
        find: "
SELECT list(tag), 'tag \"' || tag || '\" has a stored count of ' || sum(kept) || ' jobs; actual: ' || sum(there)
FROM (SELECT tag, n AS kept, 0 AS there FROM tag_counts UNION ALL SELECT tag, 0, 1 FROM tags) AS c
GROUP BY tag HAVING sum(kept) <> sum(there) LIMIT 1000",
        repair: "
INSERT INTO tag_counts (tag, server, n)
SELECT k.text(0), 0, (SELECT count(*) FROM tags AS t WHERE t.tag = k.text(0))
    - (SELECT coalesce(sum(c.n), 0) FROM tag_counts AS c WHERE c.tag = k.text(0))
FROM rows($1) AS k WHERE true
ON CONFLICT (tag, server) DO UPDATE SET n = tag_counts.n + excluded.n",
    },
    Kind {
        name: "failure-count",
        find: "
SELECT list(failure_group, queue),
    'failure group \"' || failure_group || '\" has a stored count of ' || sum(kept) || ' jobs; actual: ' || sum(there)
FROM (SELECT failure_group, queue, n AS kept, 0 AS there FROM failure_counts
      UNION ALL SELECT failure_group, queue, 0, 1 FROM jobs WHERE state = {failed} AND failure_group IS NOT NULL) AS c
GROUP BY failure_group, queue HAVING sum(kept) <> sum(there) LIMIT 1000",
        repair: "
INSERT INTO failure_counts (failure_group, queue, server, n)
SELECT k.text(0), k.int(1), 0,
    (SELECT count(*) FROM jobs AS j WHERE j.state = {failed} AND j.failure_group = k.text(0) AND j.queue = k.int(1))
    - (SELECT coalesce(sum(c.n), 0) FROM failure_counts AS c
       WHERE c.failure_group = k.text(0) AND c.queue = k.int(1))
FROM rows($1) AS k WHERE true
ON CONFLICT (failure_group, queue, server) DO UPDATE SET n = failure_counts.n + excluded.n",
    },
    Kind {
        name: "count",
        find: "
SELECT list(c.queue, c.state),
    'queue \"' || coalesce(max(q.name), CAST(c.queue AS TEXT)) || '\" has a stored count of ' || sum(kept) || ' jobs in state '
    || CASE c.state WHEN {waiting} THEN 'waiting' WHEN {scheduled} THEN 'scheduled' WHEN {depends} THEN 'depends'
            WHEN {running} THEN 'running' WHEN {failed} THEN 'failed' WHEN {complete} THEN 'complete' WHEN {dead} THEN 'dead'
            WHEN {record} THEN 'record'
            ELSE 'stalled' END
    || '; actual: ' || sum(there)
FROM (SELECT queue, slot AS state, n AS kept, 0 AS there FROM tallies WHERE kind = {kind_state}
      UNION ALL SELECT queue, state, 0, count(*) FROM jobs GROUP BY queue, state) AS c
LEFT JOIN queues AS q ON q.id = c.queue
GROUP BY c.queue, c.state HAVING sum(kept) <> sum(there) LIMIT 1000",
        repair: "
INSERT INTO tallies (kind, queue, day, slot, server, n)
SELECT 0, k.int(0), 0, k.int(1), 0,
    (SELECT count(*) FROM jobs AS j WHERE j.queue = k.int(0) AND j.state = k.int(1))
    - (SELECT coalesce(sum(t.n), 0) FROM tallies AS t
       WHERE t.kind = {kind_state} AND t.queue = k.int(0) AND t.slot = k.int(1))
FROM rows($1) AS k WHERE true
ON CONFLICT (kind, queue, day, slot, server) DO UPDATE SET n = tallies.n + excluded.n",
    },
    Kind {
        name: "failed",
        find: "
SELECT list(c.queue, c.day),
    'queue \"' || coalesce(max(q.name), CAST(c.queue AS TEXT)) || '\" has a stored count of ' || sum(kept)
    || ' still-failed jobs for one day; actual: ' || sum(there)
FROM (SELECT queue, day, n AS kept, 0 AS there FROM tallies WHERE kind = {kind_outcome} AND slot = 1
      UNION ALL SELECT queue, (failure_at - (failure_at % 86400000000 + 86400000000) % 86400000000) / 86400000000,
          0, 1 FROM jobs WHERE state = {failed} AND failure_at IS NOT NULL) AS c
LEFT JOIN queues AS q ON q.id = c.queue
WHERE EXISTS (SELECT 1 FROM tallies AS t WHERE t.kind = {kind_outcome} AND t.queue = c.queue AND t.day = c.day)
GROUP BY c.queue, c.day HAVING sum(kept) <> sum(there) LIMIT 1000",
        repair: "
INSERT INTO tallies (kind, queue, day, slot, server, n)
SELECT 3, k.int(0), k.int(1), 1, 0,
    (SELECT count(*) FROM jobs AS j WHERE j.state = {failed} AND j.queue = k.int(0)
         AND j.failure_at >= k.int(1) * 86400000000 AND j.failure_at < (k.int(1) + 1) * 86400000000)
    - (SELECT coalesce(sum(t.n), 0) FROM tallies AS t
       WHERE t.kind = {kind_outcome} AND t.queue = k.int(0) AND t.day = k.int(1) AND t.slot = 1)
FROM rows($1) AS k WHERE true
ON CONFLICT (kind, queue, day, slot, server) DO UPDATE SET n = tallies.n + excluded.n",
    },
    Kind {
        name: "statistics",
        find: "
SELECT list(c.kind, c.queue, c.day),
    'queue \"' || coalesce(max(q.name), CAST(c.queue AS TEXT)) || '\" has a stored count of ' || sum(kept) || ' jobs that '
    || CASE c.kind WHEN 1 THEN 'waited' ELSE 'ran' END || ' on one day; its histogram has ' || sum(there)
FROM (SELECT kind, queue, day, CASE WHEN slot < 0 THEN n ELSE 0 END AS kept,
          CASE WHEN slot < 0 THEN 0 ELSE n END AS there
      FROM tallies WHERE kind IN ({kind_wait}, {kind_run}) AND day > $2) AS c
LEFT JOIN queues AS q ON q.id = c.queue
GROUP BY c.kind, c.queue, c.day HAVING sum(kept) <> sum(there) LIMIT 1000",
        repair: "
INSERT INTO tallies (kind, queue, day, slot, server, n, mean, m2)
SELECT k.int(0), k.int(1), k.int(2), -1, 0,
    (SELECT coalesce(sum(CASE WHEN t.slot < 0 THEN -t.n ELSE t.n END), 0) FROM tallies AS t
     WHERE t.kind = k.int(0) AND t.queue = k.int(1) AND t.day = k.int(2)), 0, 0
FROM rows($1) AS k WHERE true
ON CONFLICT (kind, queue, day, slot, server) DO UPDATE SET n = tallies.n + excluded.n",
    },
    Kind {
        name: "worker",
        find: "
SELECT list(w.name), 'worker \"' || w.name || '\" claimed a job after it was last seen'
FROM (SELECT worker, max(since) AS since FROM jobs WHERE state = {running} AND worker IS NOT NULL GROUP BY worker) AS j
JOIN workers AS w ON w.protocol = 'qless' AND w.name = j.worker
WHERE $3 = 0 AND w.last_seen < j.since LIMIT 1000",
        repair: "
UPDATE workers SET last_seen = j.since FROM (
    SELECT worker, max(since) AS since FROM jobs
    WHERE state = {running} AND worker IN (SELECT k.text(0) FROM rows($1) AS k) GROUP BY worker
) AS j WHERE workers.protocol = 'qless' AND workers.name = j.worker AND workers.last_seen < j.since",
    },
];

#[cfg(test)]
mod tests {
    use crate::engine::engine_without_tasks;

    #[tokio::test]
    async fn an_abandoned_check_keeps_its_turn_until_its_statements_have_ended() {
        let engine = engine_without_tasks().await;
        let turn = &engine.0.long_reads.check_turn.0;
        let mut abandoned = Box::pin(engine.check(None));
        assert!(futures::poll!(&mut abandoned).is_pending());
        drop(abandoned);
        assert_eq!(turn.available_permits(), 0);
        assert_eq!(engine.check(None).await.unwrap(), []);
        assert_eq!(turn.available_permits(), 1);
        engine.close().await;
    }
}
