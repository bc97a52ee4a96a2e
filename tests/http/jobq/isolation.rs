//! The protocols are isolated from each other, even if their queues and jobs have the same names.

use serde_json::{Value, json};

use super::{assert_consistent, client, start};
use crate::support::isolation::{assert_hidden_from_qless, assert_unchanged_by_qless};
use crate::support::jobq::{Job, Jobq};
use crate::support::lmstfy::Lmstfy;
use crate::support::relay::{Relay, new};

/// The IDs of the jobs that [`fill`] creates.
const IDS: [&str; 3] = ["1", "2", "3"];

/// Creates jobs in queues with names that the other protocols use, too.
async fn fill(jobq: &Jobq) -> Vec<Job> {
    for name in ["work", "other", "ns"] {
        jobq.create(name).await;
    }
    jobq.put("work", &json!("jobq-new")).await;
    jobq.put_in("work", &json!("jobq-2"), &json!(["running"]))
        .await;
    jobq.put("work", &json!("jobq-3")).await;
    jobq.poll("work", &json!([]), &json!(["TAKEN"])).await;
    jobq.event("work", 3, &json!("jobq-event")).await.job();
    jobq.put("other", &json!("jobq-other")).await;
    everything(jobq).await
}

/// All jobs of all queues.
async fn everything(jobq: &Jobq) -> Vec<Job> {
    let mut all = Vec::new();
    for queue in jobq.queues().await {
        all.extend(jobq.all(&queue.name).await);
    }
    all
}

