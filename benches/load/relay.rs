//! The Relay load: enqueue, next, complete.

use std::rc::Rc;

use uuid::Uuid;

use super::Result;
use super::client::Connection;
use super::drive::{Load, Shared, TRIES};
use super::target::Target;

/// Size of a job's payload, in bytes, as a JSON string.
const BODY_BYTES: usize = 256;

/// One connection and its requests.
pub struct Worker {
    connection: Connection,
    shared: Rc<Shared>,
    /// Whether only one server uses the database.
    alone: bool,
    queue: String,
    /// The path of the queue's jobs.
    jobs: String,
    payload: String,
}

impl Worker {
    pub async fn new(
        target: &Target,
        load: &Load,
        number: usize,
        shared: Rc<Shared>,
    ) -> Result<Worker> {
        let queue = load.queue(number);
        Ok(Worker {
            connection: Connection::open(target.address(number)?).await?,
            shared,
            alone: target.is_alone(),
            jobs: format!("/v2/queues/{queue}/jobs"),
            queue,
            payload: format!("\"{}\"", "b".repeat(BODY_BYTES - 2)),
        })
    }

    pub async fn cycle(&mut self) -> Result<()> {
        let id = Uuid::now_v7().simple().to_string();
        let body = format!(
            r#"[{{"queue":"{}","id":"{id}","timeout":3600,"max_retries":3,"payload":{}}}]"#,
            self.queue, self.payload
        );
        let enqueue = self
            .connection
            .exchange("POST", "/v2/queues/jobs", &body, 202);
        enqueue.await?;
        self.shared.ledger.borrow_mut().added(&id)?;
        // Every connection enqueues before it claims, so there is always a job, possibly of another connection. Several
        // servers skip jobs that another one is claiming, so the request may have to be repeated.
        for _ in 0..if self.alone { 1 } else { TRIES } {
            self.connection.send("GET", &self.jobs, "").await?;
            let (id, run) = match self.connection.receive().await? {
                (200, response) if response.contains("\"run_id\"") => {
                    let text = |key| text(response, key).map(str::to_owned);
                    (text("\"id\":\"")?, text("\"run_id\":\"")?)
                }
                (200, _) if !self.alone => continue,
                (status, response) => {
                    return Err(format!("no job: {status} {response}").into());
                }
            };
            let path = format!("{}/{id}/run-id/{run}", self.jobs);
            self.connection.exchange("DELETE", &path, "", 200).await?;
            return self.shared.ledger.borrow_mut().completed(&id);
        }
        Ok(())
    }
}

/// The text after `key` up to the next quotation mark.
fn text<'a>(response: &'a str, key: &str) -> Result<&'a str> {
    let (_, rest) = response.split_once(key).ok_or("a field is missing")?;
    Ok(rest.split('"').next().unwrap_or_default())
}
