//! Jobs of earlier versions, which may have more dependencies and dependents than can be added now, and jobs with many
//! dependents. The tests write the rows of these dependencies directly.

use crate::engine::model::body::Body;
use crate::engine::model::job::{JobKey, State};
use crate::engine::test_support::{read_number, run_sql};
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::qless::complete::complete;
use crate::engine::verbs::qless::depend::Depend;
use crate::engine::{
    Claim, Engine, Error, LeaseHolder, Put, QueueKey, SeenJob, engine_without_tasks as engine,
};
use crate::store::Statement;

fn queue(name: &str) -> QueueKey {
    QueueKey::qless(name)
}

fn job(id: &str, depends: Option<Vec<String>>) -> Put {
    Put {
        id: Some(id.to_owned()),
        body: "1".to_owned(),
        depends,
        ..Put::default()
    }
}

fn ids(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}{n}")).collect()
}

async fn put(engine: &Engine, name: &str, jobs: Vec<Put>) {
    let put = engine.put(queue(name), jobs, String::new(), None).await;
    put.unwrap().into_iter().for_each(|id| drop(id.unwrap()));
}

/// Claims and completes all jobs of the queue in one request. Returns how many.
async fn complete_all(engine: &Engine, name: &str) -> usize {
    let claimed = engine.claim(Claim::of(queue(name), "w", 10), None).await;
    let done = claimed.unwrap().into_iter();
    let done = done.map(|job| (job.key, "1".to_owned(), None)).collect();
    let holder = LeaseHolder {
        worker: "w".to_owned(),
        queue: None,
    };
    let done = engine.complete(done, holder, None).await.unwrap();
    assert!(done.iter().all(|done| *done == Ok(State::Complete)));
    done.len()
}

async fn depend(engine: &Engine, id: &str, change: Depend) -> Result<(), Error> {
    let change = engine.depend(vec![(JobKey::qless(id), change)], None);
    change.await.unwrap().remove(0)
}

const WAITING: &str = "SELECT count(*) FROM jobs WHERE state = {waiting} AND id LIKE 'leaf%'";

#[tokio::test]
async fn a_job_with_more_dependents_than_the_limit_releases_all_of_them() {
    for others in [0, 3] {
        let engine = engine().await;
        let roots = ["root", "root2"].map(|id| job(id, None));
        put(&engine, "roots", roots.into()).await;
        put(
            &engine,
            "roots",
            ids("x", others).iter().map(|id| job(id, None)).collect(),
        )
        .await;
        for (prefix, on) in [("leaf-a", "root"), ("leaf-b", "root2")] {
            let leaf = |id: &String| job(id, Some(vec![on.to_owned()]));
            put(
                &engine,
                "leaves",
                ids(prefix, 1_500).iter().map(leaf).collect(),
            )
            .await;
        }
        run_sql(
            &engine,
            "UPDATE dependencies SET needs = (SELECT seq FROM jobs WHERE id = 'root')",
        )
        .await;
        assert_eq!(complete_all(&engine, "roots").await, 2 + others);
        assert_eq!(read_number(&engine, WAITING).await, 3_000);
        assert_eq!(
            read_number(&engine, "SELECT count(*) FROM dependencies").await,
            0
        );
        assert_eq!(engine.check(None).await.unwrap(), []);
        engine.close().await;
    }
}

#[tokio::test]
async fn a_job_with_more_dependencies_than_the_limit_keeps_working() {
    let engine = engine().await;
    let needs = ids("n", 2_003);
    put(
        &engine,
        "needs",
        needs.iter().map(|id| job(id, None)).collect(),
    )
    .await;
    let some = needs.iter().take(2_000).cloned().collect();
    put(&engine, "q", vec![job("leaf", Some(some))]).await;
    run_sql(
        &engine,
        "INSERT INTO dependencies (job, needs) SELECT (SELECT seq FROM jobs WHERE id = 'leaf'), seq
         FROM jobs WHERE id IN ('n2000', 'n2001')",
    )
    .await;
    let on = |id: &str| Depend::On(vec![id.to_owned()]);
    assert_eq!(depend(&engine, "leaf", on("n2001")).await, Ok(()));
    let refused = depend(&engine, "leaf", on("n2002")).await;
    assert!(matches!(refused, Err(Error::TooMany { max: 2_000, .. })));
    assert_eq!(complete_all(&engine, "needs").await, 10);
    let left = "SELECT count(*) FROM dependencies";
    assert_eq!(read_number(&engine, left).await, 1_992);
    let off = Depend::Off(ids("n", 1_000));
    assert_eq!(depend(&engine, "leaf", off).await, Ok(()));
    assert_eq!(read_number(&engine, left).await, 1_002);
    assert_eq!(depend(&engine, "leaf", Depend::OffAll).await, Ok(()));
    assert_eq!(read_number(&engine, left).await, 0);
    assert_eq!(read_number(&engine, WAITING).await, 1);
    assert_eq!(engine.check(None).await.unwrap(), []);
    engine.close().await;
}

