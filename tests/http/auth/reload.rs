//! Rotating keys without a restart: SIGHUP reloads the key files.

use std::fs;
use std::path::{Path, PathBuf};

use reqwest::Method;
use tempfile::TempDir;

use super::{Credentials, ask_from, status};
use crate::support::eventually;
use crate::support::keys::{ADMIN, QLESS};
use crate::support::{Server, log::Logged};

/// Flags that read keys from a file, with a path that requires such a key, and the user name if keys have one.
const FILES: [(&str, &str, Option<&str>); 6] = [
    ("--admin-token-file", "/token/ns", None),
    ("--admin-password-file", "/ui", Some("ada")),
    ("--ui-keys-file", "/ui", Some("olga")),
    ("--qless-token-file", "/queues", None),
    ("--relay-token-file", "/v2/queues/q/jobs", None),
    ("--jobq-token-file", "/api/v0/queue", None),
];

/// A folder with key files.
struct Keys(TempDir);

impl Keys {
    fn new(keys: &[&str]) -> Keys {
        let files = Keys(TempDir::new().unwrap());
        files.write(keys);
        files
    }

    fn path(&self, flag: &str) -> PathBuf {
        self.0.path().join(flag.trim_start_matches('-'))
    }

    /// Writes these keys into each file, with a prefix for each flag.
    fn write(&self, keys: &[&str]) {
        for (flag, ..) in FILES {
            let lines = keys.iter().map(|key| match flag {
                "--ui-keys-file" => format!("operator:olga:{}\n", of(flag, key)),
                _ => format!("{}\n", of(flag, key)),
            });
            replace(&self.path(flag), &lines.collect::<String>());
        }
    }

    fn options(&self) -> Vec<String> {
        let options = FILES.iter().flat_map(|(flag, ..)| {
            let path = self.path(flag).to_str().unwrap().to_owned();
            [(*flag).to_owned(), path]
        });
        let user = ["--admin-user", "ada"].map(str::to_owned);
        options.chain(user).collect()
    }
}

/// Replaces a file atomically, as a secret store does.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(&new, path).unwrap();
}

/// The key of this name for the flag.
fn of(flag: &str, key: &str) -> String {
    format!("{key}-key-of{flag}")
}

/// For each flag, whether its key with this name is accepted.
async fn accepted(server: &Server, key: &str) -> [bool; 6] {
    let mut accepted = [false; 6];
    for ((flag, path, user), accepted) in FILES.iter().zip(&mut accepted) {
        let key = of(flag, key);
        let credentials = match user {
            Some(user) => Credentials::Basic(user, &key),
            None => Credentials::Bearer(&key),
        };
        *accepted = status(server, path, credentials).await != 401;
    }
    accepted
}

fn with(options: &[String]) -> Logged {
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    Logged::with("info", &options)
}

/// Waits until the log contains `count` lines with this text after a reload.
async fn logged(logged: &Logged, count: usize, text: &str) {
    eventually(text, async || logged.log().matches(text).count() == count).await;
}

#[tokio::test]
async fn both_keys_are_accepted_during_a_rotation() {
    let keys = Keys::new(&["old"]);
    let logged_ = with(&keys.options());
    let server = &logged_.server;
    assert_eq!(accepted(server, "old").await, [true; 6]);
    assert_eq!(accepted(server, "new").await, [false; 6]);
    for (number, (written, old, new)) in [
        (&["old", "new"][..], true, true),
        (&["new"], false, true),
        (&["new", "old"], true, true),
        (&["new"], false, true),
    ]
    .into_iter()
    .enumerate()
    {
        keys.write(written);
        server.reload();
        logged(&logged_, number + 1, "reloaded keys").await;
        assert_eq!(accepted(server, "old").await, [old; 6], "{written:?}");
        assert_eq!(accepted(server, "new").await, [new; 6], "{written:?}");
        assert_eq!(accepted(server, "other").await, [false; 6], "{written:?}");
    }
    let log = logged_.log();
    assert!(!log.contains("-key-of-"), "no key is logged: {log}");
}

#[tokio::test]
async fn a_server_accepts_both_keys_of_a_file_at_startup() {
    let keys = Keys::new(&["old", "new"]);
    let logged = with(&keys.options());
    for key in ["old", "new"] {
        assert_eq!(accepted(&logged.server, key).await, [true; 6], "{key}");
    }
}

