//! A client of Relay v2 that checks every response.

use std::ops::Deref;

use chrono::{DateTime, Utc};
use reqwest::{Body, Method};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

use super::api_client::{ApiClient, reply};
use super::eventually;
use super::{Server, escape};

/// Maximum number of jobs of an enqueue in mode `unique`.
const UNIQUE_MAX: usize = 1_600;

/// A job to enqueue, with only the required fields.
pub fn new(queue: &str, id: &str) -> Value {
    json!({"queue": queue, "id": id, "timeout": 3600, "payload": null})
}

/// A job to enqueue, with these additional fields.
pub fn with(queue: &str, id: &str, fields: Value) -> Value {
    let mut job = new(queue, id);
    let Value::Object(fields) = fields else {
        panic!("no fields: {fields}")
    };
    job.as_object_mut().expect("a job").extend(fields);
    job
}

/// A job as the API returns it. Payload and state are kept byte for byte.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    pub queue: String,
    pub id: String,
    pub timeout: i64,
    pub max_retries: Option<i64>,
    pub retries_remaining: Option<i64>,
    #[serde(deserialize_with = "text")]
    pub payload: String,
    #[serde(default, deserialize_with = "maybe_text")]
    pub state: Option<String>,
    pub run_id: Option<Uuid>,
    pub run_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub created_at: DateTime<Utc>,
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Box::<RawValue>::deserialize(deserializer)?.get().to_owned())
}

fn maybe_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<Box<RawValue>>::deserialize(deserializer)?;
    Ok(text.map(|text| text.get().to_owned()))
}

impl Job {
    /// The ID of its run.
    #[track_caller]
    pub fn run(&self) -> Uuid {
        self.run_id.unwrap_or_else(|| panic!("no run: {self:?}"))
    }

    /// The path of its run.
    #[track_caller]
    pub fn run_path(&self) -> String {
        run_path(&self.queue, &self.id, &self.run().to_string())
    }

    fn check(&self, asked: &str) {
        let counted = match (self.max_retries, self.retries_remaining) {
            (None, None) => true,
            (Some(max), Some(left)) => (0..=max).contains(&left),
            _ => false,
        };
        assert!(counted, "{asked}: {self:?}");
        assert!(self.created_at <= self.updated_at, "{asked}: {self:?}");
    }
}

/// The path of a job.
pub fn path(queue: &str, id: &str) -> String {
    format!("/queues/{}/jobs/{}", escape(queue), escape(id))
}

/// The path of a run.
pub fn run_path(queue: &str, id: &str, run: &str) -> String {
    format!("{}/run-id/{run}", path(queue, id))
}

reply!();

impl Reply {
    /// Checks what all responses have in common.
    fn checked(self) -> Reply {
        assert_eq!(self.header("x-request-id").len(), 32, "{self:?}");
        assert_ne!(self.status, 500, "{self:?}");
        if self.status >= 400 && !self.text.is_empty() {
            let kind = self.header("content-type");
            assert!(kind.starts_with("text/plain"), "{self:?}");
        }
        self
    }

    /// Checks that the response has this status and no body.
    #[track_caller]
    pub fn only(&self, status: u16) {
        assert_eq!((self.status, self.text.as_str()), (status, ""), "{self:?}");
    }

    /// Checks that the request was rejected, with an error that contains these words.
    #[track_caller]
    pub fn assert_rejected(&self, status: u16, words: &[&str]) {
        assert_eq!(self.status, status, "{self:?}");
        assert!(!self.text.trim().is_empty(), "{self:?}");
        for word in words {
            assert!(self.text.contains(word), "{word:?} is not in {self:?}");
        }
    }

    #[track_caller]
    fn read<T: for<'a> Deserialize<'a>>(&self) -> T {
        assert_eq!(self.header("content-type"), "application/json", "{self:?}");
        let read = serde_json::from_str(&self.text);
        read.unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The claimed jobs, all of which must be running.
    #[track_caller]
    pub fn jobs(&self) -> Vec<Job> {
        if self.status == 204 {
            self.only(204);
            return Vec::new();
        }
        assert_eq!(self.status, 200, "{self:?}");
        let jobs: Vec<Job> = self.read();
        assert!(!jobs.is_empty(), "{self:?}");
        for job in &jobs {
            job.check(&self.asked);
            assert!(job.run_id.is_some(), "{self:?}");
        }
        jobs
    }

    /// The job; `None` if it was not found.
    #[track_caller]
    pub fn job(&self) -> Option<Job> {
        if self.status == 404 {
            return None;
        }
        assert_eq!(self.status, 200, "{self:?}");
        let job: Job = self.read();
        job.check(&self.asked);
        Some(job)
    }
}

/// A client of Relay.
#[derive(Clone, Debug)]
pub struct Relay(ApiClient<Reply>);

impl Deref for Relay {
    type Target = ApiClient<Reply>;

    fn deref(&self) -> &ApiClient<Reply> {
        &self.0
    }
}

impl Relay {
    pub fn new(server: &Server) -> Relay {
        Relay(ApiClient::new(server, "/v2"))
    }

