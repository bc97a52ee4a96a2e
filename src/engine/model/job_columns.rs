//! The columns of jobs that statements read, whole or in part, and the sizes of jobs.

/// The columns of a job, in the order in which [`job`](super::job_rows::job) reads them, from `jobs AS j`. IDs contain
/// no control characters, so line feeds separate them in lists. Most jobs have neither dependencies nor dependents, and
/// checking for that is cheaper than sorting an empty list.
macro_rules! job_columns {
    () => {
        concat!($crate::engine::model::job_columns::job_columns!(own: whole), ", ", $crate::engine::model::job_columns::job_columns!(edges))
    };
    // Without long texts, but with their sizes (`<` and a number, which is not JSON), and with at most 101 dependencies
    // and dependents. What is missing is read by the statements of `unit_of_work/long_parts.rs`.
    (short) => {
        concat!($crate::engine::model::job_columns::job_columns!(own: short), ", ", $crate::engine::model::job_columns::job_columns!(some_edges))
    };
    // For lists: with shortened texts (`$message` characters of the failure message), with history and tags only if
    // they are short, and with at most 100 dependencies and dependents.
    (brief: $message:literal) => {
        concat!("j.seq, j.scope, j.id, j.queue, j.state, j.priority, j.ready_at, j.since, j.worker, j.lease_id,
         j.lease_until, j.retries, j.remaining, substr(j.klass, 1, {class}),
         CASE WHEN octet_length(j.tags) <= {long} THEN j.tags ELSE '[]' END,
         CASE WHEN octet_length(j.history) <= {long} THEN j.history ELSE '[]' END, j.failure_group,
         substr(j.failure_message, 1, ", $message, "), substr(j.failure_worker, 1, {name}), j.failure_at,
         ", $crate::engine::model::long_bodies::body!(start), ", j.created_at,
         j.version, j.warned, substr(j.spawned_from, 1, {name}), j.expires_at, CAST(NULL AS TEXT), j.timeout_s,
         CAST(NULL AS TEXT),
         j.updated_at,
         (SELECT string_agg(o.id, '\n' ORDER BY o.seq) FROM (SELECT needs FROM dependencies WHERE job = j.seq
            AND needs > 0 LIMIT 100) AS d JOIN jobs AS o ON o.seq = d.needs),
         (SELECT string_agg(o.id, '\n' ORDER BY o.seq) FROM (SELECT job FROM dependencies WHERE needs = j.seq
            LIMIT 100) AS d JOIN jobs AS o ON o.seq = d.job)")
    };
    // For long lists: as `brief`, without history and dependents, and with a mark instead of each dependency.
    (listed) => {
        $crate::engine::model::job_columns::job_columns!(listed: "CASE WHEN octet_length(j.tags) <= {long} THEN j.tags ELSE '[]' END")
    };
    // For the longest lists.
    (few_tags) => {
        $crate::engine::model::job_columns::job_columns!(listed: "CASE WHEN octet_length(j.tags) <= 1024 THEN j.tags ELSE '[]' END")
    };
    (listed: $tags:literal) => {
        concat!("j.seq, j.scope, j.id, j.queue, j.state, j.priority, j.ready_at, j.since, j.worker, j.lease_id,
         j.lease_until, j.retries, j.remaining, substr(j.klass, 1, {class}),
         ", $tags, ", '[]', j.failure_group,
         substr(j.failure_message, 1, 1000), substr(j.failure_worker, 1, {name}), j.failure_at,
         ", $crate::engine::model::long_bodies::body!(start), ", j.created_at,
         j.version, j.warned, substr(j.spawned_from, 1, {name}), j.expires_at, CAST(NULL AS TEXT), j.timeout_s,
         CAST(NULL AS TEXT),
         j.updated_at,
         (SELECT string_agg('-', '\n') FROM (SELECT needs FROM dependencies WHERE job = j.seq AND needs > 0 LIMIT 100) AS d),
         CAST(NULL AS TEXT)")
    };
    (own: short) => {
        $crate::engine::model::job_columns::job_columns!(own:
            "CASE WHEN octet_length(j.tags) > {long} THEN '<' || octet_length(j.tags) ELSE j.tags END",
            "CASE WHEN octet_length(j.history) > {long} THEN '<' || octet_length(j.history) ELSE j.history END",
            "j.body",
            "CASE WHEN octet_length(j.work_state) > {long} THEN '<' || octet_length(j.work_state) ELSE j.work_state END")
    };
    (own: whole) => {
        $crate::engine::model::job_columns::job_columns!(own: "j.tags", "j.history", $crate::engine::model::long_bodies::body!(), "j.work_state")
    };
    (own: $tags:expr, $history:expr, $body:expr, $state:expr) => {
        concat!("j.seq, j.scope, j.id, j.queue, j.state, j.priority, j.ready_at, j.since, j.worker, j.lease_id,
         j.lease_until, j.retries, j.remaining, j.klass, ", $tags, ", ", $history, ", j.failure_group,
         j.failure_message, j.failure_worker, j.failure_at, ", $body, ", j.created_at, j.version, j.warned, j.spawned_from,
         j.expires_at, j.attributes, j.timeout_s, ", $state, ", j.updated_at")
    };
    (some_edges) => {
        "CASE WHEN EXISTS (SELECT 1 FROM dependencies WHERE job = j.seq AND needs > 0) THEN
            (SELECT string_agg(o.id, '\n' ORDER BY o.seq) FROM (SELECT needs FROM dependencies WHERE job = j.seq
                AND needs > 0 LIMIT 101) AS d JOIN jobs AS o ON o.seq = d.needs) END,
         CASE WHEN EXISTS (SELECT 1 FROM dependencies WHERE needs = j.seq) THEN
            (SELECT string_agg(o.id, '\n' ORDER BY o.seq) FROM (SELECT job FROM dependencies WHERE needs = j.seq
                LIMIT 101) AS d JOIN jobs AS o ON o.seq = d.job) END"
    };
    (edges) => {
        "CASE WHEN EXISTS (SELECT 1 FROM dependencies WHERE job = j.seq AND needs > 0) THEN
            (SELECT string_agg(o.id, '\n' ORDER BY o.seq) FROM dependencies AS d
                JOIN jobs AS o ON o.seq = d.needs WHERE d.job = j.seq AND d.needs > 0) END,
         CASE WHEN EXISTS (SELECT 1 FROM dependencies WHERE needs = j.seq) THEN
            (SELECT string_agg(o.id, '\n' ORDER BY o.seq) FROM dependencies AS d
                JOIN jobs AS o ON o.seq = d.job WHERE d.needs = j.seq) END"
    };
}
pub(crate) use job_columns;

/// The size in bytes of a job's texts, from `jobs AS j`; approximately its size in a response.
macro_rules! job_bytes {
    () => {
        concat!("CAST(", $crate::engine::model::long_bodies::body!(bytes), " + octet_length(j.history) + octet_length(j.tags)
             + coalesce(octet_length(j.work_state), 0) + coalesce(octet_length(j.failure_message), 0)
             + coalesce(octet_length(j.failure_worker), 0) + coalesce(octet_length(j.spawned_from), 0)
             + coalesce(octet_length(j.klass), 0) + coalesce(octet_length(j.attributes), 0) AS BIGINT)")
    };
    // The size of its row, without a long body, which is a row of its own: about what SQLite writes when the job
    // changes.
    (row) => {
        "CAST(octet_length(j.body) + octet_length(j.history) + octet_length(j.tags)
             + coalesce(octet_length(j.work_state), 0) + coalesce(octet_length(j.failure_message), 0)
             + coalesce(octet_length(j.klass), 0) + coalesce(octet_length(j.attributes), 0) AS BIGINT)"
    };
    // The size of its row, with the dependencies and dependents that `job_columns!(short)` loads: about what that
    // loads.
    (loaded) => {
        concat!(
            $crate::engine::model::job_columns::job_bytes!(row),
            " + 3 * octet_length(j.tags) + 256 * ((SELECT count(*) FROM (SELECT 1 FROM dependencies AS d WHERE d.job = j.seq LIMIT 101) AS a)
             + (SELECT count(*) FROM (SELECT 1 FROM dependencies AS d WHERE d.needs = j.seq LIMIT 101) AS b))"
        )
    };
    // With its ID, and its dependencies and dependents. Each counts as an ID of the greatest length, because to read the
    // IDs would cost as much as to load the job. Short tags occupy four times their length.
    (with_edges) => {
        concat!(
            $crate::engine::model::job_columns::job_bytes!(),
            " + octet_length(j.id) + 3 * octet_length(j.tags) + 255 * ((SELECT count(*) FROM dependencies WHERE job = j.seq)
             + (SELECT count(*) FROM dependencies WHERE needs = j.seq))"
        )
    };
}
pub(crate) use job_bytes;
