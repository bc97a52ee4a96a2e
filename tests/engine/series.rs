//! Statistics by minute, and by hour for older data.

use super::*;
use switchyard::engine::{
    Activity, Enqueue, HOUR, HOURS_KEPT, ManualClock, Mode, Run, SeriesTotals, minute, quantile,
};

/// The numbers of jobs that were put, claimed, completed and failed.
fn totals(sums: &SeriesTotals) -> [i64; 4] {
    [sums.put, sums.claimed(), sums.completed(), sums.failed]
}

async fn minutes(engine: &Engine, from: i64, count: usize) -> Vec<[i64; 4]> {
    let series = engine.series(Some(&q()), from, 1, count).await.unwrap();
    series.iter().map(totals).collect()
}

/// The recent totals of a queue, or of all queues.
async fn recent_totals(engine: &Engine, queue: Option<&QueueKey>) -> [i64; 4] {
    let from = minute(engine.now(None)) - 60;
    let series = engine.series(queue, from, 10, 7).await.unwrap();
    totals(
        &series
            .iter()
            .fold(SeriesTotals::default(), SeriesTotals::plus),
    )
}

fn fail(id: &str) -> Fail {
    Fail {
        key: JobKey::qless(id),
        group: "g".to_owned(),
        message: "m".to_owned(),
        body: None,
    }
}

#[tokio::test]
async fn events_count_in_the_minute_in_which_they_happen() {
    let engine = engine().await;
    for id in ["a", "b", "c"] {
        put(&engine, 0.0, new(id)).await;
    }
    pop(&engine, 59.9, "w", 2).await;
    pop(&engine, 60.0, "w", 1).await;
    complete(&engine, 119.0, "w", "a").await.unwrap();
    let failed = engine.fail(vec![fail("b")], holder("w"), at(120.0)).await;
    failed.unwrap().remove(0).unwrap();
    let retry = Retry {
        key: JobKey::qless("c"),
        delay: 0.0,
        reason: None,
    };
    let again = engine.retry(vec![retry], holder("w"), at(130.0)).await;
    again.unwrap().remove(0).unwrap();
    // A worker's retry counts neither as a failure nor as a new job; requeuing a failed job counts as a new job.
    engine
        .retry_failed(JobKey::qless("b"), at(180.0))
        .await
        .unwrap();
    assert_eq!(
        minutes(&engine, 0, 4).await,
        [[3, 2, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]]
    );
    let all = engine.series(None, 0, 4, 1).await.unwrap();
    assert_eq!(totals(&all[0]), [4, 3, 1, 1]);
    assert_eq!(quantile(&all[0].waits, 1.0), Some(60.0));
    assert_eq!(quantile(&all[0].runs, 1.0), Some(60.0));
    let missing = QueueKey::qless("nobody");
    let none = engine.series(Some(&missing), 0, 4, 1).await.unwrap();
    assert_eq!(none, [SeriesTotals::default()]);
    let queue = engine.known_queues().get(&q()).unwrap().id;
    for queues in [vec![queue], vec![queue, queue + 1]] {
        let throughputs = engine.throughputs(&queues, 0, 4).await.unwrap();
        let ours = throughputs.into_iter().collect::<Vec<_>>();
        assert_eq!(ours, [(queue, vec![0, 1, 0, 0])]);
    }
    assert!(engine.throughputs(&[], 0, 4).await.unwrap().is_empty());
    engine.close().await;
}

#[tokio::test]
async fn advancing_a_job_counts_as_completed_here_and_put_there() {
    let engine = engine().await;
    put(&engine, 0.0, new("a")).await;
    pop(&engine, 1.0, "w", 1).await;
    let there = QueueKey::qless("there");
    let next = NextQueue {
        queue: there.clone(),
        delay: 0.0,
        depends: vec![],
    };
    let turn = (JobKey::qless("a"), "{}".to_owned(), Some(next));
    let done = engine.complete(vec![turn], holder("w"), at(2.0)).await;
    done.unwrap().remove(0).unwrap();
    assert_eq!(minutes(&engine, 0, 1).await, [[1, 1, 1, 0]]);
    let series = engine.series(Some(&there), 0, 1, 1).await.unwrap();
    assert_eq!(totals(&series[0]), [1, 0, 0, 0]);
    engine.close().await;
}

