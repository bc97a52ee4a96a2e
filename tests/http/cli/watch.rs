//! `--watch`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use super::Cli;
use crate::support::Server;

/// A guard against a missing line; no test waits this long.
const WAIT_MAX: Duration = Duration::from_secs(60);

struct Watched {
    child: Child,
    lines: Receiver<String>,
}

impl Watched {
    fn start(cli: &Cli, words: &[&str]) -> Watched {
        let mut child = cli.command(words).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                sender.send(line).ok();
            }
        });
        Watched {
            child,
            lines: receiver,
        }
    }

    /// The next line of JSON for which `is` holds.
    fn until(&self, is: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.lines.recv_timeout(WAIT_MAX).expect("a line");
            let value: Value = serde_json::from_str(&line).unwrap();
            if is(&value) {
                return value;
            }
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[tokio::test]
async fn a_watched_list_is_printed_after_each_change() {
    let server = Server::with(&[]);
    let cli = Cli::of(&server);
    server.client().add_ids("mail", &["a"]).await;
    let watched = Watched::start(&cli, &["queue", "list", "--json", "--watch"]);
    watched.until(|it| it["waiting"] == 1);
    server.client().add_ids("mail", &["b"]).await;
    watched.until(|it| it["waiting"] == 2);
    cli.run(&["queue", "pause", "mail"]).ok();
    watched.until(|it| it["paused"] == json!(true));
}

#[tokio::test]
async fn a_watched_list_waits_for_a_server_that_restarts() {
    let folder = tempfile::TempDir::new().unwrap();
    let database = folder.path().join("jobs.db");
    let server = Server::on(&database, &[]);
    server.client().add_ids("mail", &["a"]).await;
    let watched = Watched::start(&Cli::of(&server), &["queue", "list", "--json", "--watch"]);
    watched.until(|it| it["waiting"] == 1);
    let address = server.address.clone();
    server.stop().await;
    let server = Server::on(&database, &["--listen", &address]);
    server.client().add_ids("mail", &["b"]).await;
    watched.until(|it| it["waiting"] == 2);
}
