use super::*;
use crate::engine::test_support::run_sql;
use crate::engine::{Claim, Put, QueueKey, engine_without_tasks};
use crate::store::Arg;

#[tokio::test]
async fn an_abandoned_check_keeps_its_permit_until_its_statements_have_ended() {
    let engine = engine_without_tasks().await;
    let permit = &engine.0.long_reads.check_permit.0;
    let mut abandoned = Box::pin(engine.check(None));
    assert!(futures::poll!(&mut abandoned).is_pending());
    drop(abandoned);
    assert_eq!(permit.available_permits(), 0);
    assert_eq!(engine.check(None).await.unwrap(), []);
    assert_eq!(permit.available_permits(), 1);
    engine.close().await;
}

/// A statement with this text, which is built at run time.
fn statement(sql: String, args: Vec<Arg>) -> Statement {
    Statement::new(Box::leak(sql.into_boxed_str()), args)
}

/// SQLite's plan of a repair, a line per step.
async fn plan(engine: &Engine, repair: &str) -> Vec<String> {
    let keys = r#"[["1","1","1","1","1","1"],["2","2","2","2","2","2"]]"#;
    let [now, pruned, clients] = engine.check_parameters(None).args();
    let explain = statement(
        format!("EXPLAIN QUERY PLAN {repair}"),
        vec![keys.into(), now, pruned, clients],
    );
    let rows = engine.readers().rows(explain).await.unwrap();
    rows.iter().map(|row| row.text(3).unwrap()).collect()
}

/// Otherwise a repair would hold the writer for a time that depends on the number of jobs.
#[tokio::test]
async fn repairs_read_no_whole_table() {
    let engine = engine_without_tasks().await;
    for (name, repair) in repairs() {
        let plan = plan(&engine, repair).await;
        let scans = plan.iter().filter(|step| step.starts_with("SCAN"));
        let of_tables = scans.filter(|step| !step.contains(" k") && !step.contains("CONSTANT"));
        assert_eq!(
            of_tables.collect::<Vec<_>>(),
            <[&str; 0]>::default(),
            "{name}: {plan:?}"
        );
        assert!(!plan.is_empty(), "{name}");
    }
    engine.close().await;
}

/// Jobs in two queues, with tags.
async fn engine_with_jobs() -> Engine {
    let engine = engine_without_tasks().await;
    for queue in ["a", "b"] {
        let jobs = (0..3).map(|n| Put {
            id: Some(format!("{queue}-{n}")),
            body: "1".to_owned(),
            tags: Some(vec![format!("tag-{n}")]),
            ..Put::default()
        });
        let put = engine.put(QueueKey::qless(queue), jobs.collect(), String::new(), None);
        put.await
            .unwrap()
            .into_iter()
            .for_each(|id| drop(id.unwrap()));
    }
    engine
}

async fn repair_once(engine: &Engine, problems: &[Inconsistency]) {
    let repair = SystemTask::Repair(engine.check_parameters(None), problems.into());
    engine.run_system_task(repair).await.unwrap();
}

/// Two servers, or two operators, may repair what both have found.
#[tokio::test]
async fn counters_are_repaired_once() {
    let engine = engine_with_jobs().await;
    run_sql(&engine, "UPDATE tallies SET n = n + 5 WHERE kind = 0").await;
    run_sql(&engine, "UPDATE tag_counts SET n = n - 1").await;
    let problems = engine.check(None).await.unwrap();
    assert_eq!(problems.len(), 5, "{problems:?}");
    for _ in 0..2 {
        repair_once(&engine, &problems).await;
        assert_eq!(engine.check(None).await.unwrap(), []);
    }
    // A later difference is repaired in addition to the first.
    run_sql(
        &engine,
        "UPDATE tallies SET n = n - 2 WHERE kind = 0 AND server = 0",
    )
    .await;
    let (found, resolved) = engine.repair(None).await.unwrap();
    assert_eq!((found.len(), resolved), (2, 2), "{found:?}");
    assert_eq!(engine.check(None).await.unwrap(), []);
    engine.close().await;
}

/// The repair adds the difference that the check has found, which verbs do not change.
#[tokio::test]
async fn counters_that_change_between_check_and_repair_are_repaired() {
    let engine = engine_with_jobs().await;
    run_sql(&engine, "UPDATE tallies SET n = n + 5 WHERE kind = 0").await;
    let problems = engine.check(None).await.unwrap();
    let more = vec![Put {
        body: "1".to_owned(),
        ..Put::default()
    }];
    let put = engine.put(QueueKey::qless("a"), more, String::new(), None);
    drop(put.await.unwrap());
    repair_once(&engine, &problems).await;
    assert_eq!(engine.check(None).await.unwrap(), []);
    engine.close().await;
}

#[tokio::test]
async fn more_problems_than_a_transaction_repairs_are_repaired() {
    let engine = engine_with_jobs().await;
    let bogus = "INSERT INTO tags (job, tag, tagged_at, id)
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 600)
SELECT 1000000 + n, 'tag ' || n, 1, 'missing' FROM numbers";
    run_sql(&engine, bogus).await;
    let (found, resolved) = engine.repair(None).await.unwrap();
    assert_eq!(found.len(), resolved);
    assert!(resolved >= 600, "{resolved}");
    assert_eq!(engine.check(None).await.unwrap(), []);
    engine.close().await;
}

#[tokio::test]
async fn a_waiting_poll_gets_the_jobs_that_a_repair_makes_available() {
    let engine = engine_with_jobs().await;
    run_sql(&engine, "UPDATE jobs SET state = {running}").await;
    let polling = tokio::spawn({
        let engine = engine.clone();
        let claim = Claim::of(QueueKey::qless("a"), "w", 9);
        async move { engine.claim_or_wait(claim, CHECK_TIME_MAX, None).await }
    });
    while !engine.subscriptions().any() {
        tokio::task::yield_now().await;
    }
    engine.repair(None).await.unwrap();
    let polled = timeout(CHECK_TIME_MAX / 2, polling)
        .await
        .expect("the poll was not woken");
    assert_eq!(polled.unwrap().unwrap().len(), 3);
    assert_eq!(engine.check(None).await.unwrap(), []);
    engine.close().await;
}
