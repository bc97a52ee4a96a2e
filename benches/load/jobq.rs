//! The Jobq load: create, poll, delete.

use std::rc::Rc;

use super::Result;
use super::client::Connection;
use super::drive::{Load, Shared};
use super::target::Target;

/// Size of the text in a job's payload, in bytes.
const BODY_BYTES: usize = 256;

const POLL: &str = r#"{"query":[["IS","j.state",null]],"state":["TAKEN",{"node":1}]}"#;

/// One connection and its requests.
pub struct Worker {
    connection: Connection,
    shared: Rc<Shared>,
    /// The path of the queue.
    queue: String,
    body: String,
}

impl Worker {
    pub async fn new(
        target: &Target,
        load: &Load,
        number: usize,
        shared: Rc<Shared>,
    ) -> Result<Worker> {
        let mut connection = Connection::open(target.address(number)?).await?;
        let queue = create_queue(&mut connection, &load.queue(number)).await?;
        Ok(Worker {
            connection,
            shared,
            queue,
            body: format!(r#"{{"payload":{{"text":"{}"}}}}"#, "b".repeat(BODY_BYTES)),
        })
    }

    pub async fn cycle(&mut self) -> Result<()> {
        let path = format!("{}/job", self.queue);
        let response = self.connection.post(&path, &self.body).await?;
        self.shared.ledger.borrow_mut().added(id(response)?)?;
        // Every connection creates a job before it polls, so there is always one, possibly of another connection.
        let path = format!("{}/poll_job", self.queue);
        let id = id(self.connection.post(&path, POLL).await?)?.to_owned();
        let path = format!("{}/job/{id}", self.queue);
        self.connection.exchange("DELETE", &path, "", 200).await?;
        self.shared.ledger.borrow_mut().completed(&id)
    }
}

/// Creates the queue if it does not exist. Returns its path.
pub async fn create_queue(connection: &mut Connection, name: &str) -> Result<String> {
    let body = format!(r#"{{"name":"{name}"}}"#);
    connection.send("POST", "/api/v0/queue", &body).await?;
    match connection.receive().await? {
        (200 | 409, _) => Ok(format!("/api/v0/queue/{name}")),
        (status, response) => Err(format!("no queue: {status} {response}").into()),
    }
}

/// The ID of a job.
fn id(response: &str) -> Result<&str> {
    let (_, rest) = response.split_once("\"id\":").ok_or("no id")?;
    Ok(rest.split(',').next().unwrap_or_default())
}
