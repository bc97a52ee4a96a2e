//! A client of the lmstfy protocol, as plain as the protocol is, that holds every answer to what all
//! answers must be.

mod reply;

use std::time::Duration;

use reqwest::{Body, Method, RequestBuilder};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::raw::Connection;
use super::{Server, escape};
pub use reply::{Job, Reply};

/// A guard against an answer that never comes; no test waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a condition is looked at again.
const AGAIN: Duration = Duration::from_millis(20);

/// Someone who works in one namespace.
///
/// Wherever a method takes `at`, that is the name of a queue, with the query after it: `work?ttl=5`.
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

    /// The same, with this token in the header.
    pub fn with_token(self, token: &str) -> Lmstfy {
        let token = Some(token.to_owned());
        Lmstfy { token, ..self }
    }

    /// A request to the path below the namespace, to be completed by the test.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("http://{}/api/{}{path}", self.address, self.namespace);
        let request = self.http.request(method, url);
        match &self.token {
            Some(token) => request.header("x-token", token),
            None => request,
        }
    }

    /// Sends a request to the path below the namespace.
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

    // ---- the calls of the document ----

    /// Publishes a job, and returns its id.
    pub async fn publish(&self, at: &str, body: impl Into<Body>) -> String {
        self.put(&below(at, ""), body).await.published()
    }

    /// Publishes the elements of a JSON array, and returns their ids.
    pub async fn bulk(&self, at: &str, body: impl Into<Body>) -> Vec<String> {
        let whole = self.put(&below(at, "/bulk"), body).await.json(201);
        assert_eq!(whole["msg"], "published", "{whole}");
        let ids = whole["job_ids"].as_array().expect("an array of ids").iter();
        ids.map(|id| id.as_str().expect("an id").to_owned())
            .collect()
    }

    /// Replaces a job by a new one, and returns the new one's id.
    pub async fn republish(&self, at: &str, id: &str, body: impl Into<Body>) -> String {
        let path = below(at, &format!("/job/{}", escape_id(id)));
        self.put(&path, body).await.published()
    }

    /// Takes a job of the queue, or of several with commas between them.
    pub async fn consume(&self, at: &str) -> Option<Job> {
        self.get(&below(at, "")).await.consumed(&self.namespace)
    }

    /// Takes a job that must be there, or come.
    pub async fn take(&self, at: &str) -> Job {
        let job = self.consume(at).await;
        job.unwrap_or_else(|| panic!("no job at {at}"))
    }

    /// Takes several jobs; the query says how many.
    pub async fn consume_many(&self, at: &str) -> Vec<Job> {
        let reply = self.get(&below(at, "")).await;
        reply.consumed_many(&self.namespace)
    }

    pub async fn ack(&self, queue: &str, id: &str) {
        let path = below(queue, &format!("/job/{}", escape_id(id)));
        self.delete(&path).await.nothing();
    }

    /// The job that is next in the queue.
    pub async fn peek(&self, queue: &str) -> Option<Job> {
        let reply = self.get(&below(queue, "/peek")).await;
        reply.peeked(&self.namespace)
    }

    /// The job of this id.
    pub async fn job(&self, queue: &str, id: &str) -> Option<Job> {
        let path = below(queue, &format!("/job/{}", escape_id(id)));
        self.get(&path).await.peeked(&self.namespace)
    }

    /// The job of this id, which must be there.
    pub async fn stays(&self, queue: &str, id: &str) -> Job {
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

    /// How many are dead, and which has been for longest (empty if none is).
    pub async fn dead(&self, queue: &str) -> (u64, String) {
        let reply = self.get(&below(queue, "/deadletter")).await;
        let dead = self.of_queue(&reply, queue);
        let (size, head) = (
            dead["deadletter_size"].as_u64(),
            dead["deadletter_head"].as_str(),
        );
        (size.expect("a number"), head.expect("an id").to_owned())
    }

    /// How many are dead, asked another way.
    pub async fn dead_size(&self, queue: &str) -> u64 {
        let size = self.get(&below(queue, "/deadletter/size")).await;
        self.of_queue(&size, queue)["size"]
            .as_u64()
            .expect("a number")
    }

    /// Brings dead jobs back, and returns how many.
    pub async fn respawn(&self, at: &str) -> u64 {
        let whole = self.put(&below(at, "/deadletter"), "").await.json(200);
        assert_eq!(whole["msg"], "respawned", "{whole}");
        whole["count"].as_u64().expect("a number")
    }

    /// Deletes dead jobs.
    pub async fn bury(&self, at: &str) {
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

    // ---- what many tests do on their way ----

    /// Publishes a job and lets it die. Deaths follow each other, so that it is known who died first.
    pub async fn publish_dead(&self, queue: &str, body: &'static str) -> String {
        let before = self.dead_size(queue).await;
        let id = self.publish(queue, body).await;
        let job = self.take(&format!("{queue}?ttr=0")).await;
        assert_eq!(job.id, id, "the queue was empty");
        self.dies(queue, before + 1).await;
        id
    }

    /// Until so many are dead.
    pub async fn dies(&self, queue: &str, count: u64) {
        let dead = async || self.dead_size(queue).await == count;
        eventually(&format!("{count} dead in {queue}"), dead).await;
        assert_eq!(
            self.dead(queue).await.0,
            count,
            "two looks at {queue} differ"
        );
    }

    /// Until so many are ready.
    pub async fn grows(&self, queue: &str, size: u64) {
        let ready = async || self.size(queue).await == size;
        eventually(&format!("{size} ready in {queue}"), ready).await;
    }

    /// Until so many milliseconds have passed since the job was published.
    pub async fn ages(&self, queue: &str, id: &str, elapsed_ms: i64) {
        let old = async || self.stays(queue, id).await.elapsed_ms >= elapsed_ms;
        eventually(&format!("{id} {elapsed_ms} ms old"), old).await;
    }

    /// Publishes two jobs and takes them, so that the second one's time is over a moment before the first
    /// one's; both are likely to be found at one look. `tries` is of both.
    pub async fn publish_slow_and_quick(&self, queue: &str, tries: u16) -> (String, String) {
        self.publish_two(queue, tries, 2, 800).await
    }

    /// The same with more time between their ends.
    pub async fn publish_slow_and_quick_apart(&self, queue: &str, tries: u16) -> (String, String) {
        self.publish_two(queue, tries, 3, 0).await
    }

    /// The first one is taken for `slow_s` seconds. When it is `age_ms` old the second one is taken for one second.
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
            self.ages(queue, &slow, age_ms).await;
            assert_eq!(self.take(&format!("{queue}?ttr=1")).await.id, quick);
            if began.elapsed() < Duration::from_secs(slow_s - 1) {
                return (slow, quick);
            }
            // That took too long to know whose time is over first.
            self.ack(queue, &slow).await;
            self.ack(queue, &quick).await;
        }
    }

    /// Until the job is not there any more.
    pub async fn vanishes(&self, queue: &str, id: &str) {
        let gone = async || self.job(queue, id).await.is_none();
        eventually(&format!("{id} gone from {queue}"), gone).await;
    }

    /// Takes all that is ready, and returns the ids in order.
    pub async fn drain(&self, queue: &str) -> Vec<String> {
        let mut ids = Vec::new();
        while let Some(job) = self.consume(queue).await {
            ids.push(job.id);
        }
        ids
    }

    /// Begins to wait for a job, on a connection of its own.
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

    /// Until whoever has begun to wait does so: connections are accepted in the order in which they come,
    /// and these come after.
    pub async fn settled(&self, server: &Server) {
        for _ in 0..10 {
            let path = format!("/api/{}/settled/size", self.namespace);
            let mut connection = Connection::to(server).await;
            let head = format!(
                "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{}\r\n",
                self.header()
            );
            connection.write(head).await;
            let answer = timeout(PATIENCE, connection.read_to_end()).await;
            Reply::parse(path, &answer.expect("an answer")).json(200);
        }
    }
}

