//! Jobq: no leases. The state of a job shows who works on it, and changes by compare-and-set, so the state that the
//! worker has set is its claim.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

use super::api::{HeartbeatResult, Report, ReportResult, UpcomingJob, parsed};
use super::job::{Job, LeaseProof};
use super::outcome::Failure;
use crate::client::{Client, Error};
use crate::config::ApiFlags;

/// How often to check that no other client has changed the state.
const CHECK_INTERVAL: Duration = Duration::from_secs(15);

/// How many heartbeats there are, at least, in the time after which a job is taken over.
const EVENTS_PER_PERIOD: u32 = 3;

/// The response to a poll that finds nothing.
const NOTHING: &str = "no job matches";

/// The beginning of the error of a poll that finds only jobs whose logs are full.
const LOG_FULL: &str = "the log of job ";

#[derive(Debug)]
pub struct Jobq {
    pub client: Client,
    pub name: String,
    pub options: ApiFlags,
    /// Polls without a response: the queue and the ID of the run. They may have set the state of a job.
    pub without_response: Mutex<Vec<(String, Uuid)>>,
}

#[derive(Deserialize)]
struct Fields<'a> {
    id: i64,
    #[serde(borrow)]
    payload: &'a RawValue,
    #[serde(deserialize_with = "shallow")]
    state: Value,
    #[serde(default, deserialize_with = "all_shallow")]
    events: Vec<Value>,
}

/// States and events of other clients can be nested too deeply for a [`Value`]. They are null here, because the worker
/// looks only for its own.
fn shallow<'de, D: Deserializer<'de>>(text: D) -> Result<Value, D::Error> {
    <&RawValue>::deserialize(text).map(value)
}

fn all_shallow<'de, D: Deserializer<'de>>(text: D) -> Result<Vec<Value>, D::Error> {
    let texts = Vec::<&RawValue>::deserialize(text)?;
    Ok(texts.into_iter().map(value).collect())
}

fn value(text: &RawValue) -> Value {
    serde_json::from_str(text.get()).unwrap_or_default()
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    jobs: Vec<Fields<'a>>,
}

#[derive(Deserialize)]
struct RawPage<'a> {
    #[serde(borrow)]
    jobs: Vec<&'a RawValue>,
}

#[derive(Serialize)]
struct Poll<'a> {
    query: &'a RawValue,
    state: &'a Value,
}

#[derive(Serialize)]
struct Query<'a> {
    query: &'a RawValue,
    limit: usize,
}

