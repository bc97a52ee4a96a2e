//! The size of responses for jobs, messages and nesting of maximum size.

use serde_json::{Value, json};

use crate::support::jobq::Jobq;
use crate::support::{Server, ids};

const MIB: usize = 1 << 20;

async fn page(server: &Server, path: &str) -> String {
    let request = server.http.get(format!("http://{}{path}", server.address));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    response.text().await.unwrap()
}

#[tokio::test]
async fn pages_truncate_long_failure_messages() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    // The last character that fits ends one byte before the limit.
    let message = format!("x{}", "é".repeat(MIB / 2));
    for number in 0..25 {
        let id = format!("j{number}");
        worker.add_and_pop(json!({"id": id, "meta": 1})).await;
        let fail = json!({"id": id, "group": "g", "message": message});
        worker.post("/fail", fail).await.ok();
    }
    let job = server.at(1).job("j0").await;
    let kept = job["failure"]["message"].as_str().unwrap();
    assert_eq!(kept.len(), 64 * 1024 - 1);
    assert!(message.starts_with(kept));
    let retried = json!({"id": "r", "group": "g", "message": message});
    worker.add_and_pop(json!({"id": "r", "meta": 1})).await;
    worker.post("/retry/work", retried).await.ok();
    let job = server.at(1).job("r").await;
    assert_eq!(
        job["failure"]["message"].as_str().unwrap().len(),
        64 * 1024 - 1
    );
    for path in [
        "/ui",
        "/ui/queues/work/failed",
        "/ui/failures",
        "/ui/failures/g",
        "/ui/jobs?q=error:x",
    ] {
        let page = page(&server, path).await;
        assert!(page.len() < MIB / 2, "{path}: {}", page.len());
        let is_shown = page.contains("xéé");
        assert!(is_shown || path.starts_with("/ui/jobs"), "{path}");
    }
}

#[tokio::test]
async fn lists_of_too_large_jobs_are_rejected_before_loading() {
    let server = Server::start();
    let client = server.by("w").at(0);
    let meta = "m".repeat(8 * MIB);
    let names: Vec<String> = (0..9).map(|number| format!("j{number}")).collect();
    for id in &names {
        client
            .add("work", json!({"id": id, "meta": meta, "tags": ["t"]}))
            .await;
        client.post("/track", json!({"id": id})).await.ok();
    }
    let listed = client.get("/jobs/waiting/work").await.ok();
    assert_eq!(listed, json!(names));
    let query: Vec<String> = names.iter().map(|id| format!("id={id}")).collect();
    for path in [
        "/jobs/waiting/work?full=true".to_owned(),
        format!("/jobs?{}", query.join("&")),
        "/tracked".to_owned(),
        "/peek/work/9".to_owned(),
    ] {
        client.get(&path).await.assert_rejected(413, "too_large");
    }
    let some = client
        .get("/jobs/waiting/work?full=true&limit=3")
        .await
        .ok();
    assert_eq!(ids(&some), ["j0", "j1", "j2"]);
    for path in [
        "/ui/queues/work/waiting",
        "/ui/tags/t",
        "/ui/tracked",
        "/ui/jobs?q=tag:t",
    ] {
        let page = page(&server, path).await;
        assert!(
            page.contains("j8") && page.len() < MIB / 2,
            "{path}: {}",
            page.len()
        );
    }
    // A claim returns as many jobs as fit into a response; the others can be claimed later.
    let first = client.pop_ids("work", 9).await;
    assert_eq!(first, ["j0", "j1", "j2", "j3"]);
    let second = client.pop_ids("work", 9).await;
    assert_eq!(second, ["j4", "j5", "j6", "j7"]);
    for id in &names[..7] {
        let fail = json!({"id": id, "group": "g", "message": "m"});
        client.post("/fail", fail).await.ok();
    }
    client.get("/failed/g").await.ok();
    assert_eq!(client.pop_ids("work", 9).await, ["j8"]);
    for id in &names[7..] {
        let fail = json!({"id": id, "group": "g", "message": "m"});
        client.post("/fail", fail).await.ok();
    }
    client
        .get("/failed/g")
        .await
        .assert_rejected(413, "too_large");
}

#[tokio::test]
async fn nested_payloads_are_formatted_in_linear_size() {
    let server = Server::start();
    let nested = format!("{}{}", "[".repeat(16_000), "]".repeat(16_000));
    let request = format!(r#"{{"now":0,"host":"w","data":{{"id":"deep","meta":{nested}}}}}"#);
    let url = format!("http://{}/add/work", server.address);
    let response = server.http.post(url).body(request).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let small = server.by("w").at(0);
    small
        .add("work", json!({"id": "small", "meta": [[1]]}))
        .await;
    let (deep, small) = (
        page(&server, "/ui/jobs/deep").await,
        page(&server, "/ui/jobs/small").await,
    );
    assert!(
        deep.contains(&"[".repeat(16_000)),
        "without whitespace between the brackets"
    );
    assert!(
        deep.len() < small.len() + 4 * nested.len(),
        "{}",
        deep.len()
    );
}

#[tokio::test]
async fn a_query_that_exceeds_its_budget_is_rejected() {
    let server = Server::with(&[]);
    let jobq = Jobq::new(&server);
    jobq.create("q").await;
    let digits = "7".repeat(1_900_000);
    let job = format!(r#"{{"payload": "{digits}", "state": null}}"#);
    jobq.post_text("/queue/q/job", job).await.job();
    let sum = format!("id IN ({}2)", "payload,".repeat(200));
    let terms = vec![["IS", sum.as_str(), "0"]; 32];
    let asked = json!({"query": terms, "state": ["TAKEN"]});
    for path in ["/queue/q/query_jobs", "/queue/q/poll_job"] {
        let all = (0..8).map(|_| jobq.post(path, &asked));
        for reply in futures::future::join_all(all).await {
            assert_eq!(reply.status, 422, "{path}");
            let said: Value = serde_json::from_str(&reply.text).unwrap();
            let said = said["error"].as_str().unwrap();
            assert!(said.contains("too much work"), "{said}");
        }
    }
    let page = page(&server, "/ui/jobq/q").await;
    assert!(page.len() < MIB / 2, "{}", page.len());
    // A query within the budget still works.
    let small = json!({"query": [["IS", "id IN (payload, 1)", "1"]]});
    let found = jobq.post("/queue/q/query_jobs", &small).await;
    assert_eq!(found.status, 200);
}
