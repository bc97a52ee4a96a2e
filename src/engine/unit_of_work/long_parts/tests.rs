//! What a transaction loads and writes of long bodies and other texts.

use super::*;
use crate::engine::maintenance::SystemTask;
use crate::engine::maintenance::tasks::MaintenanceTask;
use crate::engine::model::job::Protocol;
use crate::engine::test_support::{read_number, run_sql};
use crate::engine::unit_of_work::NextJobs;
use crate::engine::{
    Claim, Engine, Enqueue, Error, Mode, Publish, Put, QueueKey, engine_without_tasks as engine,
};

fn queue() -> QueueKey {
    QueueKey::qless("q")
}

fn job(id: &str, bytes: usize) -> Put {
    Put {
        id: Some(id.to_owned()),
        body: format!("\"{}\"", "x".repeat(bytes - 2)),
        ..Put::default()
    }
}

async fn put(engine: &Engine, jobs: Vec<Put>) {
    let put = engine.put(queue(), jobs, String::new(), None).await;
    put.unwrap().into_iter().for_each(|id| drop(id.unwrap()));
}

async fn long_bodies(engine: &Engine) -> i64 {
    read_number(engine, "SELECT count(*) FROM long_bodies").await
}

async fn body(engine: &Engine, id: &str) -> String {
    let job = engine.job(&JobKey::qless(id)).await.unwrap().unwrap();
    job.body.to_string()
}

#[tokio::test]
async fn a_body_of_more_than_16_kib_has_a_row_of_its_own() {
    let engine = engine().await;
    for (bytes, rows, in_row) in [(16_384, 0, 16_384), (16_385, 1, 1_011), (20_000, 1, 1_011)] {
        put(&engine, vec![job("a", bytes)]).await;
        assert_eq!(long_bodies(&engine).await, rows, "{bytes} bytes");
        let stored = read_number(&engine, "SELECT octet_length(body) FROM jobs").await;
        assert_eq!(stored, in_row, "{bytes} bytes");
        assert_eq!(body(&engine, "a").await, job("a", bytes).body);
    }
    put(&engine, vec![job("a", 100)]).await;
    assert_eq!(long_bodies(&engine).await, 0, "the body has become short");
    assert_eq!(body(&engine, "a").await, job("a", 100).body);
    put(&engine, vec![job("a", 20_000)]).await;
    engine.cancel(vec![JobKey::qless("a")], None).await.unwrap();
    assert_eq!(long_bodies(&engine).await, 0, "the job is gone");
    assert_eq!(engine.check(None).await.unwrap(), []);
    engine.close().await;
}

#[tokio::test]
async fn a_short_body_that_looks_like_a_stub_is_kept() {
    let engine = engine().await;
    for text in ["<", "<0000000005abcde", "<b>"] {
        let put_one = Put {
            body: text.to_owned(),
            ..job("a", 2)
        };
        put(&engine, vec![put_one]).await;
        assert_eq!(body(&engine, "a").await, text);
        let changed = engine.prioritize(vec![(JobKey::qless("a"), 2.0)], None);
        changed.await.unwrap().remove(0).unwrap();
        assert_eq!(body(&engine, "a").await, text);
    }
    assert_eq!(engine.check(None).await.unwrap(), []);
    engine.close().await;
}

/// The text in `long_bodies` differs from the one that was put, so a verb that read or wrote it would be noticed.
#[tokio::test]
async fn verbs_that_change_a_job_neither_read_nor_write_its_long_body() {
    let engine = engine().await;
    put(&engine, vec![job("a", 20_000)]).await;
    run_sql(&engine, "UPDATE long_bodies SET body = '\"other\"'").await;
    let key = || JobKey::qless("a");
    let changed = engine.prioritize(vec![(key(), 2.0)], None).await;
    changed.unwrap().remove(0).unwrap();
    let noted = engine.note(vec![(key(), "n".to_owned(), None)], None).await;
    noted.unwrap().remove(0).unwrap();
    let tagged = engine.tag(vec![(key(), vec!["t".to_owned()])], None).await;
    tagged.unwrap().remove(0).unwrap();
    assert_eq!(body(&engine, "a").await, "\"other\"");
    put(&engine, vec![job("a", 20_000)]).await;
    assert_eq!(body(&engine, "a").await, job("a", 20_000).body);
    engine.close().await;
}

/// Otherwise, hundreds of small requests for one large job would copy it in one transaction.
#[tokio::test]
async fn a_large_job_counts_for_each_verb_that_returns_it() {
    let engine = engine().await;
    put(&engine, vec![job("a", 1 << 20)]).await;
    let needs = || Needs {
        jobs: vec![JobKey::qless("a")],
        bodies: true,
        ..Needs::default()
    };
    let in_group = async |verbs: usize| {
        let count = move |work: &mut UnitOfWork| {
            let all: Vec<_> = (0..verbs).map(|_| needs()).collect();
            Ok(work.long_parts(all.iter()).bytes)
        };
        engine.write(needs(), None, 1, count).await.unwrap()
    };
    let one = in_group(1).await;
    assert!((1 << 20..2 << 20).contains(&one) || one == 0, "{one}");
    assert!(in_group(100).await > 100 << 20);
    // A request that runs again has its own weight at once.
    let count = move |work: &mut UnitOfWork| Ok(work.counted_parts([needs()].iter()).bytes);
    let counted = engine.write(needs(), None, 1, count).await.unwrap();
    assert!((1 << 20..2 << 20).contains(&counted), "{counted}");
    engine.close().await;
}

