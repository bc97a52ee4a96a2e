//! Two PostgreSQL servers under Patroni, with synchronous replication, and the etcd in which it records the leader.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use super::ports::Port;
use super::postgres::{is_root, owned_folder, shared_owner};
use super::programs::{program, unpacked};
use super::server::signal;

/// A guard against a cluster without a leader. A standby takes over 20 s after a crash, which is Patroni's minimum.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// A cluster of two servers. Its programs end when it is dropped.
#[derive(Debug)]
pub struct Patroni {
    folder: TempDir,
    /// The program that each member runs.
    program: PathBuf,
    etcd: Child,
    members: [Member; 2],
    owner: (u32, u32),
    http: reqwest::Client,
    _etcd_ports: [Port; 2],
}

/// One PostgreSQL server and its Patroni.
#[derive(Debug)]
struct Member {
    name: &'static str,
    port: Port,
    /// The port of Patroni's REST API.
    api: Port,
    patroni: Option<Child>,
}

impl Patroni {
    /// Starts a cluster, and waits until it has a leader and a synchronous standby; `None` if the tests run on SQLite,
    /// or Patroni is not installed.
    pub async fn start() -> Option<Patroni> {
        let owner = shared_owner()?;
        let [patroni, etcd] = ["patroni", "etcd"].map(|name| program("patroni", name));
        let (patroni, mut etcd) = (patroni?, Command::new(etcd?));
        let folder = owned_folder(owner);
        let etcd_ports = [Port::reserve(), Port::reserve()];
        let [clients, peers] = etcd_ports
            .each_ref()
            .map(|port| format!("http://127.0.0.1:{}", port.number));
        etcd.arg("--data-dir").arg(folder.path().join("etcd"));
        etcd.args(["--listen-client-urls", &clients]);
        etcd.args(["--advertise-client-urls", &clients]);
        etcd.args(["--listen-peer-urls", &peers]);
        etcd.args(["--initial-advertise-peer-urls", &peers]);
        etcd.args(["--initial-cluster", &format!("default={peers}")]);
        let etcd = silent(etcd.arg("--unsafe-no-fsync"));
        let members = ["one", "other"].map(|name| Member {
            name,
            port: Port::reserve(),
            api: Port::reserve(),
            patroni: None,
        });
        let mut cluster = Patroni {
            folder,
            program: patroni,
            etcd,
            members,
            owner,
            http: reqwest::Client::new(),
            _etcd_ports: etcd_ports,
        };
        for member in 0..cluster.members.len() {
            cluster.write_settings(member);
            cluster.begin(member);
        }
        cluster.settled().await;
        Some(cluster)
    }

    /// Waits until there is a leader with a synchronous standby. Returns the leader.
    pub async fn settled(&self) -> usize {
        self.wait(async || {
            let leader = self.leader().await?;
            self.is(1 - leader, "sync").await.then_some(leader)
        })
        .await
    }

    /// Waits until the other member is the leader. Returns it.
    pub async fn taken_over_from(&self, old: usize) -> usize {
        self.wait(async || self.is(1 - old, "primary").await.then_some(1 - old))
            .await
    }

    /// The address of the database of the member, or of a proxy, on this port.
    pub fn address_at(&self, port: u16) -> String {
        format!("postgres://switchyard@127.0.0.1:{port}/postgres")
    }

    pub fn port(&self, member: usize) -> u16 {
        self.members[member].port.number
    }

    /// Starts Patroni, which starts PostgreSQL.
    pub fn begin(&mut self, member: usize) {
        let mut patroni = Command::new(&self.program);
        patroni.arg(self.file(member, "yml"));
        let packages = unpacked("patroni").join("lib/python3/dist-packages");
        patroni.env("PYTHONPATH", packages);
        patroni.current_dir(self.folder.path());
        if is_root() {
            patroni.uid(self.owner.0).gid(self.owner.1);
        }
        self.members[member].patroni = Some(silent(&mut patroni));
    }

