//! Secrets appear neither in the log, nor in the help, nor in the database.

use reqwest::Method;
use serde_json::Value;

use super::{Credentials, ask};
use crate::support::keys::{
    ADMIN, ADMIN_LOGIN, ADMIN_TOKEN, API_TOKENS, JOBQ, OPERATOR_KEY, PASSWORD, QLESS, RELAY,
    UI_KEYS,
};
use crate::support::{
    Server, database,
    log::{Logged, holds},
};

const GIVEN: &str = "a-token-that-was-given";

/// Signs in after one failed attempt. Returns the secret of the session.
async fn sign_in(server: &Server) -> String {
    let root = format!("http://{}", server.address);
    let client = reqwest::Client::builder().no_proxy();
    let client = client.redirect(reqwest::redirect::Policy::none());
    let client = client.build().unwrap();
    let mut response = None;
    for name in ["unknown", "olga"] {
        let form = [("name", name), ("secret", OPERATOR_KEY)];
        let request = client.post(format!("{root}/ui/login")).form(&form);
        let request = request.header("origin", &root);
        response = Some(request.send().await.unwrap());
    }
    let set = response.unwrap().headers()["set-cookie"].clone();
    let set = set.to_str().unwrap().split(['=', ';']).nth(1).unwrap();
    assert!(set.len() > 30, "{set}");
    let asked = client.get(format!("{root}/ui/jobs"));
    let asked = asked.header("cookie", format!("switchyard_session={set}"));
    assert_eq!(asked.send().await.unwrap().status(), 200);
    set.to_owned()
}

/// Secrets that the options of the server contain.
const CONFIGURED: [&str; 6] = [OPERATOR_KEY, QLESS, RELAY, JOBQ, ADMIN, PASSWORD];

#[tokio::test]
async fn no_secret_is_logged_or_stored() {
    // All kinds of keys.
    let options = [&API_TOKENS[..], &ADMIN_TOKEN, &ADMIN_LOGIN, &UI_KEYS].concat();
    let mut logged = Logged::with("trace", &options);
    let server = &logged.server;
    let admin = Credentials::Bearer(ADMIN);
    let made = ask(server, Method::POST, "/token/ns?description=x", admin).await;
    let made: Value = made.json().await.unwrap();
    let made = made["token"].as_str().unwrap().to_owned();
    let path = format!("/token/ns?description=x&token={GIVEN}");
    for expected in [201, 400] {
        let seen = ask(server, Method::POST, &path, admin).await;
        assert_eq!(seen.status(), expected);
    }
    let published = format!("/api/ns/q?token={GIVEN}");
    ask(server, Method::PUT, &published, Credentials::None).await;
    let headers = [("x-token", GIVEN)];
    let seen = super::ask_from(
        server,
        Method::GET,
        "/api/ns/q",
        Credentials::None,
        &headers,
    )
    .await;
    assert_eq!(seen.status(), 200);
    let of_token = format!("/token/ns/{made}");
    for (method, path, credentials) in [
        (Method::GET, "/ui", Credentials::Basic("ada", PASSWORD)),
        (Method::GET, "/ui", Credentials::Basic("eve", PASSWORD)),
        (Method::GET, "/queues", Credentials::Bearer(QLESS)),
        (Method::GET, "/ui", Credentials::Bearer(QLESS)),
        (Method::GET, "/v2/queues/q/jobs", Credentials::Bearer(RELAY)),
        (Method::GET, "/v2/queues/q/jobs", Credentials::Bearer(JOBQ)),
        (Method::GET, "/api/v0/queue", Credentials::Bearer(JOBQ)),
        (Method::GET, "/api/v0/queue", Credentials::Bearer(RELAY)),
        (Method::GET, "/token/ns", admin),
        (Method::DELETE, &of_token, Credentials::None),
        (Method::DELETE, &of_token, admin),
        (Method::DELETE, &format!("{of_token}/"), admin),
        (Method::PUT, &of_token, admin),
        (Method::GET, "/nope", admin),
    ] {
        ask(server, method, path, credentials).await;
    }
    let session = sign_in(server).await;
    let secrets = [&CONFIGURED[..], &[GIVEN, &session, &made]].concat();
    let is_clean = |what: &[u8], where_: &str| {
        for secret in &secrets {
            assert!(!holds(what, secret), "{secret} in {where_}");
        }
    };
    is_clean(&logged.files(), "the files of a running server");
    logged.server.terminate();
    assert!(logged.server.stopped().await.success());
    let files = logged.files();
    is_clean(&files, "the files");
    if database::postgres().is_none() {
        // Proves that the search works: the hash of the given secret is found. printf %s a-token-that-was-given |
        // sha256sum
        let hash = "bfe0050701ca43ed6293e91cf40f166ec181c703a341f50fb3ec111424d79ae9";
        assert!(holds(&files, hash));
    }
    let log = logged.log();
    assert!(log.contains("a request with wrong credentials"), "{log}");
    is_clean(log.as_bytes(), "the log");
}

#[test]
fn help_explains_authentication_and_shows_no_secret() {
    for command in ["serve", "dev"] {
        let mut program = Server::program();
        program.args([command, "--help"]);
        for name in [
            "ADMIN_TOKEN",
            "ADMIN_USER",
            "ADMIN_PASSWORD",
            "QLESS_TOKEN",
            "RELAY_TOKEN",
            "JOBQ_TOKEN",
        ] {
            program.env(format!("SWITCHYARD_{name}"), "hush-hush");
        }
        let help = program.output().unwrap();
        assert!(help.status.success());
        let text = String::from_utf8(help.stdout).unwrap();
        assert!(!text.contains("hush-hush"), "{text}");
        for option in [
            "admin-token",
            "admin-user",
            "admin-password",
            "qless-token",
            "relay-token",
            "jobq-token",
            "no-auth",
            "insecure",
            "open-qless",
            "open-relay",
            "open-jobq",
            "admin-token-file",
            "admin-password-file",
            "ui-keys-file",
            "qless-token-file",
            "relay-token-file",
            "jobq-token-file",
        ] {
            assert!(text.contains(&format!("--{option}")), "{option}: {text}");
            let variable = option.replace('-', "_").to_uppercase();
            assert!(text.contains(&format!("SWITCHYARD_{variable}")), "{text}");
        }
    }
}
