//! The limits of the engine: one below, at, and one above each limit.

use std::collections::BTreeSet;

use super::*;
use switchyard::engine::{
    Enqueue, JobAction, JobSelection, Mode, NewOperation, OperationError, OperationEstimate,
    PageStart, Run,
};

/// The number of distinct times. Each transaction has its own time.
pub fn distinct_times<'a>(times: impl IntoIterator<Item = &'a Time>) -> usize {
    times.into_iter().collect::<BTreeSet<_>>().len()
}

/// The number of transactions in which these jobs entered their state.
fn transactions(jobs: &[Job]) -> usize {
    distinct_times(jobs.iter().map(|job| &job.since))
}

async fn waiting(engine: &Engine, queue: &QueueKey) -> Vec<Job> {
    let jobs = engine.jobs(EffectiveState::Waiting, Some(queue), PAGE, None);
    jobs.await.unwrap()
}

#[tokio::test]
async fn put_claim_and_move_split_more_than_250_items() {
    let engine = open(false).await;
    for (count, expected) in [(249, 1), (250, 1), (251, 2)] {
        let (from, to) = (
            QueueKey::qless(count.to_string()),
            QueueKey::qless(format!("{count} again")),
        );
        let ids = (0..count).map(|n| format!("{count}-{n}"));
        let jobs = ids.map(|id| new(&id)).collect();
        add(&engine, &from, jobs).await;
        let put = waiting(&engine, &from).await;
        assert_eq!((put.len(), transactions(&put)), (count, expected));

        let claim = Claim::of(from.clone(), "w", count);
        let claimed = engine.claim(claim, None).await.unwrap();
        assert_eq!((claimed.len(), transactions(&claimed)), (count, expected));

        let fails = claimed.into_iter().map(|job| Fail {
            key: job.key,
            group: count.to_string(),
            message: String::new(),
            body: None,
        });
        let failed = engine.fail(fails.collect(), holder("w"), None).await;
        assert!(failed.unwrap().iter().all(Result::is_ok));
        let group = count.to_string();
        let moved = engine.unfail(&group, Some(to.clone()), count, None).await;
        assert_eq!(moved, Ok(count));
        assert_eq!(transactions(&waiting(&engine, &to).await), expected);
    }
}

#[tokio::test]
async fn cancel_splits_more_than_250_jobs() {
    let engine = open(false).await;
    for (count, expected) in [(249, 1), (250, 1), (251, 2)] {
        let jobs = (0..count).map(|n| new(&format!("j{n}")));
        add(&engine, &q(), jobs.collect()).await;
        let before = engine.last_event().await.unwrap();
        let keys = (0..count).map(|n| JobKey::qless(format!("j{n}")));
        engine.cancel(keys.collect(), None).await.unwrap();
        let (events, _) = engine.events(before, 1_000, Some("log")).await.unwrap();
        let times = events.iter().map(|event| &event.when);
        assert_eq!((events.len(), distinct_times(times)), (count, expected));
    }
}

#[tokio::test]
async fn relay_enqueue_except_unique_commits_250_jobs_at_a_time() {
    let engine = open(false).await;
    for (count, expected) in [(249, 1), (250, 1), (251, 2)] {
        let queue = QueueKey::relay(count.to_string());
        let jobs = (0..count).map(|n| relay(&queue, &n.to_string(), 0));
        engine.enqueue(jobs.collect(), Mode::Ignore).await.unwrap();
        assert_eq!(transactions(&waiting(&engine, &queue).await), expected);
    }
}

/// A job with a state of this many bytes.
fn relay(queue: &QueueKey, id: &str, state: usize) -> Enqueue {
    Enqueue {
        queue: queue.clone(),
        id: id.to_owned(),
        timeout_s: 60,
        max_retries: None,
        payload: "1".to_owned(),
        state: (state > 0).then(|| "1".repeat(state)),
        run_at: None,
    }
}

