//! qless over the Redis protocol: the commands of qless-core with the replies of its scripts.

use serde_json::{Value, json};

use crate::support::redis::{CURRENT, Redis, TERSE, WORKERLESS, server};

mod abuse;
mod bounds;
mod channels;
mod connections;
mod library;
mod upstream;

const CLOCK: &str = "--trust-client-clock";

fn error(words: &str) -> Value {
    json!({ "error": format!("ERR user_script:1: {words}") })
}

#[tokio::test]
async fn a_job_is_put_popped_and_completed() {
    let (server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    let put = ["put", "w", "q", "a", "Greet", r#"{"x": [1]}"#, "0"];
    let options = ["tags", r#"["t"]"#, "retries", "3", "priority", "7"];
    assert_eq!(redis.at(1, &[&put[..], &options].concat()).await, "a");
    let job = redis.json(2, &["pop", "q", "w", "10"]).await;
    let mut expected = json!({
        "jid": "a", "klass": "Greet", "state": "running", "queue": "q", "worker": "w", "tracked": false,
        "priority": 7, "expires": 62, "retries": 3, "remaining": 3, "data": r#"{"x": [1]}"#, "tags": ["t"],
        "history": [{"what": "put", "when": 1, "q": "q"}, {"what": "popped", "when": 2, "worker": "w"}],
        "failure": {}, "spawned_from_jid": false, "dependents": {}, "dependencies": {},
    });
    assert_eq!(job, json!([expected.clone()]));
    // Over HTTP the lowest number runs first.
    assert_eq!(server.at(2).job("a").await["priority"], -7);
    assert_eq!(redis.at(30, &["heartbeat", "a", "w"]).await, 90);
    let done = ["complete", "a", "w", "q", "{}"];
    assert_eq!(redis.at(31, &done).await, "complete");
    let job = redis.json(31, &["get", "a"]).await;
    expected["state"] = "complete".into();
    for key in ["queue", "worker"] {
        expected[key] = "".into();
    }
    expected["expires"] = 0.into();
    expected["data"] = "{}".into();
    let history = expected["history"].as_array_mut().unwrap();
    history.push(json!({"what": "done", "when": 31}));
    assert_eq!(job, expected);
    assert_eq!(redis.at(31, &["jobs", "complete"]).await, json!(["a"]));
    assert_eq!(redis.at(31, &["get", "no"]).await, Value::Null);
    assert_eq!(redis.at(31, &["pop", "q", "w", "1"]).await, "{}");
}

#[tokio::test]
async fn the_highest_priority_runs_first() {
    let (_server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    for (jid, priority) in [("low", "-1"), ("high", "5"), ("none", "0")] {
        let put = ["put", "w", "q", jid, "K", "{}", "0", "priority", priority];
        redis.at(1, &put).await;
    }
    assert_eq!(redis.at(1, &["priority", "none", "6"]).await, 6);
    let jobs = redis.json(2, &["peek", "q", "10"]).await;
    let jids: Vec<_> = jobs
        .as_array()
        .unwrap()
        .iter()
        .map(|job| &job["jid"])
        .collect();
    assert_eq!(jids, ["none", "high", "low"]);
}

#[tokio::test]
async fn errors_have_the_words_of_the_script() {
    let (_server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    redis.at(1, &["put", "", "q", "a", "K", "{}", "0"]).await;
    redis
        .at(
            1,
            &["put", "", "q", "b", "K", "{}", "0", "depends", r#"["a"]"#],
        )
        .await;
    let cases: [(&[&str], &str); 14] = [
        (
            &["complete", "no", "w", "q", "{}"],
            "Complete(): Job no does not exist",
        ),
        (
            &["complete", "a", "w", "q", "{}"],
            "Complete(): Job a is not currently running: waiting",
        ),
        (
            &["heartbeat", "a", "w"],
            "Heartbeat(): Job a not currently running: waiting",
        ),
        (
            &["fail", "a", "w", "g", "m"],
            "Fail(): Job a not currently running: waiting",
        ),
        (
            &["retry", "a", "q", "w"],
            "Retry(): Job a is not currently running: waiting",
        ),
        (&["timeout", "a"], "Timeout(): Job a not running"),
        (
            &["depends", "a", "on", "b"],
            "Depends(): Job a not in the depends state: waiting",
        ),
        (
            &["depends", "no", "on", "b"],
            "Depends(): Job no not in the depends state: false",
        ),
        (
            &["cancel", "a"],
            "Cancel(): a is a dependency of b but is not mentioned to be canceled",
        ),
        (&["track", "track", "no"], "Track(): Job does not exist"),
        (
            &["recur.update", "no", "priority", "1"],
            "Recur(): No recurring job no",
        ),
        (
            &["put", "", "q", "c", "K", "{", "0"],
            "Put(): Arg \"data\" missing or not JSON",
        ),
        (
            &["pop", "q", "w", "many"],
            "Pop(): Arg \"count\" missing or not a number",
        ),
        (&["frobnicate"], "Unknown command frobnicate"),
    ];
    for (command, words) in cases {
        assert_eq!(redis.at(2, command).await, error(words), "{command:?}");
    }
}

#[tokio::test]
async fn errors_of_older_scripts_do_not_name_the_job() {
    let (_server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    let mut terse = Redis::with(&address, TERSE).await;
    redis.at(1, &["put", "", "q", "a", "K", "{}", "0"]).await;
    redis.at(2, &["pop", "q", "w", "1"]).await;
    let held: [(&[&str], &str); 4] = [
        (
            &["complete", "a", "v", "q", "{}"],
            "Complete(): Job{} has been handed out to another worker: w",
        ),
        (
            &["complete", "a", "w", "r", "{}"],
            "Complete(): Job{} running in another queue: q",
        ),
        (
            &["heartbeat", "a", "v"],
            "Heartbeat(): Job{} given out to another worker: w",
        ),
        (
            &["retry", "a", "q", "v"],
            "Retry(): Job{} has been given to another worker: w",
        ),
    ];
    for (command, words) in held {
        assert_eq!(
            redis.at(3, command).await,
            error(&words.replace("{}", " a"))
        );
        assert_eq!(terse.at(3, command).await, error(&words.replace("{}", "")));
    }
    let sha = redis.call(&["SCRIPT", "LOAD", CURRENT]).await;
    let call = ["EVALSHA", sha.as_str().unwrap(), "0", "get", "soon", "a"];
    let refused = error("Arg \"now\" missing or not a number: nil");
    assert_eq!(redis.call(&call).await, refused);
}

#[tokio::test]
async fn with_the_script_of_qless_py_put_takes_no_worker_and_requeue_is_unknown() {
    let (_server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, WORKERLESS).await;
    assert_eq!(redis.at(1, &["put", "q", "a", "K", "{}", "0"]).await, "a");
    let job = redis.json(1, &["get", "a"]).await;
    assert_eq!(
        (&job["queue"], job.get("spawned_from_jid")),
        (&json!("q"), None)
    );
    let unknown = error("Unknown command requeue");
    assert_eq!(
        redis.at(1, &["requeue", "q", "a", "K", "{}", "0"]).await,
        unknown
    );
}

#[tokio::test]
async fn jobs_move_fail_and_return() {
    let (_server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    for jid in ["a", "b", "c"] {
        redis
            .at(1, &["put", "w", "q", jid, "K", "{}", "0", "retries", "1"])
            .await;
    }
    redis.at(2, &["pop", "q", "w", "3"]).await;
    let next = ["complete", "a", "w", "q", "{}", "next", "r", "delay", "5"];
    assert_eq!(redis.at(3, &next).await, "scheduled");
    assert_eq!(
        redis.call(&["ZSCORE", "ql:q:r-scheduled", "a"]).await,
        Value::Null
    );
    assert_eq!(
        redis.at(3, &["fail", "b", "w", "group", "why", "{}"]).await,
        "b"
    );
    assert_eq!(redis.at(3, &["retry", "c", "q", "w"]).await, 0);
    assert_eq!(redis.json(3, &["failed"]).await, json!({ "group": 1 }));
    let failed = json!({ "total": 1, "jobs": ["b"] });
    assert_eq!(redis.json(3, &["failed", "group"]).await, failed);
    let job = redis.json(3, &["get", "b"]).await;
    let failure = json!({ "group": "group", "message": "why", "when": 3, "worker": "w" });
    assert_eq!(job["failure"], failure);
    assert_eq!(redis.at(4, &["unfail", "q", "group"]).await, 1);
    assert_eq!(redis.at(4, &["length", "q"]).await, 2);
    assert_eq!(
        redis.at(4, &["jobs", "scheduled", "r", "0", "-1"]).await,
        json!(["a"])
    );
    let requeue = ["requeue", "w", "r", "b", "K", "{}", "0"];
    assert_eq!(redis.at(5, &requeue).await, "b");
    // A complete job does not make a cancel fail.
    redis.at(5, &["pop", "r", "w", "1"]).await;
    redis.at(5, &["complete", "b", "w", "r", "{}"]).await;
    assert_eq!(redis.at(6, &["cancel", "b", "c"]).await, json!(["b", "c"]));
    assert_eq!(
        redis.json(6, &["multiget", "b", "c", "no"]).await[0]["state"],
        "complete"
    );
    assert_eq!(redis.at(6, &["get", "c"]).await, Value::Null);
}

#[tokio::test]
async fn a_job_with_dependencies_can_be_delayed() {
    let (_server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    redis.at(0, &["put", "w", "q", "a", "K", "{}", "0"]).await;
    let put = |jid| {
        let depends = r#"["a"]"#;
        ["put", "w", "q", jid, "K", "{}", "10", "depends", depends]
    };
    assert_eq!(redis.at(0, &put("b")).await, "b");
    assert_eq!(redis.json(0, &["get", "b"]).await["state"], "depends");
    redis.at(1, &["pop", "q", "w", "1"]).await;
    redis.at(1, &["complete", "a", "w", "q", "{}"]).await;
    assert_eq!(redis.json(1, &["get", "b"]).await["state"], "scheduled");
    assert_eq!(redis.json(10, &["get", "b"]).await["state"], "waiting");
    // qless-py's script refuses it.
    let mut old = Redis::with(&address, WORKERLESS).await;
    let [put, _worker, rest @ ..] = put("c");
    let refused = old.at(0, &[&[put] as &[&str], &rest].concat()).await;
    assert!(refused["error"].as_str().unwrap().contains("not allowed"));
}

#[tokio::test]
async fn tags_can_be_numbers() {
    let (_server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    let put = [
        "put",
        "w",
        "q",
        "a",
        "K",
        "{}",
        "0",
        "tags",
        r#"[1,2.5,"x"]"#,
    ];
    assert_eq!(redis.at(1, &put).await, "a");
    let job = redis.json(1, &["get", "a"]).await;
    assert_eq!(job["tags"], json!(["1", "2.5", "x"]));
    let found = redis.json(1, &["tag", "get", "1", "0", "10"]).await;
    assert_eq!(found["jobs"], json!(["a"]));
}

#[tokio::test]
async fn tags_dependencies_and_notes_are_kept() {
    let (_server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    redis.at(1, &["put", "w", "q", "a", "K", "{}", "0"]).await;
    redis
        .at(
            1,
            &["put", "w", "q", "b", "K", "{}", "0", "depends", r#"["a"]"#],
        )
        .await;
    let tags = redis.json(1, &["tag", "add", "a", "x", "y"]).await;
    assert_eq!(tags, json!(["x", "y"]));
    redis.at(1, &["tag", "add", "b", "x"]).await;
    let found = json!({ "total": 2, "jobs": ["a", "b"] });
    assert_eq!(redis.json(1, &["tag", "get", "x", "0", "10"]).await, found);
    assert_eq!(redis.json(1, &["tag", "top"]).await, json!(["x"]));
    assert_eq!(
        redis.json(1, &["tag", "remove", "a", "x", "y"]).await,
        json!({})
    );
    assert_eq!(redis.at(1, &["track", "track", "a"]).await, "1");
    assert_eq!(redis.at(1, &["track", "track", "a"]).await, "0");
    assert_eq!(redis.json(1, &["track"]).await["jobs"][0]["jid"], "a");
    assert_eq!(redis.at(1, &["track", "untrack", "a"]).await, "1");
    assert_eq!(
        redis.json(1, &["track"]).await,
        json!({ "jobs": {}, "expired": {} })
    );
    assert_eq!(
        redis.at(2, &["log", "a", "noted", r#"{"by": "me"}"#]).await,
        Value::Null
    );
    let missing = error("Log(): Argument 'message' missing");
    assert_eq!(redis.at(2, &["log", "a", ""]).await, missing);
    let job = redis.json(2, &["get", "a"]).await;
    assert_eq!(
        job["history"][1],
        json!({ "what": "noted", "when": 2, "by": "me" })
    );
    assert_eq!(job["dependents"], json!(["b"]));
    assert_eq!(redis.at(2, &["depends", "b", "off", "all"]).await, 1);
    assert_eq!(redis.json(2, &["get", "b"]).await["state"], "waiting");
}

#[tokio::test]
async fn queues_workers_options_and_statistics_are_shown() {
    let (_server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    assert_eq!(redis.json(1, &["queues"]).await, json!({}));
    assert_eq!(redis.json(1, &["workers"]).await, json!({}));
    redis.at(1, &["put", "w", "q", "a", "K", "{}", "0"]).await;
    redis.at(2, &["pop", "q", "w", "1"]).await;
    assert_eq!(redis.at(2, &["pause", "q"]).await, Value::Null);
    let queue = json!({
        "name": "q", "waiting": 0, "stalled": 0, "running": 1, "scheduled": 0, "depends": 0, "recurring": 0,
        "paused": true,
    });
    assert_eq!(redis.json(2, &["queues", "q"]).await, queue);
    assert_eq!(redis.json(2, &["queues"]).await, json!([queue]));
    assert_eq!(redis.call(&["ZCARD", "ql:q:q-locks"]).await, 1);
    assert_eq!(redis.call(&["KEYS", "*"]).await, json!(["ql:q:q"]));
    assert_eq!(redis.at(2, &["unpause", "q"]).await, Value::Null);
    let workers = json!([{ "name": "w", "jobs": 1, "stalled": 0 }]);
    assert_eq!(redis.json(2, &["workers"]).await, workers);
    let jobs = json!({ "jobs": ["a"], "stalled": {} });
    assert_eq!(redis.json(2, &["workers", "w"]).await, jobs);
    let stats = redis.json(2, &["stats", "q", "2"]).await;
    assert_eq!(
        (&stats["wait"]["count"], &stats["wait"]["mean"]),
        (&json!(1), &json!(1))
    );

    assert_eq!(redis.at(3, &["config.get", "heartbeat"]).await, 60);
    assert_eq!(redis.at(3, &["config.get", "no"]).await, Value::Null);
    assert_eq!(
        redis.at(3, &["config.set", "heartbeat", "10"]).await,
        Value::Null
    );
    assert_eq!(
        redis.at(3, &["config.set", "mine", "1 text"]).await,
        Value::Null
    );
    let all = redis.json(3, &["config.get"]).await;
    let some = (&all["heartbeat"], &all["mine"], &all["grace-period"]);
    assert_eq!(some, (&json!("10"), &json!("1 text"), &json!(10)));
    assert_eq!(redis.at(3, &["heartbeat", "a", "w"]).await, 13);
    assert_eq!(
        redis.at(3, &["config.unset", "heartbeat"]).await,
        Value::Null
    );
    assert_eq!(redis.at(3, &["config.get", "heartbeat"]).await, 60);
    redis.at(3, &["timeout", "a"]).await;
    redis.at(3, &["worker.deregister", "w"]).await;
    assert_eq!(redis.json(3, &["workers"]).await, json!({}));
    redis.at(3, &["cancel", "a"]).await;
    redis.at(3, &["queue.forget", "q"]).await;
    assert_eq!(redis.json(3, &["queues"]).await, json!({}));
}

#[tokio::test]
async fn recurring_jobs_spawn_children() {
    let (_server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    let recur = [
        "recur", "q", "r", "K", "{}", "interval", "60", "10", "priority", "2",
    ];
    assert_eq!(redis.at(1, &recur).await, "r");
    assert_eq!(redis.call(&["ZSCORE", "ql:q:q-recur", "r"]).await, "11");
    redis.call(&["HELLO", "3"]).await;
    assert_eq!(redis.call(&["ZSCORE", "ql:q:q-recur", "r"]).await, 11.0);
    let job = json!({
        "jid": "r", "klass": "K", "state": "recur", "queue": "q", "priority": 2, "interval": 60, "retries": 0,
        "count": 0, "data": "{}", "tags": {}, "backlog": 0,
    });
    assert_eq!(redis.json(1, &["recur.get", "r"]).await, job);
    assert_eq!(redis.at(1, &["jobs", "recurring", "q"]).await, json!(["r"]));
    assert_eq!(redis.json(1, &["recur.tag", "r", "t"]).await, json!(["t"]));
    let update = [
        "recur.update",
        "r",
        "klass",
        "L",
        "retries",
        "4",
        "queue",
        "p",
    ];
    assert_eq!(redis.at(1, &update).await, 1);
    let child = redis.json(12, &["pop", "p", "w", "1"]).await;
    let child = &child[0];
    let seen = json!([
        child["jid"],
        child["klass"],
        child["retries"],
        child["tags"],
        child["spawned_from_jid"]
    ]);
    assert_eq!(seen, json!(["r-1", "L", 4, ["t"], "r"]));
    assert_eq!(child["priority"], 2);
    assert_eq!(redis.json(12, &["recur.untag", "r", "t"]).await, json!({}));
    assert_eq!(redis.at(12, &["unrecur", "r"]).await, 1);
    assert_eq!(redis.at(12, &["unrecur", "r"]).await, 1);
    assert_eq!(redis.at(12, &["recur.get", "r"]).await, Value::Null);
}

#[tokio::test]
async fn only_scripts_of_qless_run_and_they_are_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("queue.db");
    let start = || {
        let options = ["--redis-listen", "127.0.0.1:0", CLOCK];
        crate::support::Server::on(&database, &options)
    };
    let mut server = start();
    let address = crate::support::redis::address(&mut server).await;
    let mut redis = Redis::connect(&address).await;
    let foreign = "ERR Error compiling script: this server accepts only the scripts of qless-core";
    for command in [
        &["SCRIPT", "LOAD", "return 1"][..],
        &["EVAL", "return 1", "0"],
    ] {
        assert_eq!(redis.call(command).await, json!({ "error": foreign }));
    }
    let sha = redis.call(&["SCRIPT", "LOAD", CURRENT]).await;
    assert_eq!(sha, "90cb27750babdffb878a80eb134c554dc276be79");
    let sha = sha.as_str().unwrap();
    let unknown = "NOSCRIPT No matching script. Please use EVAL.";
    let get = [
        "EVALSHA",
        "0123456789012345678901234567890123456789",
        "0",
        "get",
        "1",
        "a",
    ];
    assert_eq!(redis.call(&get).await, json!({ "error": unknown }));
    let keys = error("No Keys should be provided");
    assert_eq!(
        redis
            .call(&["EVALSHA", sha, "1", "k", "get", "1", "a"])
            .await,
        keys
    );
    assert_eq!(
        redis.call(&["EVAL", CURRENT, "0", "get", "1", "a"]).await,
        Value::Null
    );
    server.stop().await;

    let mut server = start();
    let address = crate::support::redis::address(&mut server).await;
    let mut redis = Redis::connect(&address).await;
    let exists = ["SCRIPT", "EXISTS", sha, "no"];
    assert_eq!(redis.call(&exists).await, json!([1, 0]));
    assert_eq!(
        redis.call(&["EVALSHA", sha, "0", "get", "1", "a"]).await,
        Value::Null
    );
    assert_eq!(redis.call(&exists).await, json!([1, 0]));
    assert_eq!(redis.call(&["SCRIPT", "FLUSH"]).await, "OK");
    assert_eq!(redis.call(&["SCRIPT", "EXISTS", sha]).await, json!([0]));
}
