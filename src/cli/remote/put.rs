//! `switchyard job put`: puts jobs through the API of the queue, from arguments, standard input or lines of a file.

mod body;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use hyper::Method;
use serde_json::{Value, json};

use self::body::{item_body, payload_body, whole};
use super::rows::queue_name;
use super::{Result, Session};
use crate::cli::exit::{Code, Failure};
use crate::cli::output::{json_line, printable};
use crate::cli::{Outcome, print, print_notice};
use crate::config::JobPut;
use crate::engine::QueueKey;
use crate::ui::model::queue_ref::Protocol;
use crate::ui::present::queue_refs::queue_ref;

/// Maximum size of a payload or a line, in bytes. A request to qless has room for it (16 MiB); the other APIs accept
/// less.
const BYTES_MAX: usize = 15 << 20;

/// Maximum number of jobs in one request, and the number of bytes after which a request is sent.
const BATCH_JOBS: usize = 250;
const BATCH_BYTES: usize = 1 << 20;

/// The name of the client in the history of the job.
const CLIENT: &str = "switchyard";

/// A job that is read but not put yet.
struct Input {
    /// The number of its line; 0 if it is not from a file.
    line: usize,
    /// The body of its request: a JSON object, or for lmstfy the body of the job.
    body: Vec<u8>,
    /// The ID that Relay needs.
    id: Option<String>,
}

pub async fn run(options: &JobPut) -> Outcome {
    let session = Session::new(&options.remote)?;
    check(options)?;
    let mut put = PutBatch {
        session: &session,
        options,
        batch: Vec::new(),
        bytes: 0,
        count: 0,
        worst: None,
    };
    match (&options.lines, &options.items) {
        (Some(path), _) => put.lines(path, |line| payload_body(options, line)).await?,
        (None, Some(path)) => put.lines(path, |line| item_body(options, line)).await?,
        (None, None) => {
            let payload = payload(options.payload.as_deref())?;
            let (body, id) = payload_body(options, &payload).map_err(Failure::usage)?;
            put.add(Input { line: 0, body, id }).await?;
        }
    }
    put.send().await?;
    put.worst
        .map_or(Ok(()), |code| Err(Failure::reported(code).into()))
}

/// Refuses options that the API of the queue does not have.
fn check(options: &JobPut) -> Result<()> {
    let is_set = [
        ("--id", options.id.is_some()),
        ("--class", options.class.is_some()),
        ("--priority", options.priority.is_some()),
        ("--retries", options.retries.is_some()),
        ("--delay", options.delay.is_some()),
        ("--tag", !options.tags.is_empty()),
        ("--depends", !options.depends.is_empty()),
        ("--ttl", options.ttl.is_some()),
        ("--timeout", options.timeout.is_some()),
        ("--state", options.state.is_some()),
    ];
    let known: &[&str] = match options.queue.protocol {
        Protocol::Qless => &[
            "--id",
            "--class",
            "--priority",
            "--retries",
            "--delay",
            "--tag",
            "--depends",
        ],
        Protocol::Lmstfy => &["--retries", "--delay", "--ttl"],
        Protocol::Relay => &["--id", "--retries", "--timeout", "--state"],
        Protocol::Jobq => &["--state"],
    };
    let api = options.queue.protocol.name();
    if let Some((name, _)) = is_set
        .iter()
        .find(|(name, is_set)| *is_set && !known.contains(name))
    {
        return Err(Failure::usage(format!("{api} jobs have no {name}")));
    }
    if options.items.is_some() {
        if options.queue.protocol == Protocol::Lmstfy {
            return Err(Failure::usage(
                "lmstfy does not support --items; use --lines",
            ));
        }
        if let Some((name, _)) = is_set.iter().find(|(_, is_set)| *is_set) {
            return Err(Failure::usage(format!(
                "{name} is a field of each line with --items"
            )));
        }
    }
    Ok(())
}

/// The payload of a single job; a hyphen reads standard input.
fn payload(given: Option<&str>) -> Result<Vec<u8>> {
    match given {
        None => Ok(b"{}".to_vec()),
        Some("-") => {
            let mut text = Vec::new();
            let limit = u64::try_from(BYTES_MAX).unwrap_or(u64::MAX) + 1;
            let read = std::io::stdin().lock().take(limit).read_to_end(&mut text);
            read.map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?;
            if text.len() > BYTES_MAX {
                return Err(Failure::usage(format!("the payload has {}", too_long())));
            }
            Ok(text)
        }
        Some(text) => Ok(text.as_bytes().to_vec()),
    }
}

