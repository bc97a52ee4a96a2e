//! The kinds of inconsistencies, with the statements that find and repair them.
//!
//! `find` returns a JSON array with the keys of the problem, and a sentence. `repair` takes a JSON array of such arrays
//! and checks the condition again, because the server may have changed the rows meanwhile. A repair reads no more rows
//! than it changes, so that its duration does not depend on the number of jobs.

/// A kind of inconsistency.
pub struct Kind {
    pub name: &'static str,
    pub find: &'static str,
    pub repair: &'static str,
}

/// The kinds that parse tags. They leave out the jobs in `$4`, whose tags cannot be parsed.
pub const READING_TAGS: [&str; 2] = ["tag", "tagged"];

/// The kinds that concern jobs, by `seq`, and change them or rows that belong to them. Transactions that change such
/// rows also write the job.
pub const CHANGING_JOBS: [&str; 8] = [
    "lease",
    "failure",
    "dependency",
    "depends",
    "body",
    "lost-body",
    "tag",
    "tagged",
];

/// The kinds that compare counters with rows. `find` also returns by how much the counter must change, and by how much
/// repairs have changed it before. Verbs change rows and counters in one transaction, so the difference stays the same
/// while they do. The repair adds the difference to the counter of server [`REPAIR_SERVER`], unless another repair was
/// first. It does not count the rows again, because the duration of that depends on their number.
pub const COUNTERS: [&str; 5] = [
    "tag-count",
    "failure-count",
    "count",
    "failed",
    "statistics",
];

/// The number of the server under which repairs store their changes of counters; real servers have numbers from 0.
pub const REPAIR_SERVER: i64 = -1;

