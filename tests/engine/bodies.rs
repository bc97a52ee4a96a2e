//! Long bodies are loaded only for verbs that return them. No verb may lose a body or return another job's.

use switchyard::engine::{Claim, EngineSettings, Fail, JobKey, Put};

use super::{Engine, at, complete, engine, holder, job, open, pop, q};

/// Longer than the part that is loaded with every job.
const LONG: usize = 100 * 1024;

fn long(id: usize, bytes: usize) -> Put {
    Put {
        id: Some(format!("j{id:03}")),
        body: format!("\"{id}{}\"", "x".repeat(bytes)),
        retries: Some(5),
        ..Put::default()
    }
}

async fn add(engine: &Engine, jobs: impl IntoIterator<Item = Put>) {
    let jobs = jobs.into_iter().collect();
    let put = engine.put(q(), jobs, "client".to_owned(), None);
    put.await
        .unwrap()
        .into_iter()
        .for_each(|id| drop(id.unwrap()));
}

#[tokio::test]
async fn verbs_that_change_a_job_keep_its_long_body() {
    let engine = engine().await;
    let body = long(1, LONG).body;
    let put = engine.put(q(), vec![long(1, LONG)], "client".to_owned(), at(0.0));
    put.await.unwrap().remove(0).unwrap();
    let key = JobKey::qless("j001");
    let assert_body =
        async |when: &str| assert_eq!(*job(&engine, "j001").await.body, *body, "{when}");
    assert_eq!(pop(&engine, 1.0, "w", 1).await, ["j001"]);
    let beats = vec![(key.clone(), None)];
    engine
        .heartbeat(beats, holder("w"), at(2.0))
        .await
        .unwrap()
        .remove(0)
        .unwrap();
    assert_body("after a heartbeat").await;
    let fail = Fail {
        key: key.clone(),
        group: "g".to_owned(),
        message: "m".to_owned(),
        body: None,
    };
    engine
        .fail(vec![fail], holder("w"), at(3.0))
        .await
        .unwrap()
        .remove(0)
        .unwrap();
    assert_body("after a failure").await;
    let tags = vec![(key.clone(), vec!["t".to_owned()])];
    engine.tag(tags, at(4.0)).await.unwrap().remove(0).unwrap();
    assert_body("after a tag").await;
    engine.retry_failed(key.clone(), at(5.0)).await.unwrap();
    assert_body("after a retry").await;
    let claimed = engine.claim(Claim::of(q(), "w", 1), at(6.0)).await.unwrap();
    assert_eq!(*claimed[0].body, *body);
    let heartbeat = vec![(key.clone(), Some("\"short\"".to_owned()))];
    engine
        .heartbeat(heartbeat, holder("w"), at(7.0))
        .await
        .unwrap()
        .remove(0)
        .unwrap();
    assert_eq!(*job(&engine, "j001").await.body, *"\"short\"");
    complete(&engine, 8.0, "w", "j001").await.unwrap();
}

/// The claims of one transaction lease 4 MiB of jobs before the last one: four of the long ones.
#[tokio::test]
async fn claims_return_long_bodies_in_order() {
    let options = EngineSettings {
        without_tasks: true,
        ..super::options()
    };
    let engine = Engine::open(&options).await.unwrap();
    add(&engine, (0..28).map(|n| long(n, 1 << 20))).await;
    add(&engine, (28..40).map(|n| long(n, 10))).await;
    let claimed = engine.claim(Claim::of(q(), "w", 40), None).await.unwrap();
    assert_eq!(claimed.len(), 40);
    for (n, job) in claimed.iter().enumerate() {
        assert_eq!(job.key.id, format!("j{n:03}"));
        let bytes = if n < 28 { 1 << 20 } else { 10 };
        assert!(*job.body == *long(n, bytes).body, "{n}");
    }
    let mut distinct_times: Vec<_> = claimed.iter().map(|job| job.since).collect();
    distinct_times.dedup();
    assert_eq!(distinct_times.len(), 8);
}

/// If other claims of the same transaction took the jobs that were read, a claim that got none must not report an empty
/// queue.
#[tokio::test]
async fn concurrent_claims_get_one_long_body_each() {
    let engine = open(false).await;
    add(&engine, (0..24).map(|n| long(n, 1 << 20))).await;
    let claims = (0..24).map(|n| engine.claim(Claim::of(q(), format!("w{n}"), 1), None));
    let claimed = futures::future::join_all(claims).await;
    let mut ids: Vec<_> = claimed
        .into_iter()
        .flat_map(Result::unwrap)
        .map(|job| job.key.id)
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..24).map(|n| format!("j{n:03}")).collect::<Vec<_>>());
}

/// Releasing a dependent does not load its texts.
#[tokio::test]
async fn releasing_a_job_keeps_its_texts() {
    let engine = engine().await;
    for (job, depends) in [
        (long(1, 10), None),
        (long(2, LONG), Some("j001")),
        (long(3, 10), Some("j001")),
    ] {
        let job = Put {
            depends: depends.map(|id| vec![id.to_owned()]),
            tags: Some(vec!["t".to_owned()]),
            ..job
        };
        let put = engine.put(q(), vec![job], "client".to_owned(), at(0.0));
        put.await.unwrap().remove(0).unwrap();
    }
    let mut before = job(&engine, "j002").await;
    pop(&engine, 1.0, "w", 1).await;
    complete(&engine, 2.0, "w", "j001").await.unwrap();
    let after = job(&engine, "j002").await;
    before.state = after.state;
    before.ready_at = after.ready_at;
    before.since = after.since;
    before.dependencies.clear();
    assert_eq!(before, after);
    assert_eq!(pop(&engine, 3.0, "w", 5).await, ["j002", "j003"]);
}

#[tokio::test]
async fn a_body_is_read_without_its_job_if_it_is_not_too_long() {
    let engine = open(false).await;
    for (n, bytes) in [(1, 10), (2, LONG)] {
        let body = long(n, bytes).body;
        add(&engine, [long(n, bytes)]).await;
        let key = JobKey::qless(format!("j{n:03}"));
        assert_eq!(engine.body_bytes(&key).await.unwrap(), Some(body.len()));
        for (bytes_max, is_read) in [(body.len(), true), (body.len() - 1, false)] {
            let read = engine.body_up_to(&key, bytes_max).await.unwrap();
            assert!(read == is_read.then(|| body.clone()), "{n}: {bytes_max}");
        }
    }
    for id in ["none", "\0"] {
        let key = JobKey::qless(id);
        assert_eq!(engine.body_bytes(&key).await.unwrap(), None);
        assert_eq!(engine.body_up_to(&key, LONG).await.unwrap(), None);
    }
    engine.close().await;
}
