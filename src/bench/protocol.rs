//! The requests of each API.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::{Client, Error, Method};

/// The lease of a claimed job, in seconds.
const LEASE_S: u32 = 60;

/// The time to live of an lmstfy job in seconds, in case it is not deleted.
const TTL_S: u32 = 3_600;

/// An API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    Qless,
    Lmstfy,
    Relay,
}

impl Api {
    /// Whether the server chooses the IDs of jobs.
    pub fn chooses_ids(self) -> bool {
        self == Api::Lmstfy
    }
}

/// What each connection does.
#[derive(Clone, Debug)]
pub struct Load {
    pub api: Api,
    /// The namespace of lmstfy.
    pub namespace: String,
    /// Jobs of each request; only qless has requests for several.
    pub batch: usize,
    pub payload_bytes: usize,
    /// qless: completes the jobs, which then stay in the history, instead of canceling them.
    pub keep: bool,
}

impl Load {
    /// # Errors
    /// If the API has no requests for several jobs, or no completed jobs.
    pub fn check(&self) -> Result<(), &'static str> {
        match self.api {
            Api::Lmstfy | Api::Relay if self.batch > 1 => Err("--batch is only for qless"),
            Api::Lmstfy | Api::Relay if self.keep => Err("--keep is only for qless"),
            Api::Qless | Api::Lmstfy | Api::Relay => Ok(()),
        }
    }
}

/// A claimed job.
pub struct Claimed {
    pub id: String,
    /// Relay's run ID.
    run: String,
}

/// The queue of a measurement.
pub struct Queue {
    client: Client,
    pub load: Load,
    pub name: String,
    payload: String,
}

/// A job, as claimed.
#[derive(Deserialize)]
struct Job {
    #[serde(alias = "job_id")]
    id: String,
    /// Only Relay sends it.
    #[serde(default)]
    run_id: String,
}

#[derive(Deserialize)]
struct Results {
    results: Option<Jobs>,
}

/// A claim of one job returns an object, of several an array.
#[derive(Deserialize)]
#[serde(untagged)]
enum Jobs {
    Many(Vec<Job>),
    One(Job),
}

impl Queue {
    pub fn new(client: Client, load: Load, name: String) -> Queue {
        let payload = "x".repeat(load.payload_bytes);
        Queue {
            client,
            load,
            name,
            payload,
        }
    }

    /// The name of a connection's worker.
    pub fn worker(&self, number: usize) -> String {
        format!("{}-{number}", self.name)
    }

    /// The IDs of the jobs of a cycle.
    pub fn ids(&self, number: usize, cycle: u64) -> Vec<String> {
        let id = |n| format!("{}-{number}-{cycle}-{n}", self.name);
        (0..self.load.batch).map(id).collect()
    }

