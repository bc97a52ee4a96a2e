//! What a query costs that an index can answer, in a queue of very many jobs and in one of a few; beside one for
//! which every job is looked at.

use std::time::Instant;

use super::Result;
use super::client::Connection;
use super::jobq::create_queue;
use super::report::percentile;
use super::target::Target;

/// Jobs with the tag that is asked for.
const WANTED: usize = 10;

/// How often each is asked for.
const ROUNDS: usize = 200;
const ROUNDS_OVER_ALL: usize = 5;

const BY_TAG: &str = r#"{"query":[["IS","json_extract(state, '$[0]')","WANTED"]],"limit":100}"#;
const OVER_ALL: &str = r#"{"query":[["=","json_extract(payload, '$.wanted')",true]],"limit":100}"#;

/// Medians, in milliseconds.
pub struct Queries {
    pub jobs: usize,
    /// By tag: in the small queue, and in the large one.
    pub few_ms: f64,
    pub many_ms: f64,
    /// The slowest of a hundred by tag in the large one.
    pub many_p99_ms: f64,
    /// In the large one, where every job is looked at.
    pub over_all_ms: f64,
}

/// Fills two queues, and asks.
pub async fn measure(target: &Target, jobs: usize) -> Result<Queries> {
    let mut connection = Connection::open(target.address(0)?).await?;
    let few = create_queue(&mut connection, "few").await?;
    let many = create_queue(&mut connection, "many").await?;
    fill(target, &few, 0..WANTED).await?;
    fill(target, &many, 0..jobs.max(WANTED)).await?;
    // In turns, so that a disturbance concerns both.
    let (mut in_few, mut in_many, mut over_all) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        in_few.push(ask(&mut connection, &few, BY_TAG).await?);
        in_many.push(ask(&mut connection, &many, BY_TAG).await?);
    }
    for _ in 0..ROUNDS_OVER_ALL {
        over_all.push(ask(&mut connection, &many, OVER_ALL).await?);
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

/// How long the answer took, in milliseconds; it must have the wanted jobs.
async fn ask(connection: &mut Connection, queue: &str, query: &str) -> Result<f64> {
    let began = Instant::now();
    let answer = connection
        .post(&format!("{queue}/query_jobs"), query)
        .await?;
    let took = began.elapsed().as_secs_f64() * 1e3;
    match answer.matches("\"WANTED\"").count() {
        WANTED => Ok(took),
        number => Err(format!("{number} jobs instead of {WANTED}").into()),
    }
}

/// Connections by which a queue is filled.
const FILLING: usize = 64;

/// Creates jobs of these numbers; the first of a queue are the wanted ones.
async fn fill(target: &Target, queue: &str, numbers: std::ops::Range<usize>) -> Result<()> {
    let fill = async |first: usize| {
        let mut connection = Connection::open(target.address(0)?).await?;
        for number in numbers.clone().skip(first).step_by(FILLING) {
            let wanted = number < WANTED;
            let tag = if wanted { "WANTED" } else { "OTHER" };
            let body = format!(
                r#"{{"payload":{{"number":{number},"wanted":{wanted},"host":"node-{number}.example.com"}},"state":["{tag}",{{"node":{number}}}]}}"#
            );
            connection.post(&format!("{queue}/job"), &body).await?;
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    };
    futures::future::try_join_all((0..FILLING).map(fill)).await?;
    Ok(())
}
