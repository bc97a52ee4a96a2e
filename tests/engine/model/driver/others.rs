//! The steps of lmstfy, Relay, Jobq and bulk operations on the engine.

use std::sync::Arc;

use switchyard::engine::{
    Claim, CompareAndSet, EffectiveState, Enqueue, Error, JobKey, JobSelection, NewOperation,
    OperationEstimate, Queue, QueueKey, Record, Run, Time,
};
use switchyard::query::Query;

use super::{Driver, done, each, nested, record, refusal, shown};
use crate::PAGE;
use crate::model::SECRET;
use crate::model::memory::Outcome;
use crate::model::steps::{Pick, RecordQueue, Ref, RunOf, Step};

/// The token's namespace.
const NAMESPACE: &str = "n0";

/// The queries of [`Step::Poll`]: all records, those with the state `"x"`, those without a state.
const QUERIES: [&str; 3] = [
    "[]",
    r#"[["=", "json_extract(state, '$')", "'x'"]]"#,
    r#"[["IS", "state", null]]"#,
];

impl Driver {
    async fn dead_keys(&self, queue: &QueueKey, places: &[usize]) -> Vec<JobKey> {
        let dead = self
            .engine
            .jobs(EffectiveState::Dead, Some(queue), PAGE, None);
        let dead = dead.await.unwrap();
        let key = |place: &usize| dead.get(*place).map(|job| job.key.clone());
        let keys = places.iter().map(key);
        keys.map(|key| key.unwrap_or_else(|| JobKey::dead_relay(1, "none")))
            .collect()
    }

    fn run_of(&self, run: &RunOf) -> Run {
        let known = self.runs.get(&(run.queue.clone(), run.id.clone()));
        let known = known.filter(|_| !run.unknown).cloned();
        Run {
            queue: run.queue.clone(),
            id: run.id.clone(),
            run_id: known.unwrap_or_else(|| "0".repeat(32)),
        }
    }

    pub(super) async fn apply_lmstfy(&mut self, step: &Step) -> Option<Outcome> {
        let engine = self.engine.clone();
        Some(match step.clone() {
            Step::Publish(queue, jobs) => match engine.publish(queue, jobs).await {
                Ok(ids) => {
                    let names: Vec<_> = ids.into_iter().map(|id| self.name(id)).collect();
                    names.join(" ")
                }
                Err(error) => refusal(error),
            },
            Step::Republish(queue, nth, job) => {
                match engine.republish(queue, &self.id(nth), job).await {
                    Ok(id) => self.name(id),
                    Err(error) => refusal(error),
                }
            }
            Step::Consume(claim) => self.claim(&claim).await,
            Step::ConsumeWithToken(claim) => {
                let Some(grant) = self.grant.clone() else {
                    return Some("!Revoked".to_owned());
                };
                let grant = Some(grant);
                self.claim(&Claim { grant, ..claim }).await
            }
            Step::Acknowledge(queue, nths) => {
                shown(engine.acknowledge(queue, self.ids(&nths)).await)
            }
            Step::Destroy(queue) => shown(engine.destroy(queue).await),
            Step::DeleteDeadLetter(queue, count) => {
                shown(engine.delete_dead_letter(queue, count).await)
            }
            Step::Respawn(queue, count, ttl_s) => shown(engine.respawn(queue, count, ttl_s).await),
            Step::RespawnJobs(nths, ttl_s) => {
                let keys = self.ids(&nths).into_iter().map(JobKey::lmstfy).collect();
                let respawned = engine.respawn_jobs(keys, ttl_s).await;
                each(respawned, |()| "respawned".to_owned())
            }
            Step::CreateToken(secret) => {
                let created = engine
                    .create_token(NAMESPACE, "", Some(secret.clone()))
                    .await;
                if created.is_ok() {
                    let grant = engine.authenticate_token(NAMESPACE, &secret).await;
                    self.grant = grant.unwrap();
                }
                done(created, "created")
            }
            Step::RevokeToken => shown(engine.revoke_token(NAMESPACE, SECRET).await),
            _ => return None,
        })
    }

    pub(super) async fn apply_relay(&mut self, step: &Step, now: i64) -> Option<Outcome> {
        let engine = self.engine.clone();
        let absolute = |jobs: Vec<Enqueue>| -> Vec<Enqueue> {
            let at = |job: Enqueue| Enqueue {
                run_at: job.run_at.map(|later| Time(now + later.0)),
                ..job
            };
            jobs.into_iter().map(at).collect()
        };
        Some(match step.clone() {
            Step::Enqueue(jobs, mode) => {
                done(engine.enqueue(absolute(jobs), mode).await, "enqueued")
            }
            Step::Next(claim) => self.claim(&claim).await,
            Step::HeartbeatRun(run, state) => done(
                engine.heartbeat_run(self.run_of(&run), state).await,
                "renewed",
            ),
            Step::CompleteRun(run) => shown(engine.complete_run(self.run_of(&run)).await),
            Step::RequeueRun(run, jobs, mode) => {
                let run = self.run_of(&run);
                shown(engine.requeue_run(run, absolute(jobs), mode).await)
            }
            Step::Delete(queue, ids) => shown(engine.delete(queue, ids).await),
            Step::ReenqueueDead(queue, places) => {
                let keys = self.dead_keys(&queue, &places).await;
                let word = |()| "enqueued".to_owned();
                if let [key] = keys.as_slice() {
                    return Some(done(
                        engine.requeue_dead(queue, key.clone()).await,
                        "enqueued",
                    ));
                }
                each(engine.requeue_dead_jobs(queue, keys).await, word)
            }
            Step::ReenqueueOldest(queue, count) => {
                let result = engine.requeue_oldest_dead(queue, count).await;
                result.map_or_else(refusal, |it| format!("{} {}", it.done, it.conflicts))
            }
            Step::DeleteDead(queue, places) => {
                let keys = self.dead_keys(&queue, &places).await;
                shown(engine.delete_dead_jobs(queue, keys).await)
            }
            _ => return None,
        })
    }

