//! Compares queries with SQLite: both evaluate the same terms over the same jobs.

use futures::future::join_all;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, SqliteConnection};

use super::query::fill;
use super::{assert_consistent, start_with_queue};
use crate::support::jobq::{Job, Jobq};

/// Expressions that both support.
const EXPRESSIONS: [&str; 104] = [
    "id",
    "j.id + 1",
    "id * 2 - 3",
    "id / 5",
    "id % 4",
    "-id",
    "id || 'x'",
    "id = 3 OR id = 4",
    "NOT id",
    "not id = 3",
    "id BETWEEN 2 AND 5",
    "id NOT BETWEEN 2 AND 5",
    "id IN (1, 3, 5)",
    "id NOT IN (1, 3)",
    "id NOT IN (1, NULL)",
    "id IN ()",
    "id IS 3",
    "id IS NOT 3",
    "id < '5'",
    "id = '5'",
    "modified > 0",
    "modified = id",
    "state",
    "state ISNULL",
    "state NOTNULL",
    "state NOT NULL",
    "state IS NOT NULL",
    "state = 5",
    "5 = state",
    "(state) = 5",
    "+state = 5",
    "state < 'a'",
    "state IS '\"CREATED\"'",
    "payload",
    "payload || state",
    "payload LIKE '%hello%'",
    "payload NOT LIKE '%o%'",
    "payload -> '$.msg'",
    "payload ->> '$.msg'",
    "payload ->> 'msg'",
    "payload -> 'user' ->> 'name'",
    "payload ->> 1",
    "json_extract(payload,'$')",
    "json_extract(payload,'$.msg')",
    "json_extract(payload,'$.attempt')",
    "json_extract(payload,'$.attempt') + 1",
    "json_extract(payload,'$.attempt') < 5",
    "json_extract(payload,'$.urgent')",
    "json_extract(payload,'$.p')",
    "json_extract(payload,'$[1]')",
    "json_extract(payload,'$.user')",
    "json_extract(payload,'$.user.name')",
    "json_extract(payload,'$.port') = 5432",
    "json_extract(payload,'$.port') = '5432'",
    "json_extract(events,'$[0][0]')",
    "json_type(payload)",
    "json_type(payload,'$.msg')",
    "json_type(payload,'$.attempt')",
    "json_type(state,'$[0]')",
    "json_array_length(payload)",
    "json_array_length(state)",
    "json_array_length(state,'$[0]')",
    "json_valid(payload)",
    "json_valid(state)",
    "json_array(id, 'x')",
    "json(' [ 1 , 2 ] ')",
    "length(payload)",
    "length(state)",
    "upper(payload)",
    "lower(state)",
    "trim('  x ')",
    "trim(payload, '{}')",
    "substr(payload, 2, 3)",
    "substr(payload, 2)",
    "substr(payload, -3)",
    "substr(payload, -3, 2)",
    "substr(payload, 0, 2)",
    "instr(payload, 'o')",
    "instr(payload, 'll') > 0",
    "abs(id - 6)",
    "round(id / 3.0, 1)",
    "round(id / 4.0)",
    "min(id, 5)",
    "max(id, 5, 7)",
    "coalesce(state, payload)",
    "ifnull(state, 'none')",
    "nullif(id, 3)",
    "iif(id > 5, 'big', 'small')",
    "typeof(json_extract(payload,'$.p'))",
    "typeof(id / 2.0)",
    "CAST(id AS TEXT)",
    "CAST('12abc' AS INTEGER)",
    "CAST(payload AS INTEGER)",
    "CAST(json_extract(payload,'$.attempt') AS REAL)",
    "'5' + id",
    "'abc' + id",
    "1.5 + id",
    "NULL AND 0",
    "NULL OR 1",
    "2 > 1 > 0",
    "- 5 % 3",
    "7 / -2",
    "2 * 3 || 4",
    "TRUE + 1",
];

/// Operators and second operands for each expression.
const OTHERS: [(&str, &str); 16] = [
    ("IS", "NULL"),
    ("=", "NULL"),
    ("=", "0"),
    ("<", "0"),
    ("=", "1"),
    (">=", "1"),
    ("=", "'1'"),
    ("<", "'1'"),
    ("!=", "5"),
    ("<=", "5.0"),
    ("=", "'CREATED'"),
    (">", "'CREATED'"),
    ("IS NOT", "'5'"),
    ("LIKE", "'%1%'"),
    ("LIKE", "'h%o%'"),
    ("=", "id"),
];

/// A table with these jobs in SQLite.
async fn table(jobs: &[Job]) -> SqliteConnection {
    let options = SqliteConnectOptions::new().in_memory(true);
    let mut connection = options.connect().await.unwrap();
    let columns = "id INTEGER, payload TEXT, state TEXT, events TEXT, modified INTEGER";
    let create = format!("CREATE TABLE j ({columns})");
    let created = sqlx::query(AssertSqlSafe(create)).execute(&mut connection);
    created.await.unwrap();
    for job in jobs {
        let state = Some(&job.state).filter(|state| *state != "null");
        sqlx::query("INSERT INTO j VALUES (?, ?, ?, ?, ?)")
            .bind(job.id)
            .bind(&job.payload)
            .bind(state)
            .bind(r#"[["job_created",{}]]"#)
            .bind(job.modified)
            .execute(&mut connection)
            .await
            .unwrap();
    }
    connection
}

/// For each operator and second operand, the jobs that the server finds.
async fn found(jobq: &Jobq, expression: &str) -> Vec<Vec<i64>> {
    let queries: Vec<Value> = OTHERS
        .iter()
        .map(|(op, other)| json!([[op, expression, other]]))
        .collect();
    join_all(queries.iter().map(|query| jobq.matching("q", query))).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_have_the_same_results_as_in_sqlite() {
    let (server, jobq) = start_with_queue().await;
    fill(&jobq).await;
    let mut table = table(&jobq.all("q").await).await;
    let (mut wrong, mut matches) = (Vec::new(), 0);
    for expression in EXPRESSIONS {
        let found = found(&jobq, expression).await;
        for ((op, other), found) in OTHERS.iter().zip(found) {
            let sql = format!("SELECT id FROM j WHERE ({expression}) {op} ({other}) ORDER BY id");
            let expected: Vec<i64> = sqlx::query_scalar(AssertSqlSafe(sql.clone()))
                .fetch_all(&mut table)
                .await
                .unwrap_or_else(|error| panic!("{sql}: {error}"));
            matches += expected.len();
            if found != expected {
                wrong.push(format!(
                    "{sql}: SQLite finds {expected:?}, the server {found:?}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(matches > 2_000, "SQLite finds only {matches} jobs");
    assert_consistent(&server).await;
}