/// The states of jobs that it does not replace are not read.
#[tokio::test]
async fn a_requeue_replaces_at_most_16_mib() {
    let engine = open(false).await;
    let (queue, runs) = (QueueKey::relay("long"), QueueKey::relay("runs"));
    let ids: Vec<String> = (0..9).map(|n| n.to_string()).collect();
    for id in &ids {
        let long = relay(&queue, id, 2_000_000);
        engine.enqueue(vec![long], Mode::Unique).await.unwrap();
    }
    let requeue = async |count: usize, mode: Mode| {
        let first = vec![relay(&runs, "run", 0)];
        engine.enqueue(first, Mode::Replace).await.unwrap();
        let claim = Claim::of(runs.clone(), "", 1);
        let mut claimed = engine.claim(claim, None).await.unwrap();
        let job = claimed.remove(0);
        let run = Run {
            queue: runs.clone(),
            id: job.key.id,
            run_id: job.lease.unwrap().id,
        };
        let jobs = ids.iter().take(count).map(|id| relay(&queue, id, 0));
        engine.requeue_run(run, jobs.collect(), mode).await
    };
    let exists = requeue(9, Mode::Unique).await;
    assert!(matches!(exists, Err(Error::JobExists { .. })), "{exists:?}");
    assert_eq!(requeue(9, Mode::Ignore).await, Ok(true));
    let too_long = requeue(9, Mode::Replace).await.unwrap_err().to_string();
    assert_eq!(
        too_long,
        "too many bytes of jobs to replace in one atomic request; the limit is 16777216"
    );
    // The states still exist, and those of eight jobs are replaced.
    assert_eq!(requeue(8, Mode::Replace).await, Ok(true));
    assert_eq!(requeue(9, Mode::Replace).await, Ok(true));
}

#[tokio::test]
async fn a_poll_beyond_the_limit_does_not_wait() {
    let options = EngineSettings {
        polls_max: Some(1),
        ..options()
    };
    let engine = Engine::open(&options).await.unwrap();
    // An hour: the test ends only if the second poll does not wait.
    let wait = Duration::from_secs(3_600);
    let poll = || engine.claim_or_wait(Claim::of(q(), "w", 1), wait, None);
    // The first one begins first.
    let second = async {
        assert_eq!(poll().await, Err(Error::Busy));
        add(&engine, &q(), vec![new("a")]).await;
    };
    let (claimed, ()) = tokio::join!(poll(), second);
    assert_eq!(ids(&claimed.unwrap()), ["a"]);
}

#[tokio::test]
async fn payloads_of_2_mib_or_1000_tags_fill_a_transaction() {
    let engine = open(false).await;
    let payload = |bytes: usize| Put {
        body: "1".repeat(bytes),
        ..Put::default()
    };
    let tagged = |tags: usize| Put {
        body: "1".to_owned(),
        tags: Some((0..tags).map(|n| n.to_string()).collect()),
        ..Put::default()
    };
    for (name, first, expected) in [
        ("2 MiB - 1", payload(2_097_151), 1),
        ("2 MiB", payload(2_097_152), 2),
        ("2 MiB + 1", payload(2_097_153), 2),
        ("999 tags", tagged(999), 1),
        ("1,000 tags", tagged(1_000), 2),
        ("1,001 tags", tagged(1_001), 2),
    ] {
        let queue = QueueKey::qless(name);
        add(&engine, &queue, vec![first, payload(1)]).await;
        let jobs = waiting(&engine, &queue).await;
        assert_eq!((jobs.len(), transactions(&jobs)), (2, expected), "{name}");
    }
}

