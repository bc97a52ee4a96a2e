//! Completed jobs whose dependents are too large for one transaction. The tests write the histories directly.

use crate::engine::maintenance::SystemTask;
use crate::engine::maintenance::tasks::MaintenanceTask;
use crate::engine::model::body::Body;
use crate::engine::model::job::{Job, JobKey, State};
use crate::engine::test_support::{read_number, run_sql, run_statements};
use crate::engine::unit_of_work::Needs;
use crate::engine::verbs::qless::complete::complete;
use crate::engine::verbs::qless::depend::Depend;
use crate::engine::{
    Claim, Engine, LeaseHolder, NextQueue, Put, QueueKey, engine_without_tasks as engine,
};
use crate::store::Statement;

const SATISFIED: &str = "SELECT count(*) FROM dependencies WHERE needs < 0";
const DEPENDENCIES: &str = "SELECT count(*) FROM dependencies";
const WAITING: &str = "SELECT count(*) FROM jobs WHERE state = {waiting}";
const RELEASE: SystemTask = SystemTask::Maintain(MaintenanceTask::ReleaseDependents);

fn job(id: &str, depends: &[&str]) -> Put {
    Put {
        id: Some(id.to_owned()),
        body: "1".to_owned(),
        depends: Some(depends.iter().map(|id| (*id).to_owned()).collect()),
        ..Put::default()
    }
}

async fn put(engine: &Engine, jobs: Vec<Put>) {
    let put = engine.put(QueueKey::qless("q"), jobs, String::new(), None);
    put.await
        .unwrap()
        .into_iter()
        .for_each(|id| drop(id.unwrap()));
}

/// Jobs that depend on `need`.
async fn put_leaves(engine: &Engine, count: usize, need: &str) {
    let leaves = (0..count).map(|n| job(&format!("leaf{n}"), &[need]));
    put(engine, leaves.collect()).await;
}

async fn read(engine: &Engine, id: &str) -> Job {
    engine.job(&JobKey::qless(id)).await.unwrap().unwrap()
}

async fn state(engine: &Engine, id: &str) -> State {
    read(engine, id).await.state
}

/// Makes the rows of the jobs with dependencies `bytes` bytes large.
async fn resize(engine: &Engine, bytes: i64) {
    let sql = "
UPDATE jobs SET history = '[[\"note\",1,\"' || printf('%.*c', $1 - octet_length(body) - octet_length(tags) - 20, 'x') ||
    '\",null]]' WHERE state = {depends}";
    run_statements(engine, [Statement::new(sql, [bytes.into()])]).await;
    let size =
        "SELECT max(octet_length(body) + octet_length(tags) + octet_length(history)) FROM jobs";
    assert_eq!(read_number(engine, size).await, bytes);
}

async fn claim(engine: &Engine, count: usize) {
    let claimed = engine.claim(Claim::of(QueueKey::qless("q"), "w", count), None);
    assert_eq!(claimed.await.unwrap().len(), count);
}

fn holder() -> LeaseHolder {
    LeaseHolder {
        worker: "w".to_owned(),
        queue: None,
    }
}

/// Completes claimed jobs in one transaction, and releases nothing afterwards.
async fn only_complete(engine: &Engine, ids: &[&str]) {
    let jobs: Vec<_> = ids.iter().copied().map(JobKey::qless).collect();
    let needs = Needs {
        jobs: jobs.clone(),
        releases_dependents: true,
        ..Needs::default()
    };
    let done = engine.write(needs, None, 1, move |work| {
        let done = jobs
            .iter()
            .map(|key| complete(work, key, &holder(), &Body::from("1".to_owned()), None));
        done.collect::<Result<Vec<_>, _>>()
    });
    assert_eq!(done.await.unwrap(), vec![State::Complete; ids.len()]);
}

async fn release_all(engine: &Engine) -> Vec<usize> {
    let mut released = Vec::new();
    loop {
        match engine.run_system_task(RELEASE).await.unwrap() {
            0 => return released,
            some => released.push(some),
        }
    }
}