impl Jobq {
    /// Polls one queue after the other, until there are enough jobs.
    pub async fn claim(&self, queues: &[String], count: usize) -> Result<Vec<Job>, Error> {
        let mut jobs = self.jobs_of_lost_responses().await?;
        let abandoned = self.options.take_over.map(|after| self.abandoned(after));
        let abandoned = abandoned.transpose()?;
        let queries = || {
            [Some(&self.options.query), abandoned.as_ref()]
                .into_iter()
                .flatten()
        };
        for queue in queues {
            for query in queries() {
                while jobs.len() < count {
                    match self.poll(queue, query).await {
                        Ok(Some(job)) => jobs.push(job),
                        Ok(None) => break,
                        // The jobs that are claimed already must run.
                        Err(_) if !jobs.is_empty() => return Ok(jobs),
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        Ok(jobs)
    }

    async fn poll(&self, queue: &str, query: &RawValue) -> Result<Option<Job>, Error> {
        let run = Uuid::new_v4();
        let state = json!([self.options.assigned_state, {"worker": self.name, "run": run}]);
        let request = self.client.post(["api", "v0", "queue", queue, "poll_job"]);
        let response = request
            .json(&Poll {
                query,
                state: &state,
            })
            .send()
            .await;
        match response {
            Ok(response) => self.job(queue, &response.text()).map(Some),
            Err(error) if error.message() == Some(NOTHING) => Ok(None),
            // Another job may match later.
            Err(error) if error.message().is_some_and(|it| it.starts_with(LOG_FULL)) => {
                tracing::warn!(queue, %error, "a job that matches cannot be claimed");
                Ok(None)
            }
            Err(error) => {
                if error.is_uncertain() {
                    self.without_response().push((queue.to_owned(), run));
                }
                Err(error)
            }
        }
    }

    /// The jobs of polls that had no response. Jobq has no leases, so no other worker would get them.
    async fn jobs_of_lost_responses(&self) -> Result<Vec<Job>, Error> {
        let mut jobs = Vec::new();
        loop {
            let Some((queue, run)) = self.without_response().last().cloned() else {
                return Ok(jobs);
            };
            let label = format!("'{}'", self.options.assigned_state);
            let query = json!([
                ["=", "json_extract(j.state, '$[0]')", label],
                ["=", "json_extract(j.state, '$[1].run')", format!("'{run}'")]
            ]);
            let request = self
                .client
                .post(["api", "v0", "queue", &queue, "query_jobs"]);
            let response = request.json(&json!({"query": query})).send().await?;
            let page: RawPage<'_> = response.json()?;
            for job in page.jobs {
                jobs.push(self.job(&queue, job.get())?);
            }
            self.without_response().pop();
        }
    }

    fn without_response(&self) -> MutexGuard<'_, Vec<(String, Uuid)>> {
        self.without_response
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn job(&self, queue: &str, text: &str) -> Result<Job, Error> {
        let fields: Fields<'_> = parsed(&self.client, text)?;
        let label = Some(self.options.assigned_state.as_str());
        let assigned = |event: &&Value| {
            let new = event.pointer("/1/new/0");
            new.and_then(Value::as_str) == label
        };
        let attempt = fields.events.iter().filter(assigned).count();
        Ok(Job {
            queue: queue.to_owned(),
            id: fields.id.to_string(),
            payload: fields.payload.get().as_bytes().to_vec(),
            whole: text.to_owned(),
            attempt: u64::try_from(attempt).ok(),
            variables: Vec::new(),
            lease: None,
            proof: LeaseProof::Jobq {
                state: fields.state.to_string(),
            },
        })
    }

    /// The query for jobs whose worker has not reported for this time.
    fn abandoned(&self, after: Duration) -> Result<Box<RawValue>, Error> {
        let label = format!("'{}'", self.options.assigned_state);
        let time = format!("strftime('%s','now') - {}", after.as_secs());
        let query = json!([
            ["=", "json_extract(j.state, '$[0]')", label],
            ["<", "modified", time]
        ]);
        RawValue::from_string(query.to_string()).map_err(|error| Error::Invalid(error.to_string()))
    }

    pub async fn next(&self, queues: &[String], count: usize) -> Result<Vec<UpcomingJob>, Error> {
        let mut next = Vec::new();
        for queue in queues {
            let request = self
                .client
                .post(["api", "v0", "queue", queue, "query_jobs"]);
            let query = Query {
                query: &self.options.query,
                limit: count,
            };
            let response = request.json(&query).send().await?;
            let page: Page<'_> = response.json()?;
            next.extend(page.jobs.into_iter().map(|job| UpcomingJob {
                queue: queue.clone(),
                id: job.id.to_string(),
                bytes: job.payload.get().len(),
            }));
        }
        Ok(next)
    }

    /// How often to check the state of a job, or to report that its program runs.
    pub fn check_interval(&self) -> Duration {
        let take_over = self.options.take_over;
        take_over.map_or(CHECK_INTERVAL, |after| after / EVENTS_PER_PERIOD)
    }

    /// Checks that the state is still the one that the worker has set. With `--take-over`, first adds an event to the
    /// log, which shows that the worker exists.
    pub async fn heartbeat(&self, job: &Job, timeout: Duration) -> Result<HeartbeatResult, Error> {
        let path = ["api", "v0", "queue", &job.queue, "job", &job.id];
        let request = match self.options.take_over {
            None => self.client.get(path),
            Some(_) => {
                let path = path.into_iter().chain(["event"]);
                let event = json!({"heartbeat": self.name});
                self.client.post(path).json(&event)
            }
        };
        let response = match request.timeout(timeout).send().await {
            Err(error) if error.status() == Some(404) => {
                return Ok(HeartbeatResult::Lost(error.to_string()));
            }
            response => response?,
        };
        let fields: Fields<'_> = response.json()?;
        Ok(match fields.state == own_state(&self.client, job)? {
            true => HeartbeatResult::Extended(None),
            false => HeartbeatResult::Lost("the state of the job was changed".to_owned()),
        })
    }

    pub async fn report_outcome(
        &self,
        job: &Job,
        report: &Report,
        is_repeated: bool,
    ) -> Result<ReportResult, Error> {
        let options = &self.options;
        let new = match report {
            Report::Complete => json!([options.finished_state]),
            Report::Fail(Failure { group, message }) => {
                json!([options.failed_state, {"group": group, "message": message}])
            }
            Report::Retry(_) | Report::HandBack => {
                let label = options.retry_state.as_ref();
                label.map_or(Value::Null, |label| json!([label]))
            }
        };
        let old = own_state(&self.client, job)?;
        let path = ["api", "v0", "queue", &job.queue, "job", &job.id];
        let request = self.client.post(path.into_iter().chain(["state"]));
        let request = request.json(&json!({"old": old, "new": new})).accept(409);
        let response = match request.send().await {
            Err(error) if error.status() == Some(404) => {
                return Ok(ReportResult::Lost(error.to_string()));
            }
            response => response?,
        };
        if response.status().as_u16() == 409 {
            let fields: Fields<'_> = response.json()?;
            let advanced = |event: &Value| {
                event.pointer("/1/old") == Some(&old) && event.pointer("/1/new") == Some(&new)
            };
            return Ok(match is_repeated && fields.events.iter().any(advanced) {
                true => ReportResult::Done,
                false => ReportResult::Lost("the state of the job was changed".to_owned()),
            });
        }
        if let Report::Retry(Failure { group, message }) = report {
            let request = self.client.post(path.into_iter().chain(["event"]));
            let event = json!({"retry": {"group": group, "message": message}});
            // The retry itself is done.
            drop(request.json(&event).send().await);
        }
        Ok(ReportResult::Done)
    }
}

/// The state that the poll has set.
fn own_state(client: &Client, job: &Job) -> Result<Value, Error> {
    match &job.proof {
        LeaseProof::Jobq { state } => parsed(client, state),
        LeaseProof::Qless | LeaseProof::Lmstfy | LeaseProof::Relay(_) => {
            Err(Error::Invalid("not a job of Jobq".to_owned()))
        }
    }
}
