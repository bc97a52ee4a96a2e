//! Recurring jobs with cron expressions, paused or run by hand, and scheduled jobs whose due time changes.

use switchyard::engine::{
    Claim, CronSchedule, Engine, Enqueue, Error, JobKey, ManualClock, Mode, Publish, Put, QueueKey,
    Recur, RecurringChange, Time,
};
use tempfile::TempDir;

use super::pauses::with_clock;
use super::{assert_counts, at, engine, ids, lmstfy_job, new, q};

const MINUTE_S: f64 = 60.0;
const HOUR_S: f64 = 3_600.0;

/// 2026-11-26 07:59:00 UTC.
const START: Time = Time(1_795_679_940_000_000);

struct Scene {
    engine: Engine,
    clock: ManualClock,
    folder: TempDir,
}

impl Scene {
    async fn start() -> Scene {
        let (folder, clock) = (TempDir::new().unwrap(), ManualClock::at(START));
        let engine = Engine::open(&with_clock(&clock, &folder)).await.unwrap();
        Scene {
            engine,
            clock,
            folder,
        }
    }

    /// Sets the time to this many seconds after the start.
    fn after(&self, seconds: f64) {
        self.clock.set(START.plus_seconds(seconds));
    }

    /// The IDs of the jobs that a claim gets, of at most 100.
    async fn claimed(&self) -> Vec<String> {
        let claim = Claim::of(q(), "w", 100);
        let jobs = self.engine.claim(claim, None).await.unwrap();
        jobs.into_iter().map(|job| job.key.id).collect()
    }

    async fn recur(&self, recur: Recur) {
        let recur = Recur {
            id: Some("r".to_owned()),
            body: "{}".to_owned(),
            ..recur
        };
        let made = self.engine.recur(q(), vec![recur], None).await.unwrap();
        made.into_iter().for_each(|id| drop(id.unwrap()));
    }

    /// Seconds from the start until the next run.
    async fn next(&self) -> f64 {
        let recurring = self.engine.recurring("r").await.unwrap().unwrap();
        recurring.next_at.seconds_from(START)
    }
}

fn cron(expression: &str, zone: &str) -> Recur {
    Recur {
        cron: Some(CronSchedule::new(expression, zone, START).unwrap()),
        interval_s: 1.0,
        ..Recur::default()
    }
}

fn every(seconds: f64) -> Recur {
    Recur {
        interval_s: seconds,
        ..Recur::default()
    }
}

#[tokio::test]
async fn a_cron_expression_creates_jobs_at_the_times_of_its_zone() {
    let mut scene = Scene::start().await;
    scene.recur(cron("0 9 * * *", "Europe/Berlin")).await;
    scene.after(59.9);
    assert_eq!(scene.claimed().await, [""; 0]);
    scene.after(MINUTE_S);
    assert_eq!(scene.claimed().await, ["r-1"]);
    assert_eq!(scene.claimed().await, [""; 0]);
    // The schedule survives a restart.
    scene.engine.close().await;
    let options = with_clock(&scene.clock, &scene.folder);
    scene.engine = Engine::open(&options).await.unwrap();
    let recurring = scene.engine.recurring("r").await.unwrap().unwrap();
    let runs: Vec<f64> = recurring
        .next_runs(5)
        .into_iter()
        .map(|run| run.seconds_from(START))
        .collect();
    let day = |n: f64| MINUTE_S + n * 24.0 * HOUR_S;
    assert_eq!(runs, [1.0, 2.0, 3.0, 4.0, 5.0].map(day));
    scene.after(day(1.0));
    assert_eq!(scene.claimed().await, ["r-2"]);
    assert!(scene.engine.check(None).await.unwrap().is_empty());
    scene.engine.close().await;
}

#[tokio::test]
async fn missed_runs_of_a_cron_expression_are_created_up_to_the_catch_up_limit() {
    let scene = Scene::start().await;
    scene.recur(cron("*/10 * * * *", "")).await;
    scene.after(HOUR_S + MINUTE_S);
    let all: Vec<String> = (1..=7).map(|n| format!("r-{n}")).collect();
    assert_eq!(scene.claimed().await, all);
    let limited = Recur {
        backlog: 2,
        ..cron("*/10 * * * *", "")
    };
    scene.recur(limited).await;
    // A year later.
    scene.after(365.0 * 24.0 * HOUR_S);
    assert_eq!(scene.claimed().await, ["r-8", "r-9"]);
    assert_eq!(scene.next().await, 365.0 * 24.0 * HOUR_S + MINUTE_S);
    scene.engine.close().await;
}

