//! Clients without credentials: they are rejected before the body is read, and get no database errors, long pages or
//! readable files.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection as _};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::support::lmstfy::Lmstfy;
use crate::support::log::Logged;
use crate::support::raw::{self, Connection};
use crate::support::redis;
use crate::support::tls::CertificatePair;
use crate::support::{Server, eventually, lower_quartile};

/// Runs a statement directly on the database.
async fn run(database: &str, statement: &str) {
    if database.starts_with("postgres") {
        let mut psql = Command::new("psql");
        let done = psql.args([database, "-c", statement]).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        return;
    }
    let path = database.trim_start_matches("sqlite://");
    let options = SqliteConnectOptions::new().filename(path);
    let mut connection = options.connect().await.unwrap();
    let statement = sqlx::query(AssertSqlSafe(statement.to_owned()));
    statement.execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// A client that sends `Expect: 100-continue` gets the error instead, so no part of the body is read.
#[tokio::test]
async fn a_request_without_a_valid_token_is_rejected_before_its_body_is_read() {
    let server = Server::with(&[
        "--admin-token",
        "the-token-of-the-admin",
        "--qless-token",
        "the-token-of-qless",
        "--relay-token",
        "the-token-of-relay",
        "--jobq-token",
        "the-token-of-jobq",
    ]);
    for (line, status) in [
        ("PUT /api/ns/q/bulk", 401),
        ("PUT /api/ns/q/bulk?token=wrong", 401),
        ("PUT /api/ns/q", 401),
        ("PUT /api/ns/q/job/a", 401),
        ("PUT /api/n.s/q/bulk", 400),
        ("PUT /api/ns/q.q/bulk", 400),
        ("PUT /api/ns/q/bulk?token=pool:a", 404),
        ("PUT /api/ns/%FF/bulk", 400),
        ("POST /add/work", 401),
        ("POST /v2/queues/jobs", 401),
        ("POST /api/v0/queue", 401),
        ("POST /token/ns", 401),
        ("POST /ui/put", 401),
        ("POST /ui/fn/retry", 401),
    ] {
        let mut connection = Connection::to(&server).await;
        let head = format!(
            "{line} HTTP/1.1\r\nhost: 127.0.0.1\r\norigin: http://127.0.0.1\r\nexpect: 100-continue\r\n\
             content-length: 4000000\r\n\r\n"
        );
        connection.write(head).await;
        let response = connection.read_until("\r\n").await;
        let expected = format!("HTTP/1.1 {status} ");
        assert!(response.starts_with(&expected), "{line}: {response}");
    }
}

#[tokio::test]
async fn clients_get_no_database_errors() {
    let logged = Logged::with("error", &["--no-auth", "--trust-client-clock"]);
    let server = &logged.server;
    server
        .at(0)
        .add("work", json!({"id": "a", "meta": 1}))
        .await;
    Lmstfy::new(server, "ns").publish("q", "x").await;
    let jobs = json!([{"queue": "q", "id": "a", "timeout": 1, "payload": 1}]);
    let relay = format!("http://{}/v2/queues/jobs", server.address);
    let enqueued = server.http.post(relay).json(&jobs).send().await.unwrap();
    assert!(enqueued.status().is_success(), "{enqueued:?}");
    let queue = json!({"name": "q"}).to_string();
    raw::request(server, "POST", "/api/v0/queue", queue.as_bytes()).await;
    run(&logged.database, "ALTER TABLE jobs RENAME TO gone").await;
    for path in [
        "/ui/jobs/a",
        "/job/a",
        "/api/ns/q/job/a",
        "/v2/queues/q/jobs/a",
        "/api/v0/queue/q/job/1",
    ] {
        let (status, body) = raw::request(server, "GET", path, b"").await;
        assert!([500, 503].contains(&status), "{path}: {status} {body}");
        let words = ["no such table", "does not exist", "relation", "database:"];
        assert!(!words.iter().any(|it| body.contains(it)), "{path}: {body}");
        if !path.starts_with("/ui") {
            continue;
        }
        let (_, rest) = body.split_once("request ID ").unwrap();
        let id: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
        let log = logged.log();
        let mut of_it = log.lines().filter(|line| line.contains(&id));
        let says = |line: &str| line.contains("statement failed") && line.contains("jobs");
        assert!(id.len() == 32 && of_it.any(says), "{id}: {log}");
    }
}

/// The mode of a file, as three octal digits.
fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_database_file_is_readable_only_by_its_owner() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    let address = |name: &str| format!("sqlite://{}", at(name).display());
    let server = Server::at_url(&address("jobs.db"), &[]);
    server.client().add("work", json!({"meta": 1})).await;
    for name in ["jobs.db", "jobs.db-wal", "jobs.db-shm", "jobs.db.lock"] {
        assert_eq!(mode(&at(name)), 0o600, "{name}");
    }
    server.stop().await;
    let mut copy = Server::program();
    copy.args([
        "copy",
        "--from",
        &address("jobs.db"),
        "--to",
        &address("copy.db"),
    ]);
    assert!(copy.output().unwrap().status.success());
    let files = std::fs::read_dir(folder.path()).unwrap();
    for file in files.map(|file| file.unwrap().path()) {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

/// A health check every second must not count all jobs each time.
#[tokio::test]
async fn health_does_not_count_jobs() {
    let logged = Logged::with("off", &[]);
    logged.server.client().add("work", json!({"meta": 1})).await;
    let health = async || raw::request(&logged.server, "GET", "/health", b"").await;
    run(&logged.database, "ALTER TABLE tallies RENAME TO other").await;
    assert_eq!(health().await, (200, "ok\n".to_owned()));
    run(&logged.database, "ALTER TABLE state RENAME TO another").await;
    // Checks share a result for a second.
    eventually("the check fails", async || health().await.0 == 503).await;
}

#[tokio::test]
async fn lists_of_queues_have_pages() {
    let server = Server::with(&["--no-auth", "--trust-client-clock"]);
    for n in 0..120 {
        let name = format!("queue-{n:03}");
        let items: Vec<_> = (0..=n % 3).map(|_| json!({"meta": 1})).collect();
        server
            .at(n)
            .post(&format!("/add/{name}"), items.into())
            .await
            .ok();
        Lmstfy::new(&server, "ns").publish(&name, "x").await;
        if n < 60 {
            Lmstfy::new(&server, &format!("ns-{n}"))
                .publish("q", "x")
                .await;
        }
    }
    let page = async |path: &str| {
        let (status, page) = raw::request(&server, "GET", path, b"").await;
        assert_eq!(status, 200, "{path}");
        assert!(page.len() < 60 << 10, "{path}: {} bytes", page.len());
        page
    };
    let rows = |page: &str| page.matches("<th scope=\"row\"").count();
    for (path, shown, next) in [
        ("/ui/queues", 20, true),
        ("/ui/queues?sort=name&offset=20", 20, true),
        ("/ui/queues?sort=name&q=queue-00", 20, false),
        ("/ui/queues?offset=300", 0, false),
        ("/ui/namespaces", 20, true),
        ("/ui/namespaces?offset=50", 11, false),
        ("/ui/namespaces/ns", 20, true),
        ("/ui/namespaces/ns?offset=100", 20, false),
    ] {
        let page = page(path).await;
        assert_eq!(rows(&page), shown, "{path}");
        assert_eq!(page.contains("rel=\"next\""), next, "{path}");
    }
    // Sort order and filter apply to all queues, and links to other pages keep them.
    let first = page("/ui/queues?sort=name&q=queue").await;
    assert!(first.contains("queue-000") && !first.contains("queue-119"));
    assert!(
        first.contains("/ui/queues?sort=name&amp;q=queue&amp;offset=20"),
        "{first}"
    );
    let last = page("/ui/queues?sort=name&q=queue&offset=225").await;
    assert!(last.contains("queue-119") && last.contains("rel=\"prev\""));
}

#[tokio::test]
async fn a_consume_names_at_most_1000_queues_including_duplicates() {
    let server = Server::with(&["--no-auth"]);
    let ns = Lmstfy::new(&server, "ns");
    ns.publish("a", "x").await;
    for (count, fits) in [(999, true), (1_000, true), (1_001, false), (15_000, false)] {
        let names = vec!["a"; count].join(",");
        let reply = ns.get(&format!("/{names}?ttr=0")).await;
        if fits {
            assert!([200, 404].contains(&reply.status), "{count}: {reply:?}");
        } else {
            reply.assert_rejected(400, "invalid queue name(s)");
        }
    }
}

/// The sign-in page is the most expensive response for clients without credentials. Connections take turns, so few
/// sign-in pages are rendered before the next request of another client.
#[tokio::test]
async fn a_flood_of_sign_in_pages_does_not_block_other_clients() {
    let token = ["--admin-token", "the-token-of-the-admin"];
    flood_with_pages(&Server::with(&token), "/ui/login").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_guests_who_request_missing_pages_does_not_block_other_clients() {
    flood_with_pages(&Server::with(&[]), "/ui/nowhere").await;
}

async fn flood_with_pages(server: &Server, path: &str) {
    const CONNECTIONS: usize = 200;
    let requests = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").repeat(50);
    let pages = Arc::new(AtomicUsize::new(0));
    let mut flood = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let mut connection = Connection::to(server).await;
        connection.write(&requests).await;
        let pages = Arc::clone(&pages);
        flood.spawn(async move {
            let mut read = vec![0; 64 << 10];
            while let Ok(length @ 1..) = connection.0.read(&mut read).await {
                let text = String::from_utf8_lossy(&read[..length]);
                pages.fetch_add(text.matches("<!DOCTYPE").count(), Ordering::Relaxed);
            }
        });
    }
    while pages.load(Ordering::Relaxed) < CONNECTIONS {
        sleep(Duration::from_millis(1)).await;
    }
    let between = between_health_checks(server, &pages).await;
    assert!(
        pages.load(Ordering::Relaxed) < 50 * CONNECTIONS,
        "the flood ended before the health checks"
    );
    let shown = format!("{between:?}");
    assert!(lower_quartile(between) < CONNECTIONS / 5, "{shown}");
}

/// How much the counter grows while another client waits for each of 20 health checks.
async fn between_health_checks(server: &Server, counter: &AtomicUsize) -> Vec<usize> {
    let mut other = Connection::to(server).await;
    let mut between = Vec::new();
    for _ in 0..20 {
        let before = counter.load(Ordering::Relaxed);
        other
            .write("GET /health/live HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            .await;
        let response = other.read_until("ok\n").await;
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
        between.push(counter.load(Ordering::Relaxed) - before);
    }
    between
}

/// hyper runs up to 16 requests of a connection in a row, if they need not wait for anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelined_requests_take_turns_with_other_clients() {
    const CONNECTIONS: usize = 200;
    let server = Server::with(&[]);
    let requests = "GET /nowhere HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".repeat(1_000);
    let answered = Arc::new(AtomicUsize::new(0));
    let mut flood = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let stream = TcpStream::connect(&server.address).await.unwrap();
        let (mut reads, mut writes) = stream.into_split();
        let requests = requests.clone();
        flood.spawn(async move { while writes.write_all(requests.as_bytes()).await.is_ok() {} });
        let answered = Arc::clone(&answered);
        flood.spawn(async move {
            let mut read = vec![0; 64 << 10];
            while let Ok(length @ 1..) = reads.read(&mut read).await {
                let text = String::from_utf8_lossy(&read[..length]);
                answered.fetch_add(text.matches("HTTP/1.1 404").count(), Ordering::Relaxed);
            }
        });
    }
    while answered.load(Ordering::Relaxed) < 10 * CONNECTIONS {
        sleep(Duration::from_millis(1)).await;
    }
    let between = between_health_checks(&server, &answered).await;
    let shown = format!("{between:?}");
    assert!(lower_quartile(between) < 2 * CONNECTIONS, "{shown}");
}

/// Searches of guests would otherwise occupy all connections for reading.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_of_a_guest_wait_for_each_other_or_are_refused() {
    let server = Server::with(&[]);
    // Few enough that on a busy machine, too, a search ends within the time limit of a page.
    let items = vec![json!({"meta": "x".repeat(500)}); 1_000];
    server
        .client()
        .post("/add/work", items.into())
        .await
        .accepted();
    let search = |n: usize| {
        let form = format!("text=payload%3Anothing{n}");
        format!(
            "POST /ui/fn/search HTTP/1.1\r\nhost: 127.0.0.1\r\nsec-fetch-site: same-origin\r\nconnection: close\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
            form.len()
        )
    };
    // The last bytes of all requests are sent together, so that the searches meet although this client is slow.
    let mut connections = Vec::new();
    for n in 0..300 {
        let mut connection = Connection::to(&server).await;
        let mut head = search(n);
        let last = head.pop().expect("a byte");
        connection.write(&head).await;
        connections.push((connection, last));
    }
    for (connection, last) in &mut connections {
        connection.write(last.to_string()).await;
    }
    let mut searches = JoinSet::new();
    for (mut connection, _) in connections {
        searches.spawn(async move { connection.read_to_end().await });
    }
    let responses = searches.join_all().await;
    let refused = |response: &&String| response.contains("Too many pages are requested");
    let refused = responses.iter().filter(refused).count();
    let found = |response: &&String| response.starts_with("HTTP/1.1 200");
    let found = responses.iter().filter(found).count();
    assert!(
        refused > 0 && found > 0,
        "{refused} refused, {found} done: {}",
        responses[0]
    );
}