/// A consumer who waits. Dropped, it hangs up.
#[derive(Debug)]
pub struct Poll {
    connection: Connection,
    namespace: String,
    asked: String,
}

impl Poll {
    pub async fn reply(mut self) -> Reply {
        let answer = timeout(PATIENCE, self.connection.read_to_end()).await;
        let answer = answer.unwrap_or_else(|_| panic!("{} hangs", self.asked));
        Reply::parse(self.asked, &answer)
    }

    /// The job for which it waits, or none if the time is over.
    pub async fn job(self) -> Option<Job> {
        let namespace = self.namespace.clone();
        self.reply().await.consumed(&namespace)
    }

    /// The job for which it waits.
    pub async fn take(self) -> Job {
        let asked = self.asked.clone();
        let job = self.job().await;
        job.unwrap_or_else(|| panic!("no job for {asked}"))
    }
}

/// The path of something of the queue of `at`, with the query of `at`.
fn below(at: &str, what: &str) -> String {
    match at.split_once('?') {
        Some((queue, query)) => format!("/{queue}{what}?{query}"),
        None => format!("/{at}{what}"),
    }
}

/// An id in a path. The server's own need no escaping, and others' are the test's.
fn escape_id(id: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if id.chars().all(plain) {
        id.to_owned()
    } else {
        escape(id)
    }
}

/// Waits until something is so. What never comes ends the test.
pub async fn eventually(what: &str, condition: impl AsyncFn() -> bool) {
    let began = Instant::now();
    while !condition().await {
        assert!(began.elapsed() < PATIENCE, "not in time: {what}");
        tokio::time::sleep(AGAIN).await;
    }
}

/// A request with a body that is written to its end before the answer is read, as simple clients do.
pub async fn stubborn(server: &Server, method: &str, path: &str, body: &[u8]) -> Reply {
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
    let answer = timeout(PATIENCE, exchange()).await;
    Reply::parse(asked.clone(), &answer.expect("an answer"))
}