#[tokio::test]
async fn children_of_a_recurring_job_that_was_created_again_get_free_ids() {
    let engine = engine().await;
    let create = async |seconds| {
        let recurring = Recur {
            id: Some("r".to_owned()),
            ..every(1.0)
        };
        let made = engine.recur(q(), vec![recurring], at(seconds)).await;
        assert_eq!(made.unwrap(), [Ok("r".to_owned())]);
    };
    create(0.0).await;
    let children = engine.claim(Claim::of(q(), "w", 60), at(49.5)).await;
    assert_eq!(children.unwrap().len(), 50);
    engine.unrecur("r", at(50.0)).await.unwrap();
    create(50.0).await;
    let claimed = engine.claim(Claim::of(q(), "w", 1), at(50.0)).await;
    assert_eq!(ids(&claimed.unwrap()), ["r-51"]);
    engine.unrecur("r", at(51.0)).await.unwrap();
    create(51.0).await;
    let next = engine.peek(&q(), 1, at(51.0)).await.unwrap();
    assert_eq!(ids(&next), ["r-52"]);
    assert_counts(&engine, 51.0).await;
}

fn ordered(queues: [QueueKey; 2], count: usize) -> Claim {
    Claim {
        queues: queues.into(),
        ..Claim::of(q(), "w", count)
    }
}

#[tokio::test]
async fn children_that_are_skipped_take_no_place_of_others() {
    let engine = engine().await;
    let other = QueueKey::qless("other");
    super::add(&engine, &other, vec![new("later")]).await;
    for (id, recurring) in [("a", every(60.0)), ("b", every(10_000.0))] {
        let recurring = Recur {
            id: Some(id.to_owned()),
            offset_s: if id == "b" { 500.0 } else { 0.0 },
            backlog: 1,
            ..recurring
        };
        let made = engine.recur(q(), vec![recurring], at(0.0)).await.unwrap();
        assert_eq!(made, [Ok(id.to_owned())]);
    }
    let claimed = engine.claim(ordered([q(), other], 4), at(600.0)).await;
    assert_eq!(ids(&claimed.unwrap()), ["b-1", "a-1", "a-2", "later"]);
}

#[tokio::test]
async fn a_job_that_fails_instead_of_being_claimed_takes_no_place_of_a_child() {
    let engine = engine().await;
    let other = QueueKey::qless("other");
    super::add(&engine, &other, vec![new("later")]).await;
    let once = Put {
        retries: Some(0),
        ..new("once")
    };
    super::add(&engine, &q(), vec![once]).await;
    let claimed = engine.claim(Claim::of(q(), "w", 1), at(0.0)).await;
    assert_eq!(ids(&claimed.unwrap()), ["once"]);
    let recurring = Recur {
        id: Some("r".to_owned()),
        ..every(10_000.0)
    };
    let made = engine.recur(q(), vec![recurring], at(100.0)).await.unwrap();
    assert_eq!(made, [Ok("r".to_owned())]);
    let claimed = engine.claim(ordered([q(), other], 1), at(100.0)).await;
    assert_eq!(ids(&claimed.unwrap()), ["r-1"]);
}

/// A search for a run steps through the months from there.
#[tokio::test]
async fn a_cron_expression_begins_at_most_100_years_later_or_a_year_earlier() {
    const CENTURY_S: f64 = 36_525.0 * 24.0 * HOUR_S;
    const YEAR_S: f64 = 366.0 * 24.0 * HOUR_S;
    let scene = Scene::start().await;
    for (offset_s, expected) in [
        (-4e12, -YEAR_S),
        (-YEAR_S - MINUTE_S, -YEAR_S),
        (-YEAR_S + MINUTE_S, -YEAR_S + MINUTE_S),
        (4e12, CENTURY_S),
    ] {
        let recur = Recur {
            offset_s,
            ..cron("* * * * *", "")
        };
        scene.recur(recur).await;
        assert_eq!(scene.next().await, expected + MINUTE_S, "{offset_s}");
    }
    scene.engine.close().await;
}

#[tokio::test]
async fn a_paused_recurring_job_creates_no_jobs_and_skips_them_when_resumed() {
    let scene = Scene::start().await;
    scene.recur(every(100.0)).await;
    assert_eq!(scene.claimed().await, ["r-1"]);
    assert!(scene.engine.pause_recurring("r", true).await.unwrap());
    assert!(!scene.engine.pause_recurring("r", true).await.unwrap());
    scene.after(1_050.0);
    assert_eq!(scene.claimed().await, [""; 0]);
    let paused = scene.engine.recurring("r").await.unwrap().unwrap();
    assert!(paused.is_paused() && paused.next_runs(5).is_empty());
    assert!(scene.engine.pause_recurring("r", false).await.unwrap());
    assert!(!scene.engine.pause_recurring("r", false).await.unwrap());
    assert_eq!(scene.claimed().await, [""; 0]);
    assert_eq!(scene.next().await, 1_100.0);
    // A client that puts it again does not resume it.
    assert!(scene.engine.pause_recurring("r", true).await.unwrap());
    scene.recur(cron("0 * * * *", "")).await;
    scene.after(2.5 * HOUR_S);
    assert_eq!(scene.claimed().await, [""; 0]);
    assert!(scene.engine.pause_recurring("r", false).await.unwrap());
    assert_eq!(scene.claimed().await, [""; 0]);
    assert_eq!(scene.next().await, 3.0 * HOUR_S + MINUTE_S);
    let missing = scene.engine.pause_recurring("nothing", true).await;
    assert!(matches!(missing, Err(Error::NoSuchRecurring { .. })));
    scene.engine.close().await;
}