#[tokio::test]
async fn dependents_of_up_to_4_mib_are_released_with_the_completion() {
    for (bytes, left) in [((4 << 20) - 4, 0), (4 << 20, 0), ((4 << 20) + 4, 4)] {
        let engine = engine().await;
        put(&engine, vec![job("need", &[])]).await;
        put_leaves(&engine, 4, "need").await;
        resize(&engine, bytes / 4).await;
        claim(&engine, 1).await;
        only_complete(&engine, &["need"]).await;
        assert_eq!(read_number(&engine, SATISFIED).await, left, "{bytes} bytes");
        assert_eq!(read_number(&engine, WAITING).await, 4 - left);
        assert_eq!(engine.check(None).await.unwrap(), []);
        assert_eq!(
            release_all(&engine).await.iter().sum::<usize>() as i64,
            left
        );
        assert_eq!(read_number(&engine, DEPENDENCIES).await, 0);
        assert_eq!(read_number(&engine, WAITING).await, 4);
        assert_eq!(engine.check(None).await.unwrap(), []);
        engine.close().await;
    }
}

/// The first transaction releases the small dependents, the following ones the large ones of the other job.
#[tokio::test]
async fn small_dependents_do_not_wait_for_large_ones() {
    let engine = engine().await;
    put(&engine, vec![job("a", &[]), job("b", &[])]).await;
    put_leaves(&engine, 9, "a").await;
    resize(&engine, 1 << 20).await;
    put(
        &engine,
        vec![job("small", &["b"]), job("both", &["a", "b"])],
    )
    .await;
    claim(&engine, 2).await;
    only_complete(&engine, &["a", "b"]).await;
    assert_eq!(state(&engine, "small").await, State::Waiting);
    assert_eq!(read_number(&engine, SATISFIED).await, 10);
    assert_eq!(read(&engine, "a").await.dependents, [""; 0]);
    assert_eq!(read(&engine, "leaf3").await.dependencies, [""; 0]);
    assert_eq!(read(&engine, "both").await.dependencies, [""; 0]);
    // 4 MiB each; the job with few bytes is among the last.
    assert_eq!(release_all(&engine).await, [4, 4, 2]);
    assert_eq!(read_number(&engine, WAITING).await, 11);
    assert_eq!(engine.check(None).await.unwrap(), []);
    engine.close().await;
}

#[tokio::test]
async fn the_answer_to_a_completion_comes_after_the_release() {
    let engine = engine().await;
    put(&engine, vec![job("need", &[])]).await;
    put_leaves(&engine, 10, "need").await;
    resize(&engine, 1 << 20).await;
    claim(&engine, 1).await;
    let turn = vec![(JobKey::qless("need"), "1".to_owned(), None)];
    let done = engine.complete(turn, holder(), None).await.unwrap();
    assert_eq!(done, [Ok(State::Complete)]);
    assert_eq!(read_number(&engine, WAITING).await, 10);
    assert_eq!(read_number(&engine, DEPENDENCIES).await, 0);
    engine.close().await;
}

#[tokio::test]
async fn up_to_500_dependents_are_released_at_once() {
    for (count, first) in [(499, 499), (500, 500), (501, 500)] {
        let engine = engine().await;
        put(&engine, vec![job("need", &[])]).await;
        put_leaves(&engine, count, "need").await;
        run_sql(&engine, "UPDATE dependencies SET needs = -needs").await;
        let released = engine.run_system_task(RELEASE).await.unwrap();
        assert_eq!(released, first, "of {count}");
        release_all(&engine).await;
        assert_eq!(read_number(&engine, WAITING).await, count as i64 + 1);
        assert_eq!(engine.check(None).await.unwrap(), []);
        engine.close().await;
    }
}

