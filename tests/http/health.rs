//! The health checks.

use reqwest::StatusCode;
use tokio::net::TcpStream;

use crate::support::eventually;
use crate::support::metrics::{Metrics, metrics_when};
use crate::support::postgres::Postgres;
use crate::support::{Server, raw};

async fn status(server: &Server, address: &str, path: &str) -> StatusCode {
    let url = format!("http://{address}{path}");
    server.http.get(url).send().await.unwrap().status()
}

/// The exit code and the output of `switchyard health`.
fn health_command(address: &str, flags: &[&str]) -> (Option<i32>, String) {
    let mut command = Server::program();
    let server = format!("http://{address}");
    command.args(["health", "--server", &server]).args(flags);
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[tokio::test]
async fn a_server_that_works_is_alive_and_ready() {
    let server = Server::with(&["--admin-token", "the-token-of-the-admin"]);
    for path in ["/health", "/health/live", "/health/ready"] {
        let url = format!("http://{}{path}", server.address);
        let response = server.http.get(url).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(response.text().await.unwrap(), "ok\n", "{path}");
    }
    for flags in [&[][..], &["--live"]] {
        let answer = health_command(&server.address, flags);
        assert_eq!(answer, (Some(0), "ok\n".to_owned()), "{flags:?}");
    }
    let address = server.address.clone();
    drop(server);
    let (code, text) = health_command(&address, &[]);
    assert_eq!(code, Some(5), "{text}");
}

#[tokio::test]
async fn a_server_that_stops_is_alive_but_not_ready() {
    let mut server = Server::with(&["--metrics-listen", "127.0.0.1:0"]);
    let metrics = super::metrics::second_address(&mut server).await;
    assert_eq!(status(&server, &metrics, "/health/ready").await, 200);
    let mut running = raw::Connection::to(&server).await;
    let head = "POST /add/work HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 28\r\n\r\n";
    running.write(head).await;
    running.read_until("\r\n\r\n").await;
    server.terminate();
    while TcpStream::connect(&server.address).await.is_ok() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    // The second listener answers while the last request of the first one runs.
    assert_eq!(status(&server, &metrics, "/health/ready").await, 503);
    assert_eq!(status(&server, &metrics, "/health/live").await, 200);
    assert_eq!(status(&server, &metrics, "/metrics").await, 200);
    let (code, text) = health_command(&metrics, &[]);
    assert_eq!(code, Some(5), "{text}");
    assert!(text.contains("stopping"), "{text}");
    assert_eq!(health_command(&metrics, &["--live"]).0, Some(0));
    running.write(r#"{"data": {"meta": "ending"}}"#).await;
    let answer = running.read_to_end().await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(server.stopped().await.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_database_a_server_is_alive_but_not_ready() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let server = Server::at_url(&postgres.address(), &[]);
    server.client().add_ids("q", &["a"]).await;
    let put = "switchyard_jobs_put_total{protocol=\"qless\",namespace=\"\",queue=\"q\"}";
    let is_counted = |it: &Metrics| it.value(put) == Some(1.0);
    metrics_when(&server, "the job is counted", is_counted).await;
    let becomes_ready = async |expected: u16| {
        eventually("the check has the expected status", async || {
            status(&server, &server.address, "/health/ready").await == expected
        })
        .await;
    };
    becomes_ready(200).await;
    postgres.stop();
    becomes_ready(503).await;
    assert_eq!(status(&server, &server.address, "/health/live").await, 200);
    // The metrics that the server counts itself are still shown.
    let metrics = metrics_when(&server, "the metrics show the outage", |it| {
        it.value("switchyard_database_up") == Some(0.0)
    })
    .await;
    assert!(is_counted(&metrics), "{}", metrics.text);
    assert_eq!(metrics.value("switchyard_queues"), None);
    postgres.start_again();
    becomes_ready(200).await;
    metrics_when(&server, "the database responds again", |it| {
        it.value("switchyard_database_up") == Some(1.0)
    })
    .await;
}