    /// Puts jobs, and returns their IDs, which may be others.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn put(&self, ids: &[String]) -> Result<Vec<String>, Error> {
        let queue = self.name.as_str();
        match self.load.api {
            Api::Qless => {
                let item = |id: &String| json!({"id": id, "meta": self.payload});
                let items: Vec<Value> = ids.iter().map(item).collect();
                let request = self.client.post(["add", queue]);
                request.json(&json!({"data": items})).send().await?;
                Ok(ids.to_vec())
            }
            Api::Lmstfy => {
                let path = ["api", self.load.namespace.as_str(), queue];
                let request = self.client.request(Method::PUT, path);
                let request = request.with_namespace_token().query("ttl", &TTL_S);
                let response = request.bytes(self.payload.clone()).send().await?;
                Ok(vec![response.json::<Job>()?.id])
            }
            Api::Relay => {
                let item = |id: &String| json!({"queue": queue, "id": id, "timeout": LEASE_S, "max_retries": 0, "payload": self.payload});
                let items: Vec<Value> = ids.iter().map(item).collect();
                let request = self.client.post(["v2", "queues", "jobs"]);
                request.json(&items).send().await?;
                Ok(ids.to_vec())
            }
        }
    }

    /// Claims up to `count` jobs.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn claim(&self, count: usize, worker: &str) -> Result<Vec<Claimed>, Error> {
        let queue = self.name.as_str();
        let jobs = match self.load.api {
            Api::Qless => {
                let count = count.to_string();
                let request = self.client.get(["get", queue, count.as_str()]);
                let response = request.query("host", worker).send().await?;
                match response.json::<Results>()?.results {
                    Some(Jobs::Many(jobs)) => jobs,
                    Some(Jobs::One(job)) => vec![job],
                    None => Vec::new(),
                }
            }
            Api::Lmstfy => {
                let path = ["api", self.load.namespace.as_str(), queue];
                let request = self.client.get(path).with_namespace_token();
                let response = request.query("ttr", &LEASE_S).accept(404).send().await?;
                match response.status().is_success() {
                    true => vec![response.json()?],
                    false => Vec::new(),
                }
            }
            Api::Relay => {
                let request = self.client.get(["v2", "queues", queue, "jobs"]);
                let response = request.query("num_jobs", &count).send().await?;
                match response.body().is_empty() {
                    true => Vec::new(),
                    false => response.json()?,
                }
            }
        };
        let claimed = |job: Job| Claimed {
            id: job.id,
            run: job.run_id,
        };
        Ok(jobs.into_iter().map(claimed).collect())
    }

    /// Finishes claimed jobs, so that nothing remains of them, unless they are to be kept.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn finish(&self, jobs: &[Claimed], worker: &str) -> Result<(), Error> {
        if self.load.api == Api::Qless {
            let ids: Vec<&String> = jobs.iter().map(|job| &job.id).collect();
            if !self.load.keep {
                let request = self.client.post(["cancel"]);
                return request.json(&json!({"data": ids})).send().await.map(drop);
            }
            let item = |id: &&String| json!({"id": id, "meta": self.payload});
            let items: Vec<Value> = ids.iter().map(item).collect();
            let request = self.client.post(["complete", &self.name]);
            let body = json!({"host": worker, "data": items});
            return request.json(&body).send().await.map(drop);
        }
        for Claimed { id, run } in jobs {
            match self.load.api {
                Api::Relay => {
                    let path = ["v2", "queues", &self.name, "jobs", id, "run-id", run];
                    let request = self.client.request(Method::DELETE, path);
                    request.send().await?;
                }
                Api::Qless | Api::Lmstfy => self.remove(id).await?,
            }
        }
        Ok(())
    }

    /// Deletes a job in any state. It need not exist.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn remove(&self, id: &str) -> Result<(), Error> {
        let request = match self.load.api {
            Api::Qless => {
                let request = self.client.post(["cancel"]).accept(404).accept(409);
                request.json(&json!({"data": id}))
            }
            Api::Lmstfy => {
                let path = ["api", &self.load.namespace, &self.name, "job", id];
                let request = self.client.request(Method::DELETE, path);
                request.with_namespace_token()
            }
            Api::Relay => {
                let path = ["v2", "queues", &self.name, "jobs", id];
                self.client.request(Method::DELETE, path)
            }
        };
        request.send().await.map(drop)
    }

    /// Removes the queue, which is empty, and the workers from qless's lists. The server itself deletes empty queues of
    /// lmstfy and Relay.
    ///
    /// # Errors
    /// If a request fails.
    pub async fn forget(&self, workers: usize) -> Result<(), Error> {
        if self.load.api != Api::Qless {
            return Ok(());
        }
        for number in 0..workers {
            let path = ["worker".to_owned(), self.worker(number)];
            let request = self.client.request(Method::DELETE, path);
            request.accept(404).send().await?;
        }
        let request = self.client.request(Method::DELETE, ["queue", &self.name]);
        request.accept(404).send().await.map(drop)
    }
}
