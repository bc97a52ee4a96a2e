//! Long histories, tags and lists of dependents are read only for verbs that need them; no verb may lose them.

use switchyard::engine::{Claim, Error, JobKey, Put, Recur, RecurringChange};

use super::{Engine, at, complete, engine, holder, job, new, pop, put, q};

fn key(id: &str) -> JobKey {
    JobKey::qless(id)
}

const NOTES: usize = 90;

/// A history of about 360 kB.
async fn add_long_history(engine: &Engine, id: &str) {
    let note = |n| (key(id), format!("{n:02}{}", "x".repeat(4_000)), None);
    let noted = engine.note((0..NOTES).map(note).collect(), at(1.0)).await;
    noted.unwrap().into_iter().for_each(|one| one.unwrap());
}

/// The notes of a job, by their first two characters.
async fn notes(engine: &Engine, id: &str) -> Vec<String> {
    let events = job(engine, id).await.events().into_iter();
    let texts = events.filter_map(|event| event.subject);
    let notes = texts.filter(|text| text.len() > 4_000);
    notes.map(|text| text.chars().take(2).collect()).collect()
}

fn expected_notes() -> Vec<String> {
    (0..NOTES).map(|n| format!("{n:02}")).collect()
}

#[tokio::test]
async fn verbs_keep_long_histories_and_tags() {
    let engine = engine().await;
    put(&engine, 0.0, new("j")).await;
    let tags: Vec<String> = (0..1_000).map(|n| format!("{n:0>100}")).collect();
    let tagged = engine.tag(vec![(key("j"), tags.clone())], at(0.0)).await;
    tagged.unwrap().remove(0).unwrap();
    add_long_history(&engine, "j").await;
    let assert_unchanged = async |when: &str| {
        assert_eq!(job(&engine, "j").await.tags, tags, "{when}");
        assert_eq!(notes(&engine, "j").await, expected_notes(), "{when}");
    };
    let changed = engine.prioritize(vec![(key("j"), 3.0)], at(2.0)).await;
    changed.unwrap().remove(0).unwrap();
    assert_unchanged("after a change of the priority").await;
    let claimed = engine.claim(Claim::of(q(), "w", 1), at(3.0)).await.unwrap();
    assert_eq!(claimed[0].tags, tags, "a claim returns all tags");
    let heartbeat = engine.heartbeat(vec![(key("j"), None)], holder("w"), at(4.0));
    heartbeat.await.unwrap().remove(0).unwrap();
    assert_unchanged("after a heartbeat").await;
    complete(&engine, 5.0, "w", "j").await.unwrap();
    assert_unchanged("after the completion").await;
}

#[tokio::test]
async fn a_job_with_many_dependents_keeps_them_all() {
    let engine = engine().await;
    put(&engine, 0.0, new("root")).await;
    for n in 0..150 {
        let dependent = Put {
            depends: Some(vec!["root".to_owned()]),
            ..new(&format!("d{n}"))
        };
        put(&engine, 0.0, dependent).await;
    }
    let changed = engine.prioritize(vec![(key("root"), 3.0)], at(1.0)).await;
    changed.unwrap().remove(0).unwrap();
    assert_eq!(job(&engine, "root").await.dependents.len(), 150);
    let claimed = engine.claim(Claim::of(q(), "w", 1), at(2.0)).await.unwrap();
    assert_eq!(claimed[0].dependents.len(), 150);
    let heartbeat = engine.heartbeat(vec![(key("root"), None)], holder("w"), at(3.0));
    heartbeat.await.unwrap().remove(0).unwrap();
    complete(&engine, 4.0, "w", "root").await.unwrap();
    assert_eq!(pop(&engine, 5.0, "w", 200).await.len(), 150);
}

/// More than 16 MiB, which one transaction does not load.
#[tokio::test]
async fn one_request_changes_many_jobs_with_long_histories() {
    let engine = engine().await;
    let ids: Vec<String> = (0..60).map(|n| format!("j{n:03}")).collect();
    let jobs = ids.iter().map(|id| new(id)).collect();
    let made = engine.put(q(), jobs, "client".to_owned(), at(0.0)).await;
    made.unwrap().into_iter().for_each(|id| drop(id.unwrap()));
    for id in &ids {
        add_long_history(&engine, id).await;
    }
    let all = ids.iter().map(|id| (key(id), 7.0)).collect();
    let changed = engine.prioritize(all, at(2.0)).await.unwrap();
    changed.into_iter().for_each(|one| one.unwrap());
    for id in [&ids[0], &ids[29], &ids[59]] {
        assert_eq!(notes(&engine, id).await, expected_notes(), "{id}");
        assert_eq!(job(&engine, id).await.priority, 7.0);
    }
}