fn too_long() -> String {
    format!("more than {} MiB", BYTES_MAX >> 20)
}

/// Puts jobs in batches, and reports each.
struct PutBatch<'a> {
    session: &'a Session,
    options: &'a JobPut,
    batch: Vec<Input>,
    bytes: usize,
    /// How many jobs were put.
    count: usize,
    /// The worst code of the jobs that were not put.
    worst: Option<Code>,
}

impl PutBatch<'_> {
    /// Puts a job for each line of the file. Reports wrong lines, and continues with the next one.
    async fn lines(
        &mut self,
        path: &Path,
        body: impl Fn(&[u8]) -> Result<(Vec<u8>, Option<String>), String>,
    ) -> Result<()> {
        let mut reader: Box<dyn BufRead> = if path == Path::new("-") {
            Box::new(BufReader::new(std::io::stdin()))
        } else {
            let file = File::open(path);
            let file = file.map_err(|error| {
                Failure::usage(format!("cannot read {}: {error}", path.display()))
            })?;
            Box::new(BufReader::new(file))
        };
        let mut number = 0;
        loop {
            let mut line = Vec::new();
            let limit = u64::try_from(BYTES_MAX).unwrap_or(u64::MAX) + 2;
            let read = reader.by_ref().take(limit).read_until(b'\n', &mut line);
            let read =
                read.map_err(|error| Failure::usage(format!("line {}: {error}", number + 1)))?;
            if read == 0 {
                return Ok(());
            }
            number += 1;
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            if line.len() > BYTES_MAX {
                self.send().await?;
                return Err(Failure::usage(format!(
                    "line {number} has {}; jobs put: {}",
                    too_long(),
                    self.count
                )));
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            match body(&line) {
                Ok((body, id)) => {
                    self.add(Input {
                        line: number,
                        body,
                        id,
                    })
                    .await?;
                }
                Err(why) => self.refuse(number, &Failure::usage(why)),
            }
        }
    }

    async fn add(&mut self, input: Input) -> Result<()> {
        self.bytes += input.body.len();
        self.batch.push(input);
        let is_batched = matches!(
            self.options.queue.protocol,
            Protocol::Qless | Protocol::Relay
        );
        if !is_batched || self.batch.len() >= BATCH_JOBS || self.bytes >= BATCH_BYTES {
            self.send().await?;
        }
        Ok(())
    }

    /// Puts the jobs of the batch.
    async fn send(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        self.bytes = 0;
        if batch.is_empty() {
            return Ok(());
        }
        match self.put(&batch).await {
            Ok(results) => {
                for (input, result) in batch.iter().zip(results) {
                    match result {
                        Ok(id) => self.accept(&id),
                        Err(why) => self.refuse(input.line, &Failure::new(Code::Refused, why)),
                    }
                }
                Ok(())
            }
            // Relay refuses a batch as a whole; one by one, the others are put.
            Err(failure) if failure.code == Code::Refused && batch.len() > 1 => {
                for input in batch {
                    Box::pin(self.send_one(input)).await?;
                }
                Ok(())
            }
            Err(failure) if batch.iter().all(|input| input.line == 0) => Err(failure),
            Err(failure) if matches!(failure.code, Code::Unreachable | Code::NotFound) => {
                let from = batch.first().map_or(0, |input| input.line);
                Err(Failure::new(
                    failure.code,
                    format!(
                        "{}; jobs put: {}; the jobs from line {from} on may be missing",
                        failure.message, self.count
                    ),
                ))
            }
            Err(failure) => {
                batch
                    .iter()
                    .for_each(|input| self.refuse(input.line, &failure));
                Ok(())
            }
        }
    }

    async fn send_one(&mut self, input: Input) -> Result<()> {
        self.batch.push(input);
        self.send().await
    }

    fn accept(&mut self, id: &str) {
        self.count += 1;
        let queue = queue_name(&queue_ref(&self.options.queue));
        let json = || json!({ "id": id, "queue": queue });
        print(&self.session.format(json, || format!("{}\n", printable(id))));
    }

    fn refuse(&mut self, line: usize, failure: &Failure) {
        self.worst = self.worst.max(Some(failure.code));
        if self.session.json {
            print(&json_line(
                &json!({ "line": line, "error": failure.message }),
            ));
        }
        let place = if line == 0 {
            String::new()
        } else {
            format!("line {line}: ")
        };
        print_notice(&format!("error: {place}{}", printable(&failure.message)));
    }

    /// One request. Returns the ID of each job, or why it was refused.
    async fn put(&self, batch: &[Input]) -> Result<Vec<Result<String, String>>> {
        let QueueKey {
            protocol,
            namespace,
            name,
        } = &self.options.queue;
        let client = &self.session.client;
        match protocol {
            Protocol::Qless => {
                let items: Vec<&[u8]> = batch.iter().map(|input| &*input.body).collect();
                let data = items.join(&b","[..]);
                let body = [
                    format!("{{\"host\":\"{CLIENT}\",\"data\":[").as_bytes(),
                    &data,
                    b"]}",
                ]
                .concat();
                let request = client.post(["add", name.as_str()]).bytes(body);
                let response: Value = request.send().await?.json()?;
                Ok(qless_results(&response, batch.len()))
            }
            Protocol::Relay => {
                let items: Vec<&[u8]> = batch.iter().map(|input| &*input.body).collect();
                let body = [b"[", &*items.join(&b","[..]), b"]"].concat();
                let request = client.post(["v2", "queues", "jobs"]);
                let request = request.header(hyper::header::CONTENT_TYPE, "application/json");
                request.bytes(body).send().await?;
                Ok(batch
                    .iter()
                    .map(|input| Ok(input.id.clone().unwrap_or_default()))
                    .collect())
            }
            Protocol::Lmstfy => {
                let mut results = Vec::new();
                for input in batch {
                    let mut request =
                        client.request(Method::PUT, ["api", namespace.as_str(), name.as_str()]);
                    request = request.with_namespace_token().bytes(input.body.clone());
                    if let Some(delay) = self.options.delay {
                        request = request.query("delay", &whole(delay));
                    }
                    if let Some(ttl) = self.options.ttl {
                        request = request.query("ttl", &whole(ttl));
                    }
                    if let Some(retries) = self.options.retries {
                        request = request.query("tries", &(u64::from(retries) + 1));
                    }
                    let response: Value = request.send().await?.json()?;
                    results.push(text(&response, "job_id"));
                }
                Ok(results)
            }
            Protocol::Jobq => {
                let mut results = Vec::new();
                for input in batch {
                    let request = client.post(["api", "v0", "queue", name.as_str(), "job"]);
                    let response: Value = request.bytes(input.body.clone()).send().await?.json()?;
                    results.push(text(&response, "id"));
                }
                Ok(results)
            }
        }
    }
}

/// A text or number of a response.
fn text(response: &Value, key: &str) -> Result<String, String> {
    match response.get(key) {
        Some(Value::String(id)) => Ok(id.clone()),
        Some(Value::Number(id)) => Ok(id.to_string()),
        _ => Err(format!("the response has no {key}")),
    }
}

/// The results of an array of qless items.
fn qless_results(response: &Value, count: usize) -> Vec<Result<String, String>> {
    let result = |index: usize| {
        let of = |key: &str| response.get(key).and_then(|it| it.get(index));
        if let Some(id) = of("results").and_then(Value::as_str) {
            return Ok(id.to_owned());
        }
        let error = of("errors");
        let why = error.and_then(|it| {
            it.get("error")
                .and_then(Value::as_str)
                .or_else(|| it.as_str())
        });
        Err(why.unwrap_or("the server refused the job").to_owned())
    };
    (0..count).map(result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_qless_item_has_its_result() {
        let response = json!({
            "results": ["a", false, false],
            "errors": [null, { "error": "no such job", "code": "x" }, null],
        });
        assert_eq!(
            qless_results(&response, 3),
            [
                Ok("a".to_owned()),
                Err("no such job".to_owned()),
                Err("the server refused the job".to_owned())
            ]
        );
    }
}