#[tokio::test]
async fn qless_does_not_show_jobq_jobs() {
    let server = start();
    let jobq = client(&server);
    let before = fill(&jobq).await;
    let queues = ["ns", "jobq", "jobq/work", "jobq:work", "v0"];
    assert_hidden_from_qless(&server, &IDS, &queues, &["jobq-"]).await;
    assert_eq!(everything(&jobq).await, before);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn qless_verbs_do_not_affect_jobq_jobs() {
    let server = start();
    let jobq = client(&server);
    let before = fill(&jobq).await;
    assert_unchanged_by_qless(&server, &IDS).await;
    let worker = server.by("w");
    // qless commands on queues affect qless queues only.
    worker.post("/pause/work", Value::Null).await.accepted();
    for option in ["work-max-concurrency", "work-heartbeat"] {
        worker.set(option, json!(1)).await.accepted();
    }
    worker.post("/unfail/work", json!({"group": "g"})).await;
    assert_eq!(everything(&jobq).await, before);
    for id in [2, 1, 3] {
        let polled = jobq.poll("work", &json!([]), &json!(["AGAIN"])).await;
        assert_eq!(polled.map(|job| job.id), Some(id));
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn lmstfy_and_relay_do_not_show_jobq_jobs() {
    let server = start();
    let jobq = client(&server);
    let before = fill(&jobq).await;
    for namespace in ["ns", "jobq", "work", "default"] {
        let lmstfy = Lmstfy::new(&server, namespace);
        for queue in ["work", "other"] {
            assert_eq!(lmstfy.size(queue).await, 0);
            assert_eq!(lmstfy.consume(queue).await, None);
            assert_eq!(lmstfy.peek(queue).await, None);
            assert_eq!(lmstfy.dead(queue).await, (0, String::new()));
            assert_eq!(lmstfy.respawn(&format!("{queue}?limit=9")).await, 0);
            lmstfy.delete_dead(&format!("{queue}?limit=9")).await;
            lmstfy.destroy(queue).await;
            for id in IDS {
                assert_eq!(lmstfy.job(queue, id).await, None);
                lmstfy.ack(queue, id).await;
            }
        }
    }
    let relay = Relay::new(&server);
    for queue in ["work", "other", "ns", "jobq"] {
        assert_eq!(relay.next_ids(queue, 9).await, [""; 0]);
        for id in IDS {
            assert_eq!(relay.job(queue, id).await, None);
            relay.delete(queue, id).await;
        }
    }
    assert_eq!(everything(&jobq).await, before);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn jobq_does_not_show_jobs_of_other_protocols() {
    let server = start();
    let jobq = client(&server);
    let worker = server.by("w");
    worker.add_ids("work", &["1", "2", "3"]).await;
    worker.pop("work").await;
    worker.fail("1", "g").await;
    let lmstfy = Lmstfy::new(&server, "ns");
    let id = lmstfy.publish("work", "x").await;
    let relay = Relay::new(&server);
    relay
        .put(&json!([new("work", "1"), new("work", "2")]))
        .await;
    assert_eq!(jobq.queues().await, []);
    for queue in ["work", "ns", "1"] {
        let path = format!("/queue/{queue}/job");
        jobq.get(&path).await.assert_rejected(404, &[]);
    }
    // Jobq can use their names.
    let queue = jobq.create("work").await;
    assert_eq!(jobq.queues().await, [queue]);
    assert_eq!(jobq.all("work").await, []);
    assert_eq!(jobq.matching("work", &json!([])).await, [0; 0]);
    assert_eq!(jobq.poll("work", &json!([]), &json!(1)).await, None);
    for id in 1..=3 {
        assert_eq!(jobq.job("work", id).await, None);
        jobq.delete("work", id).await;
    }
    assert_eq!(jobq.put("work", &json!(1)).await.id, 1);
    jobq.delete("work", 1).await;
    jobq.delete_queue("work").await;
    assert_eq!(worker.state("1").await, "failed");
    assert_eq!(worker.pop_ids("work", 9).await, ["2", "3"]);
    assert_eq!(lmstfy.drain("work").await, [id]);
    assert_eq!(relay.next_ids("work", 9).await, ["1", "2"]);
    assert_consistent(&server).await;
}

/// Jobs with the same name in all protocols, each of which is completed.
#[tokio::test]
async fn jobs_with_equal_names_in_all_protocols_are_independent() {
    let server = start();
    let jobq = client(&server);
    let worker = server.by("w");
    let relay = Relay::new(&server);
    jobq.create("work").await;
    assert_eq!(jobq.put("work", &json!("jobq")).await.id, 1);
    worker
        .add("work", json!({"id": "1", "meta": "qless"}))
        .await;
    relay.put_ids("work", &["1"]).await;
    assert_eq!(worker.pop("work").await["meta"], "qless");
    worker.complete("work", "1").await;
    assert_eq!(jobq.existing_job("work", 1).await.payload, "\"jobq\"");
    jobq.delete("work", 1).await;
    assert_eq!(worker.state("1").await, "complete");
    assert!(relay.exists("work", "1").await);
    let job = jobq.put("work", &json!("again")).await;
    relay.delete("work", "1").await;
    assert_eq!(jobq.all("work").await, [job]);
    assert_consistent(&server).await;
}

/// lmstfy has a path that deletes dead jobs of any namespace; it must not apply to Jobq's paths.
#[tokio::test]
async fn the_short_path_of_lmstfy_does_not_apply() {
    let server = start();
    let jobq = client(&server);
    let before = fill(&jobq).await;
    let queues = jobq.queues().await;
    for path in [
        "/v0/work/deadletter",
        "/api/work/deadletter",
        "/api/v0/work",
        "/api/v0/work/deadletter",
        "/api/v0/queue/work/deadletter",
        "/api/v0/work/job/1",
    ] {
        let url = format!("http://{}{path}", server.address);
        let response = server.http.delete(url).send().await.unwrap();
        // This one is the queue `deadletter` of the namespace `work`.
        let is_lmstfys = path == "/api/work/deadletter";
        let expected = if is_lmstfys { 204 } else { 404 };
        assert_eq!(response.status(), expected, "{path}");
    }
    assert_eq!(
        (jobq.queues().await, everything(&jobq).await),
        (queues, before)
    );
    // Nor can a token for it be created.
    let url = format!("http://{}/token/v0?description=x", server.address);
    let response = server.http.post(url).send().await.unwrap();
    assert_eq!(response.status(), 400);
    assert_consistent(&server).await;
}

/// Empty queues of other protocols are deleted after some time.
#[tokio::test]
async fn jobq_queues_and_records_do_not_expire() {
    let server = crate::support::Server::with(&["--empty-queue-age", "0"]);
    let jobq = client(&server);
    let empty = jobq.create("empty").await;
    jobq.create("work").await;
    let job = jobq.put("work", &json!(1)).await;
    // An implicitly created queue is deleted when it is idle.
    let relay = Relay::new(&server);
    relay.put_ids("work", &["a"]).await;
    relay.delete("work", "a").await;
    let later = async || chrono::Utc::now().timestamp() > job.modified + 2;
    crate::support::eventually("2 s have passed", later).await;
    assert_eq!(jobq.queues().await[0], empty);
    assert_eq!(jobq.all("empty").await, []);
    assert_eq!(jobq.all("work").await, [job]);
    assert_consistent(&server).await;
}
