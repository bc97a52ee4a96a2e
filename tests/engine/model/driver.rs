//! A step on the engine, which runs on this thread, without background tasks and with the time of the model.

mod others;

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use switchyard::engine::{
    Claim, Durability, Engine, EngineSettings, Error, Grant, Job, ManualClock, Queue, QueueKey,
    Record, State, Time,
};
use tempfile::TempDir;

use super::memory::Outcome;
use super::steps::{Step, variant};
use crate::crash_copy::crash_copy;
use crate::database;

/// An engine, and what clients know of it.
pub struct Driver {
    pub engine: Engine,
    options: EngineSettings,
    clock: ManualClock,
    /// The folder of the SQLite database.
    folder: TempDir,
    /// The folder before the last crash. The abandoned engine may still close its files.
    abandoned: Option<TempDir>,
    /// The IDs of published jobs, in order, and their names in the model.
    published: Vec<String>,
    pub names: HashMap<String, String>,
    runs: HashMap<(QueueKey, String), String>,
    deleted: HashMap<String, Arc<Queue>>,
    pub operations: Vec<i64>,
    grant: Option<Grant>,
}

/// A refusal: the name of the error.
fn refusal(error: impl Debug) -> Outcome {
    format!("!{}", variant(&error))
}

/// The outcome of a verb that returns nothing, with a word for its success.
fn done<T>(result: Result<T, Error>, word: &str) -> Outcome {
    result.map_or_else(refusal, |_| word.to_owned())
}

fn shown<T: ToString>(result: Result<T, Error>) -> Outcome {
    result.map_or_else(refusal, |value| value.to_string())
}

/// The outcome of a verb with several items.
fn each<T>(results: Result<Vec<Result<T, Error>>, Error>, show: impl Fn(T) -> String) -> Outcome {
    let one = |result: Result<T, Error>| result.map_or_else(refusal, &show);
    match results {
        Ok(results) => results.into_iter().map(one).collect::<Vec<_>>().join(","),
        Err(error) => refusal(error),
    }
}

fn nested<T, E: Debug>(result: Result<Result<T, E>, Error>, word: &str) -> Outcome {
    match result {
        Ok(Ok(_)) => word.to_owned(),
        Ok(Err(error)) => refusal(error),
        Err(error) => refusal(error),
    }
}

fn record(record: &Record) -> String {
    format!("{} {}", record.id, record.state_text())
}

impl Driver {
    pub async fn open(now: i64) -> Driver {
        let clock = ManualClock::at(Time(now));
        let folder = TempDir::new().unwrap();
        let options = EngineSettings {
            database: database::address(&folder.path().join("model.db")),
            durability: Durability::Process,
            offline: true,
            writer_on_runtime: true,
            clock: Some(clock.clone()),
            empty_queue_age: Some(std::time::Duration::from_secs(30)),
            // About one dependent: the others are released in later transactions.
            released_bytes_max: Some(200),
            ..EngineSettings::default()
        };
        Driver {
            engine: Engine::open(&options).await.unwrap(),
            options,
            clock,
            folder,
            abandoned: None,
            published: Vec::new(),
            names: HashMap::new(),
            runs: HashMap::new(),
            deleted: HashMap::new(),
            operations: Vec::new(),
            grant: None,
        }
    }

    /// Sets the time.
    pub fn set_time(&self, now: i64) {
        self.clock.set(Time(now));
    }

    /// Opens the database as a crash of the process leaves it: with all commits, and without any cleanup.
    async fn crash(&mut self) {
        if database::postgres().is_none() {
            let folder = TempDir::new().unwrap();
            let file = |folder: &TempDir| folder.path().join("model.db");
            crash_copy(&file(&self.folder), &file(&folder));
            self.options.database = database::address(&folder.path().join("model.db"));
            self.abandoned = Some(std::mem::replace(&mut self.folder, folder));
        }
        let new = Engine::open(&self.options).await.unwrap();
        drop(std::mem::replace(&mut self.engine, new));
    }

    pub async fn reopen(&mut self) {
        self.engine.close().await;
        self.engine = Engine::open(&self.options).await.unwrap();
    }

    /// The ID of a published job, counted from the last one.
    fn id(&self, nth: usize) -> String {
        let place = self.published.len().checked_sub(nth + 1);
        place.map_or_else(|| "none".to_owned(), |place| self.published[place].clone())
    }

    fn ids(&self, nths: &[usize]) -> Vec<String> {
        nths.iter().map(|nth| self.id(*nth)).collect()
    }

    fn name(&mut self, id: String) -> String {
        let name = format!("p{}", self.published.len());
        self.names.insert(id.clone(), name.clone());
        self.published.push(id);
        name
    }

    /// Claims, and returns the IDs.
    async fn claim(&mut self, claim: &Claim) -> Outcome {
        match self.engine.claim(claim.clone(), None).await {
            Ok(jobs) => {
                let ids: Vec<String> = jobs.iter().map(|job| self.claimed(job)).collect();
                ids.join(" ")
            }
            Err(error) => refusal(error),
        }
    }

    fn claimed(&mut self, job: &Job) -> String {
        let queue = self.engine.known_queues().by_id(job.queue).unwrap();
        if let Some(lease) = &job.lease {
            let run = (queue.key.clone(), job.key.id.clone());
            self.runs.insert(run, lease.id.clone());
        }
        let known = self.names.get(&job.key.id);
        known.unwrap_or(&job.key.id).clone()
    }

