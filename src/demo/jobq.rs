//! Demo traffic of Jobq. Nodes set up hosts and record it in the state of the host's job; some nodes abandon a host,
//! and another one takes over. The jobs of a second queue, `audits`, have no state.

use std::sync::Arc;
use std::time::Duration;

use super::{one_in, up_to};
use crate::engine::{CompareAndSet, Engine, Queue, Record};
use crate::query::Query;

const HOSTS: &str = "hosts";
const AUDITS: &str = "audits";

/// Number of nodes that set up hosts.
const NODES: u64 = 3;

/// Maximum number of jobs in a queue; older ones are deleted, which bounds the database when the demo runs for days.
const RECORDS_MAX: usize = 300;

const CREATED: &str = r#"[["IS", "json_extract(state, '$[0]')", "CREATED"]]"#;

/// Finds hosts that a node has abandoned.
const STALE: &str = r#"[["IS", "json_extract(state, '$[0]')", "ASSIGNED"], ["<", "modified", "strftime('%s','now') - 30"]]"#;

/// How long a node sleeps when no host matches.
const IDLE_DELAY: Duration = Duration::from_millis(700);

/// Starts the demo tasks. They run until the process ends.
pub async fn start(engine: &Engine) {
    let (Some(hosts), Some(audits)) = (queue(engine, HOSTS).await, queue(engine, AUDITS).await)
    else {
        return;
    };
    tokio::spawn(create_hosts(engine.clone(), Arc::clone(&hosts)));
    tokio::spawn(audit(engine.clone(), Arc::clone(&audits)));
    for node in 1..=NODES {
        tokio::spawn(set_up(engine.clone(), Arc::clone(&hosts), node));
    }
    for queue in [hosts, audits] {
        tokio::spawn(tidy_up(engine.clone(), queue));
    }
}

/// Creates the queue if it does not exist.
async fn queue(engine: &Engine, name: &str) -> Option<Arc<Queue>> {
    drop(engine.create_queue(name).await);
    engine.record_queue(name).await.ok()
}

async fn create_hosts(engine: Engine, queue: Arc<Queue>) {
    for number in 1_u64.. {
        let payload = format!(
            r#"{{"host":"node-{number}.example","port":{},"image":"debian-13","serial":12345678901234567890}}"#,
            5_000 + up_to(500)
        );
        let state = if one_in(9) { "null" } else { r#"["CREATED"]"# };
        drop(
            engine
                .create_record(&queue, payload, state.to_owned())
                .await,
        );
        tokio::time::sleep(Duration::from_millis(1_200 + up_to(2_400))).await;
    }
}

/// Runs a node: it claims a new host, or one that another node has abandoned, and reports its progress in events.
async fn set_up(engine: Engine, queue: Arc<Queue>, node: u64) {
    let (Ok(created), Ok(stale)) = (Query::parse(CREATED), Query::parse(STALE)) else {
        return;
    };
    loop {
        let mine = format!(r#"["ASSIGNED",{{"node":{node}}}]"#);
        let query = if one_in(4) { &stale } else { &created };
        match engine.poll_record(&queue, query, mine.clone()).await {
            Ok(Some(record)) => work(&engine, &queue, &record, mine).await,
            _ => tokio::time::sleep(IDLE_DELAY).await,
        }
    }
}

async fn work(engine: &Engine, queue: &Arc<Queue>, record: &Record, mine: String) {
    let steps = ["image written", "booted", "in service"];
    for (done, step) in steps.into_iter().enumerate() {
        tokio::time::sleep(Duration::from_millis(400 + up_to(1_600))).await;
        // Abandons the host; another node takes over.
        if one_in(25) {
            return;
        }
        let event = format!(
            r#"{{"step":"{step}","progress":{:.2}}}"#,
            (done + 1) as f64 / steps.len() as f64
        );
        drop(engine.append_event(queue, record.id, event).await);
    }
    let end = if one_in(8) {
        r#"["FAILED",{"why":"no answer on port 22"}]"#
    } else {
        r#"["FINISHED"]"#
    };
    let done = engine
        .advance_record(queue, record.id, mine, end.to_owned())
        .await;
    if let Ok(CompareAndSet::Differs(_)) = done {
        let event = r#"{"step":"given up: the host is another node's"}"#;
        drop(
            engine
                .append_event(queue, record.id, event.to_owned())
                .await,
        );
    }
}

/// Creates jobs without a state, and appends an event to 1 in 3.
async fn audit(engine: Engine, queue: Arc<Queue>) {
    loop {
        let payload = format!(
            r#"{{"actor":{{"id":{}}},"action":"login"}}"#,
            1_000 + up_to(9_000)
        );
        if let Ok(record) = engine
            .create_record(&queue, payload, "null".to_owned())
            .await
            && one_in(3)
        {
            let event = r#"{"reviewed":true,"by":"ada@example.com"}"#;
            drop(
                engine
                    .append_event(&queue, record.id, event.to_owned())
                    .await,
            );
        }
        tokio::time::sleep(Duration::from_secs(4 + up_to(8))).await;
    }
}

async fn tidy_up(engine: Engine, queue: Arc<Queue>) {
    loop {
        tokio::time::sleep(Duration::from_secs(30)).await;
        let all = engine.records(&queue, 0, RECORDS_MAX * 2).await;
        let mut old = all.map_or_else(|_| Vec::new(), |all| all.records);
        old.truncate(old.len().saturating_sub(RECORDS_MAX));
        for record in old {
            drop(engine.delete_record(&queue, record.id).await);
        }
    }
}
