//! Dependencies between jobs.

use super::*;
use switchyard::engine::Depend;

#[tokio::test]
async fn dependents_are_released_by_completion_but_not_by_advancing() {
    let engine = engine().await;
    put(&engine, 0.0, new("a")).await;
    put(&engine, 0.0, new("b")).await;
    let depends = Some(vec!["a".to_owned(), "b".to_owned(), "unknown".to_owned()]);
    put(
        &engine,
        1.0,
        Put {
            depends,
            delay: Some(100.0),
            ..new("c")
        },
    )
    .await;
    assert_eq!(job(&engine, "c").await.dependencies, ["a", "b"]);
    assert_eq!(job(&engine, "a").await.dependents, ["c"]);
    assert_eq!(pop(&engine, 2.0, "w", 5).await, ["a", "b"]);
    let next = Some(NextQueue {
        queue: q(),
        delay: 0.0,
        depends: Vec::new(),
    });
    let turn = vec![(JobKey::qless("a"), "{}".to_owned(), next)];
    assert_eq!(
        engine.complete(turn, holder("w"), at(3.0)).await.unwrap(),
        [Ok(State::Waiting)]
    );
    assert_eq!(complete(&engine, 4.0, "w", "b").await, Ok(State::Complete));
    assert_eq!(job(&engine, "c").await.dependencies, ["a"]);
    assert_eq!(pop(&engine, 5.0, "w", 5).await, ["a"]);
    assert_eq!(complete(&engine, 6.0, "w", "a").await, Ok(State::Complete));
    assert_eq!(job(&engine, "c").await.state, State::Scheduled);
    assert_counts(&engine, 6.0).await;
    assert_eq!(pop(&engine, 101.0, "w", 5).await, ["c"]);
}

/// In the request that completes `a`, another job gets a dependency on `x`, which depends on `a`. As a dependency, `x`
/// is loaded without all of its data.
#[tokio::test]
async fn a_dependent_that_others_depend_on_waits_for_its_other_dependencies() {
    let engine = engine().await;
    for id in ["a", "b", "k"] {
        put(&engine, 0.0, new(id)).await;
    }
    let depends = Some(vec!["a".to_owned(), "b".to_owned()]);
    put(
        &engine,
        1.0,
        Put {
            depends,
            ..new("x")
        },
    )
    .await;
    assert_eq!(pop(&engine, 2.0, "w", 5).await, ["a", "b", "k"]);
    let next = Some(NextQueue {
        queue: q(),
        delay: 0.0,
        depends: vec!["x".to_owned()],
    });
    let both = vec![
        (JobKey::qless("k"), "{}".to_owned(), next),
        (JobKey::qless("a"), "{}".to_owned(), None),
    ];
    assert_eq!(
        engine.complete(both, holder("w"), at(3.0)).await.unwrap(),
        [Ok(State::Depends), Ok(State::Complete)]
    );
    assert_eq!(job(&engine, "x").await.state, State::Depends);
    assert_eq!(job(&engine, "x").await.dependencies, ["b"]);
    assert_eq!(job(&engine, "x").await.dependents, ["k"]);
    assert_counts(&engine, 3.0).await;
    assert_eq!(complete(&engine, 4.0, "w", "b").await, Ok(State::Complete));
    assert_eq!(pop(&engine, 5.0, "w", 5).await, ["x"]);
    assert_eq!(complete(&engine, 6.0, "w", "x").await, Ok(State::Complete));
    assert_eq!(pop(&engine, 7.0, "w", 5).await, ["k"]);
    assert_counts(&engine, 7.0).await;
}

#[tokio::test]
async fn a_job_cannot_depend_on_itself_even_indirectly() {
    let engine = engine().await;
    let waits = |id: &str, on: &str| Put {
        depends: Some(vec![on.to_owned()]),
        ..new(id)
    };
    put(&engine, 0.0, new("a")).await;
    put(&engine, 0.0, waits("b", "a")).await;
    put(&engine, 0.0, waits("c", "b")).await;
    let cycle = |id: &str| vec![Err(Error::DependencyCycle { id: id.to_owned() })];
    assert_eq!(
        engine
            .put(q(), vec![waits("a", "c")], "client".to_owned(), at(1.0))
            .await
            .unwrap(),
        cycle("a")
    );
    assert_eq!(
        engine
            .put(q(), vec![waits("x", "x")], "client".to_owned(), at(1.0))
            .await
            .unwrap(),
        cycle("x")
    );
    // The same within one request: the second of two jobs that would depend on each other is rejected.
    put(&engine, 2.0, new("p")).await;
    let both = engine
        .put(
            q(),
            vec![waits("r", "p"), waits("p", "r")],
            "client".to_owned(),
            at(3.0),
        )
        .await
        .unwrap();
    assert_eq!(
        both,
        [
            Ok("r".to_owned()),
            Err(Error::DependencyCycle { id: "p".to_owned() })
        ]
    );
    assert_counts(&engine, 3.0).await;
}

