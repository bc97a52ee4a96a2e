//! Two servers behind PgBouncer in transaction mode, if it is installed: each transaction can use another connection to
//! Postgres.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use crate::support::ports::Port;
use crate::support::{Server, database, ids, one_in_each_state};

/// PgBouncer in front of a database, with few connections.
struct PgBouncer {
    child: Child,
    /// The address of the database through PgBouncer.
    address: String,
    _folder: TempDir,
    _port: Port,
}

impl PgBouncer {
    /// Starts PgBouncer; `None` if it is not installed.
    fn in_front_of(address: &str) -> Option<PgBouncer> {
        let version = Command::new("pgbouncer").arg("--version").output().ok()?;
        println!("{}", String::from_utf8_lossy(&version.stdout));
        let (user, rest) = address.strip_prefix("postgres://")?.split_once('@')?;
        let (host, name) = rest.split_once('/')?;
        let (host, port) = host.split_once(':')?;
        let reserved = Port::reserve();
        let own = reserved.number;
        let folder = TempDir::new().unwrap();
        let settings = folder.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\n{name} = host={host} port={port} user={user}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {own}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n\
             default_pool_size = 3\nignore_startup_parameters = extra_float_digits, options\n"
        );
        std::fs::write(&settings, text).unwrap();
        for (path, mode) in [(folder.path(), 0o755), (settings.as_path(), 0o644)] {
            std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        // PgBouncer refuses to run as root.
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid=nobody",
            "--regid=nogroup",
            "--clear-groups",
            "pgbouncer",
        ]);
        if !is_root() {
            command = Command::new("pgbouncer");
        }
        let command = command.arg("--quiet").arg(&settings);
        let child = command.stdin(Stdio::null()).spawn().unwrap();
        let began = std::time::Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", own)).is_err() {
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "PgBouncer does not listen"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        let address =
            format!("postgres://{user}@127.0.0.1:{own}/{name}?statement-cache-capacity=0");
        Some(PgBouncer {
            child,
            address,
            _folder: folder,
            _port: reserved,
        })
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| id.stdout == b"0\n")
}

#[tokio::test]
async fn two_servers_work_behind_a_transaction_pooler() {
    let Some(postgres) = database::postgres() else {
        println!("not run: SWITCHYARD_TEST_POSTGRES is not set");
        return;
    };
    let folder = TempDir::new().unwrap();
    let direct = database::created(&postgres, &folder.path().join("pooled"));
    let Some(pooler) = PgBouncer::in_front_of(&direct) else {
        println!("not run: pgbouncer is not installed");
        return;
    };
    // Migrations run on a direct connection.
    let options = ["--no-notify"];
    let early = Server::command(&pooler.address, &options).output().unwrap();
    let said = String::from_utf8_lossy(&early.stderr).into_owned();
    assert!(said.contains("out of date"), "{said}");
    let server = Server::at_url(&direct, &["--trust-client-clock"]);
    one_in_each_state(&server).await;
    server.stop().await;
    let one = Server::at_url(&pooler.address, &options);
    let other = Server::at_url(&pooler.address, &options);
    // Both servers concurrently, with more requests than connections.
    let puts = async |server: &Server, name: &str| {
        for n in 0..40 {
            let item = json!({"id": format!("{name} {n}"), "meta": n});
            server.client().add("many", item).await;
            server.client().get("/queues").await.accepted();
        }
    };
    let lanes = ["a", "b", "c", "d"];
    futures::future::join_all(lanes.iter().flat_map(|lane| {
        [
            (&one, format!("one {lane}")),
            (&other, format!("other {lane}")),
        ]
        .map(|(server, name)| async move { puts(server, &name).await })
    }))
    .await;
    let mut taken = 0;
    for server in [&one, &other].into_iter().cycle() {
        let jobs = server.by("w").get("/get/many/50").await.ok();
        if jobs == json!([]) {
            break;
        }
        for id in ids(&jobs) {
            taken += 1;
            server.by("w").complete("many", &id).await;
        }
    }
    assert_eq!(taken, 320);
    // The other server detects the job by reading the database.
    let waiting = other.by("w").get("/get/late?wait=60");
    let adding = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        one.client().add_ids("late", &["late"]).await;
    };
    let (late, ()) = tokio::join!(waiting, adding);
    assert_eq!(late.ok()["id"], "late");
    let resolve = one.client().post("/check", json!({"resolve": true})).await;
    assert_eq!(resolve.ok(), json!({"problems": [], "resolved": 0}));
    one.stop().await;
    other.stop().await;
}
