//! Consuming one or several jobs, from one or several queues.

use reqwest::Method;
use serde_json::json;
use tokio::time::Instant;

use super::{assert_consistent, client, start};
use crate::support::metrics::wait_until_polling;

#[tokio::test]
async fn consuming_from_an_empty_queue_returns_no_job() {
    let server = start();
    let lmstfy = client(&server);
    let gone = lmstfy.publish("empty", "x").await;
    lmstfy.ack("empty", &gone).await;
    for at in [
        "unknown",
        "empty",
        "unknown,empty",
        "unknown?count=1",
        "empty?count=2&ttr=5",
    ] {
        lmstfy.get(&format!("/{at}")).await.no_job();
    }
    // A timeout has the same response, and is not early.
    let began = Instant::now();
    for at in ["empty?timeout=1", "unknown,empty?timeout=1&count=5"] {
        lmstfy.get(&format!("/{at}")).await.no_job();
    }
    assert!(began.elapsed().as_secs_f64() >= 2.0);
    assert_consistent(&server).await;
}

/// All official clients send `count=1` and expect an object.
#[tokio::test]
async fn one_job_is_an_object_and_several_are_an_array() {
    let server = start();
    let lmstfy = client(&server);
    for query in ["", "?count=1", "?count=1&timeout=30"] {
        let id = lmstfy.publish("work", "x").await;
        let reply = lmstfy.get(&format!("/work{query}")).await;
        assert!(reply.json(200).is_object(), "{reply:?}");
        assert_eq!(reply.json(200)["job_id"], *id);
    }
    for query in ["?count=2", "?count=100"] {
        let id = lmstfy.publish("work", "x").await;
        let reply = lmstfy.get(&format!("/work{query}")).await;
        assert!(reply.json(200).is_array(), "{reply:?}");
        assert_eq!(reply.json(200)[0]["job_id"], *id);
    }
}

#[tokio::test]
async fn several_jobs_are_returned_in_order_up_to_the_available_number() {
    let server = start();
    let lmstfy = client(&server);
    let mut ids = lmstfy
        .bulk("work", format!("[{}]", vec!["1"; 64].join(",")))
        .await;
    ids.extend(
        lmstfy
            .bulk("work", format!("[{}]", vec!["2"; 41].join(",")))
            .await,
    );
    let mut got = Vec::new();
    for (count, given) in [(3, 3), (100, 100), (100, 2)] {
        let jobs = lmstfy.consume_many(&format!("work?count={count}")).await;
        assert_eq!(jobs.len(), given);
        assert!(jobs.iter().all(|job| job.remain_tries == 0));
        got.extend(jobs.into_iter().map(|job| job.id));
    }
    assert_eq!(got, ids);
    assert_eq!(lmstfy.consume_many("work?count=100").await, []);
    assert_consistent(&server).await;
}

/// A consume of several jobs ends as soon as there is one.
#[tokio::test]
async fn consuming_several_jobs_does_not_wait_for_all() {
    let server = start();
    let lmstfy = client(&server);
    let ids = lmstfy.bulk("work", "[1, 2]").await;
    let jobs = lmstfy
        .consume_many("work?count=10&timeout=4294967295")
        .await;
    let got: Vec<String> = jobs.into_iter().map(|job| job.id).collect();
    assert_eq!(got, ids);
}