/// The connection accepts no more than its buffers and those of the system hold, although each response is short, and
/// although hyper considers a request without a read body complete before its response is sent.
#[tokio::test]
async fn a_client_that_reads_no_responses_cannot_send_more_requests() {
    const REQUEST: &str = "HEAD /health/live HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n\
        1\r\nx\r\n0\r\n\r\n";
    /// More than the buffers of the system can hold on both sides.
    const BYTES_MAX: usize = 64 << 20;
    let server = Server::with(&[]);
    let mut silent = Connection::to(&server).await;
    let requests = REQUEST.repeat(1_000);
    let mut sent = 0;
    while sent < BYTES_MAX {
        let sending = timeout(Duration::from_secs(5), silent.0.write(requests.as_bytes()));
        match sending.await {
            Ok(written) => sent += written.unwrap(),
            // The server waits.
            Err(_) => break,
        }
    }
    assert!(sent < BYTES_MAX, "{sent} bytes");
    let mut other = Connection::to(&server).await;
    other
        .write("GET /health/live HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        .await;
    other.read_until("ok\n").await;
    // The server continues when the client reads.
    let mut read = vec![0; 64 << 10];
    let mut received = 0;
    while received < sent {
        received += silent.0.read(&mut read).await.unwrap();
    }
}

/// The beginning of a ClientHello, in TLS records, whose announced length is 64 KiB.
fn endless_handshake(bytes: usize) -> Vec<u8> {
    let message = [&[1, 0, 0xff, 0xf0][..], &vec![0; bytes]].concat();
    let record = |part: &[u8]| {
        let length = u16::try_from(part.len()).unwrap().to_be_bytes();
        [&[22, 3, 1][..], &length, part].concat()
    };
    message.chunks(16_000).flat_map(record).collect()
}

#[tokio::test]
async fn a_long_handshake_message_ends_the_connection_before_it_is_complete() {
    let pair = CertificatePair::new();
    let mut server = pair.serve(&["--redis-listen", "127.0.0.1:0"]);
    let redis = redis::address(&mut server).await;
    for address in [&server.address, &redis] {
        let patient = TcpStream::connect(address).await.unwrap();
        let mut endless = TcpStream::connect(address).await.unwrap();
        // The server may close the connection before it has read everything.
        endless.write_all(&endless_handshake(60_000)).await.ok();
        let mut rest = Vec::new();
        endless.read_to_end(&mut rest).await.ok();
        // It was not the time limit: the connection that was opened before is still open.
        let secured = pair.client().secure(Connection(patient)).await;
        assert!(secured.is_ok(), "{address}: {secured:?}");
    }
}
