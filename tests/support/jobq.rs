//! A client of Jobq that checks every response.

mod reply;

use std::ops::Deref;

use reqwest::{Body, Method};
use serde::Deserialize;
use serde_json::{Value, json};

use super::api_client::ApiClient;
use super::{Server, escape};
pub use reply::{At, Event, Job, Queue, Reply, What, canonical};

/// The path of a queue, by its name.
pub fn queue(name: &str) -> String {
    format!("/queue/{}", escape(name))
}

/// The path of a job.
pub fn path(queue: &str, id: i64) -> String {
    format!("{}/job/{id}", self::queue(queue))
}

/// A client of Jobq.
#[derive(Clone, Debug)]
pub struct Jobq(ApiClient<Reply>);

impl Deref for Jobq {
    type Target = ApiClient<Reply>;

    fn deref(&self) -> &ApiClient<Reply> {
        &self.0
    }
}

impl Jobq {
    pub fn new(server: &Server) -> Jobq {
        Jobq(ApiClient::new(server, "/api/v0"))
    }

    /// The same client with this token.
    pub fn with_token(self, token: &str) -> Jobq {
        Jobq(self.0.with_token(token))
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path).await
    }

    /// Posts a text without a content type.
    pub async fn post_text(&self, path: &str, body: impl Into<Body>) -> Reply {
        let request = self.request(Method::POST, path).body(body);
        self.ask(&format!("POST {path}"), request).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        let request = self.request(Method::POST, path).body(body.to_string());
        let mut asked = format!("POST {path} {body}");
        if asked.len() > 1_000 {
            asked = format!("POST {path}");
        }
        self.ask(&asked, request).await
    }
}

/// The calls of the protocol's documentation, and shortcuts.
impl Jobq {
    pub async fn queues(&self) -> Vec<Queue> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Queues {
            queues: Vec<Queue>,
        }
        self.get("/queue").await.ok::<Queues>().queues
    }

    /// Creates a queue. Its name must not exist.
    pub async fn create(&self, name: &str) -> Queue {
        let created: Queue = self.post("/queue", &json!({"name": name})).await.ok();
        assert_eq!(created.name, name);
        created
    }

    pub async fn delete_queue(&self, name: &str) {
        self.send(Method::DELETE, &queue(name)).await.done();
    }

    /// Creates a job without a state.
    pub async fn put(&self, queue: &str, payload: &Value) -> Job {
        self.put_in(queue, payload, &Value::Null).await
    }

    /// Creates a job in this state.
    pub async fn put_in(&self, queue: &str, payload: &Value, state: &Value) -> Job {
        let path = format!("{}/job", self::queue(queue));
        let body = json!({"payload": payload, "state": state});
        let job = self.post(&path, &body).await.job();
        assert_eq!(job.payload, canonical(&payload.to_string()));
        assert_eq!(job.state, canonical(&state.to_string()));
        assert_eq!(job.log(), [What::Created]);
        job
    }

    /// All jobs of the queue, by ID.
    pub async fn all(&self, queue: &str) -> Vec<Job> {
        let mut all = Vec::new();
        let mut path = format!("{}/job?limit=10000", self::queue(queue));
        loop {
            let (jobs, next) = self.get(&path).await.page();
            all.extend(jobs);
            let Some(next) = next else { break };
            path = format!("{}/job?limit=10000&after={next}", self::queue(queue));
        }
        assert!(all.windows(2).all(|pair| pair[0].id < pair[1].id));
        all
    }

    pub async fn job(&self, queue: &str, id: i64) -> Option<Job> {
        let job = self.get(&path(queue, id)).await.maybe_job()?;
        assert_eq!(job.id, id);
        Some(job)
    }

    /// The job, which must exist.
    pub async fn existing_job(&self, queue: &str, id: i64) -> Job {
        let job = self.job(queue, id).await;
        job.unwrap_or_else(|| panic!("{id} is not in {queue}"))
    }

    pub async fn delete(&self, queue: &str, id: i64) {
        self.send(Method::DELETE, &path(queue, id)).await.done();
    }

    /// Replaces the state `old` with `new`.
    pub async fn advance(&self, queue: &str, id: i64, old: &Value, new: &Value) -> Reply {
        let path = format!("{}/state", path(queue, id));
        self.post(&path, &json!({"old": old, "new": new})).await
    }

    /// Replaces the state; the JSON texts are sent as they are.
    pub async fn advance_text(&self, queue: &str, id: i64, old: &str, new: &str) -> Reply {
        let path = format!("{}/state", path(queue, id));
        let body = format!("{{\"old\":{old},\"new\":{new}}}");
        self.post_text(&path, body).await
    }

    /// Appends an event to the log.
    pub async fn event(&self, queue: &str, id: i64, event: &Value) -> Reply {
        let path = format!("{}/event", path(queue, id));
        self.post(&path, event).await
    }

    /// Runs a query, with the maximum limit.
    pub async fn send_query(&self, queue: &str, query: &Value) -> Reply {
        let path = format!("{}/query_jobs", self::queue(queue));
        self.post(&path, &json!({"query": query, "limit": 10000}))
            .await
    }

    /// The IDs of the matching jobs, least recently changed first.
    pub async fn matching(&self, queue: &str, query: &Value) -> Vec<i64> {
        let jobs = self.send_query(queue, query).await.jobs();
        jobs.into_iter().map(|job| job.id).collect()
    }

    /// Polls for a job that matches `query`, to set its state.
    pub async fn send_poll(&self, queue: &str, query: &Value, state: &Value) -> Reply {
        let path = format!("{}/poll_job", self::queue(queue));
        self.post(&path, &json!({"query": query, "state": state}))
            .await
    }

    /// Polls for a job; `None` if no job matches.
    pub async fn poll(&self, queue: &str, query: &Value, state: &Value) -> Option<Job> {
        let job = self.send_poll(queue, query, state).await.maybe_job()?;
        let state = canonical(&state.to_string());
        assert_eq!(job.state, state);
        match job.events.last().map(|event| &event.what) {
            Some(What::Advanced(_, new)) if *new == state => {}
            _ => panic!("no event of it: {job:?}"),
        }
        Some(job)
    }
}

/// The IDs of jobs.
pub fn ids(jobs: &[Job]) -> Vec<i64> {
    jobs.iter().map(|job| job.id).collect()
}

/// The text of a value, in the form that [`canonical`] returns.
pub fn plain(value: &Value) -> String {
    canonical(&value.to_string())
}
