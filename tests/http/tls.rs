//! HTTPS without a proxy: every protocol, limits of the handshake, and reloading the certificate.

use std::fs;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tokio::time::sleep;
use tokio_rustls::rustls::{ProtocolVersion, version};

use crate::support::log::Logged;
use crate::support::raw::Connection;
use crate::support::relay::new;
use crate::support::tls::{CertificatePair, Secured};
use crate::support::{Server, database, eventually};

const HEALTH: &str = "GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";
const KEYS: [&str; 2] = ["--ui-key", "admin:anna:the-key-of-anna"];
/// Sets all connection timeouts to 3 s, more than a handshake takes on a busy machine.
const IMPATIENT: [&str; 2] = ["--connection-timeout", "3"];
const PAUSE: Duration = Duration::from_millis(20);

/// Sends a request on a connection that is kept alive.
async fn is_healthy(connection: &mut Secured) {
    connection.write(HEALTH).await;
    let response = connection.read_until("ok\n").await;
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
}

#[tokio::test]
async fn every_protocol_works_with_each_version_of_tls() {
    let pair = CertificatePair::new();
    let server = pair.serve(&["--no-auth"]);
    for (name, version, negotiated) in [
        ("three", &version::TLS13, ProtocolVersion::TLSv1_3),
        ("two", &version::TLS12, ProtocolVersion::TLSv1_2),
    ] {
        let client = pair.client_of(&[version]);
        let connection = client.connect(&server).await;
        let session = connection.0.get_ref().1;
        assert_eq!(session.protocol_version(), Some(negotiated));
        let job = json!({"data": {"id": name, "meta": 1}}).to_string();
        let relay = json!([new("relay", name)]).to_string();
        for (line, body, expected) in [
            ("GET /health", "", "ok\n"),
            ("POST /add/work", job.as_str(), name),
            ("GET /get/work?host=w", "", name),
            ("PUT /api/space/mail?ttl=60", "hello", "201"),
            ("GET /api/space/mail?ttr=60", "", "aGVsbG8="),
            ("POST /v2/queues/jobs?mode=unique", relay.as_str(), "202"),
            ("GET /v2/queues/relay/jobs", "", name),
            ("GET /api/v0/queue", "", "200"),
            ("GET /ui", "", "<html"),
        ] {
            let lines = "content-type: application/json\r\n";
            let response = client.ask(&server, line, lines, body).await;
            assert!(response.starts_with("HTTP/1.1 20"), "{line}: {response}");
            assert!(response.contains(expected), "{line}: {response}");
        }
    }
}

