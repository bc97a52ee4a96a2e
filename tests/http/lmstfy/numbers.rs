//! Parameters: valid numbers, and the errors for invalid ones.

use reqwest::Method;
use tokio::time::Instant;

use super::{client, start};
use crate::support::lmstfy::Lmstfy;

/// Texts that are not plain numbers.
const BAD: [&str; 14] = [
    "",
    "-1",
    "%2B1",
    "+1",
    "1.0",
    "1.5",
    "abc",
    "0x10",
    "1e3",
    "1%20",
    "1_000",
    "1s",
    "%EF%BC%91",
    "99999999999999999999",
];

/// The ways to publish, with a valid body for each.
const WAYS: [(&str, &str); 3] = [("/q", "body"), ("/q/bulk", "[1]"), ("/q/job/old", "body")];

/// Checks that every invalid value of the parameter is rejected with this error and has no effect.
async fn refuses(lmstfy: &Lmstfy, method: Method, path: &str, parameter: &str, values: &[&str]) {
    for value in values {
        let asked = format!("{path}?{parameter}={value}");
        let reply = lmstfy.send(method.clone(), &asked, "[1]").await;
        reply.assert_rejected(400, &format!("invalid {parameter}"));
    }
    assert_eq!(lmstfy.size("q").await, 0);
}

#[tokio::test]
async fn publish_accepts_plain_numbers_only() {
    let server = start();
    let lmstfy = client(&server);
    for (path, _) in WAYS {
        for (parameter, too_much) in [
            ("delay", "4294967296"),
            ("ttl", "4294967296"),
            ("tries", "65536"),
        ] {
            refuses(&lmstfy, Method::PUT, path, parameter, &BAD).await;
            refuses(&lmstfy, Method::PUT, path, parameter, &[too_much]).await;
        }
    }
}

#[tokio::test]
async fn a_job_must_have_at_least_one_try() {
    let server = start();
    let lmstfy = client(&server);
    for (path, body) in WAYS {
        let reply = lmstfy.put(&format!("{path}?tries=0"), body).await;
        reply.assert_rejected(400, "tries shouldn't be zero");
    }
    assert_eq!(lmstfy.size("q").await, 0);
}

#[tokio::test]
async fn a_job_must_not_expire_before_it_is_due() {
    let server = start();
    let lmstfy = client(&server);
    for (path, body) in WAYS {
        // The default TTL counts, too.
        for query in [
            "delay=2&ttl=1",
            "delay=86401",
            "delay=4294967295&ttl=4294967294",
        ] {
            let reply = lmstfy.put(&format!("{path}?{query}"), body).await;
            reply.assert_rejected(400, "ttl is shorter than delay");
        }
        for query in [
            "delay=2&ttl=2",
            "delay=86400",
            "delay=4294967295&ttl=0",
            "delay=4294967295&ttl=4294967295",
        ] {
            let reply = lmstfy.put(&format!("{path}?{query}"), body).await;
            assert_eq!(reply.status, 201, "{reply:?}");
        }
    }
}

#[tokio::test]
async fn the_largest_numbers_are_accepted() {
    let server = start();
    let lmstfy = client(&server);
    let id = lmstfy.publish("q?ttl=4294967295&tries=65535", "x").await;
    let job = lmstfy.existing_job("q", &id).await;
    assert_eq!((job.lifetime(), job.remain_tries), (4_294_967_295, 65535));
    let job = lmstfy
        .take("q?ttr=4294967295&timeout=4294967295&count=1")
        .await;
    assert_eq!((job.id, job.remain_tries), (id, 65534));
    let zeros = lmstfy.publish("q?ttl=007&tries=01&delay=00", "x").await;
    let job = lmstfy.existing_job("q", &zeros).await;
    assert_eq!((job.lifetime(), job.remain_tries), (7, 1));
}