/// Between the completion and the release, the dependents and the completed job change.
#[tokio::test]
async fn other_verbs_run_before_the_release() {
    let engine = engine().await;
    put(&engine, vec![job("need", &[]), job("other", &[])]).await;
    put_leaves(&engine, 9, "need").await;
    put(&engine, vec![job("both", &["need", "other"])]).await;
    resize(&engine, 1 << 20).await;
    claim(&engine, 2).await;
    only_complete(&engine, &["need"]).await;
    assert_eq!(read_number(&engine, SATISFIED).await, 10);
    // The completed job is put again, and a new job and a former dependent depend on it.
    put(&engine, vec![job("need", &[]), job("new", &["need"])]).await;
    let on = |ids: &[&str]| Depend::On(ids.iter().map(|id| (*id).to_owned()).collect());
    let changes = [
        ("leaf0", on(&["need"])),
        ("leaf1", on(&["other"])),
        ("leaf2", Depend::OffAll),
        ("leaf3", Depend::Off(vec!["need".to_owned()])),
    ];
    for (id, change) in changes {
        let changed = engine.depend(vec![(JobKey::qless(id), change)], None);
        changed.await.unwrap().remove(0).unwrap();
    }
    engine
        .cancel(vec![JobKey::qless("leaf4")], None)
        .await
        .unwrap();
    put(&engine, vec![job("leaf5", &[])]).await;
    put(&engine, vec![job("leaf6", &["other"])]).await;
    assert_eq!(engine.check(None).await.unwrap(), []);
    // The last dependency that is not satisfied: the job waits for nothing else.
    only_complete(&engine, &["other"]).await;
    assert_eq!(state(&engine, "both").await, State::Waiting);
    for id in ["leaf1", "leaf2", "leaf3", "leaf5", "leaf6"] {
        assert_eq!(state(&engine, id).await, State::Waiting, "{id}");
    }
    for id in ["leaf7", "leaf8"] {
        assert_eq!(state(&engine, id).await, State::Depends, "{id}");
    }
    release_all(&engine).await;
    for id in ["leaf0", "new"] {
        assert_eq!(state(&engine, id).await, State::Depends, "{id}");
        assert_eq!(read(&engine, id).await.dependencies, ["need"], "{id}");
    }
    for id in ["leaf7", "leaf8"] {
        assert_eq!(state(&engine, id).await, State::Waiting, "{id}");
    }
    assert_eq!(read_number(&engine, DEPENDENCIES).await, 2);
    assert_eq!(engine.check(None).await.unwrap(), []);
    engine.close().await;
}

/// Only the first 101 dependencies of a job are loaded with it. Satisfied ones are not among them.
#[tokio::test]
async fn many_satisfied_dependencies_do_not_hide_the_others() {
    let engine = engine().await;
    let needs: Vec<String> = (0..150).map(|n| format!("n{n}")).collect();
    let needs: Vec<&str> = needs.iter().map(String::as_str).collect();
    put(&engine, needs.iter().map(|id| job(id, &[])).collect()).await;
    put(&engine, vec![job("leaf", &needs)]).await;
    run_sql(
        &engine,
        "UPDATE dependencies SET needs = -needs WHERE needs < (SELECT max(needs) FROM dependencies)",
    )
    .await;
    assert_eq!(read(&engine, "leaf").await.dependencies, ["n149"]);
    let off = Depend::Off(vec!["n0".to_owned()]);
    let changed = engine.depend(vec![(JobKey::qless("leaf"), off)], None);
    changed.await.unwrap().remove(0).unwrap();
    assert_eq!(state(&engine, "leaf").await, State::Depends);
    assert_eq!(release_all(&engine).await.len(), 149);
    assert_eq!(state(&engine, "leaf").await, State::Depends);
    let off = Depend::Off(vec!["n149".to_owned()]);
    let changed = engine.depend(vec![(JobKey::qless("leaf"), off)], None);
    changed.await.unwrap().remove(0).unwrap();
    assert_eq!(state(&engine, "leaf").await, State::Waiting);
    engine.close().await;
}

/// Jobs of one commit group: one of them removes dependencies on a job that another one completes.
#[tokio::test]
async fn a_transaction_releases_nothing_that_it_removes() {
    let engine = engine().await;
    put(&engine, vec![job("need", &[]), job("last", &[])]).await;
    put_leaves(&engine, 9, "need").await;
    put(&engine, vec![job("three", &["need", "last", "leaf0"])]).await;
    resize(&engine, 1 << 20).await;
    claim(&engine, 2).await;
    let named = ["need", "last", "leaf1", "leaf2"].map(JobKey::qless);
    let needs = Needs {
        jobs: named.into(),
        releases_dependents: true,
        ..Needs::default()
    };
    let run = engine.write(needs, None, 1, |work| {
        let key = JobKey::qless;
        complete(
            work,
            &key("need"),
            &holder(),
            &Body::from("1".to_owned()),
            None,
        )?;
        work.remove(&key("leaf1"));
        complete(
            work,
            &key("last"),
            &holder(),
            &Body::from("1".to_owned()),
            None,
        )?;
        Ok(())
    });
    run.await.unwrap();
    // The canceled job and its counter are gone without its verb.
    assert_eq!(state(&engine, "three").await, State::Depends);
    assert_eq!(read(&engine, "three").await.dependencies, ["leaf0"]);
    release_all(&engine).await;
    assert_eq!(state(&engine, "three").await, State::Depends);
    assert_eq!(read_number(&engine, DEPENDENCIES).await, 1);
    assert_eq!(engine.check(None).await.unwrap(), []);
    engine.close().await;
}

