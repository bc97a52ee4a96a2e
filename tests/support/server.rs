//! The server program, started for one test with its own database, and stopped with the test.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use reqwest::Method;
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{Caller, Response, database, template};

/// A guard against a server that does not stop; no test waits this long.
const STOP_MAX: Duration = Duration::from_secs(60);

/// A guard against a missing response: longer than any wait that a test requests.
const RESPONSE_MAX: Duration = Duration::from_secs(120);

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// `host:port`.
    pub address: String,
    pub http: reqwest::Client,
    /// The lines that it prints after the line with its address.
    pub banner: UnboundedReceiver<String>,
    /// The time from the start until the server printed its address.
    pub ready_after: Duration,
    _folder: Option<TempDir>,
}

impl Server {
    /// A server on a new database, which takes the time from requests and runs no maintenance.
    pub fn start() -> Server {
        Server::with(&["--trust-client-clock"])
    }

    /// A server on a new database with these options.
    pub fn with(options: &[&str]) -> Server {
        let folder = TempDir::new().expect("a folder for the database");
        let database = folder.path().join("jobs.db");
        let mut server = Server::on(&database, options);
        server._folder = Some(folder);
        server
    }

    /// A server on this database, which is kept when the server stops.
    pub fn on(database: &Path, options: &[&str]) -> Server {
        template::copy_to(database);
        let server = Server::command(&database::address(database), options);
        Server::run(server)
    }

    /// A server on the database with this address.
    pub fn at_url(database: &str, options: &[&str]) -> Server {
        Server::run(Server::command(database, options))
    }

    /// The command that starts a server on the database with this address.
    pub fn command(database: &str, options: &[&str]) -> Command {
        let given = database::options().into_iter();
        let mut command = Server::program();
        command
            .args(["serve", "--database", database])
            .args(options)
            .args(given.filter(|option| !options.contains(&option.as_str())));
        if !options.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        if !options.contains(&"--durability") {
            command.args(["--durability", "process"]);
        }
        command
    }

    /// The path of the program: `SWITCHYARD_TEST_PROGRAM` if it is set, otherwise the program that was compiled with
    /// the tests.
    pub fn path() -> PathBuf {
        let given = std::env::var_os("SWITCHYARD_TEST_PROGRAM");
        given.map_or_else(|| env!("CARGO_BIN_EXE_switchyard").into(), PathBuf::from)
    }

    /// The program, without the `SWITCHYARD_` variables of the environment. Its site consists of `public/` only,
    /// whether or not the pages have been built.
    pub fn program() -> Command {
        let mut command = Command::new(Server::path());
        command.env(
            "LEPTOS_SITE_ROOT",
            concat!(env!("CARGO_MANIFEST_DIR"), "/public"),
        );
        command.env("RUST_LOG", "warn").stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("SWITCHYARD_") {
                command.env_remove(name);
            }
        }
        command
    }

    /// Starts the server with this command, and waits until it prints its address.
    pub fn run(mut command: Command) -> Server {
        let began = Instant::now();
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let (address, banner) = address(&mut child);
        Server {
            child,
            address,
            banner,
            ready_after: began.elapsed(),
            // Ignores the proxy settings of the environment.
            http: reqwest::Client::builder()
                .no_proxy()
                .read_timeout(RESPONSE_MAX)
                .build()
                .expect("a client"),
            _folder: None,
        }
    }

    /// A client with this worker name.
    pub fn by<'a>(&'a self, host: &'a str) -> Caller<'a> {
        Caller::new(self).by(host)
    }

    /// The process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The resident memory in MB.
    pub fn memory_mb(&self) -> f64 {
        self.memory("VmRSS:")
    }

    /// The largest resident memory so far, in MB.
    pub fn peak_memory_mb(&self) -> f64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, kind: &str) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()));
        let status = status.expect("a process");
        let line = status.lines().find_map(|line| line.strip_prefix(kind));
        let kb = line.and_then(|line| line.trim().strip_suffix(" kB"));
        let kb = kb.and_then(|kb| kb.trim().parse::<f64>().ok());
        kb.expect("a size") * 1.024 / 1_000.0
    }

    /// A client without a name, at this time.
    pub fn at(&self, now: impl Into<f64>) -> Caller<'_> {
        Caller::new(self).at(now)
    }

    /// A client without a name and a time.
    pub fn client(&self) -> Caller<'_> {
        Caller::new(self)
    }

    /// Sends a request to the qless API, and checks the response.
    pub async fn send(&self, method: Method, path: &str, body: Option<String>) -> Response {
        let asked = format!("{method} {path} {}", body.as_deref().unwrap_or_default());
        let answer = self.try_send(method, path, body).await;
        answer
            .unwrap_or_else(|error| panic!("{asked}: {error}"))
            .checked()
    }

    /// Sends a request; there may be no response.
    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
    ) -> reqwest::Result<Response> {
        let asked = format!("{method} {path} {}", body.as_deref().unwrap_or_default());
        let mut request = self
            .http
            .request(method, format!("http://{}{path}", self.address));
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body);
        }
        let response = request.send().await?;
        Ok(Response {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: response.text().await?,
            asked,
        })
    }

    /// Asks the server to stop (SIGTERM), as a service manager does.
    pub fn terminate(&self) {
        signal("TERM", self.child.id());
    }

    /// Asks the server to reload its certificate and its key files (SIGHUP).
    pub fn reload(&self) {
        signal("HUP", self.child.id());
    }

    /// Stops the process (SIGSTOP), like a machine that is out of memory or being migrated.
    pub fn freeze(&self) {
        signal("STOP", self.child.id());
    }

    /// Continues the process (SIGCONT).
    pub fn thaw(&self) {
        signal("CONT", self.child.id());
    }

    /// Waits until the server has stopped after [`Server::terminate`].
    pub async fn stopped(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("the server is a child") {
                return status;
            }
            assert!(began.elapsed() < STOP_MAX, "the server does not stop");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Stops the server gracefully.
    pub async fn stop(mut self) {
        self.terminate();
        let status = self.stopped().await;
        assert!(status.success(), "{status}");
    }

    /// Kills the server as a crash would (SIGKILL).
    pub fn kill(&mut self) {
        self.kill_under_load(|| {});
    }

    /// Kills the server, and calls `on_kill` as soon as the signal is sent. Clients that continue after that could call
    /// another program that gets the same port.
    pub fn kill_under_load(&mut self, on_kill: impl FnOnce()) {
        self.child.kill().expect("the server can be killed");
        on_kill();
        self.child.wait().expect("the server is a child");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process can have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Sends a signal to a process that the test has started. Ignores a process that has ended.
pub fn signal(name: &str, process: u32) {
    let arguments = [format!("-{name}"), process.to_string()];
    let sent = Command::new("kill").args(arguments).output();
    sent.expect("kill runs");
}

/// Reads the line with the address. Sends all further lines to the channel.
fn address(child: &mut Child) -> (String, UnboundedReceiver<String>) {
    let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
    let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
        let (_, url) = line.split_once("listening on ")?;
        let (_, address) = url.split_once("://")?;
        Some(address.split_whitespace().next()?.to_owned())
    });
    let (sender, banner) = unbounded_channel();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            // The pipe must be emptied even if the receiver is dropped.
            sender.send(line).ok();
        }
    });
    (address.expect("the server prints its address"), banner)
}
