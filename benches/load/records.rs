//! The cost of Jobq queries: one that uses an index, in a large and in a small queue, and one that reads every job.

use std::time::Instant;

use super::Result;
use super::client::Connection;
use super::jobq::create_queue;
use super::report::percentile;
use super::target::Target;

/// Jobs that match the query.
const WANTED: usize = 10;

/// Repetitions of the query that uses an index.
const ROUNDS: usize = 200;
/// Repetitions of the query that reads every job.
const ROUNDS_OVER_ALL: usize = 5;

const BY_LABEL: &str = r#"{"query":[["IS","json_extract(state, '$[0]')","WANTED"]],"limit":100}"#;
const OVER_ALL: &str = r#"{"query":[["=","json_extract(payload, '$.wanted')",true]],"limit":100}"#;

/// Medians, in milliseconds.
pub struct Queries {
    pub jobs: usize,
    /// By label, in the small queue.
    pub few_ms: f64,
    /// By label, in the large queue.
    pub many_ms: f64,
    /// p99 by label, in the large queue.
    pub many_p99_ms: f64,
    /// In the large queue, by a query that reads every job.
    pub over_all_ms: f64,
}

/// Fills two queues and measures the queries.
pub async fn measure(target: &Target, jobs: usize) -> Result<Queries> {
    let mut connection = Connection::open(target.address(0)?).await?;
    let few = create_queue(&mut connection, "few").await?;
    let many = create_queue(&mut connection, "many").await?;
    fill(target, &few, 0..WANTED).await?;
    fill(target, &many, 0..jobs.max(WANTED)).await?;
    // In turns, so that a disturbance affects both.
    let (mut in_few, mut in_many, mut over_all) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        in_few.push(time_query(&mut connection, &few, BY_LABEL).await?);
        in_many.push(time_query(&mut connection, &many, BY_LABEL).await?);
    }
    for _ in 0..ROUNDS_OVER_ALL {
        over_all.push(time_query(&mut connection, &many, OVER_ALL).await?);
    }
    for times in [&mut in_few, &mut in_many, &mut over_all] {
        times.sort_by(f64::total_cmp);
    }
    Ok(Queries {
        jobs,
        few_ms: percentile(&in_few, 0.5),
        many_ms: percentile(&in_many, 0.5),
        many_p99_ms: percentile(&in_many, 0.99),
        over_all_ms: percentile(&over_all, 0.5),
    })
}

/// The duration of a query, in milliseconds. Fails if the response does not have the wanted jobs.
async fn time_query(connection: &mut Connection, queue: &str, query: &str) -> Result<f64> {
    let began = Instant::now();
    let response = connection
        .post(&format!("{queue}/query_jobs"), query)
        .await?;
    let took = began.elapsed().as_secs_f64() * 1e3;
    match response.matches("\"WANTED\"").count() {
        WANTED => Ok(took),
        number => Err(format!("{number} jobs instead of {WANTED}").into()),
    }
}

/// Connections that fill a queue.
const FILLING: usize = 64;

/// Creates jobs with these numbers. The first [`WANTED`] match the query.
async fn fill(target: &Target, queue: &str, numbers: std::ops::Range<usize>) -> Result<()> {
    let fill = async |first: usize| {
        let mut connection = Connection::open(target.address(0)?).await?;
        for number in numbers.clone().skip(first).step_by(FILLING) {
            let wanted = number < WANTED;
            let label = if wanted { "WANTED" } else { "OTHER" };
            let body = format!(
                r#"{{"payload":{{"number":{number},"wanted":{wanted},"host":"node-{number}.example.com"}},"state":["{label}",{{"node":{number}}}]}}"#
            );
            connection.post(&format!("{queue}/job"), &body).await?;
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    };
    futures::future::try_join_all((0..FILLING).map(fill)).await?;
    Ok(())
}