#[tokio::test]
async fn jobs_of_the_first_queue_come_first() {
    let server = start();
    let lmstfy = client(&server);
    let mut ids = Vec::new();
    for queue in ["c", "b", "a", "c", "b", "a"] {
        ids.push(lmstfy.publish(queue, queue).await);
    }
    let order = [("b", 1), ("b", 4), ("c", 0), ("c", 3), ("a", 2), ("a", 5)];
    for (queue, id) in order {
        // The documentation requires a timeout here; neither the original server nor this one does.
        let query = if queue == "c" { "" } else { "?timeout=1" };
        let job = lmstfy.take(&format!("b,unknown,c,a{query}")).await;
        assert_eq!((job.queue.as_str(), &job.id), (queue, &ids[id]));
        assert_eq!(job.text(), queue);
    }
    assert_eq!(lmstfy.consume("b,unknown,c,a").await, None);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn several_jobs_of_several_queues_are_returned_by_queue() {
    let server = start();
    let lmstfy = client(&server);
    let c = lmstfy.bulk("c", "[1, 2]").await;
    let b = lmstfy.bulk("b", "[1, 2]").await;
    let jobs = lmstfy.consume_many("a,b,c?count=3").await;
    let got: Vec<(&str, &str)> = jobs
        .iter()
        .map(|job| (job.queue.as_str(), job.id.as_str()))
        .collect();
    assert_eq!(got, [("b", &*b[0]), ("b", &*b[1]), ("c", &*c[0])]);
    let rest = lmstfy.consume_many("a,b,c?count=3&timeout=30").await;
    assert_eq!(rest[0].id, c[1]);
    assert_eq!(rest.len(), 1);
    assert_eq!(lmstfy.consume_many("a,b,c?count=3").await, []);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn empty_names_between_commas_are_ignored() {
    let server = start();
    let lmstfy = client(&server);
    for queues in [
        "a,,b", ",a", "a,", ",,a,,", "b,a", "a%2Cb", "%2Ca", "a,a", "a,b,a",
    ] {
        let id = lmstfy.publish("a", "x").await;
        assert_eq!(lmstfy.take(queues).await.id, id, "{queues}");
        assert_eq!(lmstfy.consume(queues).await, None);
    }
    // If a queue is named twice, each job is returned once.
    let ids = lmstfy.bulk("a", "[1, 2]").await;
    let jobs = lmstfy.consume_many("a,b,a?count=10").await;
    let got: Vec<String> = jobs.into_iter().map(|job| job.id).collect();
    assert_eq!(got, ids);
    for nothing in [",", ",,", "%2C", ",?timeout=1", ",?count=2"] {
        let reply = lmstfy.get(&format!("/{nothing}")).await;
        reply.assert_rejected(400, "invalid queue name(s)");
    }
    for bad in ["a,b.c", "a,b%20c", "b.c,a", "a,é"] {
        lmstfy.get(&format!("/{bad}")).await.bad();
    }
}

#[tokio::test]
async fn many_queues_can_be_named() {
    let server = start();
    let lmstfy = client(&server);
    let queues: Vec<String> = (0..100).map(|n| format!("queue-number-{n}")).collect();
    let id = lmstfy.publish(&queues[99], "x").await;
    assert_eq!(lmstfy.take(&queues.join(",")).await.id, id);
    let poll = lmstfy
        .poll(&server, &format!("{}?timeout=30", queues.join(",")))
        .await;
    wait_until_polling(&server, 1).await;
    let id = lmstfy.publish(&queues[50], "x").await;
    assert_eq!(poll.take().await.id, id);
}

/// Duplicate names count.
#[tokio::test]
async fn at_most_1000_queues_can_be_named() {
    let server = start();
    let lmstfy = client(&server);
    for (count, fits) in [(999, true), (1_000, true), (1_001, false)] {
        for names in [
            vec!["q".to_owned(); count],
            (0..count).map(|n| format!("q{n}")).collect(),
        ] {
            let reply = lmstfy.get(&format!("/{}", names.join(","))).await;
            if fits {
                assert_eq!(reply.status, 404, "{count} queues: {reply:?}");
            } else {
                reply.assert_rejected(400, "invalid queue name(s)");
            }
        }
    }
}

#[tokio::test]
async fn at_most_100_jobs_are_consumed_at_once() {
    let server = start();
    let lmstfy = client(&server);
    let body = format!("[{}]", ["0"; 64].join(","));
    for _ in 0..4 {
        lmstfy.bulk("q", body.clone()).await;
    }
    for count in [99, 100] {
        let jobs = lmstfy.consume_many(&format!("q?count={count}")).await;
        assert_eq!(jobs.len(), count);
    }
    let reply = lmstfy.get("/q?count=101").await;
    reply.assert_rejected(400, "invalid count");
}

/// HEAD must not consume a job, because proxies and link checkers send it.
#[tokio::test]
async fn head_consumes_no_job() {
    let server = start();
    let lmstfy = client(&server);
    let id = lmstfy.publish("work?tries=5", "x").await;
    for path in ["/work", "/work?timeout=30", "/a,work", "/work?count=2"] {
        let reply = lmstfy.send(Method::HEAD, path, "").await;
        assert!([404, 405].contains(&reply.status), "{reply:?}");
    }
    assert_eq!(lmstfy.size("work").await, 1);
    let job = lmstfy.take("work").await;
    assert_eq!((job.id, job.remain_tries), (id, 4));
}

/// The documented keys, and two more that the original's clients read.
#[tokio::test]
async fn a_job_has_the_documented_keys() {
    let server = start();
    let lmstfy = client(&server);
    let id = lmstfy.publish("work?ttl=100&tries=3", "hello").await;
    let expected = |tries: u16, consumed: bool| {
        let mut job = json!({
            "namespace": "ns", "queue": "work", "job_id": id, "data": "aGVsbG8=", "ttl": 100,
            "elapsed_ms": 0, "remain_tries": tries, "attributes": null,
        });
        if consumed {
            job["msg"] = "new job".into();
        }
        job
    };
    for (path, tries, consumed) in [
        ("/work/peek", 3, false),
        (&*format!("/work/job/{id}"), 3, false),
        ("/work", 2, true),
    ] {
        let mut job = lmstfy.get(path).await.json(200);
        // These two change with time.
        job["elapsed_ms"] = 0.into();
        job["ttl"] = 100.into();
        assert_eq!(job, expected(tries, consumed), "{path}");
    }
    lmstfy.publish("work?ttl=100&tries=3", "hello").await;
    let jobs = lmstfy.get("/work?count=2").await.json(200);
    let keys: Vec<&String> = jobs[0].as_object().expect("an object").keys().collect();
    let same = expected(3, true);
    let same: Vec<&String> = same.as_object().expect("an object").keys().collect();
    assert_eq!(keys, same);
}
