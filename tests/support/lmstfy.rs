//! A client of lmstfy that checks every response.

mod reply;

use std::time::Duration;

use reqwest::{Body, Method, RequestBuilder};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::raw::Connection;
use super::{Server, escape, eventually};
pub use reply::{Job, Reply};

/// A guard against a missing response; no test waits this long.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A client for one namespace.
///
/// A parameter `at` is the name of a queue, optionally with a query: `work?ttl=5`.
#[derive(Clone, Debug)]
pub struct Lmstfy {
    http: reqwest::Client,
    /// `host:port`.
    address: String,
    namespace: String,
    token: Option<String>,
}

impl Lmstfy {
    pub fn new(server: &Server, namespace: &str) -> Lmstfy {
        Lmstfy {
            http: server.http.clone(),
            address: server.address.clone(),
            namespace: namespace.to_owned(),
            token: None,
        }
    }

    /// The same client with this token in the header.
    pub fn with_token(self, token: &str) -> Lmstfy {
        let token = Some(token.to_owned());
        Lmstfy { token, ..self }
    }

    /// A request to a path below the namespace. The caller completes and sends it.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("http://{}/api/{}{path}", self.address, self.namespace);
        let request = self.http.request(method, url);
        match &self.token {
            Some(token) => request.header("x-token", token),
            None => request,
        }
    }

    /// Sends a request to a path below the namespace.
    pub async fn send(&self, method: Method, path: &str, body: impl Into<Body>) -> Reply {
        let asked = format!("{method} {path}");
        Reply::of(asked, self.request(method, path).body(body)).await
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, "").await
    }

    pub async fn put(&self, path: &str, body: impl Into<Body>) -> Reply {
        self.send(Method::PUT, path, body).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.send(Method::DELETE, path, "").await
    }

    // ---- calls of the protocol's documentation ----

    /// Publishes a job, and returns its ID.
    pub async fn publish(&self, at: &str, body: impl Into<Body>) -> String {
        self.put(&below(at, ""), body).await.published()
    }

    /// Publishes the elements of a JSON array, and returns their IDs.
    pub async fn bulk(&self, at: &str, body: impl Into<Body>) -> Vec<String> {
        let whole = self.put(&below(at, "/bulk"), body).await.json(201);
        assert_eq!(whole["msg"], "published", "{whole}");
        let ids = whole["job_ids"].as_array().expect("an array of ids").iter();
        ids.map(|id| id.as_str().expect("an id").to_owned())
            .collect()
    }

    /// Replaces a job with a new one, and returns the ID of the new one.
    pub async fn republish(&self, at: &str, id: &str, body: impl Into<Body>) -> String {
        let path = below(at, &format!("/job/{}", escape_id(id)));
        self.put(&path, body).await.published()
    }

    /// Consumes a job of a queue, or of several queues separated by commas.
    pub async fn consume(&self, at: &str) -> Option<Job> {
        self.get(&below(at, "")).await.consumed(&self.namespace)
    }

    /// Consumes a job. Fails if there is none within the timeout of the query.
    pub async fn take(&self, at: &str) -> Job {
        let job = self.consume(at).await;
        job.unwrap_or_else(|| panic!("no job at {at}"))
    }

    /// Consumes several jobs; the query contains the number.
    pub async fn consume_many(&self, at: &str) -> Vec<Job> {
        let reply = self.get(&below(at, "")).await;
        reply.consumed_many(&self.namespace)
    }

    pub async fn ack(&self, queue: &str, id: &str) {
        let path = below(queue, &format!("/job/{}", escape_id(id)));
        self.delete(&path).await.nothing();
    }

    /// The next job of the queue, without consuming it.
    pub async fn peek(&self, queue: &str) -> Option<Job> {
        let reply = self.get(&below(queue, "/peek")).await;
        reply.peeked(&self.namespace)
    }

    /// The job with this ID.
    pub async fn job(&self, queue: &str, id: &str) -> Option<Job> {
        let path = below(queue, &format!("/job/{}", escape_id(id)));
        self.get(&path).await.peeked(&self.namespace)
    }

    /// The job with this ID, which must exist.
    pub async fn existing_job(&self, queue: &str, id: &str) -> Job {
        let job = self.job(queue, id).await;
        job.unwrap_or_else(|| panic!("{id} is not in {queue}"))
    }

    pub async fn size(&self, queue: &str) -> u64 {
        let size = self.get(&below(queue, "/size")).await;
        self.of_queue(&size, queue)["size"]
            .as_u64()
            .expect("a number")
    }

    pub async fn destroy(&self, queue: &str) {
        self.delete(&below(queue, "")).await.nothing();
    }

    /// The number of dead jobs, and the ID of the oldest one; empty if there is none.
    pub async fn dead(&self, queue: &str) -> (u64, String) {
        let reply = self.get(&below(queue, "/deadletter")).await;
        let dead = self.of_queue(&reply, queue);
        let (size, head) = (
            dead["deadletter_size"].as_u64(),
            dead["deadletter_head"].as_str(),
        );
        (size.expect("a number"), head.expect("an id").to_owned())
    }

    /// The number of dead jobs, from another endpoint.
    pub async fn dead_size(&self, queue: &str) -> u64 {
        let size = self.get(&below(queue, "/deadletter/size")).await;
        self.of_queue(&size, queue)["size"]
            .as_u64()
            .expect("a number")
    }

    /// Respawns dead jobs, and returns their number.
    pub async fn respawn(&self, at: &str) -> u64 {
        let whole = self.put(&below(at, "/deadletter"), "").await.json(200);
        assert_eq!(whole["msg"], "respawned", "{whole}");
        whole["count"].as_u64().expect("a number")
    }

    /// Deletes dead jobs.
    pub async fn delete_dead(&self, at: &str) {
        self.delete(&below(at, "/deadletter")).await.nothing();
    }

    fn of_queue(&self, reply: &Reply, queue: &str) -> Value {
        let whole = reply.json(200);
        assert_eq!(
            (&whole["namespace"], &whole["queue"]),
            (&self.namespace.as_str().into(), &queue.into()),
            "{whole}"
        );
        whole
    }

    // ---- shortcuts ----

    /// Publishes a job and waits until it is dead, so that the order of several dead jobs is known.
    pub async fn publish_dead(&self, queue: &str, body: &'static str) -> String {
        let before = self.dead_size(queue).await;
        let id = self.publish(queue, body).await;
        let job = self.take(&format!("{queue}?ttr=0")).await;
        assert_eq!(job.id, id, "the queue was empty");
        self.wait_until_dead(queue, before + 1).await;
        id
    }

    /// Waits until the queue has `count` dead jobs.
    pub async fn wait_until_dead(&self, queue: &str, count: u64) {
        let dead = async || self.dead_size(queue).await == count;
        eventually(&format!("{count} dead in {queue}"), dead).await;
        assert_eq!(
            self.dead(queue).await.0,
            count,
            "two reads of {queue} differ"
        );
    }

    /// Waits until the queue has `size` ready jobs.
    pub async fn wait_until_ready(&self, queue: &str, size: u64) {
        let ready = async || self.size(queue).await == size;
        eventually(&format!("{size} ready in {queue}"), ready).await;
    }

    /// Waits until `elapsed_ms` have passed since the job was published.
    pub async fn wait_until_age(&self, queue: &str, id: &str, elapsed_ms: i64) {
        let old = async || self.existing_job(queue, id).await.elapsed_ms >= elapsed_ms;
        eventually(&format!("{id} {elapsed_ms} ms old"), old).await;
    }

    /// Publishes and consumes two jobs with `tries` tries. The second job times out shortly before the first one, so
    /// that one run of maintenance probably finds both.
    pub async fn publish_slow_and_quick(&self, queue: &str, tries: u16) -> (String, String) {
        self.publish_two(queue, tries, 2, 800).await
    }

    /// Like [`Lmstfy::publish_slow_and_quick`], with about 2 s between the timeouts.
    pub async fn publish_slow_and_quick_apart(&self, queue: &str, tries: u16) -> (String, String) {
        self.publish_two(queue, tries, 3, 0).await
    }

    /// Consumes the first job with a TTR of `slow_s`, and when it is `age_ms` old, the second one with a TTR of 1 s.
    async fn publish_two(
        &self,
        queue: &str,
        tries: u16,
        slow_s: u64,
        age_ms: i64,
    ) -> (String, String) {
        loop {
            let at = format!("{queue}?tries={tries}");
            let slow = self.publish(&at, "slow").await;
            let quick = self.publish(&at, "quick").await;
            let began = Instant::now();
            assert_eq!(self.take(&format!("{queue}?ttr={slow_s}")).await.id, slow);
            self.wait_until_age(queue, &slow, age_ms).await;
            assert_eq!(self.take(&format!("{queue}?ttr=1")).await.id, quick);
            if began.elapsed() < Duration::from_secs(slow_s - 1) {
                return (slow, quick);
            }
            // This took so long that the order of the timeouts is unknown.
            self.ack(queue, &slow).await;
            self.ack(queue, &quick).await;
        }
    }

    /// Waits until the job no longer exists.
    pub async fn wait_until_gone(&self, queue: &str, id: &str) {
        let gone = async || self.job(queue, id).await.is_none();
        eventually(&format!("{id} gone from {queue}"), gone).await;
    }

    /// Consumes all ready jobs, and returns their IDs in order.
    pub async fn drain(&self, queue: &str) -> Vec<String> {
        let mut ids = Vec::new();
        while let Some(job) = self.consume(queue).await {
            ids.push(job.id);
        }
        ids
    }

    /// Starts a blocking consume on a connection of its own.
    pub async fn poll(&self, server: &Server, at: &str) -> Poll {
        let path = format!("/api/{}{}", self.namespace, below(at, ""));
        let mut connection = Connection::to(server).await;
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{}\r\n",
            self.header()
        );
        connection.write(request).await;
        Poll {
            connection,
            namespace: self.namespace.clone(),
            asked: path,
        }
    }

    fn header(&self) -> String {
        let token = self.token.as_ref();
        token.map_or_else(String::new, |token| format!("x-token: {token}\r\n"))
    }
}

