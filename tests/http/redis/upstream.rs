//! Rules of qless-core that differ from those of the HTTP API.

use serde_json::{Value, json};

use super::{CLOCK, error};
use crate::support::redis::{CURRENT, Redis, server};

/// A server where `w` has a lease on the job `a` of the queue `q` until 60 s, and a client.
async fn leased(retries: &str) -> (crate::support::Server, Redis) {
    let (server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    let put = ["put", "w", "q", "a", "K", "{}", "0", "retries", retries];
    redis.at(0, &put).await;
    redis.json(0, &["pop", "q", "w", "1"]).await;
    (server, redis)
}

#[tokio::test]
async fn a_pop_grants_a_grace_period_of_10_s_unless_the_option_is_set() {
    let (server, mut redis) = leased("5").await;
    assert_eq!(redis.at(0, &["config.get", "grace-period"]).await, 10);
    assert_eq!(redis.json(0, &["config.get"]).await["grace-period"], 10);
    assert_eq!(redis.at(60, &["pop", "q", "v", "1"]).await, "{}");
    // A claim over HTTP grants no grace period itself, but respects the one that the pop has granted.
    let http = server.by("v");
    assert_eq!(http.at(69).pop("q").await, Value::Null);
    assert_eq!(http.at(70).pop("q").await["worker"], "v");
    let job = redis.json(70, &["get", "a"]).await;
    let history = job["history"].as_array().unwrap().iter();
    let history: Vec<_> = history.map(|event| &event["what"]).collect();
    assert_eq!(history, ["put", "popped", "timed-out", "popped"]);
    redis.at(70, &["config.set", "grace-period", "0"]).await;
    let job = redis.json(130, &["pop", "q", "w", "1"]).await;
    assert_eq!(job[0]["worker"], "w");
}

#[tokio::test]
async fn a_claim_over_http_grants_no_grace_period() {
    let (server, mut redis) = leased("5").await;
    assert_eq!(server.by("v").at(60).pop("q").await["worker"], "v");
    let option = server.client().get("/config/grace-period").await.ok();
    assert_eq!(option, 0);
    assert_eq!(redis.at(60, &["config.get", "grace-period"]).await, 10);
}

#[tokio::test]
async fn no_worker_fails_a_job_without_retries() {
    for by_retry in [true, false] {
        let (server, mut redis) = leased("0").await;
        if by_retry {
            assert_eq!(redis.at(0, &["retry", "a", "q", "w"]).await, -1);
        } else {
            redis.at(60, &["pop", "q", "v", "1"]).await;
            assert_eq!(redis.at(70, &["pop", "q", "v", "1"]).await, "{}");
        }
        let failure = &redis.json(70, &["get", "a"]).await["failure"];
        assert_eq!(failure["group"], "failed-retries-q");
        assert_eq!(failure["worker"], "");
        assert_eq!(server.at(70).job("a").await["failure"]["worker"], "w");
    }
    let (_server, mut redis) = leased("5").await;
    redis.at(1, &["fail", "a", "w", "g", "m"]).await;
    let failure = &redis.json(1, &["get", "a"]).await["failure"];
    assert_eq!(failure["worker"], "w");
}

/// Clients of qless-core send an empty list whenever they move a job.
#[tokio::test]
async fn an_empty_list_of_dependencies_keeps_those_of_the_job() {
    let (_server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    let put = ["put", "w", "q", "a", "K", "{}", "0"];
    redis.at(0, &put).await;
    let put = ["put", "w", "q", "b", "K", "{}", "0", "depends", r#"["a"]"#];
    redis.at(0, &put).await;
    for none in ["[]", "{}"] {
        let put = ["put", "w", "other", "b", "K", "{}", "0", "depends", none];
        redis.at(1, &put).await;
        let job = redis.json(1, &["get", "b"]).await;
        assert_eq!(
            (&job["state"], &job["queue"]),
            (&json!("depends"), &json!("other"))
        );
        assert_eq!(job["dependencies"], json!(["a"]), "{none}");
    }
}

#[tokio::test]
async fn errors_call_a_job_scheduled_until_it_is_popped() {
    let (server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    redis.at(0, &["put", "w", "q", "a", "K", "{}", "1"]).await;
    let complete = ["complete", "a", "w", "q", "{}"];
    let refused = "Complete(): Job a is not currently running: scheduled";
    for now in [0, 1] {
        assert_eq!(redis.at(now, &complete).await, error(refused), "{now}");
    }
    let depends = "Depends(): Job a not in the depends state: scheduled";
    assert_eq!(
        redis.at(1, &["depends", "a", "on", "b"]).await,
        error(depends)
    );
    assert_eq!(redis.json(1, &["get", "a"]).await["state"], "waiting");
    let http = server.by("w").at(1);
    let refused = http
        .post("/complete/q", json!({"id": "a", "meta": 1}))
        .await;
    let details = refused.assert_rejected(409, "not_running");
    assert_eq!(details["state"], "waiting");
}

#[tokio::test]
async fn only_a_worker_with_a_name_claims_jobs() {
    let (server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    redis.at(0, &["put", "", "q", "a", "K", "{}", "0"]).await;
    let refused = error("Pop(): Arg \"worker\" must not be empty");
    assert_eq!(redis.at(1, &["pop", "q", "", "1"]).await, refused);
    assert_eq!(server.at(1).state("a").await, "waiting");
    assert_eq!(redis.json(1, &["workers"]).await, json!({}));
    let check = server.client().get("/check").await.ok();
    assert_eq!(check, json!({"problems": []}));
}
