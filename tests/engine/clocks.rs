//! Servers that share a database, and whose clocks differ, because a reading of its clock takes one of them longer.

use super::link::{Link, Network};
use super::*;
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use switchyard::engine::{Enqueue, Mode};

/// How much later than it is sent anything arrives, in each direction.
const DELAY: Duration = Duration::from_millis(30);

/// The port in the address of a PostgreSQL database.
fn port(address: &str) -> u16 {
    let (_, rest) = address.rsplit_once(':').unwrap();
    rest.split('/').next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_clock_is_behind_finds_what_another_one_has_acknowledged() {
    if database::postgres().is_none() {
        return;
    }
    let options = options();
    let beside = Engine::open(&options).await.unwrap();
    let port = port(&options.database);
    let link = Link::to(port).await;
    link.set_network(Network::Slow(DELAY));
    let through = format!(":{}/", link.port());
    let database = options.database.replace(&format!(":{port}/"), &through);
    let options = EngineSettings {
        database,
        ..options
    };
    let behind = Engine::open(&options).await.unwrap();

    let (ready, dead) = (QueueKey::lmstfy("ns", "q"), QueueKey::relay("q"));
    for round in 0..3 {
        let job = lmstfy_job("1");
        beside.publish(ready.clone(), vec![job]).await.unwrap();
        let deleted = behind.destroy(ready.clone()).await;
        assert_eq!(deleted.unwrap(), 1, "round {round}");
    }
    for round in 0..3 {
        let job = Enqueue {
            queue: dead.clone(),
            id: format!("job-{round}"),
            timeout_s: 0,
            max_retries: Some(0),
            payload: "1".to_owned(),
            state: None,
            run_at: None,
        };
        beside.enqueue(vec![job], Mode::Unique).await.unwrap();
        let claim = || Claim::of(dead.clone(), "", 1);
        assert_eq!(beside.claim(claim(), None).await.unwrap().len(), 1);
        while beside.dead_letter_summary(&dead).await.unwrap().size == 0 {
            assert_eq!(beside.claim(claim(), None).await.unwrap(), []);
        }
        let again = behind.requeue_oldest_dead(dead.clone(), 9).await;
        assert_eq!(again.unwrap().done, 1, "round {round}");
        assert_eq!(beside.claim(claim(), None).await.unwrap().len(), 1);
        while beside.dead_letter_summary(&dead).await.unwrap().size == 0 {
            assert_eq!(beside.claim(claim(), None).await.unwrap(), []);
        }
        let deleted = behind.delete_dead_letter(dead.clone(), 9).await;
        assert_eq!(deleted.unwrap(), 1, "round {round}");
    }
    behind.close().await;
    beside.close().await;
}

/// As after the clock of the database was set back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_start_after_a_job_of_the_future_insert_jobs_side_by_side() {
    if database::postgres().is_none() {
        return;
    }
    let options = options();
    let first = Engine::open(&options).await.unwrap();
    add(&first, &q(), vec![new("of-the-future")]).await;
    let mut database = PgConnection::connect(&options.database).await.unwrap();
    let hour = "UPDATE jobs SET seq = seq + 3600000000 * 1024";
    sqlx::raw_sql(hour).execute(&mut database).await.unwrap();
    let servers = [
        Engine::open(&options).await.unwrap(),
        Engine::open(&options).await.unwrap(),
    ];
    for round in 0..5 {
        for (server, engine) in servers.iter().enumerate() {
            add(engine, &q(), vec![new(&format!("{server}-{round}"))]).await;
        }
    }
    for engine in servers.into_iter().chain([first]) {
        engine.close().await;
    }
}
