//! The producers and consumers of Jobq in the storm.

use switchyard::engine::{CompareAndSet, Queue, Record as JobqRecord};
use switchyard::query::Query;

use super::*;

const QUEUE: &str = "hosts";

const FREE: &str = r#"[["IS", "state", null]]"#;

const TAKEN: &str = r#"[["IS NOT", "state", null]]"#;

/// Records have no lease: a poll claims a record until a client sets its state back.
const FOREVER: Duration = Duration::from_secs(1_000_000);

pub async fn prepare(engine: &Engine) {
    engine.create_queue(QUEUE).await.unwrap();
}

impl Actor {
    async fn queue(&self) -> Arc<Queue> {
        self.engine.record_queue(QUEUE).await.unwrap()
    }

    /// Creates records.
    pub(super) async fn create(mut self) {
        let queue = self.queue().await;
        while !self.storm.is_calm() {
            self.storm.pause().await;
            let token = self.storm.token();
            let created = self
                .engine
                .create_record(&queue, token.to_string(), "null".to_owned());
            if self.storm.response(created.await).is_some() {
                self.storm.begun(token);
            }
            tokio::time::sleep(Duration::from_millis(self.random.below(5))).await;
        }
    }

    /// Polls records, and deletes most; sets the state of the others back or adds an event first.
    pub(super) async fn poll(mut self) {
        let (queue, free) = (self.queue().await, Query::parse(FREE).unwrap());
        let on_one = format!(r#"["{}"]"#, self.name);
        while !self.storm.is_calm() {
            let asked = self.storm.record.now();
            let polled = self.engine.poll_record(&queue, &free, on_one.clone()).await;
            // With several servers, other polls can win each of the records that this one tries.
            let Some(record) = polled.or_else(unavailable).unwrap() else {
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            };
            let token = token_of(&record.payload).unwrap();
            self.storm.record.delivered(token, asked, FOREVER);
            self.process_record(&queue, record, token, &on_one).await;
        }
    }

    async fn process_record(
        &mut self,
        queue: &Arc<Queue>,
        record: JobqRecord,
        token: Token,
        on_one: &str,
    ) {
        match self.random.below(20) {
            0 => {
                let release = self.storm.record.releasing(Some(token));
                let (old, new) = (on_one.to_owned(), "null".to_owned());
                let set = self.engine.advance_record(queue, record.id, old, new).await;
                if let Some(set) = release.end(self.storm.response(set)) {
                    assert!(matches!(set, CompareAndSet::Done(_)), "{set:?}");
                }
                return;
            }
            1 => {
                let event = self
                    .engine
                    .append_event(queue, record.id, on_one.to_owned());
                drop(self.storm.response(event.await));
            }
            _ => {}
        }
        let asked = self.storm.record.now();
        let deleted = self.engine.delete_record(queue, record.id).await;
        match self.storm.response(deleted) {
            Some(existed) => {
                assert!(existed, "another client deleted the record of a poll");
                self.storm.record.completed(token, asked);
                self.storm.ended();
            }
            None => self.storm.record.may_have_ended(token),
        }
    }
}

/// Resets the states that refused calls have left: of polls without a response, and of records that were not deleted.
/// There must be no other clients.
pub async fn release(engines: &[Engine], storm: &Storm) {
    let taken = Query::parse(TAKEN).unwrap();
    // Each server has run its refused requests before these.
    for engine in engines {
        let queue = engine.record_queue(QUEUE).await.unwrap();
        loop {
            let polled = engine.poll_record(&queue, &taken, "null".to_owned()).await;
            match storm.response(polled) {
                Some(Some(record)) => {
                    let release = storm.record.releasing(token_of(&record.payload));
                    release.end(None::<()>);
                }
                Some(None) => break,
                None => {}
            }
        }
    }
}

/// No record if the database was too slow, or if other polls of several servers won each record that this one tried.
fn unavailable(error: Error) -> Result<Option<JobqRecord>, Error> {
    match error {
        Error::Unavailable => Ok(None),
        error => Err(error),
    }
}