#[tokio::test]
async fn a_refused_timeout_writes_nothing() {
    let engine = engine().await;
    put(&engine, vec![job("a", 20)]).await;
    let version = "SELECT version FROM jobs";
    let before = read_number(&engine, version).await;
    let refused = engine.time_out(vec![JobKey::qless("a")], None).await;
    assert!(matches!(
        refused.unwrap().remove(0),
        Err(Error::NotRunning { .. })
    ));
    assert_eq!(read_number(&engine, version).await, before);
    engine.close().await;
}

#[tokio::test]
async fn jobs_that_are_only_depended_on_are_loaded_without_texts_and_not_written() {
    let engine = engine().await;
    let needs: Vec<String> = (0..100).map(|n| format!("n{n}")).collect();
    put(&engine, needs.iter().map(|id| job(id, 10_000)).collect()).await;
    let ids = needs.clone();
    let loaded = Needs {
        dependencies: needs.clone(),
        ..Needs::default()
    };
    let bytes = engine.write(loaded, None, 1, move |work| {
        assert!(ids.iter().all(|id| work.job(&JobKey::qless(id)).is_some()));
        Ok(work.loaded_bytes)
    });
    let bytes = bytes.await.unwrap();
    assert!(bytes < 10_000, "{bytes} bytes of 1,000,000");
    let before = read_number(&engine, "SELECT CAST(sum(version) AS BIGINT) FROM jobs").await;
    let dependent = Put {
        depends: Some(needs),
        ..job("d", 2)
    };
    put(&engine, vec![dependent]).await;
    let after = read_number(
        &engine,
        "SELECT CAST(sum(version) AS BIGINT) FROM jobs WHERE id <> 'd'",
    );
    assert_eq!(after.await, before);
    let edges = read_number(&engine, "SELECT count(*) FROM dependencies").await;
    assert_eq!(edges, 100);
    assert_eq!(body(&engine, "n7").await, job("n7", 10_000).body);
    engine.close().await;
}

/// One dependency of the cycle exists; one request adds the other two.
#[tokio::test]
async fn a_cycle_through_a_job_that_was_only_depended_on_is_found() {
    let engine = engine().await;
    put(&engine, vec![job("x", 2)]).await;
    let on = |id: &str, need: &str| Put {
        depends: Some(vec![need.to_owned()]),
        ..job(id, 2)
    };
    put(&engine, vec![on("b", "x")]).await;
    // In one request: `a` depends on `b`, then `x` on `a`.
    let both = vec![on("a", "b"), on("x", "a")];
    let both = engine
        .put(queue(), both, String::new(), None)
        .await
        .unwrap();
    assert!(both[0].is_ok());
    assert!(
        matches!(both[1], Err(Error::DependencyCycle { .. })),
        "{:?}",
        both[1]
    );
    engine.close().await;
}

#[tokio::test]
async fn short_texts_count_toward_the_size_of_a_transaction() {
    let engine = engine().await;
    let jobs: Vec<Put> = (0..1_500).map(|n| job(&format!("j{n}"), 12_000)).collect();
    let keys: Vec<JobKey> = (0..1_500).map(|n| JobKey::qless(format!("j{n}"))).collect();
    put(&engine, jobs).await;
    let load = async |only_checks_existence: bool| {
        let needs = Needs {
            jobs: keys.clone(),
            divisible: true,
            only_checks_existence,
            ..Needs::default()
        };
        engine
            .write(needs, None, 1, |work| Ok(work.loaded_bytes))
            .await
    };
    assert!(matches!(load(false).await, Err(Error::Oversized)));
    let bytes = load(true).await.unwrap();
    assert!(bytes < 100_000, "{bytes} bytes of 18,000,000");
    engine.close().await;
}

#[tokio::test]
async fn a_transaction_leases_4_mib_of_short_jobs_before_its_last_one() {
    let engine = engine().await;
    put(
        &engine,
        (0..300).map(|n| job(&format!("j{n}"), 15_000)).collect(),
    )
    .await;
    let id = engine.known_queues().get(&queue()).unwrap().id;
    let all = NextJobs {
        queue: queue(),
        count: 300,
        include_paused: false,
    };
    let needs = Needs {
        claim: vec![all],
        ..Needs::default()
    };
    let candidates = engine.write(needs, None, 1, move |work| {
        let has_more = work.has_more(id);
        let jobs = std::iter::from_fn(|| work.next_waiting(id));
        Ok((jobs.count(), has_more))
    });
    let (count, has_more) = candidates.await.unwrap();
    assert!((270..=280).contains(&count), "{count} jobs");
    assert!(has_more);
    engine.close().await;
}

