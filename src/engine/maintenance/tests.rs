//! Rounds of maintenance.

use crate::engine::model::job::QueueKey;
use crate::engine::test_support::{read_number, run_sql};
use crate::engine::unit_of_work::Needs;
use crate::engine::verbs::lmstfy::publish;
use crate::engine::{Claim, Publish, engine_without_tasks};

#[tokio::test]
async fn jobs_without_tries_are_dead_although_their_time_has_also_ended() {
    let engine = engine_without_tasks().await;
    let queue = QueueKey::lmstfy("ns", "q");
    let past = Some(engine.now(None).plus_seconds(-1_000.0));
    let job = Publish {
        body: String::new(),
        delay_s: 0,
        ttl_s: 500,
        tries: 1,
        versioned: false,
        attributes: None,
    };
    let of = queue.clone();
    let published = engine.write(Needs::default(), past, 1, move |work| {
        Ok(publish::publish(work, &of, &job))
    });
    published.await.unwrap();
    let claim = Claim {
        lease_s: Some(10.0),
        ..Claim::of(queue, "", 1)
    };
    assert_eq!(engine.claim(claim, past).await.unwrap().len(), 1);
    let fail = "CREATE TRIGGER fails BEFORE UPDATE ON jobs WHEN NEW.state = {dead} \
                BEGIN SELECT RAISE(ABORT, 'not now'); END";
    run_sql(&engine, fail).await;
    engine.maintain().await.unwrap();
    let running = "SELECT count(*) FROM jobs WHERE state = {running}";
    assert_eq!(read_number(&engine, running).await, 1);
    run_sql(&engine, "DROP TRIGGER fails").await;
    engine.maintain().await.unwrap();
    let dead = "SELECT count(*) FROM jobs WHERE state = {dead}";
    assert_eq!(read_number(&engine, dead).await, 1);
    engine.close().await;
}
