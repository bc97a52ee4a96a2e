//! Publishing and republishing jobs.

use std::collections::HashSet;

use super::{assert_consistent, client, start};

/// IDs must be valid queue names, because replies to a job go to a queue with its ID as name.
fn is_a_queues_name(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=255).contains(&id.len()) && !id.starts_with('_') && id.chars().all(plain)
}

#[tokio::test]
async fn a_consumed_job_has_the_published_body() {
    let server = start();
    let lmstfy = client(&server);
    let id = lmstfy.publish("work", "hello").await;
    assert!(is_a_queues_name(&id), "{id}");
    let job = lmstfy.take("work").await;
    assert_eq!(
        (job.queue.as_str(), &job.id, job.text()),
        ("work", &id, "hello")
    );
    // The defaults: a TTL of one day, one try.
    assert_eq!((job.lifetime(), job.remain_tries), (86400, 0));
    assert!(job.attributes.is_null());
    lmstfy.ack("work", &id).await;
    assert_eq!(lmstfy.consume("work").await, None);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn jobs_are_consumed_in_the_order_of_publishing() {
    let server = start();
    let lmstfy = client(&server);
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.push(lmstfy.publish("work", n.to_string()).await);
    }
    assert_eq!(lmstfy.drain("work").await, ids);
}

#[tokio::test]
async fn every_job_has_a_unique_id() {
    let server = start();
    let lmstfy = client(&server);
    let mut ids = HashSet::new();
    let many = format!("[{}]", vec!["1"; 64].join(","));
    for queue in ["a", "b", "c"] {
        ids.insert(lmstfy.publish(queue, "1").await);
        ids.extend(lmstfy.bulk(queue, many.clone()).await);
    }
    assert_eq!(ids.len(), 3 * 65);
    assert!(ids.iter().all(|id| is_a_queues_name(id)), "{ids:?}");
}

