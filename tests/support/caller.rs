//! A client of the qless API with a worker name and a time.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Response, Server, escape, eventually};

/// Calls the server as the worker `host` and at the time `now`, if they are set.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    server: &'a Server,
    host: Option<&'a str>,
    now: Option<f64>,
}

impl<'a> Caller<'a> {
    pub fn new(server: &'a Server) -> Caller<'a> {
        Caller {
            server,
            host: None,
            now: None,
        }
    }

    pub fn by(self, host: &'a str) -> Caller<'a> {
        let host = Some(host);
        Caller { host, ..self }
    }

    pub fn at(self, now: impl Into<f64>) -> Caller<'a> {
        let now = Some(now.into());
        Caller { now, ..self }
    }

    /// A GET request. Worker and time go into the query.
    pub async fn get(self, path: &str) -> Response {
        self.send_bare(Method::GET, path).await
    }

    /// A DELETE request. Worker and time go into the query.
    pub async fn delete(self, path: &str) -> Response {
        self.send_bare(Method::DELETE, path).await
    }

    async fn send_bare(self, method: Method, path: &str) -> Response {
        let mut path = path.to_owned();
        let host = self.host.map(|host| format!("host={}", escape(host)));
        let now = self.now.map(|now| format!("now={now}"));
        for part in [host, now].into_iter().flatten() {
            path.push(if path.contains('?') { '&' } else { '?' });
            path.push_str(&part);
        }
        self.server.send(method, &path, None).await
    }

    /// A request with `data` in its body.
    pub async fn post(self, path: &str, data: Value) -> Response {
        self.post_whole(path, json!({ "data": data })).await
    }

    /// A request with this body, to which worker and time are added.
    pub async fn post_whole(self, path: &str, mut body: Value) -> Response {
        if let Some(host) = self.host {
            body["host"] = host.into();
        }
        if let Some(now) = self.now {
            body["now"] = now.into();
        }
        self.server
            .send(Method::POST, path, Some(body.to_string()))
            .await
    }

    /// Sets an option.
    pub async fn set(self, option: &str, value: Value) -> Response {
        let body = json!({ "data": value }).to_string();
        let path = format!("/config/{}", escape(option));
        self.server.send(Method::PUT, &path, Some(body)).await
    }

    // ---- shortcuts ----

    /// Adds a job to the queue, and returns its ID.
    pub async fn add(self, queue: &str, item: Value) -> String {
        let id = self
            .post(&format!("/add/{}", escape(queue)), item)
            .await
            .ok();
        id.as_str().expect("an id").to_owned()
    }

    /// Adds jobs with these IDs and `meta` null.
    pub async fn add_ids(self, queue: &str, ids: &[&str]) {
        let items: Vec<Value> = ids
            .iter()
            .map(|id| json!({"id": id, "meta": null}))
            .collect();
        let added = self
            .post(&format!("/add/{}", escape(queue)), items.into())
            .await;
        assert_eq!(added.ok(), json!(ids));
    }

    /// Claims one job of the queue; `null` if it is empty.
    pub async fn pop(self, queue: &str) -> Value {
        self.get(&format!("/get/{}", escape(queue))).await.ok()
    }

    /// Claims up to `count` jobs, and returns their IDs.
    pub async fn pop_ids(self, queue: &str, count: usize) -> Vec<String> {
        ids(&self
            .get(&format!("/get/{}/{count}", escape(queue)))
            .await
            .ok())
    }

    /// The IDs of up to 100 jobs that `/peek` returns.
    pub async fn peek_ids(self, queue: &str) -> Vec<String> {
        ids(&self.get(&format!("/peek/{}/100", escape(queue))).await.ok())
    }

    pub async fn job(self, id: &str) -> Value {
        self.get(&format!("/job/{}", escape(id))).await.ok()
    }

    /// The state of a job.
    pub async fn state(self, id: &str) -> String {
        let job = self.job(id).await;
        job["state"].as_str().expect("a state").to_owned()
    }

    /// Adds the job to the queue `work` and claims it.
    pub async fn add_and_pop(self, item: Value) -> Value {
        let id = self.add("work", item).await;
        let job = self.pop("work").await;
        assert_eq!(job["id"], *id);
        job
    }

    /// Fails a job that this worker has claimed.
    pub async fn fail(self, id: &str, group: &str) {
        let failed = json!({"id": id, "group": group, "message": format!("{id} went wrong")});
        assert_eq!(self.post("/fail", failed).await.ok(), *id);
    }

    /// Waits until this worker has asked for a job. A worker is listed from its first request for a job, even if it got
    /// none.
    pub async fn wait_until_seen(self, worker: &str) {
        eventually(&format!("{worker} asks for a job"), async || {
            let workers = self.get("/workers").await.ok();
            let mut names = workers.as_array().unwrap().iter().map(|seen| &seen["name"]);
            names.any(|name| name == worker)
        })
        .await;
    }

    /// Completes a job that this worker has claimed.
    pub async fn complete(self, queue: &str, id: &str) {
        let done = json!({"id": id, "meta": null});
        let path = format!("/complete/{}", escape(queue));
        assert_eq!(self.post(&path, done).await.ok(), *id);
    }
}

/// All states. [`one_in_each_state`] creates a job in each.
pub const STATES: [&str; 7] = [
    "stalled",
    "running",
    "failed",
    "complete",
    "waiting",
    "scheduled",
    "depends",
];

/// Creates one job in each state in the queue `work`. The state is the job's ID. The states are valid at times from 60
/// to 109 s. The worker of jobs that have or had one is `w`; `depends` depends on `waiting`.
pub async fn one_in_each_state(server: &Server) {
    let worker = server.by("w").at(50);
    worker.at(0).add_ids("work", &STATES[..1]).await;
    worker.at(0).pop("work").await;
    worker.add_ids("work", &STATES[1..5]).await;
    worker.pop_ids("work", 3).await;
    worker.fail("failed", "g").await;
    worker.complete("work", "complete").await;
    let scheduled = json!({"id": "scheduled", "meta": null, "delay": 1000});
    worker.add("work", scheduled).await;
    let depends = json!({"id": "depends", "meta": null, "depends": ["waiting"]});
    worker.add("work", depends).await;
    for state in STATES {
        assert_eq!(worker.at(100).state(state).await, state);
    }
}

/// The IDs of jobs.
#[track_caller]
pub fn ids(jobs: &Value) -> Vec<String> {
    let jobs = jobs.as_array().expect("an array of jobs");
    let id = |job: &Value| job["id"].as_str().expect("an id").to_owned();
    jobs.iter().map(id).collect()
}
