//! Changes on one server apply to the other at once.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::Pair;
use crate::support::Server;

/// The counts of a queue that are not 0.
async fn counts(server: &Server, queue: &str) -> Value {
    let queue = server.client().get(&format!("/queue/{queue}")).await.ok();
    let states = ["waiting", "running", "stalled", "scheduled", "depends"];
    let counts = states.iter().filter(|state| queue[**state] != 0);
    counts
        .map(|state| ((*state).to_owned(), queue[*state].clone()))
        .collect()
}

#[tokio::test]
async fn each_step_of_a_job_can_use_another_server() {
    let Some(pair) = Pair::start(&[]) else { return };
    for (round, (one, other)) in pair.both().into_iter().enumerate() {
        let id = format!("job{round}");
        one.client().add_ids("work", &[&id]).await;
        assert_eq!(counts(other, "work").await, json!({"waiting": 1}));
        assert_eq!(other.client().peek_ids("work").await, [id.as_str()]);
        assert_eq!(other.by("w").pop("work").await["id"], *id);
        assert_eq!(counts(one, "work").await, json!({"running": 1}));
        assert_eq!(one.by("v").pop("work").await, Value::Null);
        let heartbeat = one.by("w").post("/heartbeat", json!({"id": id})).await;
        heartbeat.accepted();
        let done = json!({"id": id, "meta": null});
        let theft = one.by("v").post("/complete/work", done).await;
        theft.assert_rejected(409, "wrong_worker");
        other.by("w").complete("work", &id).await;
        assert_eq!(one.client().state(&id).await, "complete");
        assert_eq!(counts(one, "work").await, json!({}));
        let again = json!({"id": id, "meta": null});
        let again = one.by("w").post("/complete/work", again).await;
        again.assert_rejected(409, "not_running");
    }
    // A dependency can be completed on either server.
    for (round, (one, other)) in pair.both().into_iter().enumerate() {
        let (first, second) = (format!("first{round}"), format!("second{round}"));
        one.client().add_ids("work", &[&first]).await;
        let item = json!({"id": second, "meta": null, "depends": [first]});
        other.client().add("work", item).await;
        assert_eq!(one.by("w").pop_ids("work", 9).await, [first.as_str()]);
        other.by("w").complete("work", &first).await;
        assert_eq!(one.by("w").pop_ids("work", 9).await, [second.as_str()]);
        other.by("w").fail(&second, "g").await;
        assert_eq!(one.client().state(&second).await, "failed");
    }
    pair.assert_both_consistent().await;
}

#[tokio::test]
async fn options_and_pauses_apply_to_all_servers_at_once() {
    let Some(pair) = Pair::start(&[]) else { return };
    let mut heartbeat = 10;
    for _ in 0..10 {
        for (one, other) in pair.both() {
            heartbeat += 1;
            one.client().set("heartbeat", json!(heartbeat)).await.ok();
            one.client().add("work", json!({"meta": 1})).await;
            let job = other.by("w").pop("work").await;
            assert_eq!(job["heartbeat"], heartbeat);
            let option = other.client().get("/config/heartbeat").await.ok();
            assert_eq!(option, heartbeat);
            one.client().add("work", json!({"meta": 1})).await;
            one.client().post("/pause/work", Value::Null).await.ok();
            assert_eq!(other.by("w").pop("work").await, Value::Null);
            let queue = other.client().get("/queue/work").await.ok();
            assert_eq!(queue["paused"], true);
            one.client().post("/unpause/work", Value::Null).await.ok();
            assert_ne!(other.by("w").pop("work").await, Value::Null);
        }
    }
    pair.one.client().delete("/config/heartbeat").await.ok();
    pair.one.client().add("work", json!({"meta": 1})).await;
    assert_eq!(pair.other.by("w").pop("work").await["heartbeat"], 60);
    pair.assert_both_consistent().await;
}

/// The data that a server reads for one request can be older than the data that it has read for another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_is_not_undone_by_concurrent_reads() {
    let Some(pair) = Pair::start(&[]) else { return };
    let (one, other) = (&pair.one, &pair.other);
    one.client().add_ids("work", &["a"]).await;
    let looking = async {
        loop {
            let looks = (0..8).map(|_| async { other.client().get("/queues").await.accepted() });
            futures::future::join_all(looks).await;
        }
    };
    let pausing = async {
        for _ in 0..100 {
            one.client().post("/pause/work", Value::Null).await.ok();
            let job = other.by("w").pop("work").await;
            assert_eq!(job, Value::Null, "the queue is paused");
            one.client().post("/unpause/work", Value::Null).await.ok();
            let job = other.by("w").pop("work").await;
            assert_eq!(job["id"], "a", "the queue is resumed");
            let back = one
                .by("w")
                .post("/retry/work", json!({"id": "a", "delay": 0}));
            back.await.accepted();
            one.client()
                .add("work", json!({"id": "a", "meta": 1}))
                .await;
        }
    };
    tokio::select! {
        () = looking => {}
        () = pausing => {}
    }
    pair.assert_both_consistent().await;
}