#[tokio::test]
async fn consume_accepts_plain_numbers_only() {
    let server = start();
    let lmstfy = client(&server);
    for path in ["/q", "/q,r"] {
        for (parameter, others) in [
            ("ttr", &["4294967296"][..]),
            ("timeout", &["4294967296"]),
            ("count", &["4294967296", "0", "101"]),
        ] {
            refuses(&lmstfy, Method::GET, path, parameter, &BAD).await;
            refuses(&lmstfy, Method::GET, path, parameter, others).await;
        }
    }
    // A rejected consume has no effect.
    let id = lmstfy.publish("q?tries=2", "x").await;
    for query in ["ttr=x", "timeout=x", "count=x", "count=0"] {
        let reply = lmstfy.get(&format!("/q?{query}")).await;
        assert_eq!(reply.status, 400, "{reply:?}");
    }
    assert_eq!(lmstfy.existing_job("q", &id).await.remain_tries, 2);
    for query in ["count=2", "count=100"] {
        lmstfy.consume_many(&format!("q?{query}")).await;
    }
}

#[tokio::test]
async fn dead_letter_calls_accept_plain_numbers_only() {
    let server = start();
    let lmstfy = client(&server);
    lmstfy.publish_dead("q", "x").await;
    for method in [Method::PUT, Method::DELETE] {
        let path = "/q/deadletter";
        let others = ["0", "9223372036854775808"];
        refuses(&lmstfy, method.clone(), path, "limit", &BAD).await;
        refuses(&lmstfy, method, path, "limit", &others).await;
    }
    refuses(&lmstfy, Method::PUT, "/q/deadletter", "ttl", &BAD).await;
    refuses(
        &lmstfy,
        Method::PUT,
        "/q/deadletter",
        "ttl",
        &["4294967296"],
    )
    .await;
    assert_eq!(lmstfy.dead("q").await.0, 1);
    let most = "q?limit=9223372036854775807&ttl=4294967295";
    let respawned = Instant::now();
    assert_eq!(lmstfy.respawn(most).await, 1);
    lmstfy
        .peek("q")
        .await
        .expect("a job")
        .assert_ttl_set(4_294_967_295, respawned);
    lmstfy.delete_dead("q?limit=9223372036854775807").await;
}

/// The PHP client sends `Array`, the Go client `freeze_tries`, newer ones `priority`.
#[tokio::test]
async fn unknown_parameters_are_ignored() {
    let server = start();
    let lmstfy = client(&server);
    for query in [
        "Array",
        "freeze_tries=false",
        "TTL=x&Delay=x&Tries=0",
        "limits=x&counts=0",
        "&&=&x",
        "timeouts=-1&ttrs=",
    ] {
        let at = format!("q?{query}");
        let id = lmstfy.publish(&at, "x").await;
        assert_eq!(
            lmstfy.existing_job("q", &id).await.lifetime(),
            86400,
            "{query}"
        );
        lmstfy.bulk(&at, "[1]").await;
        assert_eq!(lmstfy.take(&at).await.remain_tries, 0, "{query}");
        assert_eq!(lmstfy.take(&at).await.remain_tries, 0, "{query}");
        assert_eq!(lmstfy.consume(&at).await, None);
        assert_eq!(lmstfy.respawn(&at).await, 0);
        lmstfy.delete_dead(&at).await;
        lmstfy.republish(&at, &id, "y").await;
        for (method, path, status) in [
            (Method::GET, "/q/peek", 200),
            (Method::GET, "/q/size", 200),
            (Method::GET, "/q/job/x", 404),
            (Method::DELETE, "/q/job/x", 204),
            (Method::GET, "/q/deadletter", 200),
            (Method::GET, "/q/deadletter/size", 200),
            (Method::DELETE, "/q", 204),
        ] {
            let reply = lmstfy.send(method, &format!("{path}?{query}"), "").await;
            assert_eq!(reply.status, status, "{reply:?}");
        }
    }
}
