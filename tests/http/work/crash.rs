//! `kill -9` of workers and of the server: no job is lost, and none is completed twice.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Folder, Worker, command};
use crate::support::Server;
use crate::support::eventually;
use crate::support::jobq::{Event, Jobq, What};
use crate::support::lmstfy::Lmstfy;
use crate::support::ports::Port;
use crate::support::relay::{Relay, new};

const JOBS: usize = 120;
const KILLS: usize = 4;

/// Kills a worker and the server alternately while jobs run. Returns when `left` finds no more jobs.
async fn kill_until_done(
    options: &str,
    put: impl AsyncFn(&Server),
    left: impl AsyncFn(&Server) -> usize,
) -> (Server, Folder, TempDir, Port) {
    let (port, data, folder) = (Port::reserve(), TempDir::new().unwrap(), Folder::new());
    let database = data.path().join("jobs.db");
    let listen = format!("127.0.0.1:{}", port.number);
    let serve = || Server::on(&database, &["--listen", &listen, "--no-auth"]);
    let work = || {
        let script = r#"echo "$SWITCHYARD_JOB_ID" >> "$DIR/runs"; sleep 0.05"#;
        let mut command = command(&folder, options, script);
        command.env("SWITCHYARD_SERVER", format!("http://{listen}"));
        Worker::run(command)
    };
    let mut server = serve();
    put(&server).await;
    let mut workers = vec![work(), work()];
    for kill in 1..=KILLS {
        // Some more jobs have run since the last kill.
        let runs = kill * JOBS / (KILLS + 2);
        eventually("jobs run", async || folder.lines("runs").len() >= runs).await;
        if kill % 2 == 0 {
            server.kill();
            server = serve();
        } else {
            let mut killed = workers.remove(0);
            killed.0.kill().await.unwrap();
            workers.push(work());
        }
    }
    eventually("all jobs are done", async || left(&server).await == 0).await;
    for worker in workers {
        worker.terminate();
        worker.ends_with(0).await;
    }
    (server, folder, data, port)
}

#[tokio::test]
async fn qless_jobs_are_completed_exactly_once() {
    let put = async |server: &Server| {
        server.client().set("heartbeat", json!(2)).await.accepted();
        // No job fails because it has lost its lease often.
        let job = |n| json!({"id": format!("job-{n}"), "meta": null, "retries": 1_000});
        let jobs: Vec<Value> = (0..JOBS).map(job).collect();
        server.client().post("/add/mail", jobs.into()).await.ok();
    };
    let left = async |server: &Server| {
        let queue = server.client().get("/queue/mail").await.ok();
        let states = ["waiting", "running", "stalled", "scheduled", "depends"];
        let counts = states.map(|state| queue[state].as_u64().unwrap());
        usize::try_from(counts.iter().sum::<u64>()).unwrap()
    };
    let options = "--queue mail --concurrency 4 --kill-after 100ms --quiet";
    let (server, folder, _data, _port) = kill_until_done(options, put, left).await;
    let mut completed: BTreeMap<String, usize> = BTreeMap::new();
    let mut after = 0;
    loop {
        let path = format!("/events?channel=log&limit=1000&after={after}");
        let page = server.client().get(&path).await.ok();
        let events = page["events"].as_array().unwrap();
        if events.is_empty() {
            break;
        }
        after = page["last"].as_u64().unwrap();
        let done = events
            .iter()
            .filter(|event| event["data"]["event"] == "completed");
        for event in done {
            let id = event["data"]["id"].as_str().unwrap().to_owned();
            *completed.entry(id).or_default() += 1;
        }
    }
    // A crash can lose the last events, but not what the histories of the jobs say.
    assert!(!completed.is_empty());
    assert!(completed.values().all(|count| *count == 1), "{completed:?}");
    for n in 0..JOBS {
        let job = server.client().job(&format!("job-{n}")).await;
        assert_eq!(job["state"], "complete", "nothing is lost: {job}");
        let history = job["history"].as_array().unwrap().iter();
        let done = history.filter(|event| event["what"] == "done").count();
        assert_eq!(done, 1, "nothing is completed twice: {job}");
    }
    assert_all_have_run(&folder);
    assert_eq!(
        server.client().get("/check").await.ok(),
        json!({"problems": []})
    );
}

#[tokio::test]
async fn relay_jobs_all_run_and_none_is_left() {
    let put = async |server: &Server| {
        let jobs = (0..JOBS).map(|n| {
            let mut job = new("mail", &n.to_string());
            job["timeout"] = json!(2);
            job
        });
        Relay::new(server).put(&Value::Array(jobs.collect())).await;
    };
    let left = async |server: &Server| {
        let relay = Relay::new(server);
        let mut left = 0;
        for n in 0..JOBS {
            left += usize::from(relay.exists("mail", &n.to_string()).await);
        }
        left
    };
    let options =
        "--api relay --queue mail --concurrency 4 --poll-interval 50ms --kill-after 100ms --quiet";
    let (_server, folder, _data, _port) = kill_until_done(options, put, left).await;
    assert_all_have_run(&folder);
}

#[track_caller]
fn assert_all_have_run(folder: &Folder) {
    let mut runs = folder.lines("runs");
    println!("{} runs of {JOBS} jobs", runs.len());
    runs.sort_unstable();
    runs.dedup();
    assert_eq!(runs.len(), JOBS, "each job has run");
}

#[tokio::test]
async fn lmstfy_jobs_all_run_and_none_is_left() {
    let ids = Mutex::new(Vec::new());
    let put = async |server: &Server| {
        let lmstfy = Lmstfy::new(server, "space");
        for n in 0..JOBS {
            let id = lmstfy.publish("mail?tries=100", n.to_string()).await;
            ids.lock().unwrap().push(id);
        }
    };
    let left = async |server: &Server| {
        let lmstfy = Lmstfy::new(server, "space");
        let mut left = 0;
        let ids = ids.lock().unwrap().clone();
        for id in ids {
            left += usize::from(lmstfy.job("mail", &id).await.is_some());
        }
        left
    };
    let options = "--api lmstfy --namespace space --queue mail --ttr 2s --concurrency 4 --kill-after 100ms --quiet";
    let (_server, folder, _data, _port) = kill_until_done(options, put, left).await;
    assert_all_have_run(&folder);
}

#[tokio::test]
async fn jobq_jobs_are_finished_exactly_once() {
    let put = async |server: &Server| {
        let jobq = Jobq::new(server);
        jobq.create("mail").await;
        for n in 0..JOBS {
            jobq.put("mail", &json!(n)).await;
        }
    };
    let left = async |server: &Server| {
        let jobs = Jobq::new(server).all("mail").await;
        jobs.iter()
            .filter(|job| job.state != r#"["FINISHED"]"#)
            .count()
    };
    let options = "--api jobq --queue mail --take-over 2s --concurrency 4 --poll-interval 50ms --kill-after 100ms --quiet";
    let (server, folder, _data, _port) = kill_until_done(options, put, left).await;
    assert_all_have_run(&folder);
    for job in Jobq::new(&server).all("mail").await {
        let finished = |event: &&Event| matches!(&event.what, What::Advanced(_, new) if new == r#"["FINISHED"]"#);
        assert_eq!(job.events.iter().filter(finished).count(), 1, "{job:?}");
    }
}