    /// Kills PostgreSQL and Patroni (SIGKILL), as a crash of the machine would.
    pub fn crash(&mut self, member: usize) {
        if let Some(mut patroni) = self.members[member].patroni.take() {
            patroni.kill().ok();
            patroni.wait().ok();
        }
        let postmaster = self.folder.path().join(self.members[member].name);
        let postmaster = fs::read_to_string(postmaster.join("postmaster.pid"));
        if let Some(process) = postmaster
            .ok()
            .and_then(|text| text.lines().next()?.parse().ok())
        {
            signal("KILL", process);
        }
    }

    /// Lets the standby take over from this leader, as for maintenance.
    pub async fn switch_over(&self, leader: usize) {
        let body = json!({
            "leader": self.members[leader].name,
            "candidate": self.members[1 - leader].name,
        });
        let address = self.api(leader, "switchover");
        let request = self.http.post(address).body(body.to_string());
        let response = request.send().await.expect("a response");
        assert!(response.status().is_success(), "{response:?}");
    }

    async fn leader(&self) -> Option<usize> {
        for member in 0..self.members.len() {
            if self.is(member, "primary").await {
                return Some(member);
            }
        }
        None
    }

    /// Whether a member has this role: `primary`, or `sync` for a synchronous standby.
    async fn is(&self, member: usize, role: &str) -> bool {
        let response = self.http.get(self.api(member, role)).send().await;
        response.is_ok_and(|response| response.status().is_success())
    }

    fn api(&self, member: usize, path: &str) -> String {
        format!(
            "http://127.0.0.1:{}/{path}",
            self.members[member].api.number
        )
    }

    async fn wait(&self, found: impl AsyncFn() -> Option<usize>) -> usize {
        let wait = async {
            loop {
                if let Some(member) = found().await {
                    return member;
                }
                sleep(Duration::from_millis(50)).await;
            }
        };
        let waited = timeout(WAIT_MAX, wait).await;
        waited.unwrap_or_else(|_| panic!("the cluster does not settle: {self:?}"))
    }

    fn file(&self, member: usize, extension: &str) -> PathBuf {
        let name = format!("{}.{extension}", self.members[member].name);
        self.folder.path().join(name)
    }

    /// Writes the settings of a member. JSON is also YAML.
    fn write_settings(&self, member: usize) {
        let [clients, _] = &self._etcd_ports;
        let Member {
            name, port, api, ..
        } = &self.members[member];
        let address = |port: &Port| format!("127.0.0.1:{}", port.number);
        let folder = self.folder.path();
        let settings = json!({
            "scope": "switchyard",
            "name": name,
            "restapi": {"listen": address(api), "connect_address": address(api)},
            "etcd3": {"host": address(clients)},
            "bootstrap": {
                "dcs": {
                    "ttl": 20,
                    "loop_wait": 1,
                    "retry_timeout": 3,
                    "synchronous_mode": true,
                    "synchronous_mode_strict": true,
                    "postgresql": {"use_pg_rewind": true, "parameters": {"fsync": "off"}},
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "no-sync"],
                "pg_hba": [
                    "local all all trust",
                    "host all all 127.0.0.1/32 trust",
                    "host replication all 127.0.0.1/32 trust",
                ],
            },
            "postgresql": {
                "listen": address(port),
                "connect_address": address(port),
                "data_dir": folder.join(name),
                "pgpass": self.file(member, "pgpass"),
                "authentication": {
                    "superuser": {"username": "switchyard"},
                    "replication": {"username": "replicator"},
                    "rewind": {"username": "switchyard"},
                },
                "parameters": {"unix_socket_directories": folder},
            },
        });
        let file = self.file(member, "yml");
        fs::write(file, settings.to_string()).expect("the settings can be written");
    }
}

impl Drop for Patroni {
    fn drop(&mut self) {
        for member in 0..self.members.len() {
            self.crash(member);
        }
        self.etcd.kill().ok();
        self.etcd.wait().ok();
    }
}

/// Starts a program whose output is discarded.
fn silent(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let started = command.stderr(Stdio::null()).spawn();
    started.unwrap_or_else(|error| panic!("{command:?}: {error}"))
}
