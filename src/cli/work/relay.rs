//! Relay: leases with heartbeats, fenced by the ID of the run. A retry enqueues the job again with one retry less.

use std::time::{Duration, Instant};

use chrono::{SecondsFormat, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::api::{HeartbeatResult, Report, ReportResult, lease, lost_job_message, parsed};
use super::job::{Job, LeaseProof, RelayRun};
use crate::client::{Client, Error, Method, Request};

/// Maximum number of jobs of a claim.
const COUNT_MAX: usize = 1_000;

#[derive(Debug)]
pub struct Relay {
    pub client: Client,
    pub retry_delay: Duration,
}

#[derive(Deserialize)]
struct Fields<'a> {
    queue: String,
    id: String,
    timeout: i64,
    max_retries: Option<i64>,
    retries_remaining: Option<i64>,
    #[serde(borrow)]
    payload: &'a RawValue,
    #[serde(borrow)]
    state: Option<&'a RawValue>,
    run_id: String,
    run_at: String,
}

impl Relay {
    /// Asks one queue after the other, until there are enough jobs.
    pub async fn claim(&self, queues: &[String], count: usize) -> Result<Vec<Job>, Error> {
        let mut jobs = Vec::new();
        for queue in queues {
            let left = count.saturating_sub(jobs.len()).min(COUNT_MAX);
            if left == 0 {
                break;
            }
            let sent = Instant::now();
            let request = self.client.get(["v2", "queues", queue, "jobs"]);
            let response = match request.query("num_jobs", &left).send().await {
                Ok(response) => response,
                // The jobs that are claimed already must run.
                Err(_) if !jobs.is_empty() => break,
                Err(error) => return Err(error),
            };
            if response.body().is_empty() {
                continue;
            }
            let texts: Vec<&RawValue> = response.json()?;
            for text in texts {
                jobs.push(self.job(text, sent)?);
            }
        }
        Ok(jobs)
    }

    fn job(&self, text: &RawValue, sent: Instant) -> Result<Job, Error> {
        let fields: Fields<'_> = parsed(&self.client, text.get())?;
        let tried = fields.max_retries.zip(fields.retries_remaining);
        let attempt = tried.map(|(max, remaining)| max - remaining + 1);
        let state = fields
            .state
            .map(RawValue::get)
            .filter(|state| *state != "null");
        let length = u64::try_from(fields.timeout).unwrap_or_default();
        let mut variables = vec![("SWITCHYARD_RUN_ID", fields.run_id.clone())];
        variables.extend(state.map(|state| ("SWITCHYARD_STATE", state.to_owned())));
        Ok(Job {
            queue: fields.queue,
            id: fields.id,
            payload: fields.payload.get().as_bytes().to_vec(),
            whole: text.get().to_owned(),
            attempt: attempt.and_then(|attempt| u64::try_from(attempt).ok()),
            variables,
            lease: lease(Duration::from_secs(length), sent),
            proof: LeaseProof::Relay(RelayRun {
                run_id: fields.run_id,
                timeout: fields.timeout,
                retries_remaining: fields.retries_remaining,
                payload: fields.payload.get().to_owned(),
                state: state.map(str::to_owned),
                run_at: fields.run_at,
            }),
        })
    }

    pub async fn heartbeat(&self, job: &Job, timeout: Duration) -> Result<HeartbeatResult, Error> {
        // Without a body, the state stays.
        let request = self.run(Method::PATCH, job)?.timeout(timeout);
        match request.send().await {
            Ok(_) => Ok(HeartbeatResult::Extended(
                job.lease.map(|lease| lease.length),
            )),
            Err(error) => lost_job_message(error, &[404]).map(HeartbeatResult::Lost),
        }
    }

    /// Both verbs that end a run have no effect if it has ended, so they can be repeated, and do not tell whether it
    /// had.
    pub async fn report_outcome(&self, job: &Job, report: &Report) -> Result<ReportResult, Error> {
        let LeaseProof::Relay(run) = &job.proof else {
            return Ok(ReportResult::LeftToExpire);
        };
        let replacement = match report {
            Report::Complete => {
                self.run(Method::DELETE, job)?.send().await?;
                return Ok(ReportResult::Done);
            }
            Report::HandBack => replacement(job, run, run.retries_remaining, &run.run_at)?,
            Report::Retry(_) | Report::Fail(_) => {
                let retries = match run.retries_remaining {
                    // The server dead-letters it when its lease expires.
                    Some(..=0) => return Ok(ReportResult::LeftToExpire),
                    retries => retries.map(|retries| retries - 1),
                };
                let delay = TimeDelta::from_std(self.retry_delay).unwrap_or_default();
                let at = (Utc::now() + delay).to_rfc3339_opts(SecondsFormat::Micros, true);
                replacement(job, run, retries, &at)?
            }
        };
        let request = self.run(Method::PUT, job)?;
        request.json(&[replacement]).send().await?;
        Ok(ReportResult::Done)
    }

    /// A request about the run of this job.
    fn run(&self, method: Method, job: &Job) -> Result<Request, Error> {
        let LeaseProof::Relay(run) = &job.proof else {
            return Err(Error::Invalid("not a run of Relay".to_owned()));
        };
        let (queue, id, run) = (job.queue.as_str(), job.id.as_str(), run.run_id.as_str());
        let path = ["v2", "queues", queue, "jobs", id, "run-id", run];
        Ok(self.client.request(method, path))
    }
}

/// The job to enqueue instead of this one.
fn replacement(
    job: &Job,
    run: &RelayRun,
    retries: Option<i64>,
    run_at: &str,
) -> Result<Box<RawValue>, Error> {
    let mut fields = json!({
        "queue": job.queue,
        "id": job.id,
        "timeout": run.timeout,
        "max_retries": retries,
        "run_at": run_at,
    })
    .to_string();
    // Byte for byte, which a `Value` would not keep.
    fields.pop();
    fields.push_str(&format!(r#","payload":{}"#, run.payload));
    if let Some(state) = &run.state {
        fields.push_str(&format!(r#","state":{state}"#));
    }
    fields.push('}');
    RawValue::from_string(fields).map_err(|error| Error::Invalid(error.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_replacement_keeps_the_bytes_of_payload_and_state() {
        let run = RelayRun {
            run_id: "r".to_owned(),
            timeout: 30,
            retries_remaining: Some(2),
            payload: r#"{"b": 1.0,  "a": 10000000000000000000001}"#.to_owned(),
            state: Some("[1,  2]".to_owned()),
            run_at: "2030-01-01T00:00:00.000001Z".to_owned(),
        };
        let job = Job {
            queue: "a/b".to_owned(),
            id: "\"1\"".to_owned(),
            payload: Vec::new(),
            whole: String::new(),
            attempt: None,
            variables: Vec::new(),
            lease: None,
            proof: LeaseProof::Relay(run.clone()),
        };
        let text = replacement(&job, &run, Some(1), &run.run_at).unwrap();
        assert!(text.get().contains(&run.payload), "{text}");
        assert!(text.get().contains("[1,  2]"), "{text}");
        let value: Value = serde_json::from_str(text.get()).unwrap();
        assert_eq!(value["id"], "\"1\"");
        assert_eq!(value["max_retries"], 1);
        assert_eq!(value["run_at"], run.run_at);
    }
}