#[tokio::test]
async fn invalid_key_files_change_nothing_and_log_no_secrets() {
    let keys = Keys::new(&["old"]);
    let everywhere = ["--listen", "0.0.0.0:0"].map(str::to_owned);
    let logged_ = with(&[&keys.options()[..], &everywhere].concat());
    let server = &logged_.server;
    let three = "hush-hush-hush-one\nhush-hush-hush-two\nhush-hush-hush-three\n";
    let mut errors = 0;
    for (flag, ..) in FILES {
        let path = keys.path(flag);
        let good = fs::read_to_string(&path).unwrap();
        for (bad, said) in [
            (Some(""), "empty"),
            (Some("\n\n"), "empty"),
            (
                Some(three),
                if flag == "--ui-keys-file" {
                    "ROLE"
                } else {
                    "limit is 2"
                },
            ),
            (None, "No such file"),
        ] {
            match bad {
                Some(text) => replace(&path, text),
                None => fs::remove_file(&path).unwrap(),
            }
            server.reload();
            errors += 1;
            logged(&logged_, errors, "cannot reload keys").await;
            let log = logged_.log();
            let last = log.lines().last().unwrap();
            assert!(last.contains(said) && last.contains(flag), "{said}: {last}");
            assert_eq!(accepted(server, "old").await, [true; 6], "{flag} {bad:?}");
        }
        let short = if flag == "--ui-keys-file" {
            "operator:olga:hush-hush-short"
        } else {
            "hush-hush-short"
        };
        replace(&path, short);
        server.reload();
        errors += 1;
        logged(&logged_, errors, "cannot reload keys").await;
        assert!(
            logged_
                .log()
                .lines()
                .last()
                .unwrap()
                .contains("16 characters")
        );
        assert_eq!(accepted(server, "old").await, [true; 6], "{flag}");
        replace(&path, &good);
    }
    server.reload();
    logged(&logged_, 1, "reloaded keys").await;
    assert!(!logged_.log().contains("hush"), "{}", logged_.log());
}

#[tokio::test]
async fn sessions_of_a_removed_key_end_and_others_continue() {
    let keys = TempDir::new().unwrap();
    let path = keys.path().join("keys");
    replace(
        &path,
        "operator:olga:the-old-key-of-olga viewer:vera:the-old-key-of-vera",
    );
    let options = [
        "--admin-token",
        ADMIN,
        "--ui-keys-file",
        path.to_str().unwrap(),
    ];
    let logged_ = Logged::with("info", &options);
    let server = &logged_.server;
    let session = async |name: &str, secret: &str| {
        let origin = format!("http://{}", server.address);
        let client = reqwest::Client::builder().no_proxy();
        let client = client.redirect(reqwest::redirect::Policy::none());
        let request = client.build().unwrap().post(format!("{origin}/ui/login"));
        let form = [("name", name), ("secret", secret)];
        let response = request.header("origin", &origin).form(&form).send();
        let response = response.await.unwrap();
        let set = response.headers()["set-cookie"].to_str().unwrap();
        set.split(';').next().unwrap().to_owned()
    };
    let is_in = async |session: &str| {
        let headers = [("cookie", session)];
        let seen = ask_from(server, Method::GET, "/ui", Credentials::None, &headers).await;
        seen.status() == 200
    };
    let olga = session("olga", "the-old-key-of-olga").await;
    let vera = session("vera", "the-old-key-of-vera").await;
    let admin = session("anybody", ADMIN).await;
    assert!(is_in(&olga).await && is_in(&vera).await && is_in(&admin).await);
    // The event stream ends with the session.
    let headers = [("cookie", olga.as_str())];
    let stream = ask_from(
        server,
        Method::GET,
        "/ui/events",
        Credentials::None,
        &headers,
    )
    .await;
    assert_eq!(stream.status(), 200);
    replace(
        &path,
        "operator:olga:the-new-key-of-olga viewer:vera:the-old-key-of-vera",
    );
    server.reload();
    logged(&logged_, 1, "reloaded keys").await;
    assert!(!is_in(&olga).await);
    assert!(is_in(&vera).await && is_in(&admin).await);
    stream.bytes().await.unwrap();
    let new = session("olga", "the-new-key-of-olga").await;
    assert!(is_in(&new).await);
}

#[tokio::test]
async fn an_event_stream_ends_with_its_key() {
    let keys = TempDir::new().unwrap();
    let path = keys.path().join("keys");
    replace(&path, "the-old-key-of-qless\nthe-kept-key-of-qless\n");
    let options = ["--qless-token-file", path.to_str().unwrap()];
    let logged_ = Logged::with("info", &options);
    let server = &logged_.server;
    let stream = async |key: &str| {
        let headers = [("accept", "text/event-stream")];
        let stream = ask_from(
            server,
            Method::GET,
            "/events",
            Credentials::Bearer(key),
            &headers,
        )
        .await;
        assert_eq!(stream.status(), 200);
        stream
    };
    let ends = stream("the-old-key-of-qless").await;
    let mut continues = stream("the-kept-key-of-qless").await;
    replace(&path, "the-kept-key-of-qless\n");
    server.reload();
    logged(&logged_, 1, "reloaded keys").await;
    ends.bytes().await.unwrap();
    let body = r#"{"data": {"meta": 1}}"#;
    let added = server.http.post(format!("http://{}/add/q", server.address));
    let added = added.bearer_auth("the-kept-key-of-qless").body(body);
    assert_eq!(added.send().await.unwrap().status(), 200);
    assert!(continues.chunk().await.unwrap().is_some());
}

#[tokio::test]
async fn a_server_without_files_ignores_the_signal() {
    let logged_ = Logged::with("info", &["--qless-token", QLESS]);
    for count in 1..=3 {
        logged_.server.reload();
        logged(&logged_, count, "reloaded keys").await;
    }
    let seen = status(&logged_.server, "/queues", Credentials::Bearer(QLESS)).await;
    assert_eq!(seen, 200);
    assert_eq!(
        status(&logged_.server, "/queues", Credentials::None).await,
        401
    );
}
