//! The commands that manage a running server: `switchyard queue`, `job`, `failure`, `worker`, `recurring`, `operation`,
//! `token remote`, `config` and `top`.

mod completion;
mod exit_codes;
mod jobs;
mod lists;
mod put;
mod settings;
mod top;
mod watch;

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::Server;

/// A command line for one server.
struct Cli {
    server: String,
    token: Option<&'static str>,
}

/// What a command has printed, and its exit code.
#[derive(Debug)]
struct CommandOutput {
    stdout: String,
    stderr: String,
    code: i32,
}

impl CommandOutput {
    /// The output of a command that must succeed.
    #[track_caller]
    fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.stdout
    }

    /// The lines of JSON of a command that must succeed.
    #[track_caller]
    fn json(self) -> Vec<Value> {
        lines_of_json(&self.ok())
    }

    /// The error of a command that must fail with this code.
    #[track_caller]
    fn error(self, code: i32) -> String {
        assert_eq!(self.code, code, "{self:?}");
        self.stderr
    }
}

#[track_caller]
fn lines_of_json(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

impl Cli {
    fn of(server: &Server) -> Cli {
        Cli {
            server: format!("http://{}", server.address),
            token: None,
        }
    }

    fn with_token(&self, token: &'static str) -> Cli {
        Cli {
            server: self.server.clone(),
            token: Some(token),
        }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Server::program();
        command.args(words).env("SWITCHYARD_SERVER", &self.server);
        if let Some(token) = self.token {
            command.env("SWITCHYARD_TOKEN", token);
        }
        command
    }

    fn run(&self, words: &[&str]) -> CommandOutput {
        self.run_with(words, "")
    }

    /// Runs a command with this text on standard input.
    fn run_with(&self, words: &[&str], input: &str) -> CommandOutput {
        let mut command = self.command(words);
        let piped = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_owned();
        let writer = std::thread::spawn(move || {
            // The command need not read it.
            stdin.write_all(input.as_bytes()).ok();
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        CommandOutput {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().unwrap(),
        }
    }
}

/// Puts jobs into a queue and lets a worker fail them with this group and message.
async fn fail_jobs(server: &Server, queue: &str, ids: &[&str], (group, message): (&str, &str)) {
    let worker = server.by("worker-1");
    for id in ids {
        server
            .client()
            .post(&format!("/add/{queue}"), json!({ "id": id, "meta": {} }))
            .await
            .ok();
        server
            .by("worker-1")
            .get(&format!("/get/{queue}"))
            .await
            .ok();
        let failed = json!({ "id": id, "group": group, "message": message });
        worker.post(&format!("/fail/{queue}"), failed).await.ok();
    }
}
