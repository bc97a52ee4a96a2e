//! lmstfy: a fixed time to run, without heartbeats. Only completion is reported; a job that failed is delivered again
//! when its time to run has passed.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::api::{Report, ReportResult, UpcomingJob, one_or_many, parsed, unexpected};
use super::job::{Job, Lease, LeaseProof};
use crate::client::{Client, Error, Method, Request};

/// Added to the time that a long poll takes.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);

/// Maximum number of jobs of a consume.
const COUNT_MAX: usize = 100;

/// How much earlier than the server the worker ends the lease, because the time to run started before the response
/// was received.
const LEASE_MARGIN: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct Lmstfy {
    pub client: Client,
    pub namespace: String,
    pub ttr: Duration,
}

#[derive(Deserialize)]
struct Fields {
    job_id: String,
    queue: String,
    /// In base64.
    data: String,
    remain_tries: Option<u64>,
    ttl: Option<u64>,
}

impl Lmstfy {
    pub async fn claim(
        &self,
        queues: &[String],
        count: usize,
        wait: Duration,
    ) -> Result<Vec<Job>, Error> {
        // Commas separate the queues of a path.
        let request = self.request(Method::GET, &[&queues.join(",")]);
        let response = request
            .query("timeout", &wait.as_secs())
            .query("ttr", &self.ttr.as_secs())
            .query("count", &count.min(COUNT_MAX))
            .timeout(wait + RESPONSE_TIMEOUT)
            .send()
            .await;
        let received = Instant::now();
        let response = match response {
            Err(error) if error.message() == Some("no job available") => return Ok(Vec::new()),
            response => response?,
        };
        let jobs: &RawValue = response.json()?;
        let jobs = one_or_many(&self.client, jobs)?;
        jobs.into_iter()
            .map(|job| self.job(job, received))
            .collect()
    }

    pub async fn next(&self, queues: &[String]) -> Result<Vec<UpcomingJob>, Error> {
        let mut next = Vec::new();
        for queue in queues {
            let request = self.request(Method::GET, &[queue, "peek"]).accept(404);
            let response = request.send().await?;
            if response.status().is_success() {
                let fields: Fields = response.json()?;
                next.push(UpcomingJob {
                    queue: queue.clone(),
                    id: fields.job_id,
                    bytes: fields.data.len() / 4 * 3,
                });
            }
        }
        Ok(next)
    }

    fn job(&self, text: &RawValue, received: Instant) -> Result<Job, Error> {
        let fields: Fields = parsed(&self.client, text.get())?;
        let payload = STANDARD.decode(&fields.data);
        let payload = payload.map_err(|error| unexpected(&self.client, &error))?;
        let number = |number: Option<u64>| number.map_or_else(String::new, |it| it.to_string());
        Ok(Job {
            queue: fields.queue,
            id: fields.job_id,
            payload,
            whole: text.get().to_owned(),
            attempt: None,
            variables: vec![
                ("SWITCHYARD_NAMESPACE", self.namespace.clone()),
                ("SWITCHYARD_REMAINING_TRIES", number(fields.remain_tries)),
                ("SWITCHYARD_TTL", number(fields.ttl)),
            ],
            lease: Some(Lease {
                length: self.ttr,
                until: received + self.ttr.saturating_sub(LEASE_MARGIN),
                can_extend: false,
            }),
            proof: LeaseProof::Lmstfy,
        })
    }

    /// A repeated completion has no effect, so it needs no special treatment.
    pub async fn report_outcome(&self, job: &Job, report: &Report) -> Result<ReportResult, Error> {
        match report {
            Report::Complete => {
                let request = self.request(Method::DELETE, &[&job.queue, "job", &job.id]);
                request.send().await?;
                Ok(ReportResult::Done)
            }
            Report::Retry(_) | Report::Fail(_) | Report::HandBack => Ok(ReportResult::LeftToExpire),
        }
    }

    fn request(&self, method: Method, segments: &[&str]) -> Request {
        let segments = ["api", &self.namespace]
            .into_iter()
            .chain(segments.iter().copied());
        self.client.request(method, segments).with_namespace_token()
    }
}
