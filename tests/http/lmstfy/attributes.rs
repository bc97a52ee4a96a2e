//! Attributes: headers that are stored with a job. The documentation does not mention them, but newer clients use them.

use reqwest::Method;
use serde_json::{Value, json};

use super::{assert_consistent, client, start};
use crate::support::lmstfy::{Job, Lmstfy, Reply};

/// Publishes a job with these headers.
async fn publish(
    lmstfy: &Lmstfy,
    path: &str,
    body: &'static str,
    headers: &[(&str, &str)],
) -> Reply {
    let mut request = lmstfy.request(Method::PUT, path).body(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Reply::of(format!("PUT {path} {headers:?}"), request).await
}

/// The job as peek and consume return it; both must return the same attributes.
async fn seen(lmstfy: &Lmstfy, id: &str) -> Job {
    let job = lmstfy.existing_job("work", id).await;
    let peeked = lmstfy.peek("work").await.expect("a job");
    let taken = lmstfy.take("work").await;
    assert_eq!(
        (&peeked.attributes, &taken.attributes),
        (&job.attributes, &job.attributes)
    );
    assert_eq!((&peeked.id, &taken.id), (&job.id, &job.id));
    taken
}

#[tokio::test]
async fn attributes_are_returned_with_the_job() {
    let server = start();
    let lmstfy = client(&server);
    for yes in ["yes", "YES", "Yes"] {
        let headers = [
            ("Enable-Job-Version", yes),
            ("Job-Attr-FLAG", "1"),
            ("job-attr-Label", "ABC def"),
            ("X-Other", "nothing"),
        ];
        let id = publish(&lmstfy, "/work", "x", &headers).await.published();
        assert!(id.starts_with(|c: char| c.is_ascii_digit()), "{id}");
        let job = seen(&lmstfy, &id).await;
        assert_eq!(job.attributes, json!({"flag": "1", "label": "ABC def"}));
        assert_eq!(job.text(), "x");
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn attributes_are_returned_only_on_request() {
    let server = start();
    let lmstfy = client(&server);
    for headers in [
        &[("Job-Attr-Flag", "1")][..],
        &[("Job-Attr-Flag", "1"), ("Enable-Job-Version", "no")],
        &[("Enable-Job-Version", "yes")],
        &[
            ("Enable-Job-Version", "yes"),
            ("Job-Attribute", "1"),
            ("Attr-Flag", "1"),
        ],
    ] {
        let id = publish(&lmstfy, "/work", "x", headers).await.published();
        let job = seen(&lmstfy, &id).await;
        let none = job.attributes == Value::Null || job.attributes == json!({});
        assert!(none, "{headers:?}: {job:?}");
    }
}

#[tokio::test]
async fn bulk_and_republished_jobs_have_their_own_attributes() {
    let server = start();
    let lmstfy = client(&server);
    let headers = [("Enable-Job-Version", "yes"), ("Job-Attr-Flag", "1")];
    let reply = publish(&lmstfy, "/work/bulk", "[1, 2]", &headers).await;
    for id in reply.json(201)["job_ids"].as_array().expect("ids") {
        let job = seen(&lmstfy, id.as_str().expect("an id")).await;
        assert_eq!(job.attributes, json!({"flag": "1"}));
    }
    let old = publish(&lmstfy, "/work", "x", &headers).await.published();
    let new = lmstfy.republish("work", &old, "y").await;
    assert_eq!(seen(&lmstfy, &new).await.attributes, Value::Null);
    let path = format!("/work/job/{new}");
    let again = publish(&lmstfy, &path, "z", &headers).await.published();
    assert_eq!(seen(&lmstfy, &again).await.attributes, json!({"flag": "1"}));
}

/// Deliveries, dead-lettering and respawns do not change them.
#[tokio::test]
async fn attributes_are_kept_for_the_life_of_the_job() {
    let server = start();
    let lmstfy = client(&server);
    let headers = [("Enable-Job-Version", "yes"), ("Job-Attr-Flag", "1")];
    let id = publish(&lmstfy, "/work?tries=2", "x", &headers)
        .await
        .published();
    for tries in [1, 0] {
        let job = lmstfy.take("work?ttr=0&timeout=30").await;
        assert_eq!(
            (job.remain_tries, &job.attributes),
            (tries, &json!({"flag": "1"}))
        );
    }
    lmstfy.wait_until_dead("work", 1).await;
    assert_eq!(
        lmstfy.existing_job("work", &id).await.attributes,
        json!({"flag": "1"})
    );
    lmstfy.respawn("work").await;
    assert_eq!(seen(&lmstfy, &id).await.attributes, json!({"flag": "1"}));
}

#[tokio::test]
async fn attributes_have_limits() {
    let server = start();
    let lmstfy = client(&server);
    let most = "v".repeat(128);
    let long = format!("{most}v");
    let names: Vec<String> = (0..20).map(|n| format!("Job-Attr-Key{n}")).collect();
    let mut headers = vec![("Enable-Job-Version", "yes")];
    headers.extend(names.iter().map(|name| (name.as_str(), &*long)));
    let id = publish(&lmstfy, "/work", "x", &headers).await.published();
    let job = seen(&lmstfy, &id).await;
    let attributes = job.attributes.as_object().expect("attributes");
    assert_eq!(attributes.len(), 16);
    let cut = attributes.values().all(|value| *value == *most);
    assert!(cut, "{attributes:?}");
    // A name that is too long is truncated or ignored.
    let name = format!("Job-Attr-{}", "k".repeat(33));
    let headers = [
        ("Enable-Job-Version", "yes"),
        (&*name, "1"),
        ("Job-Attr-Flag", "1"),
    ];
    let id = publish(&lmstfy, "/work", "x", &headers).await.published();
    let job = seen(&lmstfy, &id).await;
    let attributes = job.attributes.as_object().expect("attributes");
    assert!(
        attributes.keys().all(|name| name.len() <= 32),
        "{attributes:?}"
    );
    assert_eq!(attributes["flag"], "1");
}
