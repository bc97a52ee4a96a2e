//! The qless load over the Redis protocol: put, pop, complete. The same commands run on a real Redis with qless-core.

use std::rc::Rc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Result;
use super::drive::{Load, Shared, TRIES};
use super::target::Target;

/// Size of a job's `data`, in bytes.
const DATA_BYTES: usize = 256;

/// One connection and its commands.
pub struct Worker {
    stream: TcpStream,
    request: Vec<u8>,
    reply: Vec<u8>,
    shared: Rc<Shared>,
    alone: bool,
    sha: String,
    queue: String,
    worker: String,
    data: String,
    number: usize,
    jobs: usize,
    /// Whether `put` of the script takes no worker.
    is_workerless: bool,
}

impl Worker {
    pub async fn new(
        target: &Target,
        load: &Load,
        number: usize,
        shared: Rc<Shared>,
    ) -> Result<Worker> {
        let stream = TcpStream::connect(target.redis(number)?).await?;
        stream.set_nodelay(true)?;
        let mut worker = Worker {
            stream,
            request: Vec::new(),
            reply: Vec::new(),
            shared,
            alone: target.is_alone(),
            sha: String::new(),
            queue: load.queue(number),
            worker: format!("worker-{number}"),
            data: format!("\"{}\"", "m".repeat(DATA_BYTES - 2)),
            number,
            jobs: 0,
            is_workerless: target
                .script()
                .contains("QlessAPI.put = function(now, queue,"),
        };
        let script = target.script();
        worker.sha = worker.call(&["SCRIPT", "LOAD", script]).await?;
        Ok(worker)
    }

    pub async fn cycle(&mut self) -> Result<()> {
        self.jobs += 1;
        // Jobs of an earlier measurement may still be stored.
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        let (nanos, number, jobs) = (since.as_nanos(), self.number, self.jobs);
        let jid = format!("{nanos:016x}{number:08x}{jobs:08x}");
        let (queue, worker, data) = (self.queue.clone(), self.worker.clone(), self.data.clone());
        let put = ["put", &worker, &queue, &jid, "Load", &data, "0"];
        let added = if self.is_workerless {
            let [name, _, arguments @ ..] = put;
            self.run(&[&[name][..], &arguments].concat()).await?
        } else {
            self.run(&put).await?
        };
        expect(&added, &jid)?;
        self.shared.ledger.borrow_mut().added(&added)?;
        for _ in 0..if self.alone { 1 } else { TRIES } {
            let popped = self.run(&["pop", &queue, &worker, "1"]).await?;
            let Some(jid) = id(&popped) else {
                continue;
            };
            let complete = ["complete", &jid, &worker, &queue, &data];
            let state = self.run(&complete).await?;
            expect(&state, "complete")?;
            self.shared.ledger.borrow_mut().completed(&jid)?;
            return Ok(());
        }
        match self.alone {
            true => Err("no job was popped".into()),
            false => Ok(()),
        }
    }

    /// Runs a command of qless-core.
    async fn run(&mut self, command: &[&str]) -> Result<String> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        let (sha, now) = (self.sha.clone(), now.as_secs_f64().to_string());
        let (name, arguments) = command.split_first().ok_or("no command")?;
        let start = ["EVALSHA", &sha, "0", name, &now];
        self.call(&[&start[..], arguments].concat()).await
    }

    /// Sends a command. Returns the text of its reply.
    async fn call(&mut self, command: &[&str]) -> Result<String> {
        self.request.clear();
        let head = format!("*{}\r\n", command.len());
        self.request.extend_from_slice(head.as_bytes());
        for argument in command {
            let head = format!("${}\r\n", argument.len());
            self.request.extend_from_slice(head.as_bytes());
            self.request.extend_from_slice(argument.as_bytes());
            self.request.extend_from_slice(b"\r\n");
        }
        self.stream.write_all(&self.request).await?;
        self.reply.clear();
        loop {
            if self.stream.read_buf(&mut self.reply).await? == 0 {
                return Err("the server closed the connection".into());
            }
            if let Some(text) = text(&self.reply)? {
                return Ok(text.to_owned());
            }
        }
    }
}

/// The text of a reply; `None` if it is incomplete.
fn text(reply: &[u8]) -> Result<Option<&str>> {
    let reply = std::str::from_utf8(reply)?;
    let Some((head, rest)) = reply.split_once("\r\n") else {
        return Ok(None);
    };
    let Some(length) = head.strip_prefix('$') else {
        return Err(format!("an unexpected reply: {head}").into());
    };
    let length: usize = length.parse()?;
    let is_complete = rest.len() >= length + 2;
    Ok(is_complete.then(|| rest.get(..length)).flatten())
}

/// The ID of the popped job.
fn id(jobs: &str) -> Option<String> {
    let (_, rest) = jobs.split_once("\"jid\":\"")?;
    rest.split('"').next().map(str::to_owned)
}

fn expect(got: &str, wanted: &str) -> Result<()> {
    match got == wanted {
        true => Ok(()),
        false => Err(format!("an unexpected reply: {got}").into()),
    }
}
