//! A step on the model.

use super::memory::{Key, Model, Outcome, qless};
use super::steps::Step;

/// The text of a result.
fn text(result: Result<String, String>) -> Outcome {
    result.unwrap_or_else(|refusal| refusal)
}

fn each(results: impl Iterator<Item = Result<String, String>>) -> Outcome {
    results.map(text).collect::<Vec<_>>().join(",")
}

impl Model {
    /// Runs a step, and returns what the engine should return.
    pub fn apply(&mut self, step: &Step) -> Outcome {
        match step {
            Step::Advance(micros) => {
                self.now += micros;
                String::new()
            }
            Step::Maintain => {
                self.maintain();
                String::new()
            }
            Step::Reopen | Step::Crash => {
                self.turns.clear();
                String::new()
            }
            Step::Flush => {
                self.flush();
                String::new()
            }
            Step::StartOperation(action, pick) => self.start_operation(action, pick),
            Step::CancelWithUndo(key) => text(self.cancel_with_undo(&key.id)),
            Step::StopOperation(nth) => self.stop_operation(*nth),
            Step::UndoOperation(nth) => self.undo_operation(*nth),
            step => self
                .apply_qless(step)
                .or_else(|| self.apply_lmstfy(step))
                .or_else(|| self.apply_relay(step))
                .or_else(|| self.apply_jobq(step))
                .unwrap_or_default(),
        }
    }

    fn apply_qless(&mut self, step: &Step) -> Option<Outcome> {
        Some(match step {
            Step::Put(queue, jobs, _) => each(jobs.iter().map(|job| self.put(queue, job, false))),
            Step::Requeue(queue, jobs, _) => {
                each(jobs.iter().map(|job| self.put(queue, job, true)))
            }
            Step::Pop(claim) | Step::PopInTurn(claim) => self.claim(claim),
            Step::Peek(queue, count) => self.peek(queue, *count),
            Step::Complete(key, body, holder) => {
                text(self.complete(&qless(&key.id), body, holder, None))
            }
            Step::Move(key, body, holder, next) => {
                text(self.complete(&qless(&key.id), body, holder, Some(next)))
            }
            Step::Fail(jobs, holder) => each(jobs.iter().map(|job| self.fail(job, holder))),
            Step::Retry(jobs, holder) => each(jobs.iter().map(|job| self.retry(job, holder))),
            Step::Heartbeat(key, body, holder) => {
                text(self.heartbeat(&qless(&key.id), body.as_ref(), holder))
            }
            Step::Cancel(keys) => {
                let ids: Vec<String> = keys.iter().map(|key| key.id.clone()).collect();
                text(self.cancel(&ids))
            }
            Step::Depend(key, change) => text(self.depend(&key.id, change)),
            Step::Prioritize(key, priority) => {
                let done = self.change(&key.id, |job| job.priority = *priority);
                text(done.map(|()| "done".to_owned()))
            }
            Step::Tag(key, tags) => text(self.tag(&key.id, tags)),
            Step::Untag(key, tags) => text(self.untag(&key.id, tags)),
            Step::Track(key, tags) => text(self.track(&key.id, tags)),
            Step::Untrack(key) => {
                self.tracked.remove(&key.id);
                "done".to_owned()
            }
            Step::TimeOut(key) => text(self.time_out(&key.id)),
            Step::Note(key) => text(self.change(&key.id, |_| {}).map(|()| "done".to_owned())),
            Step::Relocate(key, queue) => text(self.relocate(&key.id, queue)),
            Step::Unfail(group, queue, count) => self.unfail(group, queue.as_ref(), *count),
            Step::RetryFailed(key) => text(self.retry_failed(&key.id)),
            Step::Recur(queue, recur) => self.recur(queue, recur),
            Step::ChangeRecurring(id, change) => self.change_recurring(id, change),
            Step::Unrecur(id) => {
                self.recurring.remove(id);
                "done".to_owned()
            }
            Step::Pause(queue, paused) => {
                self.enter(queue);
                if let Some(queue) = self.queues.get_mut(queue) {
                    queue.paused = *paused;
                }
                "done".to_owned()
            }
            Step::ForgetQueue(_) | Step::ForgetWorker(_) => "done".to_owned(),
            Step::Configure(option, value) => self.configure(option, value.as_ref()),
            _ => return None,
        })
    }