/// Walking the dependents of a job takes one statement per level.
#[tokio::test]
async fn a_job_with_200_levels_of_dependents_can_get_dependencies() {
    for (levels, is_allowed) in [(199, true), (200, true), (201, false)] {
        let engine = engine().await;
        put(&engine, 0.0, new("need")).await;
        put(&engine, 0.0, new("root")).await;
        let chain = (1..=levels).map(|n| {
            let below = if n == 1 {
                "root".to_owned()
            } else {
                format!("j{}", n - 1)
            };
            Put {
                depends: Some(vec![below]),
                ..new(&format!("j{n}"))
            }
        });
        let put = engine.put(q(), chain.collect(), "client".to_owned(), at(1.0));
        put.await
            .unwrap()
            .into_iter()
            .for_each(|id| drop(id.unwrap()));
        let root = |on: &str| Put {
            depends: Some(vec![on.to_owned()]),
            ..new("root")
        };
        let put = async |on: &str| {
            let put = engine.put(q(), vec![root(on)], "client".to_owned(), at(2.0));
            put.await.unwrap().remove(0)
        };
        let cycle = put(&format!("j{levels}")).await.unwrap_err();
        let id = "root".to_owned();
        assert_eq!(cycle, Error::DependencyCycle { id });
        let other = put("need").await;
        let error = other.err().map(|error| error.to_string());
        let too_many =
            "too many levels of dependents of a job that gets dependencies; the limit is 200";
        assert_eq!(
            error.as_deref(),
            (!is_allowed).then_some(too_many),
            "{levels}"
        );
        // A new job has no dependents.
        let top = Put {
            depends: Some(vec![format!("j{levels}")]),
            ..new("top")
        };
        let put = engine.put(q(), vec![top], "client".to_owned(), at(3.0));
        put.await.unwrap().remove(0).unwrap();
    }
}

#[tokio::test]
async fn cancel_removes_a_whole_chain_or_nothing() {
    let engine = engine().await;
    put(&engine, 0.0, new("a")).await;
    put(
        &engine,
        0.0,
        Put {
            depends: Some(vec!["a".to_owned()]),
            ..new("b")
        },
    )
    .await;
    let keys = |ids: &[&str]| ids.iter().map(|id| JobKey::qless(*id)).collect::<Vec<_>>();
    put(&engine, 0.0, new("z")).await;
    let refused = engine.cancel(keys(&["z", "a"]), at(1.0)).await;
    assert_eq!(
        refused,
        Err(Error::HasDependents {
            id: "a".to_owned(),
            dependents: vec!["b".to_owned()]
        })
    );
    assert_eq!(job(&engine, "z").await.state, State::Waiting);
    engine
        .cancel(keys(&["b", "a", "unknown"]), at(2.0))
        .await
        .unwrap();
    assert_eq!(engine.job(&JobKey::qless("a")).await.unwrap(), None);
    assert_eq!(engine.job(&JobKey::qless("b")).await.unwrap(), None);
    assert_counts(&engine, 2.0).await;
}

/// Removing a dependency reads only a part of the dependency's data. A completion must not rely on that part.
#[tokio::test]
async fn completing_a_job_releases_dependents_after_another_was_canceled() {
    let engine = engine().await;
    put(&engine, 0.0, new("need")).await;
    for id in ["a", "b", "c"] {
        let depends = Some(vec!["need".to_owned()]);
        put(&engine, 1.0, Put { depends, ..new(id) }).await;
    }
    assert_eq!(pop(&engine, 2.0, "w", 5).await, ["need"]);
    let canceled = engine.cancel(vec![JobKey::qless("b")], at(3.0));
    canceled.await.unwrap();
    complete(&engine, 4.0, "w", "need").await.unwrap();
    assert_eq!(pop(&engine, 5.0, "w", 5).await, ["a", "c"]);
}

/// When one of many dependencies completes, only some of the others are read.
#[tokio::test]
async fn a_job_with_many_dependencies_is_released_by_the_last_one() {
    let engine = engine().await;
    let needs: Vec<String> = (0..30).map(|n| format!("n{n:02}")).collect();
    for id in &needs {
        put(&engine, 0.0, new(id)).await;
    }
    let depends = Some(needs.clone());
    put(
        &engine,
        1.0,
        Put {
            depends,
            ..new("last")
        },
    )
    .await;
    assert_eq!(pop(&engine, 2.0, "w", 40).await.len(), 30);
    // One, then several, then the rest.
    for some in [&needs[..1], &needs[1..9], &needs[9..]] {
        assert_eq!(pop(&engine, 3.0, "w", 1).await, [""; 0]);
        let turns = some
            .iter()
            .map(|id| (JobKey::qless(id), "1".to_owned(), None));
        let done = engine.complete(turns.collect(), holder("w"), at(4.0));
        assert!(done.await.unwrap().iter().all(Result::is_ok));
    }
    assert_eq!(pop(&engine, 5.0, "w", 1).await, ["last"]);
}

#[tokio::test]
async fn a_running_job_can_be_canceled_when_no_job_depends_on_it_any_more() {
    let engine = open(false).await;
    let dependent = |on: &[&str]| Put {
        depends: Some(on.iter().map(|id| (*id).to_owned()).collect()),
        ..new("b")
    };
    let off = async || {
        let change = Depend::Off(vec!["a".to_owned()]);
        engine
            .depend(vec![(JobKey::qless("b"), change)], None)
            .await
    };
    for way in 0..3 {
        add_to(&engine, "work", vec![new("a")]).await;
        let claim = Claim::of(QueueKey::qless("work"), "w", 1);
        assert_eq!(ids(&engine.claim(claim, None).await.unwrap()), ["a"]);
        add_to(&engine, "later", vec![dependent(&["a"])]).await;
        match way {
            0 => add_to(&engine, "later", vec![dependent(&[])]).await,
            1 => off().await.unwrap().remove(0).unwrap(),
            _ => engine.cancel(vec![JobKey::qless("b")], None).await.unwrap(),
        }
        let canceled = engine.cancel(vec![JobKey::qless("a")], None).await;
        assert_eq!(canceled.err(), None, "way {way}");
    }
}
