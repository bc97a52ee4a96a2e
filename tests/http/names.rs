//! Names that break careless code are ordinary names.

use serde_json::json;

use crate::support::{HOSTILE_NAMES, Server, escape, raw};

#[tokio::test]
async fn a_queue_can_have_any_name() {
    let server = Server::start();
    for name in HOSTILE_NAMES {
        server.at(0).add_ids("decoy", &["decoy"]).await;
        let path = escape(name);
        // Raw requests, because clients resolve `..` in paths, even if escaped.
        let get = async |path: String| {
            let (status, body) =
                raw::request(&server, "GET", &format!("{path}?now=0&host=w"), b"").await;
            assert_eq!(status, 200, "{path}: {body}");
            serde_json::from_str::<serde_json::Value>(&body).unwrap()["results"].take()
        };
        let body = json!({"now": 0, "data": {"id": name, "meta": name}}).to_string();
        let (status, response) =
            raw::request(&server, "POST", &format!("/add/{path}"), body.as_bytes()).await;
        assert_eq!(status, 200, "{response}");
        assert_eq!(get(format!("/peek/{path}")).await["queue"], *name);
        assert_eq!(get(format!("/queue/{path}")).await["name"], *name);
        assert_eq!(get(format!("/queue/{path}")).await["waiting"], 1, "{name}");
        assert_eq!(get(format!("/jobs/waiting/{path}")).await, json!([name]));
        let job = get(format!("/get/{path}/1")).await;
        assert_eq!(
            (&job["id"], &job["queue"], &job["meta"]),
            (&json!(name), &json!(name), &json!(name))
        );
        assert_eq!(job["history"][0]["q"], *name);
        let body = json!({"host": "w", "data": {"id": name, "meta": 1}}).to_string();
        let (status, response) = raw::request(
            &server,
            "POST",
            &format!("/complete/{path}"),
            body.as_bytes(),
        )
        .await;
        assert_eq!(status, 200, "{response}");
        assert_eq!(
            get(format!("/job/{path}")).await["state"],
            "complete",
            "{name}"
        );
    }
    let queues = server.at(0).get("/queues").await.ok();
    let mut names: Vec<&str> = queues
        .as_array()
        .unwrap()
        .iter()
        .map(|queue| queue["name"].as_str().unwrap())
        .collect();
    let mut expected: Vec<&str> = HOSTILE_NAMES.iter().copied().chain(["decoy"]).collect();
    expected.sort_unstable();
    names.sort_unstable();
    assert_eq!(names, expected);
}

#[tokio::test]
async fn workers_and_groups_can_have_any_name() {
    let server = Server::start();
    for name in HOSTILE_NAMES {
        let worker = server.by(name).at(0);
        let job = worker.add_and_pop(json!({"id": "a", "meta": 1})).await;
        assert_eq!(job["worker"], *name);
        let path = escape(name);
        let (status, body) =
            raw::request(&server, "GET", &format!("/worker/{path}?now=0"), b"").await;
        assert!(
            status == 200 && body.contains(r#""jobs":["a"]"#),
            "{name}: {body}"
        );
        let data = json!({"id": "a", "group": name, "message": name});
        worker.post("/fail", data).await.ok();
        assert_eq!(worker.get("/failed").await.ok(), json!({*name: 1}));
        let job = worker.job("a").await;
        assert_eq!(
            (&job["failure"]["group"], &job["failure"]["message"]),
            (&json!(name), &json!(name))
        );
        assert_eq!(job["failure"]["worker"], *name);
        let (status, body) =
            raw::request(&server, "GET", &format!("/failed/{path}?now=0"), b"").await;
        assert!(
            status == 200 && body.contains(r#""total":1"#),
            "{name}: {body}"
        );
        assert_eq!(
            worker
                .post("/unfail/work", json!({"group": name}))
                .await
                .ok(),
            1
        );
        worker.post("/cancel", json!("a")).await.ok();
    }
    let workers = server.at(0).get("/workers").await.ok();
    assert_eq!(workers.as_array().unwrap().len(), HOSTILE_NAMES.len());
}

#[tokio::test]
async fn tags_and_klass_can_be_any_text() {
    let server = Server::start();
    for name in HOSTILE_NAMES {
        server
            .at(0)
            .add(
                "work",
                json!({"id": "a", "meta": 1, "klass": name, "tags": [name, "x"]}),
            )
            .await;
        let job = server.at(0).job("a").await;
        assert_eq!(
            (&job["klass"], &job["tags"]),
            (&json!(name), &json!([name, "x"]))
        );
    }
}

#[tokio::test]
async fn all_percent_encodings_of_an_id_are_equivalent() {
    let server = Server::start();
    server
        .at(0)
        .add_ids("work", &["aé-_.~!$&'()*+,;=:@z"])
        .await;
    for path in [
        "/job/aé-_.~!$&'()*+,;=:@z",
        "/job/%61%c3%a9-_.~!$&'()*+,;=:@z",
        "/job/a%C3%A9%2D%5F%2E%7E!$&'()*%2B,;=:@z",
    ] {
        let (status, body) = raw::request(&server, "GET", path, b"").await;
        assert_eq!(status, 200, "{path}: {body}");
    }
}

#[tokio::test]
async fn similar_names_are_different() {
    let server = Server::start();
    // Composed and decomposed, upper and lower case, with and without a trailing space.
    let ids = ["é", "e\u{301}", "a", "A", "a ", "0", "00", "0.0"];
    server.at(0).add_ids("work", &ids).await;
    assert_eq!(server.at(0).peek_ids("work").await, ids);
}

#[tokio::test]
async fn an_unterminated_string_is_rejected_and_harms_no_other_request() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    let item = json!({"id": "a", "meta": 1, "klass": "half\u{0}way"});
    worker
        .post("/add/work", item)
        .await
        .assert_rejected_field("klass");
    worker
        .add_and_pop(json!({"id": "b", "meta": "\u{0}", "klass": "K"}))
        .await;
    let failure = json!({"id": "b", "group": "g", "message": "\u{0}"});
    worker
        .post("/fail", failure)
        .await
        .assert_rejected_field("message");
    assert_eq!(
        worker.job("b").await["meta"],
        "\u{0}",
        "a payload may hold it"
    );
    worker.complete("work", "b").await;
}
