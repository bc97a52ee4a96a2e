//! Dead letters: jobs without tries left that were not acknowledged.

use reqwest::Method;
use serde_json::json;
use tokio::time::Instant;

use super::{assert_consistent, client, start};
use crate::support::lmstfy::{Lmstfy, Reply};

#[tokio::test]
async fn dead_letter_calls_without_dead_jobs_change_nothing() {
    let server = start();
    let lmstfy = client(&server);
    lmstfy.publish("work", "x").await;
    for queue in ["unknown", "work"] {
        let dead = lmstfy.get(&format!("/{queue}/deadletter")).await.json(200);
        let expected = json!({
            "namespace": "ns", "queue": queue, "deadletter_size": 0, "deadletter_head": "",
        });
        assert_eq!(dead, expected);
        assert_eq!(lmstfy.respawn(queue).await, 0);
        lmstfy.delete_dead(queue).await;
    }
    let size = lmstfy.get("/work/deadletter/size").await.json(200);
    assert_eq!(size, json!({"namespace": "ns", "queue": "work", "size": 0}));
    assert_eq!(lmstfy.size("work").await, 1);
}

#[tokio::test]
async fn dead_jobs_are_kept_until_respawned_or_deleted() {
    let server = start();
    let lmstfy = client(&server);
    let id = lmstfy.publish_dead("work", "x").await;
    assert_eq!(lmstfy.dead("work").await, (1, id.clone()));
    assert_eq!(lmstfy.size("work").await, 0);
    assert_eq!(lmstfy.peek("work").await, None);
    assert_eq!(lmstfy.consume("work?timeout=1").await, None);
    let dead = lmstfy.existing_job("work", &id).await;
    assert_eq!((dead.text(), dead.ttl, dead.remain_tries), ("x", 0, 0));
    // Reads change nothing.
    assert_eq!(lmstfy.dead("work").await, (1, id));
    assert_consistent(&server).await;
}

/// The head is the job that was dead-lettered first, not the one that was published first.
#[tokio::test]
async fn the_oldest_dead_job_is_the_head() {
    let server = start();
    let lmstfy = client(&server);
    let (slow, quick) = lmstfy.publish_slow_and_quick_apart("work", 1).await;
    lmstfy.wait_until_dead("work", 2).await;
    assert_eq!(lmstfy.dead("work").await, (2, quick.clone()));
    assert_eq!(lmstfy.respawn("work?limit=2").await, 2);
    assert_eq!(lmstfy.drain("work").await, [quick, slow]);
}

/// Even if one run of maintenance dead-letters both.
#[tokio::test]
async fn the_oldest_dead_job_is_the_head_even_in_one_batch() {
    let server = start();
    let lmstfy = client(&server);
    for round in 0..3 {
        let queue = format!("work{round}");
        let (slow, quick) = lmstfy.publish_slow_and_quick(&queue, 1).await;
        lmstfy.wait_until_dead(&queue, 2).await;
        assert_eq!(
            lmstfy.dead(&queue).await.1,
            quick,
            "{slow} was dead-lettered later"
        );
    }
}