#[tokio::test]
async fn a_verb_that_only_checks_a_job_sees_its_first_dependents() {
    let engine = engine().await;
    put(&engine, vec![job("root", 2)]).await;
    let dependent = |n: usize| Put {
        depends: Some(vec!["root".to_owned()]),
        ..job(&format!("d{n}"), 2)
    };
    put(&engine, (0..150).map(dependent).collect()).await;
    let root = || JobKey::qless("root");
    let needs = Needs {
        jobs: vec![root()],
        skips_long_parts: true,
        keeps_dependencies: true,
        ..Needs::default()
    };
    let dependents = engine.write(needs, None, 1, move |work| {
        Ok(work.job(&root()).map(|job| job.dependents.len()))
    });
    assert_eq!(dependents.await.unwrap(), Some(101));
    engine.close().await;
}

#[tokio::test]
async fn maintenance_deletes_32_mib_before_its_last_job_at_once() {
    let engine = engine().await;
    let long_ago = Some(engine.now(None).plus_seconds(-1_000.0));
    let job = Publish {
        body: "x".repeat(10 << 20),
        delay_s: 0,
        ttl_s: 1,
        tries: 1,
        versioned: false,
        attributes: None,
    };
    for _ in 0..5 {
        let job = job.clone();
        let publish = engine.write(Needs::default(), long_ago, 1, move |work| {
            let queue = QueueKey::lmstfy("ns", "q");
            crate::engine::verbs::lmstfy::publish::publish(work, &queue, &job);
            Ok(())
        });
        publish.await.unwrap();
    }
    let task = MaintenanceTask::DeleteExpired;
    for (deleted, left) in [(4, 1), (1, 0), (0, 0)] {
        let affected = engine.run_system_task(SystemTask::Maintain(task)).await;
        assert_eq!(affected.unwrap(), deleted);
        assert_eq!(long_bodies(&engine).await, left);
    }
    assert!(task.may_have_more(1));
    engine.close().await;
}

#[tokio::test]
async fn jobs_canceled_together_may_exceed_a_transaction() {
    let engine = engine().await;
    let ids: Vec<String> = (0..5).map(|n| format!("j{n}")).collect();
    put(&engine, ids.iter().map(|id| job(id, 5 << 20)).collect()).await;
    assert_eq!(long_bodies(&engine).await, 5);
    let keys = ids.iter().map(JobKey::qless).collect();
    engine.cancel(keys, None).await.unwrap();
    assert_eq!(long_bodies(&engine).await, 0);
    assert_eq!(engine.check(None).await.unwrap(), []);
    engine.close().await;
}

#[tokio::test]
async fn a_dead_relay_job_keeps_its_long_body() {
    let engine = engine().await;
    let queue = QueueKey::relay("r");
    assert_eq!(queue.protocol, Protocol::Relay);
    let payload = format!("\"{}\"", "x".repeat(100_000));
    let enqueue = Enqueue {
        queue: queue.clone(),
        id: "a".to_owned(),
        timeout_s: 1,
        max_retries: Some(0),
        payload: payload.clone(),
        state: None,
        run_at: None,
    };
    engine.enqueue(vec![enqueue], Mode::Unique).await.unwrap();
    let later = |s: f64| Some(engine.now(None).plus_seconds(s));
    let claim = Claim::of(queue, "", 1);
    let claimed = engine.claim(claim, later(0.0)).await.unwrap();
    assert_eq!(claimed.len(), 1);
    run_sql(
        &engine,
        "UPDATE jobs SET lease_until = 1 WHERE (seq, version) IN (SELECT seq, version FROM jobs)",
    )
    .await;
    let task = SystemTask::Maintain(MaintenanceTask::ExpireLeases);
    assert_eq!(engine.run_system_task(task).await.unwrap(), 1);
    let rows = engine.readers().rows(Statement::new(
        "SELECT j.state, b.body FROM jobs AS j JOIN long_bodies AS b ON b.job = j.seq",
        [],
    ));
    let rows = rows.await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].int(0).unwrap(), 8, "dead");
    assert_eq!(rows[0].text(1).unwrap(), payload);
    assert_eq!(engine.check(None).await.unwrap(), []);
    engine.close().await;
}

#[tokio::test]
async fn the_check_finds_and_repairs_long_bodies_without_jobs_and_jobs_without_bodies() {
    let engine = engine().await;
    put(&engine, vec![job("a", 20_000), job("b", 20_000)]).await;
    run_sql(
        &engine,
        "INSERT INTO long_bodies (job, body) VALUES (4711, 'x')",
    )
    .await;
    run_sql(
        &engine,
        "DELETE FROM long_bodies WHERE job = (SELECT seq FROM jobs WHERE id = 'b')",
    )
    .await;
    let found = engine.check(None).await.unwrap();
    let kinds: Vec<&str> = found.iter().map(|problem| problem.kind).collect();
    assert_eq!(kinds, ["body", "lost-body"]);
    let (_, resolved) = engine.repair(None).await.unwrap();
    assert_eq!(resolved, 2);
    assert_eq!(long_bodies(&engine).await, 1);
    assert_eq!(body(&engine, "a").await, job("a", 20_000).body);
    assert_eq!(body(&engine, "b").await, "null");
    engine.close().await;
}
