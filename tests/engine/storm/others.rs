//! The producers and consumers of lmstfy and Relay in the storm.

use switchyard::engine::{Enqueue, Mode, Publish, Run};

use super::*;

const LMSTFY: [&str; 2] = ["mail", "pictures"];
const RELAY: [&str; 2] = ["runs", "more"];

impl Actor {
    /// Publishes lmstfy jobs.
    pub(super) async fn publish(mut self) {
        while !self.storm.is_calm() {
            self.storm.pause().await;
            let count = self.random.one_of(&[1, 1, 5]);
            let tokens: Vec<Token> = (0..count).map(|_| self.storm.token()).collect();
            let delay_s = self.random.one_of(&[0, 0, 0, 1]);
            let publish = |token: &Token| Publish {
                body: token.to_string(),
                delay_s,
                ttl_s: 0,
                tries: 1_000,
                versioned: false,
                attributes: None,
            };
            let queue = QueueKey::lmstfy("n", self.random.one_of(&LMSTFY));
            let publish = self
                .engine
                .publish(queue, tokens.iter().map(publish).collect());
            if self.storm.response(publish.await).is_some() {
                tokens.into_iter().for_each(|token| self.storm.begun(token));
            }
        }
    }

    /// Consumes lmstfy jobs, and abandons some.
    pub(super) async fn consume(mut self) {
        while !self.storm.is_calm() {
            let queue = QueueKey::lmstfy("n", self.random.one_of(&LMSTFY));
            let forgets = self.random.below(50) == 0;
            let lease = if forgets { SHORT } else { LONG };
            let asked = self.storm.record.now();
            let claim = Claim {
                lease_s: Some(lease.as_secs_f64()),
                ..Claim::of(queue.clone(), "", 3)
            };
            let claimed = self.engine.claim(claim, None).await;
            let jobs = self.storm.response(claimed).unwrap_or_default();
            if jobs.is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            for job in jobs {
                let token = token_of(&job.body).unwrap();
                self.storm.record.delivered(token, asked, lease);
                if forgets {
                    continue;
                }
                let asked = self.storm.record.now();
                let gone = self
                    .engine
                    .acknowledge(queue.clone(), vec![job.key.id])
                    .await;
                match gone {
                    Ok(1) => {
                        self.storm.record.completed(token, asked);
                        self.storm.ended();
                    }
                    Ok(_) => {}
                    Err(error) => self.storm.may_have_ended(Some(token), error),
                }
            }
        }
    }

    /// Enqueues Relay jobs, and reuses the IDs of jobs that have ended.
    pub(super) async fn enqueue(mut self) {
        let mut newest: HashMap<(&str, String), Token> = HashMap::new();
        while !self.storm.is_calm() {
            self.storm.pause().await;
            let queue = self.random.one_of(&RELAY);
            let id = format!("{}-{}", self.name, self.random.below(IDS));
            let key = (queue, id.clone());
            let is_open = newest
                .get(&key)
                .is_some_and(|token| !self.storm.record.is_over(*token));
            if is_open {
                tokio::task::yield_now().await;
                continue;
            }
            let token = self.storm.token();
            let timeout_s = self.random.one_of(&[60, 60, 60, 1]);
            let job = enqueue(queue, id, token, timeout_s);
            // Another job with this ID can follow a run that has just ended (see `run`).
            let mode = self.random.one_of(&[Mode::Unique, Mode::Ignore]);
            let enqueued = self.engine.enqueue(vec![job], mode).await;
            if self.storm.response(enqueued).is_some() {
                self.storm.begun(token);
            }
            // The job may exist even after a refusal, so its ID is not used again before it has ended.
            newest.insert(key, token);
        }
    }

    /// Runs Relay jobs: ends most runs, some by requeuing another job, and abandons some.
    pub(super) async fn run(mut self) {
        while !self.storm.is_calm() {
            let queue = self.random.one_of(&RELAY);
            let asked = self.storm.record.now();
            let claim = Claim::of(QueueKey::relay(queue), "", 2);
            let claimed = self.engine.claim(claim, None).await;
            let jobs = self.storm.response(claimed).unwrap_or_default();
            if jobs.is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            for job in jobs {
                let token = token_of(&job.body).unwrap();
                let lease = Duration::from_secs(job.timeout_s.unwrap().unsigned_abs());
                self.storm.record.delivered(token, asked, lease);
                let run = Run {
                    queue: QueueKey::relay(queue),
                    id: job.key.id.clone(),
                    run_id: job.lease.unwrap().id,
                };
                let asked = self.storm.record.now();
                let ended = match self.random.below(20) {
                    0 if lease == SHORT => continue,
                    1 => {
                        let next = self.storm.token();
                        let more = enqueue(queue, format!("next-{next}"), next, 60);
                        let ended = self.engine.requeue_run(run, vec![more], Mode::Unique).await;
                        if matches!(ended, Ok(true)) {
                            self.storm.begun(next);
                        }
                        ended
                    }
                    _ => self.engine.complete_run(run).await,
                };
                match ended {
                    Ok(true) => {
                        self.storm.record.completed(token, asked);
                        self.storm.ended();
                    }
                    Ok(false) => {}
                    Err(error) => self.storm.may_have_ended(Some(token), error),
                }
            }
        }
    }
}

fn enqueue(queue: &str, id: String, token: Token, timeout_s: i64) -> Enqueue {
    Enqueue {
        queue: QueueKey::relay(queue),
        id,
        timeout_s,
        max_retries: None,
        payload: token.to_string(),
        state: None,
        run_at: None,
    }
}