    /// The same client with this token.
    pub fn with_token(self, token: &str) -> Relay {
        Relay(self.0.with_token(token))
    }

    /// Sends a request with JSON.
    pub async fn send_json(&self, method: Method, path: &str, body: impl Into<Body>) -> Reply {
        let asked = format!("{method} {path}");
        let request = self.request(method, path).body(body);
        let request = request.header("content-type", "application/json");
        self.ask(&asked, request).await
    }

    // ---- calls of the protocol's documentation ----

    /// Enqueues jobs with this mode; an empty mode is omitted.
    pub async fn enqueue(&self, mode: &str, jobs: &Value) -> Reply {
        self.enqueue_text(mode, jobs.to_string()).await
    }

    /// Enqueues jobs given as text.
    pub async fn enqueue_text(&self, mode: &str, jobs: impl Into<Body>) -> Reply {
        let path = format!("/queues/jobs{}", query(mode));
        self.send_json(Method::POST, &path, jobs).await
    }

    /// Enqueues jobs whose keys are not in use, in as few requests as possible.
    pub async fn put(&self, jobs: &Value) {
        for part in jobs.as_array().unwrap().chunks(UNIQUE_MAX) {
            self.enqueue("unique", &part.into()).await.only(202);
        }
    }

    /// Enqueues jobs with only the required fields.
    pub async fn put_ids(&self, queue: &str, ids: &[&str]) {
        self.put(&ids.iter().map(|id| new(queue, id)).collect())
            .await;
    }

    /// Enqueues a job with these additional fields.
    pub async fn put_with(&self, queue: &str, id: &str, fields: Value) {
        self.put(&json!([with(queue, id, fields)])).await;
    }

    /// Claims up to `count` jobs.
    pub async fn next(&self, queue: &str, count: usize) -> Vec<Job> {
        let path = format!("/queues/{}/jobs?num_jobs={count}", escape(queue));
        let jobs = self.send(Method::GET, &path).await.jobs();
        assert!(jobs.len() <= count, "{} of {count} jobs", jobs.len());
        assert!(jobs.iter().all(|job| job.queue == queue), "{jobs:?}");
        jobs
    }

    /// Claims up to `count` jobs, and returns their IDs.
    pub async fn next_ids(&self, queue: &str, count: usize) -> Vec<String> {
        let jobs = self.next(queue, count).await;
        jobs.into_iter().map(|job| job.id).collect()
    }

    /// Claims a job, which must exist.
    pub async fn take(&self, queue: &str) -> Job {
        let job = self.next(queue, 1).await.pop();
        job.unwrap_or_else(|| panic!("no job in {queue}"))
    }

    pub async fn job(&self, queue: &str, id: &str) -> Option<Job> {
        let job = self.send(Method::GET, &path(queue, id)).await.job()?;
        assert_eq!((&*job.queue, &*job.id), (queue, id));
        Some(job)
    }

    /// The job, which must exist.
    pub async fn existing_job(&self, queue: &str, id: &str) -> Job {
        let job = self.job(queue, id).await;
        job.unwrap_or_else(|| panic!("{id} is not in {queue}"))
    }

    pub async fn exists(&self, queue: &str, id: &str) -> bool {
        let reply = self.send(Method::HEAD, &path(queue, id)).await;
        assert!([200, 404].contains(&reply.status), "{reply:?}");
        reply.status == 200
    }

    pub async fn delete(&self, queue: &str, id: &str) {
        self.send(Method::DELETE, &path(queue, id)).await.only(200);
    }

    /// Sends a heartbeat for the job's run, without a body.
    pub async fn heartbeat(&self, job: &Job) -> Reply {
        self.send(Method::PATCH, &job.run_path()).await
    }

    /// Sends a heartbeat with a state.
    pub async fn heartbeat_with(&self, job: &Job, state: impl Into<Body>) -> Reply {
        let path = job.run_path();
        self.send_json(Method::PATCH, &path, state).await
    }

    pub async fn requeue(&self, job: &Job, mode: &str, jobs: &Value) -> Reply {
        let path = format!("{}{}", job.run_path(), query(mode));
        self.send_json(Method::PUT, &path, jobs.to_string()).await
    }

    pub async fn complete(&self, job: &Job) {
        let reply = self.send(Method::DELETE, &job.run_path()).await;
        reply.only(200);
    }

    // ---- shortcuts ----

    /// Waits until the run of the job has timed out, and returns the job.
    pub async fn wait_until_timed_out(&self, queue: &str, id: &str) -> Job {
        let idle = async || self.existing_job(queue, id).await.run_id.is_none();
        eventually(&format!("the run of {id} over"), idle).await;
        self.existing_job(queue, id).await
    }

    /// Waits until the job no longer exists.
    pub async fn wait_until_gone(&self, queue: &str, id: &str) {
        let gone = async || !self.exists(queue, id).await;
        eventually(&format!("{id} gone from {queue}"), gone).await;
    }
}

fn query(mode: &str) -> String {
    if mode.is_empty() {
        String::new()
    } else {
        format!("?mode={mode}")
    }
}