/// A blocking consume. Dropping it closes the connection.
#[derive(Debug)]
pub struct Poll {
    connection: Connection,
    namespace: String,
    asked: String,
}

impl Poll {
    pub async fn reply(mut self) -> Reply {
        let response = timeout(WAIT_MAX, self.connection.read_to_end()).await;
        let response = response.unwrap_or_else(|_| panic!("{} hangs", self.asked));
        Reply::parse(self.asked, &response)
    }

    /// The consumed job; `None` after the timeout.
    pub async fn job(self) -> Option<Job> {
        let namespace = self.namespace.clone();
        self.reply().await.consumed(&namespace)
    }

    /// The consumed job, which must exist.
    pub async fn take(self) -> Job {
        let asked = self.asked.clone();
        let job = self.job().await;
        job.unwrap_or_else(|| panic!("no job for {asked}"))
    }
}

/// The path of `what` in the queue of `at`, with the query of `at`.
fn below(at: &str, what: &str) -> String {
    match at.split_once('?') {
        Some((queue, query)) => format!("/{queue}{what}?{query}"),
        None => format!("/{at}{what}"),
    }
}

/// Escapes an ID in a path. The server's own IDs need no escaping, but tests send others.
fn escape_id(id: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if id.chars().all(plain) {
        id.to_owned()
    } else {
        escape(id)
    }
}

/// Sends a request whose whole body is written before the response is read, as simple clients do.
pub async fn send_whole_body(server: &Server, method: &str, path: &str, body: &[u8]) -> Reply {
    let mut connection = Connection::to(server).await;
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    let asked = format!("{method} {path}, {length} bytes");
    let mut exchange = async || {
        for part in [head.as_bytes(), body] {
            let written = connection.try_write(part).await;
            assert!(
                written.is_ok(),
                "{asked}: the server does not read all: {written:?}"
            );
        }
        connection.read_to_end().await
    };
    let response = timeout(WAIT_MAX, exchange()).await;
    Reply::parse(asked.clone(), &response.expect("an answer"))
}
