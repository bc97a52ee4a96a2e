//! `switchyard bench` measures a server and leaves nothing behind.

use std::process::Output;

use serde_json::{Value, json};

use crate::support::Server;

fn bench(server: &str, options: &[&str]) -> Output {
    let mut command = Server::program();
    command.args(["bench", "--server", server, "--json"]);
    command.args(options).output().unwrap()
}

/// Measures a server. Returns the result.
#[track_caller]
fn measured(server: &Server, options: &[&str]) -> Value {
    let server = format!("http://{}", server.address);
    let output = bench(&server, options);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Checks that the measurement is rejected with an error that contains these words.
#[track_caller]
fn refused(server: &str, options: &[&str], words: &str) {
    let output = bench(server, options);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(words), "{text}");
    assert!(output.stdout.is_empty());
}

#[tokio::test]
async fn a_measurement_ends_after_its_jobs_and_leaves_nothing_behind() {
    let server = Server::with(&["--no-auth"]);
    server
        .client()
        .add("mail", json!({"id": "mine", "meta": 1}))
        .await;
    for (api, more) in [
        ("qless", &["--batch", "7"][..]),
        ("qless", &[]),
        ("lmstfy", &[]),
        ("relay", &["--payload-bytes", "0"]),
    ] {
        let options = [
            "--api",
            api,
            "--jobs",
            "280",
            "--seconds",
            "60",
            "--connections",
            "4",
        ];
        let measured = measured(&server, &[&options, more].concat());
        assert_eq!(measured["jobs"], 280, "{measured}");
        assert_eq!(
            (&measured["removed"], &measured["api"]),
            (&json!(0), &json!(api))
        );
        assert!(
            measured["queue"]
                .as_str()
                .unwrap()
                .starts_with("switchyard-bench-")
        );
        let [p50, max] = ["p50_ms", "max_ms"].map(|it| measured["cycle"][it].as_f64().unwrap());
        assert!(0.0 < p50 && p50 <= max, "{measured}");
    }
    let queues = server.client().get("/queues").await.ok();
    let names: Vec<&Value> = queues
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["mail"]);
    assert_eq!(server.client().get("/workers").await.ok(), json!([]));
    assert_eq!(server.client().get("/jobs/complete").await.ok(), json!([]));
}

#[tokio::test]
async fn completed_jobs_are_kept_on_request() {
    let server = Server::with(&[]);
    measured(&server, &["--keep", "--jobs", "10", "--connections", "2"]);
    let complete = server.client().get("/jobs/complete").await.ok();
    assert_eq!(complete.as_array().unwrap().len(), 10);
}

#[tokio::test]
async fn a_measurement_of_another_machine_or_with_wrong_options_is_refused() {
    let server = Server::with(&["--qless-token", "a-token-of-qless-alone"]);
    let address = format!("http://{}", server.address);
    refused("http://192.0.2.1:3000", &[], "--allow-remote");
    refused(
        &address,
        &["--api", "relay", "--batch", "2"],
        "--batch is only for qless",
    );
    refused(
        &address,
        &["--api", "lmstfy", "--keep"],
        "--keep is only for qless",
    );
    refused(&address, &["--jobs", "1"], "401");
    let token = ["--jobs", "1", "--token", "a-token-of-qless-alone"];
    assert_eq!(measured(&server, &token)["jobs"], 1);
}