#[tokio::test]
async fn a_claim_of_long_bodies_ends_at_the_limit_on_running_jobs() {
    let engine = engine().await;
    let limit = engine.configure("q-max-concurrency", Some("2".to_owned()), at(0.0));
    limit.await.unwrap();
    for n in 0..8 {
        let long = Put {
            body: format!("\"{}\"", "x".repeat(2 << 20)),
            ..new(&format!("j{n}"))
        };
        put(&engine, 0.0, long).await;
    }
    assert_eq!(pop(&engine, 1.0, "w", 10).await, ["j0", "j1"]);
    assert_eq!(pop(&engine, 2.0, "w", 10).await, [""; 0]);
    complete(&engine, 3.0, "w", "j0").await.unwrap();
    assert_eq!(pop(&engine, 4.0, "w", 10).await, ["j2"]);
}

#[tokio::test]
async fn children_with_long_bodies_are_created_4_mib_at_a_time() {
    let engine = engine().await;
    let recurring = Recur {
        id: Some("r".to_owned()),
        body: format!("\"{}\"", "x".repeat((1 << 20) - 2)),
        interval_s: 0.001,
        ..Recur::default()
    };
    let made = engine.recur(q(), vec![recurring], at(0.0)).await.unwrap();
    made.into_iter().for_each(|id| drop(id.unwrap()));
    assert_eq!(pop(&engine, 10.0, "w", 20).await.len(), 20);
    let peeked = engine.peek(&q(), 1_000, at(10.0)).await;
    assert_eq!(peeked.unwrap_err(), Error::ResponseTooLarge);
    let created = engine.recurring("r").await.unwrap().unwrap().children_count;
    assert!((64..120).contains(&created), "{created} children");
}

/// `b` is loaded without most of its dependents, because it is only a dependency of `z`.
#[tokio::test]
async fn a_cycle_through_a_job_with_many_dependents_is_found() {
    let engine = engine().await;
    let on = |id: &str, needs: &[&str]| Put {
        depends: Some(needs.iter().map(|id| (*id).to_owned()).collect()),
        ..new(id)
    };
    put(&engine, 0.0, new("a")).await;
    put(&engine, 0.0, on("b", &["a"])).await;
    for n in 0..150 {
        put(&engine, 0.0, on(&format!("c{n:03}"), &["b"])).await;
    }
    put(&engine, 0.0, on("z", &["a"])).await;
    for last in ["c000", "c149"] {
        let again = vec![on("z", &["a", "b"]), on("a", &[last])];
        let put = engine.put(q(), again, "client".to_owned(), at(1.0));
        let [z, a] = <[_; 2]>::try_from(put.await.unwrap()).unwrap();
        assert_eq!(z, Ok("z".to_owned()));
        let cycle = Error::DependencyCycle { id: "a".to_owned() };
        assert_eq!(a.unwrap_err(), cycle, "through {last}");
    }
}

/// The lists of dependents are too long for one transaction, so the cancel is checked and run in several.
#[tokio::test]
async fn jobs_with_too_many_dependents_for_one_transaction_are_canceled_all_or_none() {
    const ROOTS: usize = 60;
    let engine = engine().await;
    let roots: Vec<String> = (0..ROOTS).map(|n| format!("root{n}")).collect();
    let jobs = roots.iter().map(|id| new(id)).collect();
    drop(
        engine
            .put(q(), jobs, "client".to_owned(), at(0.0))
            .await
            .unwrap(),
    );
    let dependents: Vec<String> = (0..110).map(|n| format!("d{n:03}")).collect();
    let jobs = dependents.iter().map(|id| Put {
        depends: Some(roots.clone()),
        ..new(id)
    });
    let put = engine.put(q(), jobs.collect(), "client".to_owned(), at(0.0));
    put.await
        .unwrap()
        .into_iter()
        .for_each(|id| drop(id.unwrap()));
    let cancel = async |ids: Vec<&String>| {
        let keys = ids.into_iter().map(|id| key(id)).collect();
        engine.cancel(keys, at(1.0)).await
    };
    // Leaves out one dependent: first one that is not among the first 101 dependents of a job, then one that is.
    for (missing, in_first) in [(109, false), (0, true)] {
        let some = dependents.iter().enumerate();
        let some = some.filter(|(n, _)| *n != missing).map(|(_, id)| id);
        let refused = cancel(roots.iter().chain(some).collect()).await;
        let Err(Error::HasDependents { dependents, .. }) = refused else {
            panic!("{missing} is missing: {refused:?}");
        };
        assert_eq!(dependents, [format!("d{missing:03}")], "{in_first}");
        assert_eq!(job(&engine, "root7").await.dependents.len(), 110);
    }
    cancel(roots.iter().chain(&dependents).collect())
        .await
        .unwrap();
    for id in roots.iter().chain(&dependents) {
        assert!(engine.job(&key(id)).await.unwrap().is_none(), "{id}");
    }
}

