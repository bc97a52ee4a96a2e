//! Clients behind proxies: which proxies are trusted, and where the client's address is used.

use crate::support::Server;
use crate::support::log::Logged;
use crate::support::raw::ask;

const KEYS: [&str; 4] = [
    "--admin-token",
    "the-token-of-the-admin",
    "--ui-key",
    "admin:anna:the-key-of-anna",
];

/// The client address that the log contains for a wrong key with these header lines.
async fn logged(logged: &Logged, from: [u8; 4], lines: &str) -> String {
    let lines = format!("authorization: Bearer wrong\r\n{lines}");
    let response = ask(&logged.server, from, "GET /queues", &lines, "").await;
    assert!(response.starts_with("HTTP/1.1 401 "), "{response}");
    let log = logged.log();
    let last = log.lines().rfind(|line| line.contains("wrong credentials"));
    let (_, address) = last.unwrap().split_once("from=\"").unwrap();
    address.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn the_log_names_the_client_that_a_trusted_proxy_names() {
    let options = [
        "--qless-token",
        "the-token-of-qless",
        "--trusted-proxy",
        "127.0.0.1,10.0.0.0/8",
    ];
    let all = Logged::with("warn", &options);
    let (proxy, other) = ([127, 0, 0, 1], [127, 0, 0, 2]);
    for (from, lines, expected) in [
        (proxy, "", "127.0.0.1"),
        (proxy, "x-forwarded-for: 192.0.2.7\r\n", "192.0.2.7"),
        (other, "x-forwarded-for: 192.0.2.7\r\n", "127.0.0.2"),
        (other, "forwarded: for=192.0.2.7\r\n", "127.0.0.2"),
        (
            proxy,
            "x-forwarded-for: 6.6.6.6, 192.0.2.7, 10.1.1.1\r\n",
            "192.0.2.7",
        ),
        (
            proxy,
            "x-forwarded-for: 6.6.6.6\r\nx-forwarded-for: 192.0.2.7\r\n",
            "192.0.2.7",
        ),
        (
            proxy,
            "forwarded: for=6.6.6.6, for=\"[2001:db8::7]:4711\"\r\n",
            "2001:db8::7",
        ),
        (proxy, "x-forwarded-for: 2001:db8::7\r\n", "2001:db8::7"),
        (proxy, "x-forwarded-for: garbage\r\n", "127.0.0.1"),
        (proxy, "x-forwarded-for: 192.0.2.7, \u{e9}\r\n", "127.0.0.1"),
        (
            proxy,
            "forwarded: for=6.6.6.6\r\nx-forwarded-for: 192.0.2.7\r\n",
            "127.0.0.1",
        ),
    ] {
        assert_eq!(logged(&all, from, lines).await, expected, "{lines}");
    }
}

#[tokio::test]
async fn the_login_throttle_counts_by_client() {
    let options = [&KEYS[..], &["--trusted-proxy", "127.0.0.1"]].concat();
    let server = Server::with(&options);
    let attempt = async |from: [u8; 4], client: &str| {
        let lines = format!("origin: http://localhost\r\nx-forwarded-for: {client}\r\n");
        let response = ask(
            &server,
            from,
            "POST /ui/login",
            &lines,
            "name=anna&secret=wrong",
        )
        .await;
        response.split(' ').nth(1).unwrap().to_owned()
    };
    for _ in 0..10 {
        assert_eq!(attempt([127, 0, 0, 1], "192.0.2.7").await, "403");
    }
    assert_eq!(attempt([127, 0, 0, 1], "192.0.2.7").await, "429");
    assert_eq!(attempt([127, 0, 0, 1], "192.0.2.8").await, "403");
    // An untrusted client cannot avoid the throttle by naming other addresses.
    for n in 0..10 {
        assert_eq!(
            attempt([127, 0, 0, 2], &format!("192.0.2.{n}")).await,
            "403"
        );
    }
    assert_eq!(attempt([127, 0, 0, 2], "192.0.2.99").await, "429");
}

#[tokio::test]
async fn the_audit_names_the_client() {
    let options = [&KEYS[..], &["--trusted-proxy", "127.0.0.1"]].concat();
    let server = Server::with(&options);
    let form = "name=anna&secret=the-key-of-anna";
    for (from, expected) in [
        ([127, 0, 0, 1], "2001:db8::7"),
        ([127, 0, 0, 2], "127.0.0.2"),
    ] {
        let lines = "origin: http://localhost\r\nx-forwarded-for: 2001:db8::7\r\n";
        let response = ask(&server, from, "POST /ui/login", lines, form).await;
        assert!(response.starts_with("HTTP/1.1 303 "), "{response}");
        let lines = "authorization: Bearer the-token-of-the-admin\r\n";
        let audit = ask(&server, from, "GET /ui/audit.csv", lines, "").await;
        let entry = audit.lines().find(|line| line.contains("sign_in")).unwrap();
        assert!(entry.contains(expected), "{audit}");
    }
}

#[tokio::test]
async fn scheme_and_host_are_taken_from_trusted_proxies_only() {
    let options = [
        &KEYS[..],
        &[
            "--trusted-proxy",
            "127.0.0.1",
            "--allowed-host",
            "q.example",
        ],
    ]
    .concat();
    let server = Server::with(&options);
    let form = "name=anna&secret=the-key-of-anna";
    let lines =
        "origin: https://q.example\r\nx-forwarded-proto: https\r\nx-forwarded-host: q.example\r\n";
    let response = ask(&server, [127, 0, 0, 1], "POST /ui/login", lines, form).await;
    assert!(response.starts_with("HTTP/1.1 303 "), "{response}");
    assert!(response.contains("; Secure\r\n"), "{response}");
    let response = ask(&server, [127, 0, 0, 2], "POST /ui/login", lines, form).await;
    assert!(
        response.starts_with("HTTP/1.1 403 "),
        "another site: {response}"
    );
    let lines = "origin: http://localhost\r\nx-forwarded-proto: https\r\n";
    let response = ask(&server, [127, 0, 0, 2], "POST /ui/login", lines, form).await;
    assert!(response.starts_with("HTTP/1.1 303 "), "{response}");
    assert!(!response.contains("Secure"), "{response}");
    let forwarded = "forwarded: for=192.0.2.7;proto=https;host=q.example\r\n";
    let lines = format!("authorization: Bearer the-token-of-the-admin\r\n{forwarded}");
    for (from, origin) in [
        ([127, 0, 0, 1], "https://q.example/"),
        ([127, 0, 0, 2], "http://localhost/"),
    ] {
        let page = ask(&server, from, "GET /ui/about", &lines, "").await;
        assert!(page.contains(origin), "{page}");
    }
}

#[test]
fn invalid_networks_are_rejected() {
    for wrong in ["", "proxy.example", "10.0.0.0/33", "10.0.0.0/8;10.1.0.0/16"] {
        let mut command = Server::program();
        command.args([
            "serve",
            "--database",
            "sqlite::memory:",
            "--trusted-proxy",
            wrong,
        ]);
        let output = command.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && error.contains("10.0.0.0/8"),
            "{wrong}: {error}"
        );
    }
}