#[tokio::test]
async fn an_expired_lease_without_retries_left_counts_as_a_failure() {
    let engine = engine().await;
    put(&engine, 0.0, with_retries("a", 0)).await;
    pop(&engine, 0.0, "w", 1).await;
    assert!(pop(&engine, 600.0, "w", 1).await.is_empty());
    assert_eq!(minutes(&engine, 10, 1).await, [[0, 0, 0, 1]]);
    let last = engine.last_failure().await.unwrap();
    assert_eq!(last, at(600.0));
    engine.close().await;
}

#[tokio::test]
async fn lmstfy_verbs_are_counted() {
    let (engine, queue) = (open(false).await, QueueKey::lmstfy("ns", "q"));
    let job = |tries| Publish {
        tries,
        ..lmstfy_job("")
    };
    let published = engine.publish(queue.clone(), vec![job(1), job(1), job(1)]);
    let ids = published.await.unwrap();
    let claim = |lease_s| Claim {
        lease_s: Some(lease_s),
        ..Claim::of(queue.clone(), "", 1)
    };
    engine.claim(claim(60.0), None).await.unwrap();
    engine.claim(claim(0.0), None).await.unwrap();
    // The first job is acknowledged, the second one is dead-lettered, and the third one is acknowledged without a
    // claim.
    engine
        .acknowledge(queue.clone(), vec![ids[0].clone()])
        .await
        .unwrap();
    let is_dead = async || engine.dead_letter_summary(&queue).await.unwrap().size >= 1;
    eventually("a job is dead", is_dead).await;
    engine
        .acknowledge(queue.clone(), vec![ids[2].clone()])
        .await
        .unwrap();
    assert_eq!(recent_totals(&engine, Some(&queue)).await, [3, 2, 1, 1]);
    assert_eq!(engine.respawn(queue.clone(), 9, 0).await.unwrap(), 1);
    assert_eq!(recent_totals(&engine, Some(&queue)).await, [4, 2, 1, 1]);
    engine.close().await;
}

#[tokio::test]
async fn relay_and_jobq_verbs_are_counted() {
    let (engine, queue) = (open(false).await, QueueKey::relay("q"));
    let enqueue = |id: &str| Enqueue {
        queue: QueueKey::relay("q"),
        id: id.to_owned(),
        timeout_s: 60,
        max_retries: Some(0),
        payload: "1".to_owned(),
        state: None,
        run_at: None,
    };
    let jobs = ["a", "b"].map(enqueue).to_vec();
    engine.enqueue(jobs.clone(), Mode::Unique).await.unwrap();
    // An ignored job does not count as put; a job that replaces another does.
    engine.enqueue(jobs.clone(), Mode::Ignore).await.unwrap();
    engine
        .enqueue(jobs[..1].to_vec(), Mode::Replace)
        .await
        .unwrap();
    let claimed = engine.claim(Claim::of(queue.clone(), "", 1), None).await;
    let job = claimed.unwrap().remove(0);
    let run = Run {
        queue: queue.clone(),
        id: job.key.id.clone(),
        run_id: job.lease.unwrap().id,
    };
    assert!(engine.complete_run(run).await.unwrap());
    assert_eq!(recent_totals(&engine, Some(&queue)).await, [3, 1, 1, 0]);
    engine.create_queue("records").await.unwrap();
    let records = engine.record_queue("records").await.unwrap();
    let made = engine.create_record(&records, "1".to_owned(), "2".to_owned());
    let id = made.await.unwrap().id;
    let advanced = engine.advance_record(&records, id, "2".to_owned(), "3".to_owned());
    advanced.await.unwrap();
    assert_eq!(
        recent_totals(&engine, Some(&records.key)).await,
        [1, 0, 0, 0]
    );
    assert_eq!(recent_totals(&engine, None).await, [4, 1, 1, 0]);
    engine.close().await;
}

/// A completion aggregates old minutes into hours when the tests set the time.
async fn one_job(engine: &Engine, now: f64) {
    let id = format!("at {now}");
    put(engine, now, new(&id)).await;
    pop(engine, now, "w", 1).await;
    complete(engine, now, "w", &id).await.unwrap();
}

