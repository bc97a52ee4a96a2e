//! Jobq: states instead of leases.

use serde_json::{Value, json};

use super::{Folder, WAIT, Worker};
use crate::support::Server;
use crate::support::eventually;
use crate::support::jobq::Jobq;

async fn state(jobq: &Jobq, id: i64) -> Value {
    let job = jobq.existing_job("hosts", id).await;
    serde_json::from_str(&job.state).unwrap()
}

#[tokio::test]
async fn the_state_follows_the_program() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let jobq = Jobq::new(&server);
    jobq.create("hosts").await;
    for code in [0, 1, 75] {
        jobq.put("hosts", &json!(code)).await;
    }
    jobq.put_in("hosts", &json!(0), &json!(["OTHER"])).await;
    let script = r#"read code; echo "$SWITCHYARD_JOB_ID $SWITCHYARD_ATTEMPT" >> "$DIR/jobs"; echo "code $code" >&2; exit "$code""#;
    let options = "--api jobq --queue hosts --retry-state LATER --drain";
    Worker::start(&server, &folder, options, script)
        .ends_with(3)
        .await;
    assert_eq!(folder.lines("jobs"), ["1 1", "2 1", "3 1"]);
    assert_eq!(state(&jobq, 1).await, json!(["FINISHED"]));
    let failed = json!(["FAILED", {"group": "exit-1", "message": "code 1"}]);
    assert_eq!(state(&jobq, 2).await, failed);
    assert_eq!(state(&jobq, 3).await, json!(["LATER"]));
    assert_eq!(state(&jobq, 4).await, json!(["OTHER"]));
    let query = r#"[["=","json_extract(state,'$[0]')","'LATER'"]]"#;
    let mut with_query = tokio::process::Command::from(Server::program());
    with_query.args([
        "work",
        "--api",
        "jobq",
        "--queue",
        "hosts",
        "--once",
        "--finished-state",
        "DONE",
        "--query",
        query,
    ]);
    with_query.args([
        "--",
        "sh",
        "-c",
        r#"echo "$SWITCHYARD_JOB_ID $SWITCHYARD_ATTEMPT" >> "$DIR/jobs""#,
    ]);
    with_query
        .env("SWITCHYARD_SERVER", &server.address)
        .env("DIR", folder.0.path());
    Worker::run(with_query).ends_with(0).await;
    assert_eq!(state(&jobq, 3).await, json!(["DONE"]));
    assert_eq!(folder.lines("jobs")[3], "3 2", "the second attempt");
}

#[tokio::test]
async fn a_changed_state_stops_the_program() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let jobq = Jobq::new(&server);
    jobq.create("hosts").await;
    jobq.put("hosts", &json!(1)).await;
    let script =
        format!(r#"trap 'touch "$DIR/signaled"; exit 0' TERM; touch "$DIR/started"; {WAIT}"#);
    let options = "--api jobq --queue hosts --once --take-over 1s";
    let worker = Worker::start(&server, &folder, options, &script);
    folder.wait_for("started").await;
    let assigned = state(&jobq, 1).await;
    assert_eq!(assigned[0], "ASSIGNED");
    jobq.advance("hosts", 1, &assigned, &json!(["MINE"])).await;
    worker.ends_with(3).await;
    assert!(folder.has("signaled"));
    assert_eq!(state(&jobq, 1).await, json!(["MINE"]));
}

#[tokio::test]
async fn a_job_of_a_killed_worker_is_taken_over_and_one_that_runs_is_not() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let jobq = Jobq::new(&server);
    jobq.create("hosts").await;
    jobq.put("hosts", &json!(1)).await;
    let script = format!(r#"echo "$SWITCHYARD_ATTEMPT" >> "$DIR/attempts"; {WAIT}"#);
    let options = "--api jobq --queue hosts --poll-interval 50ms --take-over";
    let quick = format!("{options} 2s");
    let mut killed = Worker::start(&server, &folder, &quick, &script);
    folder.wait_for("attempts").await;
    killed.0.kill().await.unwrap();
    let next = Worker::start(&server, &folder, &quick, &script);
    eventually("it is taken over", async || {
        folder.lines("attempts").len() == 2
    })
    .await;
    // The third worker does not get the job while the second one sends heartbeats, one each 0.7 s. The third one takes
    // over after 4 s without a heartbeat; eight heartbeats take longer than that.
    let slow = format!("{options} 4s");
    let third = Worker::start(&server, &folder, &slow, &script);
    let beats = async || {
        let job = jobq.existing_job("hosts", 1).await;
        let beats = job
            .events
            .iter()
            .filter(|event| format!("{event:?}").contains("heartbeat"));
        beats.count() > 7
    };
    eventually("heartbeats", beats).await;
    assert_eq!(folder.lines("attempts"), ["1", "2"]);
    folder.write("go", "");
    eventually("finished", async || {
        state(&jobq, 1).await == json!(["FINISHED"])
    })
    .await;
    for worker in [next, third] {
        worker.terminate();
        worker.ends_with(0).await;
    }
}

#[tokio::test]
async fn a_job_is_handed_back_without_a_state() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let jobq = Jobq::new(&server);
    jobq.create("hosts").await;
    jobq.put("hosts", &json!(1)).await;
    let script = format!(r#"touch "$DIR/started"; {WAIT}"#);
    let worker = Worker::start(
        &server,
        &folder,
        "--api jobq --queue hosts --grace 0s",
        &script,
    );
    folder.wait_for("started").await;
    worker.terminate();
    worker.ends_with(0).await;
    assert_eq!(state(&jobq, 1).await, Value::Null);
}

#[tokio::test]
async fn an_unknown_queue_ends_the_worker() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let worker = Worker::start(&server, &folder, "--api jobq --queue nowhere", "true");
    let said = worker.ends_with(1).await;
    assert!(said.contains("server answered 404"), "{said}");
}

#[tokio::test]
async fn a_dry_run_shows_the_jobs_that_the_query_finds() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let jobq = Jobq::new(&server);
    jobq.create("hosts").await;
    jobq.put("hosts", &json!({"n": 1})).await;
    let worker = Worker::start(
        &server,
        &folder,
        "--api jobq --queue hosts --dry-run",
        "true",
    );
    let (code, output) = worker.ended().await;
    assert_eq!(
        (code, output.stdout.as_slice()),
        (0, &b"hosts\t1\t7 bytes\n"[..])
    );
    assert_eq!(state(&jobq, 1).await, Value::Null);
}
