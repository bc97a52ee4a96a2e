//! PostgreSQL crashes, is stopped, or hangs.
//!
//! `SWITCHYARD_RESTARTS` sets the number of crashes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::assert_consistent;
use crate::support::history::History;
use crate::support::load::{Client, Load, keep_complete, settle};
use crate::support::postgres::Postgres;
use crate::support::{Response, Server, settings};

/// Clients; each puts and claims jobs.
pub const CLIENTS: usize = 16;
const LEASE: Duration = Duration::from_secs(60);

/// A guard against a request that waits for the database; no test waits this long.
const ANSWERED: Duration = Duration::from_secs(60);

/// A guard against a server that does not recover; no test waits this long.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// How long there is load between failures.
pub const LOAD_TIME: Duration = Duration::from_millis(1_500);

/// The durability that survives a crash of PostgreSQL.
pub const FULL: &[&str] = &["--durability", "full"];

/// Clients of these servers in turn, which require responses in time.
pub fn clients(servers: &[&Server], history: &Arc<History>) -> Vec<Client> {
    let client = |(number, server): (usize, &&Server)| {
        let mut client = Client::new(server, history, format!("client-{number}"));
        client.response_time_max = Some(ANSWERED);
        client
    };
    let servers = servers.iter().cycle().take(CLIENTS);
    servers.enumerate().map(client).collect()
}

/// Begins load on these servers of one database.
pub async fn begin_load(servers: &[&Server]) -> (Arc<History>, Load) {
    keep_complete(servers[0]).await;
    let history = Arc::new(History::default());
    let clients = clients(servers, &history);
    let load = Load::begin(clients.into_iter(), 0, vec![Vec::new(); CLIENTS]);
    (history, load)
}

/// Ends the load after a while, stops the servers, and checks that no acknowledged job is lost.
pub async fn end_load(load: Load, servers: Vec<Server>, database: &str, history: &Arc<History>) {
    sleep(LOAD_TIME).await;
    load.end().await;
    for server in servers {
        assert_consistent(&server).await;
        server.stop().await;
    }
    settle(database, history, LEASE).await;
}

