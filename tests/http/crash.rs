//! `kill -9` under load: acknowledged jobs are not lost, and no job is completed twice.
//!
//! `SWITCHYARD_KILLS` sets the number of kills, `SWITCHYARD_SEED` the times of the kills.

use std::sync::Arc;
use std::time::Duration;

use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use tempfile::TempDir;

use crate::support::history::History;
use crate::support::load::{Client, Load, keep_complete, settle};
use crate::support::random::Random;
use crate::support::{Server, database, settings};

/// The number of producers, and of consumers.
const CLIENTS: usize = 16;
const LEASE: Duration = Duration::from_secs(60);
const READY_MAX: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_under_load_loses_no_acknowledged_job() {
    let (kills, seed) = (settings::number("SWITCHYARD_KILLS", 3), settings::seed());
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("jobs.db");
    let database = database::address(&path);
    let history = Arc::new(History::default());
    let mut held = vec![Vec::new(); CLIENTS];
    let mut random = Random(seed);
    for kill in 0..kills {
        let mut server = Server::at_url(&database, &[]);
        assert!(server.ready_after < READY_MAX, "{:?}", server.ready_after);
        if kill == 0 {
            keep_complete(&server).await;
        }
        // 0.5 to 2.5 s of load. The times are random on purpose.
        let load_for = Duration::from_millis(500 + random.below(2_000));
        let load = Load::begin(clients(&server, &history), kill, held);
        tokio::time::sleep(load_for).await;
        server.kill();
        held = load.end().await;
    }
    // After the crash, workers can still complete the jobs that they claimed before.
    let server = Server::at_url(&database, &[]);
    assert!(server.ready_after < READY_MAX, "{:?}", server.ready_after);
    for (client, jobs) in clients(&server, &history).zip(held) {
        let left = client.complete(jobs).await;
        assert_eq!(left, [""; 0], "the server responds");
    }
    server.stop().await;
    settle(&database, &history, LEASE).await;
    if database::postgres().is_none() {
        let options = SqliteConnectOptions::new().filename(path);
        let mut connection = options.connect().await.unwrap();
        let integrity: String = sqlx::query_scalar("PRAGMA integrity_check")
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert_eq!(integrity, "ok");
    }
}

fn clients(server: &Server, history: &Arc<History>) -> impl ExactSizeIterator<Item = Client> {
    (0..CLIENTS).map(|number| Client::new(server, history, format!("consumer-{number}")))
}
