//! Secrets from files, and the minimum length of secrets.

use std::fs;
use std::path::Path;

use reqwest::Method;
use tempfile::TempDir;

use super::{ADMIN, Credentials, JOBQ, PASSWORD, QLESS, RELAY, ask};
use crate::support::{Server, log::Logged};

/// Every flag that reads a secret from a file, its environment variable, and the content of the file.
const FILES: [(&str, &str, &str); 6] = [
    ("--admin-token-file", "SWITCHYARD_ADMIN_TOKEN_FILE", ADMIN),
    (
        "--admin-password-file",
        "SWITCHYARD_ADMIN_PASSWORD_FILE",
        PASSWORD,
    ),
    (
        "--ui-keys-file",
        "SWITCHYARD_UI_KEYS_FILE",
        "viewer:vera:the-key-of-vera\nadmin:anna:the-key-of-anna",
    ),
    ("--qless-token-file", "SWITCHYARD_QLESS_TOKEN_FILE", QLESS),
    ("--relay-token-file", "SWITCHYARD_RELAY_TOKEN_FILE", RELAY),
    ("--jobq-token-file", "SWITCHYARD_JOBQ_TOKEN_FILE", JOBQ),
];

/// Creates a file in this folder. Returns its path.
fn file(folder: &TempDir, name: &str, text: &[u8]) -> String {
    let path = folder.path().join(name.trim_start_matches('-'));
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn secrets_can_be_read_from_files() {
    let folder = TempDir::new().unwrap();
    for by_flag in [true, false] {
        let mut program = Server::program();
        program.args([
            "serve",
            "--database",
            "sqlite::memory:",
            "--admin-user",
            "ada",
        ]);
        program.args([
            "--listen",
            "127.0.0.1:0",
            "--ui-key",
            "operator:olga:the-key-of-olga",
        ]);
        for (flag, variable, text) in FILES {
            let end = if by_flag { "\n" } else { "\r\n" };
            let path = file(&folder, flag, format!("{text}{end}").as_bytes());
            if by_flag {
                program.args([flag, &path]);
            } else {
                program.env(variable, path);
            }
        }
        let server = Server::run(program);
        for (path, credentials, expected) in [
            ("/ui", Credentials::None, 401),
            ("/ui", Credentials::Bearer(ADMIN), 200),
            ("/ui", Credentials::Basic("ada", PASSWORD), 200),
            ("/ui", Credentials::Bearer("the-key-of-vera"), 200),
            ("/ui", Credentials::Bearer("the-key-of-olga"), 200),
            ("/ui/audit", Credentials::Bearer("the-key-of-vera"), 403),
            ("/ui/audit", Credentials::Bearer("the-key-of-anna"), 200),
            ("/queues", Credentials::None, 401),
            ("/queues", Credentials::Bearer(QLESS), 200),
            ("/v2/queues/q/jobs", Credentials::None, 401),
            ("/v2/queues/q/jobs", Credentials::Bearer(RELAY), 204),
            ("/api/v0/queue", Credentials::None, 401),
            ("/api/v0/queue", Credentials::Bearer(JOBQ), 200),
        ] {
            let seen = ask(&server, Method::GET, path, credentials).await;
            assert_eq!(seen.status(), expected, "{path} {credentials:?}");
        }
    }
}

/// The error of a server that must not start.
fn refused(arguments: &[&str]) -> String {
    let mut program = Server::program();
    program.args(["serve", "--database", "sqlite::memory:"]);
    if !arguments.contains(&"--listen") {
        program.args(["--listen", "127.0.0.1:0"]);
    }
    let output = program.args(arguments).output().unwrap();
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_file_without_a_secret_is_rejected() {
    let folder = TempDir::new().unwrap();
    let empty = file(&folder, "empty", b"");
    let newline = file(&folder, "newline", b"\r\n\n");
    let binary = file(&folder, "binary", b"\xff\xfe");
    let long = file(&folder, "long", &[b'x'; (256 << 10) + 1]);
    let wrong = file(
        &folder,
        "wrong",
        b"viewer:vera:hush-hush-hush-hush boss:bob:hush-hush-hush-hush",
    );
    let missing = folder.path().join("missing").to_str().unwrap().to_owned();
    let directory = folder.path().to_str().unwrap();
    for (flag, ..) in FILES {
        for path in [
            &*empty, &newline, &binary, &long, &missing, directory, &wrong,
        ] {
            if path == wrong && flag != "--ui-keys-file" {
                continue;
            }
            let text = refused(&[flag, path]);
            assert!(text.contains(flag) && text.contains(path), "{flag}: {text}");
            assert!(!text.contains("hush"), "{text}");
        }
        let value = flag.trim_end_matches("-file");
        if flag != "--ui-keys-file" {
            let user = ["--admin-user", "ada"];
            let user = &user[..if flag.contains("password") { 2 } else { 0 }];
            let both = [value, "hush-hush-hush-hush", flag, &*wrong];
            let text = refused(&[user, &both].concat());
            assert!(text.contains("cannot be used with"), "{text}");
            assert!(!text.contains("hush"), "{text}");
        }
    }
}

/// For each flag, a secret of 15 characters, one fewer than required.
fn short(folder: &Path) -> Vec<(Vec<String>, String)> {
    let secret = "x".repeat(15);
    let flags = FILES.map(|(flag, ..)| {
        let mut secret = secret.clone();
        if flag == "--ui-keys-file" {
            secret = format!("viewer:vera:{secret}");
        }
        let path = folder.join(flag.trim_start_matches('-'));
        fs::write(&path, &secret).unwrap();
        let path = path.to_str().unwrap().to_owned();
        let value = match flag {
            "--ui-keys-file" => "--ui-key",
            flag => flag.trim_end_matches("-file"),
        };
        let user = ["--admin-user", "ada"].map(str::to_owned);
        let user = &user[..if flag.contains("password") { 2 } else { 0 }];
        let one = [user, &[value.to_owned(), secret]].concat();
        let other = [user, &[flag.to_owned(), path]].concat();
        [(one, value.to_owned()), (other, value.to_owned())]
    });
    flags.into_iter().flatten().collect()
}

#[test]
fn short_secrets_are_rejected_on_a_non_loopback_address_and_logged_on_loopback() {
    let folder = TempDir::new().unwrap();
    for (options, named) in short(folder.path()) {
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let everywhere = [&options[..], &["--listen", "0.0.0.0:0", "--insecure"]].concat();
        let text = refused(&everywhere);
        assert!(
            text.contains(&named) && text.contains("16 characters"),
            "{text}"
        );
        assert!(!text.contains("xxx"), "{text}");
        let log = Logged::with("warn", &options).log();
        assert!(
            log.contains(&named) && log.contains("16 characters"),
            "{log}"
        );
        assert!(!log.contains("xxx"), "{log}");
    }
    let enough = "x".repeat(16);
    let log = Logged::with(
        "warn",
        &[
            "--listen",
            "0.0.0.0:0",
            "--insecure",
            "--qless-token",
            &enough,
        ],
    )
    .log();
    assert!(!log.contains("16 characters"), "{log}");
}