/// Waits until the server responds normally again.
pub async fn recovered(server: &Server) {
    let works = async {
        while is_unavailable(
            server,
            Method::POST,
            "/add/recovered",
            Some(json!({"meta": 1})),
        )
        .await
        {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let works = tokio::time::timeout(WAIT_MAX, works).await;
    assert!(works.is_ok(), "the server does not recover");
}

/// Sends a request, and checks that the response arrives in time. Returns whether it was 503.
async fn is_unavailable(server: &Server, method: Method, path: &str, data: Option<Value>) -> bool {
    let asked = format!("{method} {path}");
    let body = data.map(|data| json!({"data": data, "host": "w"}).to_string());
    let began = Instant::now();
    let response = server.try_send(method, path, body).await.unwrap();
    let took = began.elapsed();
    assert!(took <= ANSWERED, "{asked}: {took:?}");
    if response.status == 200 {
        return false;
    }
    assert_unavailable(response);
    true
}

fn assert_unavailable(response: Response) {
    assert!(response.headers.contains_key("retry-after"), "{response:?}");
    response.checked().assert_rejected(503, "unavailable");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_crash_under_load_loses_nothing() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let address = postgres.address();
    let server = Server::at_url(&address, FULL);
    let (history, load) = begin_load(&[&server]).await;
    for _ in 0..settings::number("SWITCHYARD_RESTARTS", 3) {
        sleep(LOAD_TIME).await;
        postgres.restart();
    }
    recovered(&server).await;
    end_load(load, vec![server], &address, &history).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_of_postgres_and_one_of_two_servers_loses_nothing() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let address = postgres.address();
    let mut one = Server::at_url(&address, FULL);
    let other = Server::at_url(&address, FULL);
    let (history, load) = begin_load(&[&one, &other]).await;
    sleep(LOAD_TIME).await;
    postgres.restart();
    sleep(LOAD_TIME).await;
    one.kill();
    sleep(LOAD_TIME).await;
    let held = load.end().await;
    // A new server replaces the killed one, and the clients continue.
    let third = Server::at_url(&address, FULL);
    let both = clients(&[&third, &other], &history);
    let load = Load::begin(both.into_iter(), 1, held);
    sleep(LOAD_TIME).await;
    postgres.stop();
    // Waits until writes are rejected, not only delayed.
    for server in [&third, &other] {
        let add = || Some(json!({"meta": 1}));
        while !is_unavailable(server, Method::POST, "/add/recovered", add()).await {}
    }
    postgres.start_again();
    recovered(&third).await;
    recovered(&other).await;
    end_load(load, vec![third, other], &address, &history).await;
}

/// Sends requests of every kind concurrently, and checks that each is rejected in time.
async fn assert_all_rejected_in_time(server: &Server) {
    let job = || json!({"id": "a", "meta": 1});
    let requests = [
        (Method::POST, "/add/work", Some(job())),
        (Method::POST, "/add/work", Some(json!([job(), job()]))),
        (Method::POST, "/complete/work", Some(job())),
        (Method::POST, "/heartbeat", Some(job())),
        (
            Method::POST,
            "/fail",
            Some(json!({"id": "a", "group": "g", "message": "m"})),
        ),
        (Method::POST, "/cancel", Some(json!("a"))),
        (Method::POST, "/unfail/work", Some(json!({"group": "g"}))),
        (Method::POST, "/pause/work", Some(Value::Null)),
        (
            Method::POST,
            "/recur/work",
            Some(json!({"meta": 1, "interval": 1})),
        ),
        (Method::GET, "/get/work", None),
        (Method::GET, "/get/work/5?wait=60", None),
        (Method::GET, "/peek/work", None),
        (Method::GET, "/job/a", None),
        (Method::GET, "/queues", None),
        (Method::GET, "/workers", None),
        (Method::GET, "/stats/work", None),
        (Method::GET, "/failed", None),
        (Method::GET, "/tags", None),
        (Method::GET, "/tracked", None),
        (Method::GET, "/config", None),
        (Method::GET, "/events", None),
        (Method::GET, "/check", None),
    ];
    let requests = requests.into_iter().map(|(method, path, data)| async move {
        let asked = format!("{method} {path}");
        let is_rejected = is_unavailable(server, method, path, data).await;
        assert!(is_rejected, "{asked}: accepted without a database");
    });
    let pages = ["/ui", "/ui/queues", "/health"]
        .into_iter()
        .map(|path| async move {
            let began = Instant::now();
            let response = server.try_send(Method::GET, path, None).await.unwrap();
            let took = began.elapsed();
            assert!(took <= ANSWERED, "{path}: {took:?}");
            assert!(response.status >= 500, "{response:?}");
        });
    tokio::join!(
        futures::future::join_all(requests),
        futures::future::join_all(pages)
    );
    // Not concurrently with the other check: only one runs at a time, and the other would be `busy`.
    let repair = Some(json!({"resolve": true}));
    let is_rejected = is_unavailable(server, Method::POST, "/check", repair).await;
    assert!(is_rejected, "repaired without a database");
}

/// Checks that every request is rejected in time while the database is unavailable, and that the server recovers. The
/// worker has claimed the job `a`.
async fn assert_rejected_during_outage(
    interrupt: fn(&Postgres),
    restore: fn(&Postgres),
) -> Option<(Postgres, Server)> {
    let postgres = Postgres::start()?;
    let server = Server::at_url(&postgres.address(), FULL);
    server
        .by("w")
        .add_and_pop(json!({"id": "a", "meta": 1}))
        .await;
    interrupt(&postgres);
    // At first, while writes are retried; later, when they are rejected at once.
    assert_all_rejected_in_time(&server).await;
    assert_all_rejected_in_time(&server).await;
    restore(&postgres);
    recovered(&server).await;
    Some((postgres, server))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_postgres_every_request_is_rejected_in_time() {
    let gone = assert_rejected_during_outage(Postgres::stop, Postgres::start_again);
    if let Some((_postgres, server)) = gone.await {
        server.by("w").complete("work", "a").await;
        assert_consistent(&server).await;
        server.stop().await;
    }
}

/// A write that hangs may or may not be committed, so the state of the job is unknown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_postgres_hangs_every_request_is_rejected_in_time() {
    let hung = assert_rejected_during_outage(Postgres::freeze, Postgres::thaw);
    if let Some((_postgres, server)) = hung.await {
        assert_consistent(&server).await;
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hanging_postgres_under_load_loses_nothing() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let address = postgres.address();
    let (one, other) = (
        Server::at_url(&address, FULL),
        Server::at_url(&address, FULL),
    );
    let (history, load) = begin_load(&[&one, &other]).await;
    for still in [1, 8] {
        sleep(LOAD_TIME).await;
        postgres.freeze();
        sleep(Duration::from_secs(still)).await;
        postgres.thaw();
    }
    recovered(&one).await;
    recovered(&other).await;
    end_load(load, vec![one, other], &address, &history).await;
}

/// A poll that started before the outage gets a job that is put afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poll_survives_an_outage_and_gets_the_next_job() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let address = postgres.address();
    let (one, other) = (
        Server::at_url(&address, FULL),
        Server::at_url(&address, FULL),
    );
    let act = async {
        one.client().wait_until_seen("w").await;
        postgres.restart();
        recovered(&other).await;
        other.client().add_ids("work", &["a"]).await;
    };
    // The poll's own limit is longer, so a response within this guard means that it was woken.
    let wait = one.by("w").get("/get/work?wait=60");
    let wait = tokio::time::timeout(Duration::from_secs(55), wait);
    let (job, ()) = tokio::join!(wait, act);
    assert_eq!(job.expect("woken").ok()["id"], "a");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_stops_in_time_while_postgres_hangs() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let server = Server::at_url(&postgres.address(), FULL);
    server.client().add("work", json!({"meta": 1})).await;
    postgres.freeze();
    let asked = async {
        // Some requests are in progress.
        tokio::join!(
            is_unavailable(&server, Method::GET, "/queues", None),
            is_unavailable(&server, Method::POST, "/add/work", Some(json!({"meta": 1}))),
        );
    };
    asked.await;
    server.stop().await;
}