/// The completed job has dependents that are released later. Another verb loads one of them as a dependency.
#[tokio::test]
async fn a_large_release_shares_no_transaction_with_other_verbs() {
    let engine = engine().await;
    put(&engine, vec![job("need", &[]), job("moves", &[])]).await;
    put_leaves(&engine, 9, "need").await;
    resize(&engine, 1 << 20).await;
    claim(&engine, 2).await;
    let next = NextQueue {
        queue: QueueKey::qless("q2"),
        delay: 0.0,
        depends: vec!["leaf0".to_owned()],
    };
    let turn = |id: &str, next| (JobKey::qless(id), "1".to_owned(), next);
    let turns = vec![turn("need", None), turn("moves", Some(next))];
    let completing = engine.complete(turns, holder(), None);
    let (done, ()) = futures::join!(completing, put(&engine, vec![job("new", &["leaf0"])]));
    assert_eq!(done.unwrap(), [Ok(State::Complete), Ok(State::Depends)]);
    assert_eq!(state(&engine, "leaf0").await, State::Waiting);
    assert_eq!(
        read_number(&engine, "SELECT count(*) FROM jobs WHERE queue = 0").await,
        0
    );
    for id in ["moves", "new"] {
        assert_eq!(read(&engine, id).await.dependencies, ["leaf0"], "{id}");
    }
    assert_eq!(engine.check(None).await.unwrap(), []);
    engine.close().await;
}

/// A verb names the dependent, so it is loaded, but only with its first 101 dependencies.
#[tokio::test]
async fn a_dependent_that_is_released_later_is_not_released_before() {
    let engine = engine().await;
    let needs: Vec<String> = (0..150).map(|n| format!("n{n}")).collect();
    let needs: Vec<&str> = needs.iter().map(String::as_str).collect();
    put(&engine, needs.iter().map(|id| job(id, &[])).collect()).await;
    put(&engine, vec![job("leaf", &needs)]).await;
    resize(&engine, 5 << 20).await;
    claim(&engine, 150).await;
    let named = ["leaf"].iter().chain(&needs[..101]);
    let needs_of_group = Needs {
        jobs: named.map(|id| JobKey::qless(*id)).collect(),
        releases_dependents: true,
        ..Needs::default()
    };
    let completed: Vec<_> = needs[..101].iter().map(|id| JobKey::qless(*id)).collect();
    let done = engine.write(needs_of_group, None, 1, move |work| {
        for key in &completed {
            complete(work, key, &holder(), &Body::from("1".to_owned()), None)?;
        }
        Ok(())
    });
    done.await.unwrap();
    assert_eq!(state(&engine, "leaf").await, State::Depends);
    release_all(&engine).await;
    assert_eq!(state(&engine, "leaf").await, State::Depends);
    only_complete(&engine, &needs[101..]).await;
    release_all(&engine).await;
    assert_eq!(state(&engine, "leaf").await, State::Waiting);
    assert_eq!(engine.check(None).await.unwrap(), []);
    engine.close().await;
}

/// In one commit group, a job gets a new dependent, so its dependents are counted, and a verb tries to complete it, so
/// they are loaded.
#[tokio::test]
async fn dependents_are_not_counted_twice() {
    let engine = engine().await;
    put(&engine, vec![job("need", &[])]).await;
    put_leaves(&engine, 1_100, "need").await;
    // The others queue up meanwhile.
    let many = (0..250).map(|n| job(&format!("many{n}"), &[]));
    let turn = vec![(JobKey::qless("need"), "1".to_owned(), None)];
    let (.., refused) = futures::join!(
        put(&engine, many.collect()),
        put(&engine, vec![job("new", &["need"])]),
        engine.complete(turn, holder(), None)
    );
    assert!(refused.unwrap().remove(0).is_err());
    assert_eq!(state(&engine, "new").await, State::Depends);
    engine.close().await;
}
