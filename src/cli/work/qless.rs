//! qless: leases with heartbeats, fenced by the name of the worker.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::api::{
    HeartbeatResult, Report, ReportResult, UpcomingJob, lease, lost_job_message, one_or_many,
    parsed,
};
use super::job::{Job, LeaseProof};
use crate::client::{Client, Error, Response};

/// Added to the time that a long poll takes.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);

/// The statuses of a job that this worker does not run: it does not exist, or another worker has it.
const LOST: [u16; 2] = [404, 409];

/// Maximum length of a message, in bytes: what the server keeps of it.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

#[derive(Debug)]
pub struct Qless {
    pub client: Client,
    pub name: String,
    pub retry_delay: Duration,
}

#[derive(Deserialize)]
struct QlessResponse<'a> {
    #[serde(borrow)]
    results: &'a RawValue,
}

#[derive(Deserialize)]
struct Fields<'a> {
    id: String,
    queue: Option<String>,
    #[serde(borrow)]
    meta: &'a RawValue,
    klass: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    retries: Option<i64>,
    remaining: Option<i64>,
    /// The length of the lease, in seconds.
    heartbeat: Option<f64>,
}

#[derive(Deserialize)]
struct State {
    state: String,
}

/// A completed job, with its payload byte for byte.
#[derive(Serialize)]
struct Completion<'a> {
    id: &'a str,
    meta: &'a RawValue,
}

impl Qless {
    pub async fn claim(
        &self,
        queues: &[String],
        count: usize,
        wait: Duration,
    ) -> Result<Vec<Job>, Error> {
        let data = json!({"queues": queues, "count": count, "wait": wait.as_secs_f64()});
        let request = self.client.post(["get"]).timeout(wait + RESPONSE_TIMEOUT);
        let response = request
            .json(&json!({"host": self.name, "data": data}))
            .send()
            .await?;
        // The server sets the lease when it responds, so counting from now is off only by the time of the transfer,
        // and the first heartbeat follows long before the end.
        let received = Instant::now();
        let jobs = self.jobs(&response)?;
        jobs.into_iter()
            .map(|job| self.job(job, received))
            .collect()
    }

    pub async fn next(&self, queues: &[String], count: usize) -> Result<Vec<UpcomingJob>, Error> {
        let mut next = Vec::new();
        for queue in queues {
            let request = self.client.get(["peek", queue, &count.to_string()]);
            let response = request.send().await?;
            for job in self.jobs(&response)? {
                let fields: Fields<'_> = parsed(&self.client, job.get())?;
                next.push(UpcomingJob {
                    queue: queue.clone(),
                    id: fields.id,
                    bytes: fields.meta.get().len(),
                });
            }
        }
        Ok(next)
    }