#[tokio::test]
async fn a_respawned_job_has_one_try() {
    let server = start();
    let lmstfy = client(&server);
    let id = lmstfy.publish("work?tries=2&ttl=1000", "x").await;
    for _ in 0..2 {
        assert_eq!(lmstfy.take("work?ttr=0&timeout=30").await.id, id);
    }
    lmstfy.wait_until_dead("work", 1).await;
    for (query, ttl) in [
        ("", 86400),
        ("?ttl=10000", 10_000),
        ("?ttl=0", 0),
        ("?limit=5&ttl=7000", 7_000),
    ] {
        let respawned = Instant::now();
        let reply = lmstfy.put(&format!("/work/deadletter{query}"), "").await;
        assert_eq!(reply.json(200), json!({"msg": "respawned", "count": 1}));
        assert_eq!(lmstfy.dead("work").await, (0, String::new()));
        assert_eq!(lmstfy.size("work").await, 1);
        let job = lmstfy.existing_job("work", &id).await;
        assert_eq!(job.remain_tries, 1);
        job.assert_ttl_set(ttl, respawned);
        // Not its original TTL and tries.
        let job = lmstfy.take("work?ttr=0").await;
        assert_eq!((&job.id, job.text()), (&id, "x"));
        assert_eq!(job.remain_tries, 0);
        job.assert_ttl_set(ttl, respawned);
        lmstfy.wait_until_dead("work", 1).await;
    }
    // An acknowledged job is deleted.
    lmstfy.respawn("work").await;
    lmstfy.take("work").await;
    lmstfy.ack("work", &id).await;
    assert_eq!(lmstfy.job("work", &id).await, None);
    assert_eq!(lmstfy.respawn("work").await, 0);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn dead_jobs_are_respawned_oldest_first_up_to_the_limit() {
    let server = start();
    let lmstfy = client(&server);
    let mut dead = Vec::new();
    for body in ["1", "2", "3", "4", "5"] {
        dead.push(lmstfy.publish_dead("work", body).await);
    }
    let ready = lmstfy.publish("work", "ready").await;
    assert_eq!(lmstfy.respawn("work").await, 1);
    assert_eq!(lmstfy.dead("work").await, (4, dead[1].clone()));
    assert_eq!(lmstfy.respawn("work?limit=2").await, 2);
    assert_eq!(lmstfy.dead("work").await, (2, dead[3].clone()));
    // Respawned jobs are behind existing jobs and before later ones.
    let last = lmstfy.publish("work", "last").await;
    let mut expected = vec![ready];
    expected.extend_from_slice(&dead[..3]);
    expected.push(last);
    assert_eq!(lmstfy.drain("work").await, expected);
    assert_eq!(lmstfy.respawn("work?limit=100").await, 2);
    assert_eq!(lmstfy.respawn("work?limit=100").await, 0);
    assert_eq!(lmstfy.drain("work").await, dead[3..]);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn dead_jobs_are_deleted_oldest_first_up_to_the_limit() {
    let server = start();
    let lmstfy = client(&server);
    let mut dead = Vec::new();
    for body in ["1", "2", "3", "4", "5", "6", "7"] {
        dead.push(lmstfy.publish_dead("work", body).await);
    }
    let alias = async |query: &str| {
        let url = format!("http://{}/ns/work/deadletter{query}", server.address);
        Reply::of(url.clone(), server.http.delete(url)).await
    };
    lmstfy.delete_dead("work").await;
    assert_eq!(lmstfy.dead("work").await, (6, dead[1].clone()));
    alias("").await.nothing();
    assert_eq!(lmstfy.dead("work").await, (5, dead[2].clone()));
    lmstfy.delete_dead("work?limit=2").await;
    assert_eq!(lmstfy.dead("work").await, (3, dead[4].clone()));
    for bad in ["0", "-1", "x", "", "9223372036854775808"] {
        alias(&format!("?limit={bad}"))
            .await
            .assert_rejected(400, "invalid limit");
    }
    alias("?limit=2").await.nothing();
    assert_eq!(lmstfy.dead("work").await, (1, dead[6].clone()));
    for id in &dead[..6] {
        assert_eq!(lmstfy.job("work", id).await, None);
    }
    lmstfy.delete_dead("work?limit=100").await;
    assert_eq!(lmstfy.dead("work").await, (0, String::new()));
    assert_eq!(lmstfy.respawn("work?limit=100").await, 0);
    assert_eq!(lmstfy.consume("work").await, None);
    assert_consistent(&server).await;
}

/// The original server counts dead jobs that were deleted.
#[tokio::test]
async fn deleted_dead_jobs_are_neither_counted_nor_respawned() {
    let server = start();
    let lmstfy = client(&server);
    let first = lmstfy.publish_dead("work", "1").await;
    let second = lmstfy.publish_dead("work", "2").await;
    let third = lmstfy.publish_dead("work", "3").await;
    lmstfy.ack("work", &first).await;
    lmstfy.ack("work", &third).await;
    assert_eq!(lmstfy.dead("work").await, (1, second.clone()));
    assert_eq!(lmstfy.respawn("work?limit=3").await, 1);
    assert_eq!(lmstfy.drain("work").await, [second]);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn each_queue_of_each_namespace_has_its_own_dead_jobs() {
    let server = start();
    let lmstfy = client(&server);
    let stranger = Lmstfy::new(&server, "stranger");
    let id = lmstfy.publish_dead("work", "x").await;
    let theirs = stranger.publish_dead("work", "y").await;
    let other = lmstfy.publish_dead("other", "z").await;
    assert_eq!(stranger.respawn("other?limit=9").await, 0);
    stranger.delete_dead("other?limit=9").await;
    stranger.delete_dead("work?limit=9").await;
    assert_eq!(stranger.dead("work").await, (0, String::new()));
    assert_eq!(stranger.job("work", &theirs).await, None);
    assert_eq!(lmstfy.dead("work").await, (1, id.clone()));
    assert_eq!(lmstfy.respawn("work?limit=9").await, 1);
    assert_eq!(lmstfy.dead("other").await, (1, other));
    assert_eq!(lmstfy.drain("work").await, [id]);
    assert_consistent(&server).await;
}

/// More jobs than any batch.
#[tokio::test]
async fn thousands_of_dead_jobs_can_be_respawned_at_once() {
    let server = start();
    let lmstfy = client(&server);
    let mut ids = Vec::new();
    for _ in 0..12 {
        ids.extend(
            lmstfy
                .bulk("work", format!("[{}]", vec!["1"; 64].join(",")))
                .await,
        );
    }
    for _ in 0..8 {
        lmstfy.consume_many("work?ttr=0&count=100").await;
    }
    lmstfy.wait_until_dead("work", 768).await;
    assert_eq!(lmstfy.respawn("work?limit=9223372036854775807").await, 768);
    assert_eq!(lmstfy.size("work").await, 768);
    let mut back = Vec::new();
    for _ in 0..8 {
        let jobs = lmstfy.consume_many("work?ttr=0&count=100").await;
        back.extend(jobs.into_iter().map(|job| job.id));
    }
    back.sort();
    ids.sort();
    assert_eq!(back, ids);
    lmstfy.wait_until_dead("work", 768).await;
    lmstfy.delete_dead("work?limit=767").await;
    assert_eq!(lmstfy.dead("work").await.0, 1);
    assert_consistent(&server).await;
}

/// First segments of paths that belong to other protocols, or may do so in the future. `v0` is not a namespace.
const TAKEN: [&str; 15] = [
    "api",
    "v0",
    "v1",
    "v2",
    "get",
    "add",
    "heartbeat",
    "complete",
    "queues",
    "job",
    "token",
    "ui",
    "health",
    "metrics",
    "pkg",
];

/// The documented path without `/api` must not conflict with paths of other protocols.
#[tokio::test]
async fn the_short_path_rejects_names_of_other_protocols() {
    let server = start();
    let mut dead = Vec::new();
    for namespace in TAKEN.into_iter().filter(|namespace| *namespace != "v0") {
        let lmstfy = Lmstfy::new(&server, namespace);
        lmstfy.publish_dead("work", "x").await;
        lmstfy.publish_dead("queues", "x").await;
        dead.push(lmstfy);
    }
    for namespace in TAKEN {
        for queue in ["work", "queues"] {
            let path = format!("/{namespace}/{queue}/deadletter?limit=9");
            let url = format!("http://{}{path}", server.address);
            let status = server
                .http
                .delete(url)
                .send()
                .await
                .expect("an answer")
                .status();
            // The first destroys the queue `deadletter`. The second revokes a token.
            let status = status.as_u16();
            match namespace {
                "api" => assert_eq!(status, 204, "{path}"),
                "token" => assert!([204, 400, 404].contains(&status), "{path}: {status}"),
                // The dashboard accepts only its own forms.
                "ui" => assert!([403, 404, 405].contains(&status), "{path}: {status}"),
                _ => assert!([404, 405].contains(&status), "{path}: {status}"),
            }
        }
    }
    for lmstfy in &dead {
        assert_eq!(lmstfy.dead("work").await.0, 1, "{lmstfy:?}");
        assert_eq!(lmstfy.dead("queues").await.0, 1, "{lmstfy:?}");
    }
    // The short path supports only DELETE.
    for method in [Method::GET, Method::PUT, Method::POST] {
        let url = format!("http://{}/ns/work/deadletter", server.address);
        let response = server
            .http
            .request(method, url)
            .send()
            .await
            .expect("an answer");
        assert!(
            [404, 405].contains(&response.status().as_u16()),
            "{response:?}"
        );
    }
}