/// An example of the original documentation: publish a request, and wait for the reply in the queue named after the
/// job.
#[tokio::test]
async fn a_reply_can_use_the_queue_named_after_the_job() {
    let server = start();
    let lmstfy = client(&server);
    let id = lmstfy.publish("questions", "how many?").await;
    let asker = lmstfy.poll(&server, &format!("{id}?timeout=30")).await;
    let question = lmstfy.take("questions").await;
    let response = lmstfy.publish(&question.id, "42").await;
    lmstfy.ack("questions", &question.id).await;
    let got = asker.take().await;
    assert_eq!((got.queue, got.id), (id.clone(), response.clone()));
    lmstfy.ack(&id, &response).await;
    assert_eq!(lmstfy.size(&id).await, 0);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_body_can_be_any_bytes() {
    let server = start();
    let lmstfy = client(&server);
    let every_byte: Vec<u8> = (0..=255).collect();
    let latin = b"caf\xe9 \xff\xfe\0\0".to_vec();
    for body in [
        Vec::new(),
        b"\0".to_vec(),
        every_byte.repeat(3),
        latin,
        "日本 🦀".into(),
        b"{\"not\": \"json".to_vec(),
        b"  \r\n ".to_vec(),
        b"null".to_vec(),
    ] {
        let id = lmstfy.publish("work", body.clone()).await;
        assert_eq!(lmstfy.existing_job("work", &id).await.data, body);
        assert_eq!(lmstfy.peek("work").await.expect("a job").data, body);
        assert_eq!(lmstfy.take("work").await.data, body);
    }
    assert_consistent(&server).await;
}

/// Clients send various content types; curl sends that of a form.
#[tokio::test]
async fn the_content_type_of_a_body_is_ignored() {
    let server = start();
    let lmstfy = client(&server);
    for kind in [
        "application/x-www-form-urlencoded",
        "text/binary",
        "application/json",
        "multipart/form-data",
        "nonsense",
    ] {
        let body = "ttl=5&delay=abc&tries=0";
        let request = lmstfy.request(reqwest::Method::PUT, "/work");
        let request = request.header("content-type", kind).body(body);
        let sent = crate::support::lmstfy::Reply::of(kind.to_owned(), request).await;
        let id = sent.published();
        let job = lmstfy.take("work").await;
        assert_eq!((&job.id, job.text(), job.lifetime()), (&id, body, 86400));
    }
}

#[tokio::test]
async fn a_body_is_smaller_than_64_kb() {
    let server = start();
    let lmstfy = client(&server);
    let mut id = String::new();
    for length in [65534, 65535] {
        let most = vec![0xa5; length];
        id = lmstfy.publish("work", most.clone()).await;
        assert_eq!(lmstfy.take("work").await.data, most);
    }
    for length in [65536, 65537, 200_000, 2_000_000] {
        let reply = lmstfy.put("/work", vec![b'x'; length]).await;
        reply.assert_rejected(413, "body too large");
        let reply = lmstfy
            .put(&format!("/work/job/{id}"), vec![b'x'; length])
            .await;
        reply.assert_rejected(413, "body too large");
    }
    assert_eq!(lmstfy.size("work").await, 0);
    // A republish that is rejected keeps the old job.
    lmstfy.existing_job("work", &id).await;
}

#[tokio::test]
async fn republishing_creates_a_new_job() {
    let server = start();
    let lmstfy = client(&server);
    let old = lmstfy.publish("work?ttl=0&tries=1", "old").await;
    assert_eq!(lmstfy.take("work?ttr=60").await.ttl, 0);
    let new = lmstfy.republish("work?ttl=10&tries=3", &old, "new").await;
    assert_ne!(old, new);
    assert_eq!(lmstfy.job("work", &old).await, None);
    let job = lmstfy.take("work").await;
    assert_eq!((&job.id, job.text()), (&new, "new"));
    assert_eq!((job.lifetime(), job.remain_tries), (10, 2));
    // Republishing an unknown ID only publishes.
    let other = lmstfy.republish("work", "nobody", "x").await;
    assert_eq!(lmstfy.take("work").await.id, other);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_job_in_any_state_can_be_republished() {
    let server = start();
    let lmstfy = client(&server);
    let dead = lmstfy.publish_dead("work", "dead").await;
    let working = lmstfy.publish("work", "working").await;
    lmstfy.take("work").await;
    let ready = lmstfy.publish("work", "ready").await;
    let delayed = lmstfy.publish("work?delay=60", "delayed").await;
    let mut new = Vec::new();
    for old in [&dead, &working, &ready, &delayed] {
        new.push(lmstfy.republish("work", old, "new").await);
        assert_eq!(lmstfy.job("work", old).await, None);
    }
    assert_eq!(lmstfy.dead("work").await, (0, String::new()));
    assert_eq!(lmstfy.drain("work").await, new);
    let later = lmstfy.republish("work?delay=60", &new[0], "later").await;
    assert_eq!(lmstfy.size("work").await, 0);
    lmstfy.existing_job("work", &later).await;
    assert_consistent(&server).await;
}

/// The original server deletes the old job before it checks the parameters.
#[tokio::test]
async fn a_rejected_republish_keeps_the_job() {
    let server = start();
    let lmstfy = client(&server);
    let id = lmstfy.publish("work?tries=2", "x").await;
    for query in ["ttl=x", "delay=2&ttl=1", "tries=0", "tries=65536"] {
        let reply = lmstfy.put(&format!("/work/job/{id}?{query}"), "y").await;
        reply.bad();
    }
    let job = lmstfy.take("work").await;
    assert_eq!((job.id, job.remain_tries), (id, 1));
}

#[tokio::test]
async fn republishing_deletes_in_its_own_queue_and_namespace_only() {
    let server = start();
    let lmstfy = client(&server);
    let id = lmstfy.publish("work", "x").await;
    let elsewhere = lmstfy.republish("other", &id, "y").await;
    let stranger = crate::support::lmstfy::Lmstfy::new(&server, "stranger");
    let theirs = stranger.republish("work", &id, "z").await;
    assert_eq!(lmstfy.drain("work").await, [id]);
    assert_eq!(lmstfy.drain("other").await, [elsewhere]);
    assert_eq!(stranger.drain("work").await, [theirs]);
}
