//! `switchyard work`: the worker program against the server program, with shell scripts as the programs of jobs.

mod crash;
mod each_line;
mod jobq;
mod leases;
mod lmstfy;
mod options;
mod outages;
mod outcomes;
mod qless;
mod relay;
mod stop;

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::support::eventually;
use crate::support::{Server, signal};

/// A guard against a worker that does not end; no test waits this long.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A script that waits until the test creates the file `go`, or ends.
const WAIT: &str = r#"while [ -d "$DIR" ] && [ ! -e "$DIR/go" ]; do sleep 0.02; done;"#;

/// A folder in which scripts leave files for the test, and the test for scripts. It is `$DIR` in the scripts.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn lines(&self, name: &str) -> Vec<String> {
        self.read(name).lines().map(str::to_owned).collect()
    }

    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name).to_str().unwrap().to_owned()
    }

    async fn wait_for(&self, name: &str) {
        eventually(&format!("the file {name}"), async || self.has(name)).await;
    }
}

/// A running worker, killed with the test.
struct Worker(Child);

impl Worker {
    /// A worker on this server with these options and this script.
    fn start(server: &Server, folder: &Folder, options: &str, script: &str) -> Worker {
        let mut command = command(folder, options, script);
        command.env("SWITCHYARD_SERVER", format!("http://{}", server.address));
        Worker::run(command)
    }

    fn run(mut command: Command) -> Worker {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Worker(command.kill_on_drop(true).spawn().unwrap())
    }

    fn id(&self) -> u32 {
        self.0.id().expect("it runs")
    }

    fn terminate(&self) {
        signal("TERM", self.id());
    }

    /// Waits until the worker logs this text. Returns what it has logged.
    async fn says(&mut self, text: &str) -> String {
        let stderr = self.0.stderr.as_mut().expect("a pipe");
        let mut said = String::new();
        let found = timeout(WAIT_MAX, async {
            while !said.contains(text) {
                let mut chunk = [0; 1024];
                let read = stderr.read(&mut chunk).await.unwrap();
                assert!(read > 0, "the worker ended: {said}");
                said.push_str(&String::from_utf8_lossy(&chunk[..read]));
            }
        })
        .await;
        assert!(found.is_ok(), "the worker does not log {text:?}: {said}");
        said
    }

    /// Waits until the worker has ended. Returns its exit code and what it wrote.
    async fn ended(self) -> (i32, Output) {
        let output = timeout(WAIT_MAX, self.0.wait_with_output()).await;
        let output = output.expect("the worker ends").unwrap();
        (output.status.code().expect("an exit code"), output)
    }

    /// Waits until the worker has ended with this code.
    #[track_caller]
    fn ends_with(self, code: i32) -> impl Future<Output = String> {
        let caller = std::panic::Location::caller();
        async move {
            let (found, output) = self.ended().await;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(found, code, "{caller}: {said}");
            said
        }
    }
}

/// The command of a worker. The options are separated by spaces.
fn command(folder: &Folder, options: &str, script: &str) -> Command {
    let mut command = Command::from(Server::program());
    command.env("DIR", folder.0.path()).env("RUST_LOG", "info");
    command.arg("work").args(options.split_whitespace());
    command.args(["--", "sh", "-c", script]);
    command
}