/// Only a part of a longer message is stored, but the whole message is held in memory.
#[tokio::test]
async fn retry_messages_count_toward_the_payload_limit() {
    let engine = open(false).await;
    for (bytes, expected) in [(2_097_151, 1), (2_097_152, 2), (2_097_153, 2)] {
        let queue = QueueKey::qless(bytes.to_string());
        let jobs = ["a", "b"].map(|id| new(&format!("{id}-{bytes}")));
        add(&engine, &queue, jobs.into()).await;
        let claim = Claim::of(queue.clone(), "w", 2);
        let claimed = engine.claim(claim, None).await.unwrap();
        let retries = claimed.into_iter().map(|job| Retry {
            key: job.key,
            delay: 0.0,
            reason: Some(("g".to_owned(), "m".repeat(bytes))),
        });
        let retried = engine.retry(retries.collect(), holder("w"), None).await;
        assert!(retried.unwrap().iter().all(Result::is_ok));
        let jobs = waiting(&engine, &queue).await;
        assert_eq!((jobs.len(), transactions(&jobs)), (2, expected), "{bytes}");
    }
}

#[tokio::test]
async fn claims_from_more_than_8_queues_are_split() {
    let engine = open(false).await;
    for (count, expected) in [(7, 1), (8, 1), (9, 2)] {
        let queues: Vec<QueueKey> = (0..count)
            .map(|n| QueueKey::qless(format!("{count}-{n}")))
            .collect();
        for queue in &queues {
            let id = queue.name.clone();
            add(&engine, queue, vec![new(&id)]).await;
        }
        let claim = Claim {
            queues,
            ..Claim::of(q(), "w", 100)
        };
        let claimed = engine.claim(claim, None).await.unwrap();
        assert_eq!((claimed.len(), transactions(&claimed)), (count, expected));
    }
}

/// One byte below the limit, another job is claimed; at the limit, none.
#[tokio::test]
async fn a_claim_ends_when_it_has_32_mib() {
    let engine = open(false).await;
    let job = |bytes: usize| Put {
        body: "1".repeat(bytes),
        ..Put::default()
    };
    let claim = async || engine.claim(Claim::of(q(), "w", 20), None).await.unwrap();
    add(&engine, &q(), vec![job(0)]).await;
    // The ID and the history count too.
    let around = claim().await[0].text_bytes();
    let two_mib = (2 << 20) - around;
    for (bytes, first) in [(33_554_431, 17), (33_554_432, 16)] {
        let sixteenth = bytes - 15 * (2 << 20) - around;
        for body in [two_mib; 15].into_iter().chain([sixteenth]) {
            add(&engine, &q(), vec![job(body)]).await;
        }
        add(&engine, &q(), [1, 1].map(job).into()).await;
        assert_eq!(claim().await.len(), first, "{bytes} bytes");
        assert_eq!(claim().await.len(), 18 - first);
    }
}

/// Their rows have more than 4 MiB.
#[tokio::test]
async fn a_claim_gets_250_jobs_with_long_rows_in_order() {
    let engine = open(false).await;
    let job = |n: usize| Put {
        body: "1".repeat(16_000),
        ..new(&format!("{n:03}"))
    };
    let jobs: Vec<Put> = (0..300).map(job).collect();
    for some in jobs.chunks(100) {
        add(&engine, &q(), some.to_vec()).await;
    }
    let claim = async |count: usize| {
        let claimed = engine.claim(Claim::of(q(), "w", count), None).await;
        ids(&claimed.unwrap())
    };
    let expected = |numbers: std::ops::Range<usize>| -> Vec<String> {
        numbers.map(|n| format!("{n:03}")).collect()
    };
    assert_eq!(claim(250).await, expected(0..250));
    assert_eq!(claim(250).await, expected(250..300));
    assert_eq!(claim(250).await, expected(0..0));
}

/// Each queue has 30 jobs with bodies of this size. Those of the first have more than a transaction reads for claims.
async fn open_with_two_queues(body_sizes: [usize; 2]) -> (Engine, [QueueKey; 2]) {
    let engine = open(false).await;
    let queues = ["first", "second"].map(QueueKey::qless);
    for (queue, size) in queues.iter().zip(body_sizes) {
        for n in 0..30 {
            let job = Put {
                body: "1".repeat(size),
                ..new(&format!("{}-{n:02}", queue.name))
            };
            add(&engine, queue, vec![job]).await;
        }
    }
    (engine, queues)
}