    fn configure(&mut self, option: &str, value: Option<&String>) -> Outcome {
        match value {
            Some(value) if value.parse::<f64>().is_err() => return "!BadOption".to_owned(),
            Some(value) => self.config.insert(option.to_owned(), value.clone()),
            None => self.config.remove(option),
        };
        "done".to_owned()
    }

    fn apply_lmstfy(&mut self, step: &Step) -> Option<Outcome> {
        Some(match step {
            Step::Publish(queue, jobs) => {
                let names: Vec<_> = jobs.iter().map(|job| self.publish(queue, job)).collect();
                names.join(" ")
            }
            Step::Republish(queue, nth, job) => {
                let key = self.published_key(*nth);
                self.acknowledge(queue, &key);
                self.publish(queue, job)
            }
            Step::Consume(claim) => self.claim(claim),
            Step::ConsumeWithToken(claim) => match self.token {
                true => self.claim(claim),
                false => "!Revoked".to_owned(),
            },
            Step::Acknowledge(queue, nths) => {
                let keys: Vec<Key> = nths.iter().map(|nth| self.published_key(*nth)).collect();
                let gone = keys.iter().filter(|key| self.acknowledge(queue, key));
                gone.count().to_string()
            }
            Step::Destroy(queue) => self.destroy(queue),
            Step::DeleteDeadLetter(queue, count) => self.delete_dead_letter(queue, *count),
            Step::Respawn(queue, count, ttl_s) => self.respawn(queue, *count, *ttl_s),
            Step::RespawnJobs(nths, ttl_s) => {
                let keys: Vec<Key> = nths.iter().map(|nth| self.published_key(*nth)).collect();
                each(keys.iter().map(|key| self.respawn_job(key, *ttl_s)))
            }
            // Too short, or in use.
            Step::CreateToken(secret) if secret.len() < 20 || self.token => "!BadToken".to_owned(),
            Step::CreateToken(_) => {
                self.token = true;
                "created".to_owned()
            }
            Step::RevokeToken => std::mem::take(&mut self.token).to_string(),
            _ => return None,
        })
    }

    fn apply_relay(&mut self, step: &Step) -> Option<Outcome> {
        Some(match step {
            Step::Enqueue(jobs, mode) => text(self.enqueue(jobs, *mode)),
            Step::Next(claim) => self.claim(claim),
            Step::HeartbeatRun(run, state) => self.heartbeat_run(run, state.as_ref()),
            Step::CompleteRun(run) => self.complete_run(run),
            Step::RequeueRun(run, jobs, mode) => text(self.requeue_run(run, jobs, *mode)),
            Step::Delete(queue, ids) => self.delete(queue, ids),
            Step::ReenqueueDead(queue, places) => {
                let keys = self.dead_keys(queue, places);
                each(keys.iter().map(|key| self.requeue_dead(queue, key)))
            }
            Step::ReenqueueOldest(queue, count) => self.reenqueue_oldest(queue, *count),
            Step::DeleteDead(queue, places) => {
                let keys = self.dead_keys(queue, places);
                self.delete_dead(queue, &keys)
            }
            _ => return None,
        })
    }

    fn apply_jobq(&mut self, step: &Step) -> Option<Outcome> {
        Some(match step {
            Step::CreateQueue(name) => self.create_queue(name),
            Step::DeleteQueue(queue) => text(self.delete_queue(queue)),
            Step::CreateRecord(queue, payload, state) => {
                text(self.create_record(queue, payload, state))
            }
            Step::AdvanceRecord(queue, id, old, new) => {
                text(self.advance_record(queue, *id, old, new))
            }
            Step::Append(queue, id, event) => text(self.append(queue, *id, event)),
            Step::DeleteRecord(queue, id) => text(self.delete_record(queue, *id)),
            Step::Poll(queue, query, state) => text(self.poll(queue, *query, state)),
            _ => return None,
        })
    }
}
