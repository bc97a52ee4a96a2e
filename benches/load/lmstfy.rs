//! The lmstfy load: publish, consume, acknowledge.

use std::rc::Rc;

use super::Result;
use super::client::Connection;
use super::drive::{Load, Shared, TRIES};
use super::target::Target;

/// Size of a job body, in bytes.
const BODY_BYTES: usize = 256;

/// One connection and its requests.
pub struct Worker {
    connection: Connection,
    shared: Rc<Shared>,
    /// Whether only one server uses the database.
    alone: bool,
    /// The path of the queue.
    queue: String,
    consume: String,
    body: String,
}

impl Worker {
    pub async fn new(
        target: &Target,
        load: &Load,
        number: usize,
        shared: Rc<Shared>,
    ) -> Result<Worker> {
        let queue = format!("/api/load/{}", load.queue(number));
        Ok(Worker {
            connection: Connection::open(target.address(number)?).await?,
            shared,
            alone: target.is_alone(),
            consume: format!("{queue}?ttr=3600"),
            queue,
            body: "b".repeat(BODY_BYTES),
        })
    }

    pub async fn cycle(&mut self) -> Result<()> {
        let (queue, body) = (&self.queue, &self.body);
        let response = self.connection.exchange("PUT", queue, body, 201).await?;
        self.shared.ledger.borrow_mut().added(job_id(response)?)?;
        // Every connection publishes before it consumes, so there is always a job, possibly of another connection.
        // Several servers skip jobs that another one is claiming, so the request may have to be repeated.
        for _ in 0..if self.alone { 1 } else { TRIES } {
            self.connection.send("GET", &self.consume, "").await?;
            let id = match self.connection.receive().await? {
                (200, response) => job_id(response)?.to_owned(),
                (404, _) if !self.alone => continue,
                (status, response) => {
                    return Err(format!("no job: {status} {response}").into());
                }
            };
            let path = format!("{queue}/job/{id}");
            self.connection.exchange("DELETE", &path, "", 204).await?;
            return self.shared.ledger.borrow_mut().completed(&id);
        }
        Ok(())
    }
}

/// The job ID in the response to a publish request, or in a job.
pub fn job_id(response: &str) -> Result<&str> {
    let (_, rest) = response.split_once("\"job_id\":\"").ok_or("no job_id")?;
    Ok(rest.split('"').next().unwrap_or_default())
}