#[tokio::test]
async fn old_minutes_become_hours_and_old_hours_are_deleted() {
    const HOUR_S: f64 = 3_600.0;
    let engine = engine().await;
    one_job(&engine, 10.0).await;
    one_job(&engine, 3_590.0).await;
    one_job(&engine, HOUR_S).await;
    one_job(&engine, -10.0).await;
    let hours = async |from: i64, count: usize| -> Vec<i64> {
        let series = engine.series(Some(&q()), from * HOUR, HOUR, count).await;
        series
            .unwrap()
            .iter()
            .map(SeriesTotals::completed)
            .collect()
    };
    let of_minute = async |minute| minutes(&engine, minute, 1).await[0][2];
    assert_eq!(hours(-1, 3).await, [1, 2, 1]);
    assert_eq!(of_minute(0).await, 1);
    // First, everything is within 25 whole hours. Then the first two hours are not, then the next.
    one_job(&engine, 24.5 * HOUR_S).await;
    assert_eq!((of_minute(-1).await, of_minute(0).await), (1, 1));
    one_job(&engine, 26.0 * HOUR_S).await;
    assert_eq!((of_minute(-1).await, of_minute(0).await), (0, 0));
    assert_eq!(of_minute(60).await, 1);
    assert_eq!(hours(-1, 3).await, [1, 2, 1]);
    // A repetition changes nothing, and later additions for past times are added to the hours.
    one_job(&engine, 20.0).await;
    assert_eq!(hours(-1, 3).await, [1, 3, 1]);
    one_job(&engine, 27.0 * HOUR_S).await;
    assert_eq!(of_minute(0).await + of_minute(60).await, 0);
    assert_eq!(hours(-1, 3).await, [1, 3, 1]);
    let day = engine.series(None, 0, 24 * HOUR, 1).await.unwrap();
    assert_eq!(totals(&day[0]), [4, 4, 4, 0]);

    one_job(&engine, HOURS_KEPT as f64 * HOUR_S).await;
    assert_eq!(
        hours(-1, 3).await,
        [0, 3, 1],
        "the hour before 1970 was deleted"
    );
    one_job(&engine, (HOURS_KEPT as f64 + 1.0) * HOUR_S).await;
    assert_eq!(hours(-1, 3).await, [0, 0, 1]);
    assert!(engine.check(None).await.unwrap().is_empty());
    engine.close().await;
}

#[tokio::test]
async fn deleting_a_queue_keeps_its_totals() {
    let engine = open_with_empty_queue_age(Duration::from_millis(300)).await;
    let queue = QueueKey::relay("replies");
    let job = Enqueue {
        queue: queue.clone(),
        id: "a".to_owned(),
        timeout_s: 60,
        max_retries: None,
        payload: "1".to_owned(),
        state: None,
        run_at: None,
    };
    engine.enqueue(vec![job], Mode::Unique).await.unwrap();
    let deleted = engine.delete(queue.clone(), vec!["a".to_owned()]).await;
    assert_eq!(deleted, Ok(1));
    let is_gone = async || engine.queue(&queue, None).await.unwrap().is_none();
    eventually("the queue is deleted", is_gone).await;
    assert_eq!(recent_totals(&engine, Some(&queue)).await, [0, 0, 0, 0]);
    assert_eq!(recent_totals(&engine, None).await, [1, 0, 0, 0]);
    engine.close().await;
}

#[tokio::test]
async fn statistics_of_several_servers_add_up() {
    if database::postgres().is_none() {
        return;
    }
    let options = EngineSettings {
        trust_client_clock: true,
        ..options()
    };
    let one = Engine::open(&options).await.unwrap();
    let other = Engine::open(&options).await.unwrap();
    put(&one, 0.0, new("a")).await;
    put(&other, 0.0, new("b")).await;
    assert_eq!(pop(&other, 1.0, "w", 2).await, ["a", "b"]);
    complete(&one, 2.0, "w", "a").await.unwrap();
    complete(&other, 2.0, "w", "b").await.unwrap();
    for engine in [&one, &other] {
        assert_eq!(minutes(engine, 0, 1).await, [[2, 2, 2, 0]]);
    }
    // The server that aggregates hours includes the minutes of all servers.
    let late = 30.0 * 3_600.0;
    put(&one, late, new("c")).await;
    pop(&one, late, "w", 1).await;
    complete(&one, late, "w", "c").await.unwrap();
    assert_eq!(minutes(&other, 0, 1).await, [[0, 0, 0, 0]]);
    let day = other.series(Some(&q()), 0, 24 * HOUR, 2).await.unwrap();
    assert_eq!(totals(&day[0]), [2, 2, 2, 0]);
    one.close().await;
    other.close().await;
}

