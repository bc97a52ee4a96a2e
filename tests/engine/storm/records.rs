//! The producers and consumers of Jobq in the storm.

use switchyard::engine::{CompareAndSet, Queue, Record as JobqRecord};
use switchyard::query::Query;

use super::*;

const QUEUE: &str = "hosts";

const FREE: &str = r#"[["IS", "state", null]]"#;

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
            created.await.unwrap();
            self.storm.begun(token);
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
            self.storm.record.came(token, asked, FOREVER);
            self.deal_with_record(&queue, record, token, &on_one).await;
        }
    }

    async fn deal_with_record(
        &mut self,
        queue: &Arc<Queue>,
        record: JobqRecord,
        token: Token,
        on_one: &str,
    ) {
        match self.random.below(20) {
            0 => {
                let _giving = self.storm.record.giving_back(Some(token));
                let (old, new) = (on_one.to_owned(), "null".to_owned());
                let set = self.engine.advance_record(queue, record.id, old, new).await;
                assert!(matches!(set, Ok(CompareAndSet::Done(_))), "{set:?}");
                return;
            }
            1 => {
                let event = self
                    .engine
                    .append_event(queue, record.id, on_one.to_owned());
                event.await.unwrap();
            }
            _ => {}
        }
        let asked = self.storm.record.now();
        let existed = self.engine.delete_record(queue, record.id).await.unwrap();
        assert!(existed, "another client deleted the record of a poll");
        self.storm.record.completed(token, asked);
        self.storm.ended();
    }
}

/// No record if the error says that it lost all races.
fn unavailable(error: Error) -> Result<Option<JobqRecord>, Error> {
    match error {
        Error::Unavailable => Ok(None),
        error => Err(error),
    }
}