#[tokio::test]
async fn a_long_poll_and_an_event_stream_work_over_https() {
    let pair = CertificatePair::new();
    let server = pair.serve(&[]);
    let client = pair.client();
    let mut stream = client.connect(&server).await;
    stream
        .write("GET /events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n")
        .await;
    let head = stream.read_until("\r\n\r\n").await;
    assert!(head.contains("text/event-stream"), "{head}");
    let mut poll = client.connect(&server).await;
    poll.write("GET /get/work?host=w&wait=60 HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await;
    let lines = "content-type: application/json\r\n";
    let ask = async |line, body| client.ask(&server, line, lines, body).await;
    let added = ask("POST /add/work", r#"{"data": {"id": "polled", "meta": 1}}"#).await;
    assert!(added.starts_with("HTTP/1.1 200 "), "{added}");
    let job = poll.read_until("\"polled\"").await;
    assert!(job.starts_with("HTTP/1.1 200 "), "{job}");
    let tracked = ask("POST /track", r#"{"data": "polled"}"#).await;
    assert!(tracked.starts_with("HTTP/1.1 200 "), "{tracked}");
    stream.read_until("polled").await;
    server.stop().await;
}

#[tokio::test]
async fn large_bodies_pass_in_both_directions() {
    let pair = CertificatePair::new();
    let server = pair.serve(&[]);
    let client = pair.client();
    let meta = "x".repeat(8 << 20);
    let job = json!({"data": {"id": "large", "meta": meta}}).to_string();
    let lines = "content-type: application/json\r\n";
    let added = client.ask(&server, "POST /add/work", lines, &job).await;
    assert!(added.starts_with("HTTP/1.1 200 "), "{added}");
    let job = client.ask(&server, "GET /job/large", "", "").await;
    assert!(job.contains(&meta), "{} bytes", job.len());
}

#[tokio::test]
async fn only_http_1_1_is_negotiated() {
    let pair = CertificatePair::new();
    let server = pair.serve(&[]);
    let client = pair.client();
    let mut both = client.offering(&["h2", "http/1.1"]).connect(&server).await;
    assert_eq!(both.0.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    is_healthy(&mut both).await;
    let refused = client.offering(&["h2"]).try_connect(&server).await;
    let error = refused.map(drop).unwrap_err().to_string();
    assert!(error.contains("NoApplicationProtocol"), "{error}");
}

#[tokio::test]
async fn a_request_with_the_wrong_scheme_gets_a_response() {
    let pair = CertificatePair::new();
    let server = pair.serve(&[]);
    let mut plain = Connection::to(&server).await;
    plain.write(HEALTH).await;
    let response = plain.read_to_end().await;
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    assert!(response.ends_with("use https://\n"), "{response}");
    let response = server.try_send(Method::POST, "/add/work", Some("x".repeat(1 << 15)));
    assert_eq!(response.await.unwrap().status, 400);
    let mut noise = Connection::to(&server).await;
    noise.write([0; 64]).await;
    let mut alert = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut noise.0, &mut alert)
        .await
        .ok();
    assert!(!alert.starts_with(b"HTTP"), "{alert:?}");
    let server = Server::with(&[]);
    let refused = pair.client().try_connect(&server).await;
    assert!(refused.is_err(), "a plain server has no TLS");
}

#[tokio::test]
async fn incomplete_handshakes_are_closed_after_the_timeout() {
    let pair = CertificatePair::new();
    let server = pair.serve(&IMPATIENT);
    let mut idle = pair.client().connect(&server).await;
    let mut silent = Connection::to(&server).await;
    let mut half = Connection::to(&server).await;
    // The beginning of a TLS record of 512 bytes with a ClientHello.
    half.write([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]).await;
    let mut slow = Connection::to(&server).await;
    slow.write([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]).await;
    while slow.try_write([0]).await.is_ok() {
        sleep(PAUSE).await;
    }
    let mut plain = Connection::to(&server).await;
    plain.write("GET").await;
    assert_eq!(silent.read_to_end().await, "");
    assert_eq!(half.read_to_end().await, "");
    assert!(plain.read_to_end().await.starts_with("HTTP/1.1 400 "));
    assert_eq!(
        idle.read_to_end().await,
        "",
        "no request after the handshake"
    );
}

#[tokio::test]
async fn a_client_must_read_its_response() {
    let folder = tempfile::TempDir::new().unwrap();
    let database = folder.path().join("jobs.db");
    let server = Server::on(&database, &[]);
    let meta = "x".repeat(1 << 20);
    for _ in 0..24 {
        server.client().add("work", json!({"meta": meta})).await;
    }
    server.stop().await;
    let pair = CertificatePair::new();
    let options = pair.options(&[&IMPATIENT[..], &["--max-connections", "1"]].concat());
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let server = Server::on(&database, &options);
    let client = pair.client();
    let mut stalled = client.connect(&server).await;
    let head = "GET /jobs/waiting/work?full=true HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stalled.write(head).await;
    stalled.read_until("HTTP/1.1 200 ").await;
    // It uses the only slot, so a new handshake succeeds once it is closed.
    let connects = async || client.try_connect(&server).await.is_ok();
    eventually("the slot is free", connects).await;
}

#[tokio::test]
async fn a_flood_of_handshakes_does_not_block_other_clients() {
    let pair = CertificatePair::new();
    let limits = [
        "--max-connections",
        "60",
        "--max-connections-per-address",
        "20",
    ];
    let server = pair.serve(&limits);
    let client = pair.client();
    let mut working = client.connect(&server).await;
    is_healthy(&mut working).await;
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(Connection::from_address(&server, [127, 0, 0, 2]).await);
    }
    let mut flood = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let plain = Connection::from_address(&server, [127, 0, 0, 3]).await;
        let client = client.clone();
        flood.spawn(async move { client.secure(plain).await });
    }
    for _ in 0..20 {
        is_healthy(&mut working).await;
        let mut other = client.connect(&server).await;
        is_healthy(&mut other).await;
    }
    // The flood keeps its share only: the oldest silent connections were closed for the newest.
    for connection in silent.iter_mut().take(80) {
        assert_eq!(connection.read_to_end().await, "");
    }
    let outcomes = flood.join_all().await;
    let open = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert!(open > 0, "handshakes within the limit succeed");
}

#[tokio::test]
async fn a_stop_does_not_wait_for_handshakes() {
    let pair = CertificatePair::new();
    let options = pair.options(&[]);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let mut logged = Logged::with("warn", &options);
    let silent = Connection::to(&logged.server).await;
    is_healthy(&mut pair.client().connect(&logged.server).await).await;
    logged.stop_in_time().await;
    drop(silent);
}

/// Waits until the log contains this text.
async fn logged(server: &Logged, text: &str) {
    let says = async || server.log().contains(text);
    eventually(&format!("the log says {text}"), says).await;
}

#[tokio::test]
async fn sighup_replaces_the_certificate_for_new_connections() {
    let mut pair = CertificatePair::new();
    let options = pair.options(&[]);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let logs = Logged::with("info", &options);
    let server = &logs.server;
    let first = pair.client();
    let mut old = first.connect(server).await;
    is_healthy(&mut old).await;
    pair.renew();
    let second = pair.client();
    assert!(second.try_connect(server).await.is_err(), "not yet");
    server.reload();
    logged(&logs, "reloaded the TLS certificate").await;
    let mut new = second.connect(server).await;
    is_healthy(&mut new).await;
    assert!(first.try_connect(server).await.is_err(), "no longer");
    is_healthy(&mut old).await;

    let key = fs::read(pair.key()).unwrap();
    fs::write(pair.key(), "not a key").unwrap();
    server.reload();
    logged(&logs, "cannot reload the TLS certificate").await;
    is_healthy(&mut second.connect(server).await).await;
    is_healthy(&mut new).await;
    fs::write(pair.key(), key).unwrap();
    fs::write(pair.certificate(), "").unwrap();
    server.reload();
    logged(&logs, "cert.pem: must not be empty").await;
    is_healthy(&mut second.connect(server).await).await;
    pair.renew();
    server.reload();
    let third = pair.client();
    let connects = async || third.try_connect(server).await.is_ok();
    eventually("the new certificate is used", connects).await;
    is_healthy(&mut old).await;
    // Nothing ever writes to this pipe.
    fs::remove_file(pair.key()).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(pair.key())
        .status();
    assert!(made.unwrap().success());
    server.reload();
    logged(&logs, "key.pem: not a regular file").await;
    is_healthy(&mut third.connect(server).await).await;
}

/// The error of a server that does not start with these options.
fn refusal(options: &[String]) -> String {
    let folder = tempfile::TempDir::new().unwrap();
    let database = database::address(&folder.path().join("jobs.db"));
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let output = Server::command(&database, &options).output().unwrap();
    assert!(!output.status.success(), "{options:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_server_with_an_invalid_certificate_does_not_start() {
    let (pair, other) = (CertificatePair::new(), CertificatePair::new());
    let secret = fs::read_to_string(pair.key()).unwrap();
    let secret = secret.lines().nth(1).unwrap();
    let text = |path: std::path::PathBuf| path.to_str().unwrap().to_owned();
    let (certificate, key) = (text(pair.certificate()), text(pair.key()));
    let folder = tempfile::TempDir::new().unwrap();
    let write = |name: &str, content: &str| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        text(path)
    };
    let garbled = format!("-----BEGIN PRIVATE KEY-----\n{secret}!\n-----END PRIVATE KEY-----\n");
    let open = format!("-----BEGIN PRIVATE KEY-----\n{secret}\n");
    let odd = format!("-----BEGIN {secret}\n");
    let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let many = fs::read_to_string(pair.certificate()).unwrap().repeat(17);
    let missing = text(folder.path().join("missing.pem"));
    let directory = text(folder.path().to_owned());
    for (certificate, key, expected) in [
        (&missing, &key, "missing.pem: No such file"),
        (&certificate, &missing, "missing.pem: No such file"),
        (&directory, &key, "cannot read the TLS file"),
        (&write("empty", ""), &key, "empty: must not be empty"),
        (
            &write("text", "text"),
            &key,
            "text holds no certificate in PEM format",
        ),
        (&key, &key, "key.pem holds no certificate in PEM format"),
        (
            &certificate,
            &certificate,
            "cert.pem holds no unencrypted private key in PEM format",
        ),
        (
            &certificate,
            &write("garbled", &garbled),
            "garbled is not valid PEM",
        ),
        (&certificate, &write("open", &open), "open is not valid PEM"),
        (&certificate, &write("odd", &odd), "odd is not valid PEM"),
        (&write("der", empty), &key, "the certificate in"),
        (
            &write("many", &many),
            &key,
            "many holds more than 16 certificates",
        ),
        (
            &certificate,
            &text(other.key()),
            "does not belong to the certificate in",
        ),
    ] {
        let options = ["--tls-cert", certificate, "--tls-key", key].map(str::to_owned);
        let error = refusal(&options);
        assert!(error.contains(expected), "{expected}: {error}");
        assert!(!error.contains(secret), "{error}");
    }
    for options in [vec!["--tls-cert", &certificate], vec!["--tls-key", &key]] {
        let options: Vec<String> = options.into_iter().map(str::to_owned).collect();
        let error = refusal(&options);
        assert!(
            error.contains("--tls-cert") && error.contains("--tls-key"),
            "{error}"
        );
    }
    let error = refusal(&["--hsts".to_owned()]);
    assert!(error.contains("--hsts needs HTTPS"), "{error}");
    let error = refusal(&pair.options(&["--hsts", "63072001"]));
    assert!(error.contains("63072001 is not in 0..=63072000"), "{error}");
}

#[tokio::test]
async fn the_startup_banner_and_the_pages_use_https() {
    let pair = CertificatePair::new();
    let mut command = Server::command("sqlite::memory:", &[]);
    command
        .env("SWITCHYARD_TLS_CERT", pair.certificate())
        .env("SWITCHYARD_TLS_KEY", pair.key());
    let mut server = Server::run(command);
    let mut banner = String::new();
    while !banner.contains("curl -X PUT") {
        banner += &server.banner.recv().await.unwrap();
    }
    let url = format!("https://{}", server.address);
    assert!(banner.contains(&format!("dashboard  {url}/ui")), "{banner}");
    assert!(banner.contains(&format!("curl {url}/add")), "{banner}");
    assert!(!banner.contains("http://"), "{banner}");
    let page = pair.client().ask(&server, "GET /ui/about", "", "").await;
    assert!(page.contains("https://localhost/"), "{page}");
}

const FORM: &str = "content-type: application/x-www-form-urlencoded\r\n";

#[tokio::test]
async fn cookies_are_secure_and_forms_come_from_https_pages() {
    let pair = CertificatePair::new();
    let server = pair.serve(&KEYS);
    let client = pair.client();
    let login = async |origin: &str| {
        let lines = format!("{FORM}origin: {origin}\r\n");
        let form = "name=anna&secret=the-key-of-anna";
        client.ask(&server, "POST /ui/login", &lines, form).await
    };
    let plain = login("http://localhost").await;
    assert!(plain.starts_with("HTTP/1.1 403 "), "{plain}");
    let response = login("https://localhost").await;
    assert!(response.starts_with("HTTP/1.1 303 "), "{response}");
    assert!(response.contains("\r\nlocation: /ui"), "{response}");
    let cookie = response
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "));
    let session = cookie.unwrap().split(';').next().unwrap();
    let lines = format!("{FORM}origin: https://localhost\r\ncookie: {session}\r\n");
    let paused = client
        .ask(
            &server,
            "POST /ui/fn/pause_queue",
            &lines,
            "queue=work&back=%2Fui",
        )
        .await;
    for response in [&response, &paused] {
        let cookies: Vec<&str> = response
            .lines()
            .filter(|line| line.starts_with("set-cookie: "))
            .collect();
        assert!(!cookies.is_empty(), "{response}");
        for cookie in cookies {
            assert!(cookie.ends_with("; Secure"), "{cookie}");
            assert_eq!(cookie.matches("Secure").count(), 1, "{cookie}");
        }
    }
}

#[tokio::test]
async fn hsts_is_sent_over_https_only_and_on_request() {
    const HEADER: &str = "strict-transport-security: ";
    let pair = CertificatePair::new();
    for (options, expected) in [
        (&[][..], None),
        (&["--hsts"], Some("31536000")),
        (&["--hsts", "86400"], Some("86400")),
        (&["--hsts", "0"], Some("0")),
    ] {
        let server = pair.serve(options);
        for path in ["/health", "/ui", "/nowhere"] {
            let line = format!("GET {path}");
            let response = pair.client().ask(&server, &line, "", "").await;
            let age = expected.map(|age| format!("{HEADER}max-age={age}\r\n"));
            match age {
                Some(age) => assert!(response.contains(&age), "{response}"),
                None => assert!(!response.contains(HEADER), "{response}"),
            }
        }
        let mut plain = Connection::to(&server).await;
        plain.write(HEALTH).await;
        assert!(!plain.read_to_end().await.contains(HEADER));
    }
    let server = Server::with(&["--hsts", "--trusted-proxy", "127.0.0.1"]);
    for (from, scheme, expected) in [
        ([127, 0, 0, 1], "https", true),
        ([127, 0, 0, 1], "http", false),
        ([127, 0, 0, 2], "https", false),
    ] {
        let mut connection = Connection::from_address(&server, from).await;
        let lines = format!("connection: close\r\nx-forwarded-proto: {scheme}\r\n\r\n");
        connection
            .write(HEALTH.replace("\r\n\r\n", "\r\n") + &lines)
            .await;
        let response = connection.read_to_end().await;
        assert_eq!(response.contains(HEADER), expected, "{scheme}: {response}");
    }
}