#[tokio::test]
async fn waiting_jobs_are_recorded_once_a_minute() {
    let (folder, start) = (tempfile::TempDir::new().unwrap(), Time(1_000_000_000_000));
    let clock = ManualClock::at(start);
    let options = pauses::with_clock(&clock, &folder);
    let engine = Engine::open(&options).await.unwrap();
    let other = QueueKey::qless("other");
    add(&engine, &q(), vec![new("a"), new("b")]).await;
    add(&engine, &other, vec![new("c")]).await;
    for _ in 0..2 {
        engine.maintain().await.unwrap();
    }
    clock.set(start.plus_seconds(60.0));
    for queue in [q(), other.clone()] {
        engine.claim(Claim::of(queue, "w", 1), None).await.unwrap();
    }
    engine.maintain().await.unwrap();
    engine.close().await;
    // A restart adds no second sample to the minute.
    let engine = Engine::open(&options).await.unwrap();
    engine.maintain().await.unwrap();
    let waiting = async |queue: Option<&QueueKey>, width: i64, count: usize| {
        let series = engine.series(queue, minute(start), width, count).await;
        let series = series.unwrap();
        series.iter().map(SeriesTotals::waiting).collect::<Vec<_>>()
    };
    assert_eq!(
        waiting(Some(&q()), 1, 3).await,
        [Some(2.0), Some(1.0), None]
    );
    assert_eq!(
        waiting(Some(&other), 1, 3).await,
        [Some(1.0), Some(0.0), None]
    );
    assert_eq!(waiting(None, 1, 3).await, [Some(3.0), Some(1.0), None]);
    assert_eq!(waiting(None, 3, 1).await, [Some(2.0)], "the average");
    // Samples of minutes become samples of hours.
    clock.set(start.plus_seconds(30.0 * 3_600.0));
    engine.maintain().await.unwrap();
    let hour = minute(start).div_euclid(HOUR) * HOUR;
    let hours = engine.series(None, hour, HOUR, 1).await.unwrap();
    assert_eq!(hours[0].waiting(), Some(2.0));
    assert!(engine.check(None).await.unwrap().is_empty());
    engine.close().await;
}

/// Twenty queues are read in several statements over a month.
#[tokio::test]
async fn statistics_of_all_queues_contain_each_queue_once() {
    let engine = engine().await;
    for n in 0..20 {
        let queue = QueueKey::qless(format!("queue-{n}"));
        let job = new(&format!("job-{n}"));
        let put = engine.put(queue, vec![job], "client".to_owned(), at(0.0));
        put.await.unwrap().remove(0).unwrap();
    }
    for (width, count) in [(1, 43_200), (HOUR, 720), (24 * HOUR, 30)] {
        let series = engine.series(None, 0, width, count).await.unwrap();
        assert_eq!(series[0].put, 20, "{width}");
        assert!(series[1..].iter().all(|span| span.put == 0), "{width}");
    }
    engine.close().await;
}

#[tokio::test]
async fn the_busiest_queues_come_first() {
    let engine = engine().await;
    for id in ["a", "b", "c"] {
        put(&engine, 0.0, new(id)).await;
    }
    pop(&engine, 1.0, "w", 3).await;
    complete(&engine, 2.0, "w", "a").await.unwrap();
    complete(&engine, 61.0, "w", "b").await.unwrap();
    let failed = engine.fail(vec![fail("c")], holder("w"), at(62.0)).await;
    failed.unwrap().remove(0).unwrap();
    let one = QueueKey::qless("one");
    let job = engine.put(one.clone(), vec![new("d")], "client".to_owned(), at(0.0));
    job.await.unwrap().remove(0).unwrap();
    let claim = Claim::of(one.clone(), "w", 1);
    engine.claim(claim, at(1.0)).await.unwrap();
    complete(&engine, 2.0, "w", "d").await.unwrap();
    let busiest = async |width: i64, count: usize, limit: i64| -> Vec<(QueueKey, Vec<[i64; 2]>)> {
        let found = engine.busiest(0, width, count, limit).await.unwrap();
        let known = engine.known_queues();
        let spans = |spans: Vec<Activity>| {
            let spans = spans.into_iter();
            spans.map(|span| [span.completed, span.failed]).collect()
        };
        let row = |(queue, activity)| (known.by_id(queue).unwrap().key.clone(), spans(activity));
        found.into_iter().map(row).collect()
    };
    assert_eq!(
        busiest(1, 3, 9).await,
        [
            (q(), vec![[1, 0], [1, 1], [0, 0]]),
            (one.clone(), vec![[1, 0], [0, 0], [0, 0]])
        ]
    );
    assert_eq!(busiest(1, 3, 1).await.len(), 1);
    assert_eq!(
        busiest(HOUR, 1, 9).await,
        [(q(), vec![[2, 1]]), (one, vec![[1, 0]])]
    );
    engine.close().await;
}
