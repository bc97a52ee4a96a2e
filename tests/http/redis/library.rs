//! redis-rs, the usual client of Rust: handshake with both versions of the protocol, scripts and channels.

use std::time::Duration;

use redis::{Client, Connection, cmd};
use serde_json::Value;

use crate::support::redis::{CURRENT, server};

/// A guard against a message that never comes.
const WAIT_MAX: Duration = Duration::from_secs(60);

fn connect(address: &str, protocol: &str) -> Connection {
    let client = Client::open(format!("redis://{address}/?protocol={protocol}")).unwrap();
    client.get_connection().unwrap()
}

#[tokio::test]
async fn redis_rs_connects_runs_commands_and_subscribes() {
    let (_server, address) = server(&[]).await;
    for protocol in ["resp2", "resp3"] {
        let mut subscriber = connect(&address, protocol);
        subscriber.set_read_timeout(Some(WAIT_MAX)).unwrap();
        let mut channel = subscriber.as_pubsub();
        channel.subscribe("ql:log").unwrap();
        let mut connection = connect(&address, protocol);
        let pong: String = cmd("PING").query(&mut connection).unwrap();
        assert_eq!(pong, "PONG");
        let sha: String = cmd("SCRIPT")
            .arg("LOAD")
            .arg(CURRENT)
            .query(&mut connection)
            .unwrap();
        let put = ["put", "1", "w", "q", protocol, "Greet", "{}", "0"];
        let jid: String = cmd("EVALSHA")
            .arg(&sha)
            .arg(0)
            .arg(&put)
            .query(&mut connection)
            .unwrap();
        assert_eq!(jid, protocol);
        let message: String = channel.get_message().unwrap().get_payload().unwrap();
        let event: Value = serde_json::from_str(&message).unwrap();
        assert_eq!(
            (&event["event"], &event["jid"]),
            (&"put".into(), &protocol.into())
        );
        let jobs: String = cmd("EVALSHA")
            .arg(&sha)
            .arg(0)
            .arg(&["pop", "2", "q", "w", "1"])
            .query(&mut connection)
            .unwrap();
        let jobs: Value = serde_json::from_str(&jobs).unwrap();
        assert_eq!(jobs[0]["jid"], protocol);
    }
}
