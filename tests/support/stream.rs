//! A client of `/events`, a stream of server-sent events.

use std::time::Duration;

use serde_json::Value;

use super::Server;

/// A guard against a stream without events; no test waits this long.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// An open stream of `/events`.
pub struct Stream {
    pub response: reqwest::Response,
    /// Bytes that have been received but not read.
    text: Vec<u8>,
}

impl Stream {
    pub async fn open(server: &Server, query: &str, last_event_id: Option<i64>) -> Stream {
        let mut request = server
            .http
            .get(format!("http://{}/events{query}", server.address))
            .header("accept", "text/event-stream");
        if let Some(last) = last_event_id {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status().as_u16(), 200, "{query}");
        let header = |name: &str| response.headers()[name].to_str().expect("text").to_owned();
        assert!(header("content-type").starts_with("text/event-stream"));
        assert_eq!(header("cache-control"), "no-store");
        let text = Vec::new();
        Stream { response, text }
    }

    /// The next event: its `id` and its `data`.
    pub async fn next(&mut self) -> (i64, Value) {
        loop {
            if let Some(event) = self.block().as_deref().and_then(event) {
                return event;
            }
            if !self.text.windows(2).any(|end| end == b"\n\n") {
                self.read().await;
            }
        }
    }

    async fn read(&mut self) {
        let chunk = tokio::time::timeout(WAIT_MAX, self.response.chunk()).await;
        let chunk = chunk
            .expect("the stream sends a chunk")
            .expect("the stream is open");
        self.text
            .extend_from_slice(&chunk.expect("the stream is open"));
    }

    /// The text before the next empty line.
    fn block(&mut self) -> Option<String> {
        let end = self.text.windows(2).position(|end| end == b"\n\n")?;
        let block = self.text.drain(..end + 2).collect();
        Some(String::from_utf8(block).expect("UTF-8"))
    }

    /// The IDs of the jobs of the next `count` events.
    pub async fn jobs(&mut self, count: usize) -> Vec<String> {
        let mut jobs = Vec::new();
        for _ in 0..count {
            let (_, event) = self.next().await;
            let data = &event["data"];
            let job = data["id"].as_str().or(data.as_str());
            jobs.push(job.expect("an id").to_owned());
        }
        jobs
    }
}

/// The event of a block; `None` if the block is a comment that keeps the connection open.
fn event(block: &str) -> Option<(i64, Value)> {
    let field = |name: &str| {
        let value = block.lines().find_map(|line| line.strip_prefix(name))?;
        Some(value.strip_prefix(' ').unwrap_or(value))
    };
    let data = serde_json::from_str(field("data:")?).expect("JSON");
    let id = field("id:").expect("an id").parse().expect("a number");
    Some((id, data))
}