/// In the order of repair: queues, jobs, the rows that belong to jobs, the counters derived from them, workers.
pub const KINDS: [Kind; 16] = [
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
SELECT list(q.id, j.last), 'queue \"' || q.name || '\" records ' || q.last_number || ' as its last job ID, but has job '
    || j.last
FROM (SELECT queue, max(CAST(id AS BIGINT)) AS last FROM jobs WHERE state = {record} GROUP BY queue) AS j
JOIN queues AS q ON q.id = j.queue WHERE j.last > q.last_number LIMIT 1000",
        repair: "
UPDATE queues SET last_number = k.int(1)
FROM rows($1) AS k WHERE queues.id = k.int(0) AND queues.last_number < k.int(1)",
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
WHERE d.needs > 0 AND (j.id IS NULL OR n.id IS NULL OR n.state = {complete} OR j.state <> {depends}) LIMIT 1000",
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
SELECT list(j.seq, t.value, j.version), 'job \"' || j.id || '\" has the tag \"' || t.value || '\" but is missing from the tag index'
FROM (SELECT seq, id, version, CASE WHEN seq IN (SELECT k.int(0) FROM rows($4) AS k) THEN '[]' ELSE tags END AS tags FROM jobs) AS j,
    elements(j.tags) AS t
WHERE NOT EXISTS (SELECT 1 FROM tags AS x WHERE x.job = j.seq AND x.tag = t.value) LIMIT 1000",
        repair: "
INSERT INTO tags (job, tag, tagged_at, id)
SELECT j.seq, k.text(1), $2, j.id FROM rows($1) AS k JOIN jobs AS j ON j.seq = k.int(0)
WHERE j.version = k.int(2)
ON CONFLICT DO NOTHING",
    },
    // Comparing the tags of a job with the index parses them once for each tag, so the numbers are compared first.
    Kind {
        name: "tagged",
        find: "
SELECT list(x.job, x.tag, j.version), 'job \"' || x.id || '\" is in the tag index for \"' || x.tag || '\" but does not have the tag'
FROM (
    SELECT t.job FROM tags AS t GROUP BY t.job HAVING count(*) <> (
        SELECT count(DISTINCT e.value) FROM (
            SELECT seq, CASE WHEN seq IN (SELECT k.int(0) FROM rows($4) AS k) THEN '[]' ELSE tags END AS tags FROM jobs
        ) AS i, elements(i.tags) AS e WHERE i.seq = t.job)
) AS s JOIN tags AS x ON x.job = s.job LEFT JOIN (
    SELECT seq, id, version, CASE WHEN seq IN (SELECT k.int(0) FROM rows($4) AS k) THEN NULL ELSE tags END AS tags FROM jobs
) AS j ON j.seq = x.job
WHERE j.id IS NULL
    OR j.tags IS NOT NULL AND NOT EXISTS (SELECT 1 FROM elements(j.tags) AS t WHERE t.value = x.tag) LIMIT 1000",
        repair: "
DELETE FROM tags WHERE (job, tag) IN (
    SELECT k.int(0), k.text(1) FROM rows($1) AS k LEFT JOIN jobs AS j ON j.seq = k.int(0)
    WHERE j.id IS NULL OR j.version = k.int(2))",
    },
    Kind {
        name: "tag-count",
        find: "
SELECT list(tag, sum(counted) - sum(recorded), sum(repaired)), 'tag \"' || tag || '\" has a stored count of ' || sum(recorded) || ' jobs; actual: ' || sum(counted)
FROM (SELECT tag, n AS recorded, 0 AS counted, CASE WHEN server = {repairs} THEN n ELSE 0 END AS repaired FROM tag_counts
      UNION ALL SELECT tag, 0, 1, 0 FROM tags) AS c
GROUP BY tag HAVING sum(recorded) <> sum(counted) LIMIT 1000",
        repair: "
INSERT INTO tag_counts (tag, server, n)
SELECT k.text(0), {repairs}, k.int(1) FROM rows($1) AS k
WHERE k.int(2) = coalesce((SELECT c.n FROM tag_counts AS c WHERE c.tag = k.text(0) AND c.server = {repairs}), 0)
ON CONFLICT (tag, server) DO UPDATE SET n = tag_counts.n + excluded.n",
    },
    Kind {
        name: "failure-count",
        find: "
SELECT list(failure_group, queue, sum(counted) - sum(recorded), sum(repaired)),
    'failure group \"' || failure_group || '\" has a stored count of ' || sum(recorded) || ' jobs; actual: ' || sum(counted)
FROM (SELECT failure_group, queue, n AS recorded, 0 AS counted, CASE WHEN server = {repairs} THEN n ELSE 0 END AS repaired
      FROM failure_counts
      UNION ALL SELECT failure_group, queue, 0, 1, 0 FROM jobs WHERE state = {failed} AND failure_group IS NOT NULL) AS c
GROUP BY failure_group, queue HAVING sum(recorded) <> sum(counted) LIMIT 1000",
        repair: "
INSERT INTO failure_counts (failure_group, queue, server, n)
SELECT k.text(0), k.int(1), {repairs}, k.int(2) FROM rows($1) AS k
WHERE k.int(3) = coalesce((SELECT c.n FROM failure_counts AS c
    WHERE c.failure_group = k.text(0) AND c.queue = k.int(1) AND c.server = {repairs}), 0)
ON CONFLICT (failure_group, queue, server) DO UPDATE SET n = failure_counts.n + excluded.n",
    },
    Kind {
        name: "count",
        find: "
SELECT list(c.queue, c.state, sum(counted) - sum(recorded), sum(repaired)),
    'queue \"' || coalesce(max(q.name), CAST(c.queue AS TEXT)) || '\" has a stored count of ' || sum(recorded) || ' jobs in state '
    || CASE c.state WHEN {waiting} THEN 'waiting' WHEN {scheduled} THEN 'scheduled' WHEN {depends} THEN 'depends'
            WHEN {running} THEN 'running' WHEN {failed} THEN 'failed' WHEN {complete} THEN 'complete' WHEN {dead} THEN 'dead'
            WHEN {record} THEN 'record'
            ELSE 'stalled' END
    || '; actual: ' || sum(counted)
FROM (SELECT queue, slot AS state, n AS recorded, 0 AS counted, CASE WHEN server = {repairs} THEN n ELSE 0 END AS repaired
      FROM tallies WHERE kind = {kind_state}
      UNION ALL SELECT queue, state, 0, count(*), 0 FROM jobs GROUP BY queue, state) AS c
LEFT JOIN queues AS q ON q.id = c.queue
GROUP BY c.queue, c.state HAVING sum(recorded) <> sum(counted) LIMIT 1000",
        repair: "
INSERT INTO tallies (kind, queue, day, slot, server, n)
SELECT {kind_state}, k.int(0), 0, k.int(1), {repairs}, k.int(2) FROM rows($1) AS k
WHERE k.int(3) = coalesce((SELECT t.n FROM tallies AS t WHERE t.kind = {kind_state} AND t.queue = k.int(0) AND t.day = 0
    AND t.slot = k.int(1) AND t.server = {repairs}), 0)
ON CONFLICT (kind, queue, day, slot, server) DO UPDATE SET n = tallies.n + excluded.n",
    },
    Kind {
        name: "failed",
        find: "
SELECT list(c.queue, c.day, sum(counted) - sum(recorded), sum(repaired)),
    'queue \"' || coalesce(max(q.name), CAST(c.queue AS TEXT)) || '\" has a stored count of ' || sum(recorded)
    || ' still-failed jobs for one day; actual: ' || sum(counted)
FROM (SELECT queue, day, n AS recorded, 0 AS counted, CASE WHEN server = {repairs} THEN n ELSE 0 END AS repaired
      FROM tallies WHERE kind = {kind_outcome} AND slot = {still_failed}
      UNION ALL SELECT queue, (failure_at - (failure_at % 86400000000 + 86400000000) % 86400000000) / 86400000000,
          0, 1, 0 FROM jobs WHERE state = {failed} AND failure_at IS NOT NULL) AS c
LEFT JOIN queues AS q ON q.id = c.queue
WHERE EXISTS (SELECT 1 FROM tallies AS t WHERE t.kind = {kind_outcome} AND t.queue = c.queue AND t.day = c.day)
GROUP BY c.queue, c.day HAVING sum(recorded) <> sum(counted) LIMIT 1000",
        repair: "
INSERT INTO tallies (kind, queue, day, slot, server, n)
SELECT {kind_outcome}, k.int(0), k.int(1), {still_failed}, {repairs}, k.int(2) FROM rows($1) AS k
WHERE k.int(3) = coalesce((SELECT t.n FROM tallies AS t WHERE t.kind = {kind_outcome} AND t.queue = k.int(0)
    AND t.day = k.int(1) AND t.slot = {still_failed} AND t.server = {repairs}), 0)
ON CONFLICT (kind, queue, day, slot, server) DO UPDATE SET n = tallies.n + excluded.n",
    },
    Kind {
        name: "statistics",
        find: "
SELECT list(c.kind, c.queue, c.day, sum(counted) - sum(recorded), sum(repaired),
        coalesce(sum(recorded * mean) / nullif(sum(recorded), 0), 0)),
    'queue \"' || coalesce(max(q.name), CAST(c.queue AS TEXT)) || '\" has a stored count of ' || sum(recorded) || ' jobs that '
    || CASE c.kind WHEN {kind_wait} THEN 'waited' ELSE 'ran' END || ' on one day; its histogram has ' || sum(counted)
FROM (SELECT kind, queue, day, CASE WHEN slot < 0 THEN n ELSE 0 END AS recorded,
          CASE WHEN slot < 0 THEN 0 ELSE n END AS counted, mean,
          CASE WHEN slot < 0 AND server = {repairs} THEN n ELSE 0 END AS repaired
      FROM tallies WHERE kind IN ({kind_wait}, {kind_run}) AND day > $2) AS c
LEFT JOIN queues AS q ON q.id = c.queue
GROUP BY c.kind, c.queue, c.day HAVING sum(recorded) <> sum(counted) LIMIT 1000",
        repair: "
INSERT INTO tallies (kind, queue, day, slot, server, n, mean, m2)
SELECT k.int(0), k.int(1), k.int(2), {summary}, {repairs}, k.int(3), k.real(5), 0 FROM rows($1) AS k
WHERE k.int(4) = coalesce((SELECT t.n FROM tallies AS t WHERE t.kind = k.int(0) AND t.queue = k.int(1)
    AND t.day = k.int(2) AND t.slot = {summary} AND t.server = {repairs}), 0)
ON CONFLICT (kind, queue, day, slot, server) DO UPDATE SET n = tallies.n + excluded.n",
    },
    Kind {
        name: "worker",
        find: "
SELECT list(w.name, j.since), 'worker \"' || w.name || '\" claimed a job after it was last seen'
FROM (SELECT worker, max(since) AS since FROM jobs WHERE state = {running} AND worker IS NOT NULL GROUP BY worker) AS j
JOIN workers AS w ON w.protocol = 'qless' AND w.name = j.worker
WHERE $3 = 0 AND w.last_seen < j.since LIMIT 1000",
        repair: "
UPDATE workers SET last_seen = k.int(1)
FROM rows($1) AS k WHERE workers.protocol = 'qless' AND workers.name = k.text(0) AND workers.last_seen < k.int(1)",
    },
];