#[tokio::test]
async fn running_a_recurring_job_now_leaves_its_schedule_unchanged() {
    let scene = Scene::start().await;
    scene.recur(cron("0 9 * * *", "Europe/Berlin")).await;
    assert_eq!(scene.engine.run_recurring("r").await.unwrap(), "r-1");
    assert_eq!(scene.claimed().await, ["r-1"]);
    assert_eq!(scene.next().await, MINUTE_S);
    // The IDs of other jobs are skipped, and a paused recurring job runs, too.
    super::add(&scene.engine, &q(), vec![new("r-2")]).await;
    scene.engine.pause_recurring("r", true).await.unwrap();
    assert_eq!(scene.engine.run_recurring("r").await.unwrap(), "r-3");
    let mut claimed = scene.claimed().await;
    claimed.sort_unstable();
    assert_eq!(claimed, ["r-2", "r-3"]);
    let missing = scene.engine.run_recurring("nothing").await;
    assert!(matches!(missing, Err(Error::NoSuchRecurring { .. })));
    assert!(scene.engine.check(None).await.unwrap().is_empty());
    scene.engine.close().await;
}

#[tokio::test]
async fn an_interval_replaces_a_cron_expression_and_the_reverse() {
    let scene = Scene::start().await;
    scene.recur(every(100.0)).await;
    let change = async |change| {
        let changed = scene.engine.change_recurring("r", change, None).await;
        changed.unwrap()
    };
    let daily = CronSchedule::new("0 9 * * *", "Europe/Berlin", START).unwrap();
    let to_cron = RecurringChange {
        cron: Some(daily.clone()),
        klass: Some("Digest".to_owned()),
        ..RecurringChange::default()
    };
    let changed = change(to_cron).await;
    assert_eq!(
        (changed.cron, changed.klass),
        (Some(daily), Some("Digest".to_owned()))
    );
    assert_eq!(scene.next().await, MINUTE_S);
    let to_interval = RecurringChange {
        interval_s: Some(10.0),
        klass: Some(String::new()),
        ..RecurringChange::default()
    };
    let changed = change(to_interval).await;
    assert_eq!((changed.cron, changed.klass), (None, None));
    assert_eq!(scene.next().await, 10.0);
    scene.engine.close().await;
}

#[tokio::test]
async fn scheduled_jobs_of_each_protocol_are_due_at_their_new_time() {
    let scene = Scene::start().await;
    let engine = &scene.engine;
    let delayed = Put {
        delay: Some(HOUR_S),
        ..new("a")
    };
    super::add(engine, &q(), vec![delayed]).await;
    let (lmstfy, relay) = (QueueKey::lmstfy("ns", "q"), QueueKey::relay("q"));
    let publish = Publish {
        delay_s: 3_600,
        ..lmstfy_job("")
    };
    let ids = engine.publish(lmstfy.clone(), vec![publish]).await.unwrap();
    let enqueue = Enqueue {
        queue: relay.clone(),
        id: "b".to_owned(),
        timeout_s: 60,
        max_retries: None,
        payload: "1".to_owned(),
        state: None,
        run_at: Some(START.plus_seconds(HOUR_S)),
    };
    engine.enqueue(vec![enqueue], Mode::Unique).await.unwrap();
    let counts = async |queue: &QueueKey| {
        let found = engine.queue(queue, None).await.unwrap().unwrap();
        (found.counts.scheduled, found.counts.waiting)
    };
    let jobs = [(q(), "a"), (lmstfy, &*ids[0]), (relay, "b")];
    for (queue, id) in &jobs {
        let postponed = engine.reschedule(queue, id, 2.0 * HOUR_S, None).await;
        assert_eq!(postponed, Ok(true), "{id}");
    }
    scene.after(HOUR_S + MINUTE_S);
    engine.maintain().await.unwrap();
    for (queue, id) in &jobs {
        assert_eq!(counts(queue).await, (1, 0), "{id} is postponed");
        let reschedule = async || engine.reschedule(queue, id, 0.0, None).await;
        assert_eq!(reschedule().await, Ok(true), "{id}");
        assert_eq!(counts(queue).await, (0, 1), "{id} is available");
        assert_eq!(reschedule().await, Ok(false), "{id} is not scheduled");
        let missing = engine.reschedule(queue, "nothing", 0.0, None).await;
        assert!(matches!(missing, Err(Error::NoSuchJob { .. })));
    }
    let other = QueueKey::qless("other");
    let elsewhere = engine.reschedule(&other, "a", 0.0, None).await;
    assert!(matches!(elsewhere, Err(Error::NoSuchJob { .. })));
    assert_eq!(scene.claimed().await, ["a"]);
    assert!(engine.job(&JobKey::qless("a")).await.unwrap().is_some());
    assert!(engine.check(None).await.unwrap().is_empty());
    scene.engine.close().await;
}