/// The IDs of all jobs of the first queue, and the first few of the second.
fn all_of_first_and(of_second: usize) -> Vec<String> {
    let first = (0..30).map(|n| format!("first-{n:02}"));
    let second = (0..of_second).map(|n| format!("second-{n:02}"));
    first.chain(second).collect()
}

#[tokio::test]
async fn an_ordered_claim_gets_all_jobs_of_the_first_queue_before_others() {
    let (engine, queues) = open_with_two_queues([400_000, 400_000]).await;
    let claim = Claim {
        queues: queues.to_vec(),
        ..Claim::of(q(), "w", 40)
    };
    let claimed = ids(&engine.claim(claim, None).await.unwrap());
    assert_eq!(claimed, all_of_first_and(10));
}

/// Most of them share a transaction, which reads fewer jobs of the first queue than they want.
#[tokio::test]
async fn concurrent_ordered_claims_get_all_jobs_of_the_first_queue_before_others() {
    let (engine, queues) = open_with_two_queues([400_000, 1]).await;
    let claims = (0..32).map(|_| {
        let claim = Claim {
            queues: queues.to_vec(),
            ..Claim::of(q(), "w", 1)
        };
        engine.claim(claim, None)
    });
    let claimed = futures::future::try_join_all(claims).await.unwrap();
    let mut claimed = ids(&claimed.concat());
    claimed.sort_unstable();
    assert_eq!(claimed, all_of_first_and(2));
}

#[tokio::test]
async fn an_operation_has_at_most_1000_jobs_and_100_can_be_active() {
    let options = EngineSettings {
        without_tasks: true,
        ..options()
    };
    let engine = Engine::open(&options).await.unwrap();
    let operate = async |jobs: i64| {
        let selection = JobSelection::Jobs((0..jobs).collect());
        let counted = engine
            .estimate_operation(&JobAction::Cancel, &selection)
            .await
            .unwrap();
        let asked = NewOperation {
            who: "ada".to_owned(),
            action: JobAction::Cancel,
            selection,
            estimate: OperationEstimate::default(),
        };
        let made = engine.start_operation(asked).await.unwrap();
        (counted.err(), made.err())
    };
    for (jobs, refusal) in [
        (999, None),
        (1_000, None),
        (1_001, Some(OperationError::TooManyJobs)),
    ] {
        assert_eq!(operate(jobs).await, (refusal.clone(), refusal), "{jobs}");
    }
    // The engine runs no tasks, so all operations stay active.
    for active in 2..100 {
        assert_eq!(
            operate(1).await,
            (None, None),
            "with {active} active operations"
        );
    }
    assert_eq!(
        operate(1).await,
        (None, Some(OperationError::TooManyOperations))
    );
    engine.close().await;
}

#[tokio::test]
async fn the_200_newest_saved_searches_are_kept() {
    let engine = open(false).await;
    for n in 1..=201 {
        let name = format!("{n:03}");
        engine
            .save_search(&name, "state:failed", "ada")
            .await
            .unwrap();
        if n >= 199 {
            let kept = engine.saved_searches().await.unwrap();
            let first = if n > 200 { "002" } else { "001" };
            assert_eq!((kept.len(), &*kept[0].name), (n.min(200), first));
        }
    }
}

async fn listed(engine: &Engine, queue: &QueueKey) -> Vec<Job> {
    let (state, start) = (EffectiveState::Waiting, PageStart::First);
    let page = engine.job_page(state, Some(queue), start, 9, None);
    page.await.unwrap().rows
}