#[tokio::test]
async fn tracking_and_tags_apply_to_all_servers() {
    let Some(pair) = Pair::start(&[]) else { return };
    let (one, other) = (&pair.one, &pair.other);
    one.client().add_ids("work", &["a", "b"]).await;
    one.client().post("/track", json!("a")).await.ok();
    let tracked = other.client().get("/tracked").await.ok();
    assert_eq!(tracked["jobs"][0]["id"], "a", "{tracked}");
    other.by("w").pop_ids("work", 2).await;
    other.by("w").complete("work", "a").await;
    let said = one.client().get("/events?channel=completed").await.ok();
    assert_eq!(said["events"][0]["data"], "a", "{said}");
    other.client().post("/untrack", json!("a")).await.ok();
    let tracked = one.client().get("/tracked").await.ok();
    assert_eq!(tracked["jobs"], json!([]));
    for (server, id) in [(one, "a"), (other, "b")] {
        let tags = json!({"id": id, "tags": ["x", id]});
        server.client().post("/tag", tags).await.ok();
    }
    for (server, _) in pair.both() {
        let tagged = server.client().get("/tag/x").await.ok();
        assert_eq!(tagged["total"], 2, "{tagged}");
        let top = server.client().get("/tags").await.ok();
        assert!(top.to_string().contains("\"x\""), "{top}");
    }
    let less = json!({"id": "a", "tags": ["x"]});
    other.client().post("/untag", less).await.ok();
    assert_eq!(one.client().get("/tag/x").await.ok()["total"], 1);
    pair.assert_both_consistent().await;
}

#[tokio::test]
async fn each_child_of_a_recurring_job_is_created_once() {
    let Some(pair) = Pair::start(&[]) else { return };
    let item = json!({"id": "r", "meta": null, "interval": 0.01});
    let (one, other) = (&pair.one, &pair.other);
    one.client().post("/recur/work", item).await.ok();
    assert_eq!(other.client().get("/recurring/r").await.ok()["id"], "r");
    let mut children = Vec::new();
    while children.len() < 100 {
        let (a, b) = (one.by("w"), other.by("v"));
        let (a, b) = tokio::join!(a.pop_ids("work", 5), b.pop_ids("work", 5));
        children.extend(a.into_iter().chain(b));
    }
    other.client().delete("/recurring/r").await.ok();
    // The children that were created by then and not claimed.
    children.extend(one.by("w").pop_ids("work", 1000).await);
    assert_eq!(one.by("w").pop("work").await, Value::Null);
    children.sort_by_key(|id| id.strip_prefix("r-").unwrap().parse::<u32>().unwrap());
    let expected: Vec<_> = (1..=children.len()).map(|n| format!("r-{n}")).collect();
    assert_eq!(children, expected);
    pair.assert_both_consistent().await;
}

#[tokio::test]
async fn counts_of_both_servers_add_up() {
    let Some(pair) = Pair::start(&["--trust-client-clock"]) else {
        return;
    };
    for (number, (server, _)) in (0..).zip(pair.both()) {
        let names = [format!("done{number}"), format!("failed{number}")];
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        server.at(0).add_ids("work", &names).await;
        let worker = server.by("w").at(10 + 20 * number);
        assert_eq!(worker.pop_ids("work", 2).await, names);
        let later = worker.at(100 + 20 * number);
        later.complete("work", names[0]).await;
        later.fail(names[1], "g").await;
    }
    for (server, _) in pair.both() {
        let stats = server.at(200).get("/stats/work").await.ok();
        assert_eq!(stats["wait"]["total"], 4, "{stats}");
        assert_eq!(stats["wait"]["mean"], 20, "{stats}");
        assert_eq!(stats["wait"]["variance"], 400.0 / 3.0, "{stats}");
        assert_eq!(stats["run"]["total"], 2, "{stats}");
        assert_eq!(stats["failures"], 2, "{stats}");
        assert_eq!(stats["failed"], 2, "{stats}");
        let failed = server.at(200).get("/failed").await.ok();
        assert_eq!(failed["g"], 2, "{failed}");
        let workers = server.at(200).get("/workers").await.ok();
        assert_eq!(workers, json!([{"name": "w", "jobs": 0, "stalled": 0}]));
    }
    let again = json!({"group": "g", "count": 9});
    let again = pair.one.at(300).post("/unfail/work", again).await;
    again.accepted();
    assert_eq!(pair.other.at(300).get("/failed").await.ok(), json!({}));
    pair.assert_both_consistent().await;
}

#[tokio::test]
async fn workers_are_listed_on_all_servers() {
    let Some(pair) = Pair::start(&[]) else { return };
    for ((server, other), name) in pair.both().into_iter().zip(["w", "v"]) {
        assert_eq!(server.by(name).pop("empty").await, Value::Null);
        other.client().wait_until_seen(name).await;
    }
}