    /// Runs a step. `now` is the model's time.
    pub async fn apply(&mut self, step: &Step, now: i64) -> Outcome {
        self.set_time(now);
        match step {
            Step::Advance(_) => String::new(),
            Step::Maintain => {
                self.engine.maintain().await.unwrap();
                String::new()
            }
            Step::Reopen => {
                self.reopen().await;
                String::new()
            }
            Step::Crash => {
                self.crash().await;
                String::new()
            }
            Step::Flush => {
                self.operations.clear();
                self.engine.flush().await.unwrap();
                String::new()
            }
            step => {
                if let Some(outcome) = self.apply_qless(step).await {
                    return outcome;
                }
                if let Some(outcome) = self.apply_job(step).await {
                    return outcome;
                }
                if let Some(outcome) = self.apply_lmstfy(step).await {
                    return outcome;
                }
                if let Some(outcome) = self.apply_relay(step, now).await {
                    return outcome;
                }
                if let Some(outcome) = self.apply_jobq(step).await {
                    return outcome;
                }
                self.apply_operation(step).await.unwrap_or_default()
            }
        }
    }

    async fn apply_qless(&mut self, step: &Step) -> Option<Outcome> {
        let engine = self.engine.clone();
        let state = |state: State| state.as_str().to_owned();
        Some(match step.clone() {
            Step::Put(queue, jobs, client) => {
                each(engine.put(queue, jobs, client, None).await, |id| id)
            }
            Step::Requeue(queue, jobs, client) => {
                each(engine.requeue(queue, jobs, client, None).await, |id| id)
            }
            Step::Pop(claim) | Step::PopInTurn(claim) => self.claim(&claim).await,
            Step::Peek(queue, count) => match engine.peek(&queue, count, None).await {
                Ok(jobs) => {
                    let ids: Vec<String> = jobs.into_iter().map(|job| job.key.id).collect();
                    ids.join(" ")
                }
                Err(error) => refusal(error),
            },
            Step::Complete(key, body, holder) => {
                let turn = vec![(key, body, None)];
                each(engine.complete(turn, holder, None).await, state)
            }
            Step::Move(key, body, holder, next) => {
                let turn = vec![(key, body, Some(next))];
                each(engine.complete(turn, holder, None).await, state)
            }
            Step::Fail(jobs, holder) => each(engine.fail(jobs, holder, None).await, |()| {
                "failed".to_owned()
            }),
            Step::Retry(jobs, holder) => each(engine.retry(jobs, holder, None).await, |left| {
                left.to_string()
            }),
            Step::Heartbeat(key, body, holder) => {
                let jobs = vec![(key, body)];
                let renewed = engine.heartbeat(jobs, holder, None).await;
                each(renewed, |seconds| format!("{seconds:.6}"))
            }
            Step::Unfail(group, queue, count) => {
                shown(engine.unfail(&group, queue, count, None).await)
            }
            Step::Recur(queue, recur) => {
                each(engine.recur(queue, vec![recur], None).await, |id| id)
            }
            Step::ChangeRecurring(id, change) => {
                let changed = engine.change_recurring(&id, change, None).await;
                changed.map_or_else(refusal, |changed| changed.tags.join(" "))
            }
            Step::Unrecur(id) => done(engine.unrecur(&id, None).await, "done"),
            Step::Pause(queue, paused) => done(engine.pause(queue, paused, None).await, "done"),
            Step::ForgetQueue(queue) => done(engine.forget_queue(queue, None).await, "done"),
            Step::ForgetWorker(worker) => done(engine.forget_worker(&worker, None).await, "done"),
            Step::Configure(option, value) => {
                done(engine.configure(&option, value, None).await, "done")
            }
            _ => return None,
        })
    }

    /// A step on one qless job in any state.
    async fn apply_job(&self, step: &Step) -> Option<Outcome> {
        let engine = &self.engine;
        let word = |word: &'static str| move |()| word.to_owned();
        let tags = |tags: Vec<String>| tags.join(" ");
        Some(match step.clone() {
            Step::Cancel(keys) => done(engine.cancel(keys, None).await, "canceled"),
            Step::Depend(key, change) => {
                each(engine.depend(vec![(key, change)], None).await, word("done"))
            }
            Step::Prioritize(key, priority) => {
                let jobs = vec![(key, priority)];
                each(engine.prioritize(jobs, None).await, word("done"))
            }
            Step::Tag(key, some) => each(engine.tag(vec![(key, some)], None).await, tags),
            Step::Untag(key, some) => each(engine.untag(vec![(key, some)], None).await, tags),
            Step::Track(key, some) => {
                each(engine.track(vec![(key, some)], None).await, word("tracked"))
            }
            Step::Untrack(key) => each(engine.untrack(vec![key], None).await, word("done")),
            Step::TimeOut(key) => each(engine.time_out(vec![key], None).await, word("done")),
            Step::Note(key) => {
                let notes = vec![(key, "noted".to_owned(), None)];
                each(engine.note(notes, None).await, word("done"))
            }
            Step::Relocate(key, queue) => done(engine.relocate(key, queue, None).await, "moved"),
            Step::RetryFailed(key) => done(engine.retry_failed(key, None).await, "retried"),
            _ => return None,
        })
    }
}