#[tokio::test]
async fn lists_load_1000_characters_of_payloads_and_messages() {
    let engine = open(false).await;
    for (chars, expected) in [(999, 999), (1_000, 1_000), (1_001, 1_000)] {
        let queue = QueueKey::qless(chars.to_string());
        let job = Put {
            body: "é".repeat(chars),
            ..Put::default()
        };
        add(&engine, &queue, vec![job]).await;
        let listed = listed(&engine, &queue).await;
        assert_eq!(listed[0].body.chars().count(), expected);

        let claim = Claim::of(queue, "w", 1);
        let key = engine.claim(claim, None).await.unwrap().remove(0).key;
        let fail = Fail {
            key,
            group: chars.to_string(),
            message: "é".repeat(chars),
            body: None,
        };
        let failed = engine.fail(vec![fail], holder("w"), None).await;
        assert_eq!(failed.unwrap(), [Ok(())]);
        let (_, ids) = engine
            .ids_of_failure_group(&chars.to_string(), PAGE)
            .await
            .unwrap();
        let keys = [JobKey::qless(&ids[0])];
        let listed = engine.short_jobs_by_key(&keys).await.unwrap().remove(0);
        let message = listed.unwrap().failure.unwrap().message;
        assert_eq!(message.chars().count(), expected);
    }
}

#[tokio::test]
async fn lists_load_up_to_16_kib_of_tags() {
    let engine = open(false).await;
    for (bytes, expected) in [(16_383, 159), (16_384, 159), (16_385, 0)] {
        // As JSON, each tag has two quotes and a comma, and the list has two brackets.
        let mut tags: Vec<String> = (0..158).map(|n| format!("{n:0100}")).collect();
        tags.push("t".repeat(bytes - 158 * 103 - 4));
        assert_eq!(format!("{tags:?}").replace(", ", ",").len(), bytes);
        let queue = QueueKey::qless(bytes.to_string());
        let job = Put {
            body: "1".to_owned(),
            tags: Some(tags),
            ..Put::default()
        };
        add(&engine, &queue, vec![job]).await;
        let listed = listed(&engine, &queue).await;
        assert_eq!(listed[0].tags.len(), expected, "{bytes}");
    }
}

#[tokio::test]
async fn lists_load_100_dependencies_and_dependents() {
    let engine = open(false).await;
    let counts = [(99, 99), (100, 100), (101, 100)];
    let firsts = counts.map(|(count, _)| new(&format!("first-{count}")));
    add(&engine, &q(), firsts.into()).await;
    // Each job n depends on every `first-{count}` with a count above n, so `first-{count}` gets `count` dependents.
    let between = (0..101).map(|n| Put {
        depends: Some(
            (99.max(n + 1)..=101)
                .map(|count| format!("first-{count}"))
                .collect(),
        ),
        ..new(&format!("j{n}"))
    });
    add(&engine, &q(), between.collect()).await;
    let lasts = counts.map(|(count, _)| Put {
        depends: Some((0..count).map(|n| format!("j{n}")).collect()),
        ..new(&format!("last-{count}"))
    });
    add(&engine, &q(), lasts.into()).await;
    for (count, expected) in counts {
        let keys = ["first", "last"].map(|which| JobKey::qless(format!("{which}-{count}")));
        let listed = engine.short_jobs_by_key(&keys).await.unwrap();
        let [first, last] = [0, 1].map(|n| listed[n].as_ref().unwrap());
        assert_eq!(first.dependents.len(), expected, "{count}");
        assert_eq!(last.dependencies.len(), expected, "{count}");
    }
}

#[tokio::test]
async fn requests_at_the_same_time_share_the_limit_of_operations() {
    let options = EngineSettings {
        without_tasks: true,
        ..options()
    };
    let engine = Engine::open(&options).await.unwrap();
    let begun = (0..150).map(|_| async {
        let new = NewOperation {
            who: "ada".to_owned(),
            action: JobAction::Cancel,
            selection: JobSelection::Search("queue:q".to_owned()),
            estimate: OperationEstimate::default(),
        };
        engine.start_operation(new).await.unwrap()
    });
    let begun = futures::future::join_all(begun).await;
    let refused =
        |it: &&Result<i64, OperationError>| matches!(it, Err(OperationError::TooManyOperations));
    assert_eq!(begun.iter().filter(refused).count(), 50);
}