    async fn record_queue(&self, queue: &RecordQueue) -> Result<Arc<Queue>, Error> {
        let name = queue.name.clone();
        if queue.deleted {
            let known = self.deleted.get(&queue.name).cloned();
            return known.ok_or(Error::NoSuchQueue { name });
        }
        self.engine.record_queue(&name).await
    }

    pub(super) async fn apply_jobq(&mut self, step: &Step) -> Option<Outcome> {
        let engine = self.engine.clone();
        let queue = match step {
            Step::CreateQueue(name) => {
                return Some(done(engine.create_queue(name).await, "created"));
            }
            Step::DeleteQueue(queue)
            | Step::CreateRecord(queue, ..)
            | Step::AdvanceRecord(queue, ..)
            | Step::Append(queue, ..)
            | Step::DeleteRecord(queue, ..)
            | Step::Poll(queue, ..) => queue,
            _ => return None,
        };
        let known = match self.record_queue(queue).await {
            Ok(known) => known,
            Err(error) => return Some(refusal(error)),
        };
        let shown_record =
            |result: Result<Record, Error>| result.map_or_else(refusal, |changed| record(&changed));
        Some(match step.clone() {
            Step::DeleteQueue(queue) => {
                let deleted = engine.delete_queue(&known).await;
                if deleted.is_ok() {
                    self.deleted.insert(queue.name, known);
                }
                done(deleted, "deleted")
            }
            Step::CreateRecord(_, payload, state) => {
                shown_record(engine.create_record(&known, payload, state).await)
            }
            Step::AdvanceRecord(_, id, old, new) => {
                match engine.advance_record(&known, id, old, new).await {
                    Ok(CompareAndSet::Done(changed)) => record(&changed),
                    Ok(CompareAndSet::Differs(found)) => format!("differs {}", record(&found)),
                    Err(error) => refusal(error),
                }
            }
            Step::Append(_, id, event) => {
                shown_record(engine.append_event(&known, id, event).await)
            }
            Step::DeleteRecord(_, id) => shown(engine.delete_record(&known, id).await),
            Step::Poll(_, query, state) => {
                let query = Query::parse(QUERIES[query]).unwrap();
                match engine.poll_record(&known, &query, state).await {
                    Ok(Some(changed)) => record(&changed),
                    Ok(None) => "none".to_owned(),
                    Err(error) => refusal(error),
                }
            }
            _ => return None,
        })
    }

    /// The number of the job, if it exists.
    async fn seq_of(&self, job: &Ref) -> Option<i64> {
        let found = match job {
            Ref::Qless(id) => self.engine.job(&JobKey::qless(id)).await,
            Ref::Lmstfy(nth) => self.engine.job(&JobKey::lmstfy(self.id(*nth))).await,
            Ref::Relay(queue, id) => self.engine.job_in(queue, id).await,
            Ref::Dead(queue, place) => {
                let key = self.dead_keys(queue, &[*place]).await.remove(0);
                self.engine.job(&key).await
            }
            Ref::Record(name, id) => {
                let queue = QueueKey::jobq(name);
                self.engine.job_in(&queue, &id.to_string()).await
            }
        };
        Some(found.unwrap()?.seq)
    }

    pub(super) async fn apply_operation(&mut self, step: &Step) -> Option<Outcome> {
        let id = |nth: usize| {
            let place = self.operations.len().checked_sub(nth + 1);
            place.map_or(-1, |place| self.operations[place])
        };
        let started = match step.clone() {
            Step::StopOperation(nth) => {
                return Some(nested(self.engine.stop_operation(id(nth)).await, "stopped"));
            }
            Step::UndoOperation(nth) => {
                return Some(nested(self.engine.undo_operation(id(nth)).await, "undoing"));
            }
            Step::CancelWithUndo(key) => {
                let canceled = self.engine.cancel_with_undo(key, "model".to_owned()).await;
                self.operations.extend(canceled.as_ref().ok());
                return Some(done(canceled, "canceled"));
            }
            Step::StartOperation(action, pick) => {
                let selection = self.selection(&pick).await;
                let estimate = OperationEstimate {
                    jobs: 1,
                    ..OperationEstimate::default()
                };
                let new = NewOperation {
                    who: "model".to_owned(),
                    action,
                    selection,
                    estimate,
                };
                self.engine.start_operation(new).await
            }
            _ => return None,
        };
        if let Ok(Ok(id)) = &started {
            self.operations.push(*id);
        }
        Some(nested(started, "started"))
    }

    async fn selection(&self, pick: &Pick) -> JobSelection {
        match pick {
            Pick::Queue(name) => JobSelection::Search(format!("queue:{name}")),
            Pick::Invalid => JobSelection::Search("queue:".to_owned()),
            Pick::TooLong => JobSelection::Jobs((1..=1_001).collect()),
            Pick::Jobs(jobs) => {
                let mut seqs = Vec::new();
                for job in jobs {
                    seqs.extend(self.seq_of(job).await);
                }
                seqs.dedup();
                JobSelection::Jobs(seqs)
            }
        }
    }
}