    /// The jobs in a response: none, one or several.
    fn jobs<'a>(&self, response: &'a Response) -> Result<Vec<&'a RawValue>, Error> {
        let response_body: QlessResponse<'a> = response.json()?;
        one_or_many(&self.client, response_body.results)
    }

    fn job(&self, text: &RawValue, claimed: Instant) -> Result<Job, Error> {
        let fields: Fields<'_> = parsed(&self.client, text.get())?;
        let tried = fields.retries.zip(fields.remaining);
        let attempt = tried.map(|(retries, remaining)| retries - remaining + 1);
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).ok();
        let length = fields.heartbeat.and_then(seconds).unwrap_or_default();
        Ok(Job {
            queue: fields.queue.unwrap_or_default(),
            id: fields.id,
            payload: fields.meta.get().as_bytes().to_vec(),
            whole: text.get().to_owned(),
            attempt: attempt.and_then(|attempt| u64::try_from(attempt).ok()),
            variables: vec![
                ("SWITCHYARD_KLASS", fields.klass.unwrap_or_default()),
                ("SWITCHYARD_TAGS", fields.tags.join(",")),
            ],
            lease: lease(length, claimed),
            proof: LeaseProof::Qless,
        })
    }

    pub async fn heartbeat(&self, job: &Job, timeout: Duration) -> Result<HeartbeatResult, Error> {
        let request = self.client.post(["heartbeat", &job.queue]).timeout(timeout);
        let request = request.json(&json!({"host": self.name, "data": job.id}));
        match request.send().await {
            Ok(response) => {
                let response_body: QlessResponse<'_> = response.json()?;
                let seconds: f64 = parsed(&self.client, response_body.results.get())?;
                let length = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default();
                Ok(HeartbeatResult::Extended(Some(length)))
            }
            Err(error) => lost_job_message(error, &LOST).map(HeartbeatResult::Lost),
        }
    }

    pub async fn report_outcome(
        &self,
        job: &Job,
        report: &Report,
        is_repeated: bool,
    ) -> Result<ReportResult, Error> {
        let sent = match report {
            Report::Complete => self.complete(job).await,
            Report::Retry(failure) => {
                let data = json!({
                    "id": job.id,
                    "delay": self.retry_delay.as_secs_f64(),
                    "group": failure.group,
                    "message": start(&failure.message),
                });
                self.post(["retry", &job.queue], &data).await
            }
            Report::Fail(failure) => {
                let data = json!({
                    "id": job.id,
                    "group": failure.group,
                    "message": start(&failure.message),
                });
                self.post(["fail", &job.queue], &data).await
            }
            Report::HandBack => return self.hand_back(job).await,
        };
        let Err(error) = sent else {
            return Ok(ReportResult::Done);
        };
        if is_repeated && error.code() == Some("not_running") && self.has(job, report).await? {
            return Ok(ReportResult::Done);
        }
        lost_job_message(error, &LOST).map(ReportResult::Lost)
    }

    async fn complete(&self, job: &Job) -> Result<Response, Error> {
        let text = std::str::from_utf8(&job.payload).unwrap_or_default();
        let meta: &RawValue = parsed(&self.client, text)?;
        let item = Completion { id: &job.id, meta };
        self.post(["complete", &job.queue], &item).await
    }

    async fn post<const N: usize>(
        &self,
        segments: [&str; N],
        data: &impl Serialize,
    ) -> Result<Response, Error> {
        /// The envelope of a request.
        #[derive(Serialize)]
        struct Envelope<'a, T> {
            host: &'a str,
            data: &'a T,
        }
        let envelope = Envelope {
            host: &self.name,
            data,
        };
        self.client.post(segments).json(&envelope).send().await
    }

    /// Whether the job is in the state that the report causes: an earlier attempt succeeded.
    async fn has(&self, job: &Job, report: &Report) -> Result<bool, Error> {
        let response = self.client.get(["job", &job.id]).send().await?;
        let response_body: QlessResponse<'_> = response.json()?;
        let State { state } = parsed(&self.client, response_body.results.get())?;
        Ok(match report {
            Report::Complete => state == "complete",
            Report::Retry(_) => ["waiting", "scheduled", "failed"].contains(&state.as_str()),
            Report::Fail(_) => state == "failed",
            Report::HandBack => state != "running",
        })
    }

    /// `/timeout` does not use up a retry, but does not check the worker either; so a heartbeat goes first.
    async fn hand_back(&self, job: &Job) -> Result<ReportResult, Error> {
        match self.heartbeat(job, RESPONSE_TIMEOUT).await? {
            HeartbeatResult::Lost(why) => return Ok(ReportResult::Lost(why)),
            HeartbeatResult::Extended(_) => {}
        }
        match self.post(["timeout"], &job.id).await {
            Ok(_) => Ok(ReportResult::Done),
            Err(error) => lost_job_message(error, &LOST).map(ReportResult::Lost),
        }
    }
}

/// As much of the message's start as the server keeps. The message is the end of a text already.
fn start(message: &str) -> &str {
    let mut end = message.len().min(MESSAGE_BYTES_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.get(..end).unwrap_or_default()
}