/// The list is refused before the IDs of the dependents are loaded for each repetition.
#[tokio::test]
async fn each_repetition_of_a_job_counts_towards_the_size_of_a_list() {
    let engine = engine().await;
    put(&engine, 0.0, new("root")).await;
    for n in 0..300 {
        let dependent = Put {
            depends: Some(vec!["root".to_owned()]),
            ..new(&format!("{n:0>250}"))
        };
        put(&engine, 0.0, dependent).await;
    }
    let list = async |repetitions: usize| {
        let found = engine.jobs_by_key(&vec![key("root"); repetitions]).await?;
        Ok::<_, Error>(found.into_iter().flatten().count())
    };
    assert_eq!(list(500).await, Ok(500));
    assert_eq!(list(1_000).await, Err(Error::ResponseTooLarge));
}

#[tokio::test]
async fn jobs_whose_tags_exceed_the_response_limit_stay_unchanged() {
    let engine = engine().await;
    put(&engine, 0.0, new("j")).await;
    let many = (0..1_000).map(|n| format!("{n:0>200}")).collect();
    let tagged = engine.tag(vec![(key("j"), many)], at(0.0)).await;
    tagged.unwrap().remove(0).unwrap();
    // Each result has about 232 kB.
    let items = (0..300)
        .map(|n| (key("j"), vec![format!("t{n}")]))
        .collect();
    let results = engine.tag(items, at(1.0)).await.unwrap();
    let done = results.iter().take_while(|result| result.is_ok()).count();
    assert!((200..300).contains(&done), "{done}");
    for result in &results[done..] {
        assert_eq!(*result, Err(Error::ResponseTooLarge));
    }
    assert_eq!(job(&engine, "j").await.tags.len(), 1_000 + done);
    let untagged = engine.untag(vec![(key("j"), vec!["t0".to_owned()])], at(2.0));
    assert_eq!(
        untagged.await.unwrap()[0].as_ref().unwrap().len(),
        999 + done
    );
}

#[tokio::test]
async fn a_recurring_job_has_at_most_2000_tags() {
    let engine = engine().await;
    let recurring = Recur {
        id: Some("r".to_owned()),
        body: "1".to_owned(),
        interval_s: 60.0,
        tags: (0..1_999).map(|n| n.to_string()).collect(),
        ..Recur::default()
    };
    let made = engine.recur(q(), vec![recurring], at(0.0)).await.unwrap();
    made.into_iter().for_each(|id| drop(id.unwrap()));
    let add = async |tag: &str| {
        let change = RecurringChange {
            tag: vec![tag.to_owned()],
            ..RecurringChange::default()
        };
        let changed = engine.change_recurring("r", change, at(1.0)).await;
        changed.map(|recurring| recurring.tags.len())
    };
    assert_eq!(add("last").await, Ok(2_000));
    assert_eq!(add("last").await, Ok(2_000));
    let too_many = Error::TooMany {
        what: "tags on one job",
        max: 2_000,
    };
    assert_eq!(add("more").await, Err(too_many));
}

/// The bodies of all recurring jobs that are due would not fit into one transaction.
#[tokio::test]
async fn a_claim_gets_the_children_of_recurring_jobs_with_long_bodies() {
    let engine = engine().await;
    for n in 0..8 {
        let recurring = Recur {
            id: Some(format!("r{n}")),
            body: format!("\"{n}{}\"", "x".repeat((1 << 20) - 3)),
            interval_s: 60.0,
            offset_s: f64::from(n),
            tags: vec![format!("t{n}")],
            ..Recur::default()
        };
        let made = engine.recur(q(), vec![recurring], at(0.0)).await.unwrap();
        made.into_iter().for_each(|id| drop(id.unwrap()));
    }
    let claimed = engine
        .claim(Claim::of(q(), "w", 8), at(10.0))
        .await
        .unwrap();
    let children: Vec<_> = claimed.iter().map(|job| job.key.id.clone()).collect();
    let expected: Vec<_> = (0..8).map(|n| format!("r{n}-1")).collect();
    assert_eq!(children, expected);
    for (n, job) in claimed.iter().enumerate() {
        assert!(job.body.starts_with(&format!("\"{n}x")), "{n}");
        assert_eq!(job.tags, [format!("t{n}")]);
    }
    let longer = Recur {
        id: Some("r0".to_owned()),
        body: "1".repeat((1 << 20) + 1),
        ..Recur::default()
    };
    let too_long = Error::TooMany {
        what: "bytes of data in a recurring job",
        max: 1 << 20,
    };
    let refused = engine.recur(q(), vec![longer], at(11.0)).await.unwrap();
    assert_eq!(refused, [Err(too_long)]);
    // Replacing and deleting does not need the body; the numbering of the children continues.
    let again = Recur {
        id: Some("r0".to_owned()),
        body: "2".to_owned(),
        interval_s: 60.0,
        ..Recur::default()
    };
    engine.recur(q(), vec![again], at(11.0)).await.unwrap();
    engine.unrecur("r1", at(11.0)).await.unwrap();
    let claimed = engine
        .claim(Claim::of(q(), "w", 5), at(12.0))
        .await
        .unwrap();
    let children: Vec<_> = claimed
        .iter()
        .map(|job| (&*job.key.id, &*job.body))
        .collect();
    assert_eq!(children, [("r0-2", "2")]);
    assert!(engine.recurring("r1").await.unwrap().is_none());
}