/// The cached time of a worker on one server must not overwrite a later time of another server.
#[tokio::test]
async fn a_worker_that_alternates_between_servers_has_its_latest_time() {
    let Some(pair) = Pair::start(&[]) else { return };
    for _ in 0..20 {
        for (one, other) in pair.both() {
            one.client().add("work", json!({"meta": 1})).await;
            assert_eq!(one.by("w").pop("empty").await, Value::Null);
            assert_ne!(other.by("w").pop("work").await, Value::Null);
            // A write, with which the server saves the times of workers.
            one.client().add("elsewhere", json!({"meta": 1})).await;
            pair.assert_both_consistent().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creating_a_queue_on_both_servers_at_once_creates_one() {
    let Some(pair) = Pair::start(&[]) else { return };
    let (one, other) = (pair.one.client(), pair.other.client());
    for round in 0..20 {
        let (same, on_one) = (format!("same{round}"), format!("mine{round}"));
        let on_other = format!("yours{round}");
        // The same queue; and two queues that would get the same number.
        tokio::join!(
            one.add(&same, json!({"meta": 1})),
            other.add(&same, json!({"meta": 1})),
        );
        tokio::join!(
            one.add(&on_one, json!({"id": on_one, "meta": 1})),
            other.add(&on_other, json!({"id": on_other, "meta": 1})),
        );
        for (name, waiting) in [(&same, 2), (&on_one, 1), (&on_other, 1)] {
            for (server, _) in pair.both() {
                assert_eq!(counts(server, name).await, json!({"waiting": waiting}));
            }
        }
        assert_eq!(one.job(&on_other).await["queue"], on_other);
        assert_eq!(other.job(&on_one).await["queue"], on_one);
    }
    for (server, _) in pair.both() {
        let queues = server.client().get("/queues").await.ok();
        assert_eq!(queues.as_array().unwrap().len(), 60, "each once");
    }
    pair.assert_both_consistent().await;
}

#[tokio::test]
async fn flush_applies_to_both_servers() {
    let Some(pair) = Pair::start(&["--allow-flush"]) else {
        return;
    };
    for (one, other) in pair.both() {
        other.client().add_ids("work", &["a"]).await;
        other.client().set("heartbeat", json!(5)).await.ok();
        other.client().post("/track", json!("a")).await.ok();
        assert_eq!(other.by("w").pop("work").await["id"], "a");
        assert_eq!(counts(other, "work").await, json!({"running": 1}));
        one.client().post("/flush", Value::Null).await.accepted();
        assert_eq!(other.client().get("/queues").await.ok(), json!([]));
        assert_eq!(other.client().get("/config/heartbeat").await.ok(), 60);
        let tracked = other.client().get("/tracked").await.ok();
        assert_eq!(tracked["expired"], json!([]), "{tracked}");
        other.client().add_ids("work", &["b"]).await;
        assert_eq!(one.by("w").pop("work").await["id"], "b");
        one.by("w").complete("work", "b").await;
        pair.assert_both_consistent().await;
    }
}

/// Each write contains all fields of a queue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_changes_of_a_queue_are_both_kept() {
    let Some(pair) = Pair::start(&[]) else { return };
    for round in 0..100 {
        for (one, other) in pair.both() {
            one.client().add("work", json!({"meta": 1})).await;
            one.client().post("/unpause/work", Value::Null).await.ok();
            let (pause, forget) = tokio::join!(
                one.client().post("/pause/work", Value::Null),
                other.client().delete("/queue/work"),
            );
            pause.accepted();
            forget.accepted();
            let queues = other.client().get("/queues").await.ok();
            assert_eq!(queues, json!([]), "round {round}");
            assert_eq!(
                other.by("w").pop("work").await,
                Value::Null,
                "round {round}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_queues_can_be_created_on_both_servers_at_once() {
    const CLIENTS: usize = 16;
    const QUEUES_EACH: usize = 20;
    let Some(pair) = Pair::start(&[]).map(Arc::new) else {
        return;
    };
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let pair = Arc::clone(&pair);
        clients.spawn(async move {
            let (server, _) = pair.both()[client % 2];
            for n in 0..QUEUES_EACH {
                let queue = format!("q{client}-{n}");
                server.client().add(&queue, json!({"meta": 1})).await;
            }
        });
    }
    clients.join_all().await;
    for (server, _) in pair.both() {
        let queues = server.client().get("/queues").await.ok();
        assert_eq!(queues.as_array().unwrap().len(), CLIENTS * QUEUES_EACH);
    }
    pair.assert_both_consistent().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_recurring_job_does_not_return_with_a_change_on_another_server() {
    let Some(pair) = Pair::start(&[]) else { return };
    let (one, other) = (&pair.one, &pair.other);
    for round in 0..40 {
        let id = format!("r{round}");
        let path = format!("/recurring/{id}");
        let item = json!({"id": id, "meta": null, "interval": 3600});
        one.client().post("/recur/work", item).await.ok();
        let changes = async {
            // Until the job is gone.
            for priority in 0.. {
                let change = json!({ "priority": priority });
                if other.client().post(&path, change).await.status == 404 {
                    break;
                }
            }
        };
        let deletion = async { one.client().delete(&path).await.ok() };
        let both = async { tokio::join!(changes, deletion) };
        let ended = tokio::time::timeout(std::time::Duration::from_secs(60), both);
        assert!(ended.await.is_ok(), "{id} exists again");
    }
    pair.assert_both_consistent().await;
}