/// Jobs that are not in memory are loaded without long lists. Their dependents are counted, so that a transaction
/// releases about 2,000 of them.
#[tokio::test]
async fn jobs_with_long_lists_share_transactions_according_to_their_dependents() {
    let engine = engine().await;
    let roots = ids("root", 40);
    put(
        &engine,
        "roots",
        roots.iter().map(|id| job(id, None)).collect(),
    )
    .await;
    for root in &roots {
        let leaf = |id: &String| job(id, Some(vec![root.clone()]));
        let leaves = ids(&format!("leaf-{root}-"), 101);
        put(&engine, "leaves", leaves.iter().map(leaf).collect()).await;
    }
    let claimed = engine.claim(Claim::of(queue("roots"), "w", 40), None).await;
    let done = claimed.unwrap().into_iter();
    let done: Vec<_> = done.map(|job| (job.key, "1".to_owned(), None)).collect();
    assert_eq!(done.len(), 40);
    // A transaction that fails clears the cache of running jobs.
    let refused = engine.write(Needs::default(), None, 1, |work| {
        work.add_statements([Statement::new("INSERT INTO tags (job) VALUES (NULL)", [])]);
        Ok(())
    });
    assert!(refused.await.is_err());
    let commits = || engine.writer_metrics().commit_s.counts.iter().sum::<u64>();
    let before = commits();
    let holder = LeaseHolder {
        worker: "w".to_owned(),
        queue: None,
    };
    let done = engine.complete(done, holder, None).await.unwrap();
    assert!(done.iter().all(|done| *done == Ok(State::Complete)));
    assert_eq!(commits() - before, 2, "20 jobs each");
    assert_eq!(read_number(&engine, WAITING).await, 40 * 101);
    assert_eq!(
        read_number(&engine, "SELECT count(*) FROM dependencies").await,
        0
    );
    assert_eq!(engine.check(None).await.unwrap(), []);
    engine.close().await;
}

/// 400,000 dependents are counted in a transaction: of each of 250 dependencies 1,600.
#[tokio::test]
async fn the_more_dependencies_a_job_gets_the_fewer_dependents_each_may_have() {
    let engine = engine().await;
    let needs = ids("n", 250);
    put(&engine, "q", needs.iter().map(|id| job(id, None)).collect()).await;
    // No jobs have these numbers.
    run_sql(
        &engine,
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1599)
         INSERT INTO dependencies (job, needs) SELECT -n, (SELECT seq FROM jobs WHERE id = 'n7') FROM numbers",
    )
    .await;
    put(&engine, "q", vec![job("fits", Some(needs.clone()))]).await;
    let many = vec![job("many", Some(needs.clone()))];
    let refused = engine.put(queue("q"), many, String::new(), None).await;
    let too_many = Error::TooMany {
        what: "other jobs depend on one of these dependencies",
        max: 1_600,
    };
    assert_eq!(refused.unwrap(), [Err(too_many)]);
    // Each of these jobs has one dependency, so all dependents are counted.
    let each = |id: &String| job(&format!("on {id}"), Some(vec![id.clone()]));
    put(&engine, "q", needs.iter().map(each).collect()).await;
    let fewer = needs.iter().take(200).cloned().collect();
    put(&engine, "q", vec![job("fewer", Some(fewer))]).await;
    engine.close().await;
}

/// Of a job that another verb names, only the first 101 dependencies are loaded.
#[tokio::test]
async fn a_job_is_not_released_by_the_first_of_many_dependencies() {
    let engine = engine().await;
    let needs = ids("n", 150);
    let all = needs.iter().map(|id| job(id, None)).collect();
    put(&engine, "needs", all).await;
    put(&engine, "q", vec![job("leaf", Some(needs.clone()))]).await;
    let claimed = engine.claim(Claim::of(queue("needs"), "w", 150), None);
    assert_eq!(claimed.await.unwrap().len(), 150);
    for (some, expected) in [(&needs[..101], 0), (&needs[101..], 1)] {
        let some: Vec<_> = some.iter().map(JobKey::qless).collect();
        let named = some.iter().cloned().chain([JobKey::qless("leaf")]);
        let needs = Needs {
            jobs: named.collect(),
            releases_dependents: true,
            keeps_dependencies: true,
            ..Needs::default()
        };
        let complete_all = move |work: &mut UnitOfWork| {
            let holder = LeaseHolder {
                worker: "w".to_owned(),
                queue: None,
            };
            let body = Body::from("1".to_owned());
            let done = some
                .iter()
                .map(|key| complete(work, key, &holder, &body, None));
            done.collect::<Result<Vec<_>, Error>>()
        };
        engine.write(needs, None, 1, complete_all).await.unwrap();
        assert_eq!(read_number(&engine, WAITING).await, expected);
    }
    assert_eq!(engine.check(None).await.unwrap(), []);
    engine.close().await;
}

#[tokio::test]
async fn a_job_that_is_completed_by_hand_keeps_none_of_its_many_dependencies() {
    let engine = engine().await;
    let needs = ids("n", 150);
    let all = needs.iter().map(|id| job(id, None)).collect();
    put(&engine, "needs", all).await;
    put(&engine, "q", vec![job("leaf", Some(needs))]).await;
    let leaf = engine.job(&JobKey::qless("leaf")).await.unwrap().unwrap();
    let now = engine.now(None);
    let seen = SeenJob {
        state: leaf.effective_state(now),
        since: leaf.state_since(now),
        key: leaf.key,
    };
    let done = engine.complete_manually(seen, "admin".to_owned()).await;
    assert!(matches!(done, Ok(Ok((_, true)))), "{done:?}");
    let left = "SELECT count(*) FROM dependencies";
    assert_eq!(read_number(&engine, left).await, 0);
    assert_eq!(engine.check(None).await.unwrap(), []);
    engine.close().await;
}
