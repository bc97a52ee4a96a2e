//! Pages of lists by key: rows neither repeat nor are skipped, also while other rows leave the list or enter it.

use super::*;
use switchyard::engine::{LabelFilter, PageOf, PageStart, Position, Recur, Result};

/// The rows of all pages, read forward and then back from the last page.
async fn all_pages<T: Clone>(read: impl AsyncFn(PageStart) -> Result<PageOf<T>>) -> [Vec<T>; 2] {
    let (mut pages, mut place) = (Vec::new(), PageStart::First);
    let mut before = loop {
        let page = read(place).await.unwrap();
        pages.push(page.rows);
        match page.next {
            Some(next) => place = PageStart::After(next),
            None => break page.previous,
        }
    };
    let mut back = vec![pages.last().unwrap().clone()];
    while let Some(position) = before {
        let page = read(PageStart::Before(position)).await.unwrap();
        back.insert(0, page.rows);
        before = page.previous;
    }
    assert_eq!(back.len(), pages.len());
    [pages.concat(), back.concat()]
}

fn ids(jobs: &[Job]) -> Vec<String> {
    jobs.iter().map(|job| job.key.id.clone()).collect()
}

/// The IDs of the jobs in a state, read in pages of this many, forward and back.
async fn listed(engine: &Engine, state: EffectiveState, limit: usize, now: f64) -> Vec<String> {
    let queue = q();
    let [forward, back] = all_pages(async |place| {
        let page = engine.job_page(state, Some(&queue), place, limit, at(now));
        page.await
    })
    .await;
    assert_eq!(forward, back, "{state:?}");
    ids(&forward)
}

/// As [`listed`], but with one read.
async fn whole(engine: &Engine, state: EffectiveState, now: f64) -> Vec<String> {
    let queue = q();
    let page = engine.job_page(state, Some(&queue), PageStart::First, 1_000, at(now));
    ids(&page.await.unwrap().rows)
}

async fn claim(engine: &Engine, count: usize, now: f64) -> Vec<String> {
    let claimed = engine.claim(Claim::of(q(), "w", count), at(now));
    ids(&claimed.await.unwrap())
}

async fn after(engine: &Engine, state: EffectiveState, from: Position, now: f64) -> Vec<String> {
    let (queue, place) = (q(), PageStart::After(from));
    let page = engine.job_page(state, Some(&queue), place, 10, at(now));
    ids(&page.await.unwrap().rows)
}

#[tokio::test]
async fn waiting_jobs_of_equal_priority_and_time_are_on_one_page_each() {
    let engine = engine().await;
    // Equal keys within and across the pages; two of every priority are due scheduled jobs.
    let jobs = (0..30).map(|n: i32| Put {
        priority: Some(f64::from(n % 3) - 0.5),
        ..new(&format!("j{n:02}"))
    });
    let due = (30..36).map(|n: i32| Put {
        priority: Some(f64::from(n % 3) - 0.5),
        delay: Some(5.0),
        ..new(&format!("j{n:02}"))
    });
    let put = engine.put(q(), jobs.chain(due).collect(), "c".to_owned(), at(10.0));
    assert!(put.await.unwrap().iter().all(Result::is_ok));
    // Three that are taken from their worker precede all others.
    let taken = claim(&engine, 3, 11.0).await;
    for id in &taken {
        let key = JobKey::qless(id.clone());
        engine.time_out(vec![key], at(12.0)).await.unwrap();
    }
    let whole = whole(&engine, EffectiveState::Waiting, 20.0).await;
    assert_eq!((whole.len(), &whole[..3]), (36, &*taken));
    for limit in [1, 2, 3, 4, 7, 12, 35, 36, 37] {
        let pages = listed(&engine, EffectiveState::Waiting, limit, 20.0).await;
        assert_eq!(pages, whole, "{limit}");
    }
    // They are in the order of the claims.
    assert_eq!(claim(&engine, 30, 20.0).await, whole[..30]);
    engine.close().await;
}

#[tokio::test]
async fn jobs_that_are_claimed_between_two_pages_move_no_others() {
    let engine = engine().await;
    let jobs: Vec<Put> = (0..30).map(|n| new(&format!("j{n:02}"))).collect();
    let put = engine.put(q(), jobs, "c".to_owned(), at(10.0));
    put.await.unwrap();
    let queue = q();
    let state = EffectiveState::Waiting;
    let first = engine.job_page(state, Some(&queue), PageStart::First, 10, at(11.0));
    let first = first.await.unwrap();
    let (first, next) = (ids(&first.rows), first.next.unwrap());
    let second = after(&engine, state, next, 11.0).await;
    // With an offset, the second page would now begin ten jobs later.
    assert_eq!(claim(&engine, 10, 12.0).await, first);
    assert_eq!(after(&engine, state, next, 13.0).await, second);
    // Jobs that come in front of the page do not repeat its rows.
    let urgent = Put {
        priority: Some(-1.0),
        ..new("urgent")
    };
    super::put(&engine, 14.0, urgent).await;
    assert_eq!(after(&engine, state, next, 15.0).await, second);
    // The previous page shows them, and is the first page.
    let place = PageStart::Before(next);
    let before = engine.job_page(state, Some(&queue), place, 10, at(15.0));
    let before = before.await.unwrap();
    assert_eq!(ids(&before.rows)[0], "urgent");
    assert_eq!((before.rows.len(), before.previous), (10, None));
    engine.close().await;
}

#[tokio::test]
async fn jobs_in_all_other_states_have_pages() {
    let engine = engine().await;
    let jobs: Vec<Put> = (0..25).map(|n| new(&format!("j{n:02}"))).collect();
    engine
        .put(q(), jobs, "c".to_owned(), at(10.0))
        .await
        .unwrap();
    let scheduled = (0..25).map(|n| Put {
        delay: Some(1_000.0 + f64::from(n / 10)),
        ..new(&format!("s{n:02}"))
    });
    let put = engine.put(q(), scheduled.collect(), "c".to_owned(), at(10.0));
    put.await.unwrap();
    let needing = (0..25).map(|n| Put {
        depends: Some(vec!["s00".to_owned()]),
        ..new(&format!("d{n:02}"))
    });
    let put = engine.put(q(), needing.collect(), "c".to_owned(), at(10.0));
    put.await.unwrap();
    assert_eq!(claim(&engine, 25, 20.0).await.len(), 25);
    for (state, now) in [
        (EffectiveState::Running, 21.0),
        (EffectiveState::Stalled, 900.0),
        (EffectiveState::Scheduled, 21.0),
        (EffectiveState::Depends, 21.0),
    ] {
        let whole = whole(&engine, state, now).await;
        assert_eq!(whole.len(), 25, "{state:?}");
        for limit in [1, 7, 12, 24, 25] {
            let pages = listed(&engine, state, limit, now).await;
            assert_eq!(pages, whole, "{state:?}, {limit}");
        }
    }
    let all = all_pages(async |place| {
        let page = engine.job_page(EffectiveState::Scheduled, None, place, 7, at(21.0));
        page.await
    });
    assert_eq!(all.await.map(|jobs| jobs.len()), [25, 25]);
    engine.close().await;
}

#[tokio::test]
async fn failed_jobs_of_a_queue_and_of_a_group_have_pages() {
    let engine = engine().await;
    let jobs: Vec<Put> = (0..25).map(|n| new(&format!("j{n:02}"))).collect();
    engine
        .put(q(), jobs, "c".to_owned(), at(10.0))
        .await
        .unwrap();
    let claimed = engine.claim(Claim::of(q(), "w", 25), at(20.0));
    for (n, job) in claimed.await.unwrap().into_iter().enumerate() {
        let fail = Fail {
            key: job.key,
            group: "G".to_owned(),
            message: "why".to_owned(),
            body: None,
        };
        // Some at the same time.
        let now = 21.0 + (n / 4) as f64;
        let failed = engine.fail(vec![fail], holder("w"), at(now)).await;
        failed.unwrap().remove(0).unwrap();
    }
    let whole = whole(&engine, EffectiveState::Failed, 50.0).await;
    assert_eq!(whole.len(), 25);
    for limit in [1, 4, 6, 24, 25] {
        let pages = listed(&engine, EffectiveState::Failed, limit, 50.0).await;
        assert_eq!(pages, whole, "{limit}");
        let [forward, back] = all_pages(async |place| {
            let (total, page) = engine.failed_page("G", place, limit).await?;
            assert_eq!(total, 25);
            Ok(page)
        })
        .await;
        assert_eq!((&ids(&forward), forward), (&whole, back), "{limit}");
    }
    engine.close().await;
}

#[tokio::test]
async fn tagged_and_recurring_jobs_and_records_have_pages() {
    let engine = engine().await;
    let jobs = (0..25).map(|n| Put {
        tags: Some(vec!["t".to_owned()]),
        ..new(&format!("j{:02}", 24 - n))
    });
    let put = engine.put(q(), jobs.collect(), "c".to_owned(), at(10.0));
    put.await.unwrap();
    let [forward, back] = all_pages(async |place| {
        let (total, page) = engine.tagged_page("t", place, 7).await?;
        assert_eq!(total, 25);
        Ok(page)
    })
    .await;
    let expected: Vec<String> = (0..25).map(|n| format!("j{:02}", 24 - n)).collect();
    assert_eq!((&forward, &back), (&expected, &expected));

    let recur = (0..25).map(|n| Recur {
        id: Some(format!("r{n:02}")),
        body: "{}".to_owned(),
        interval_s: 60.0,
        offset_s: f64::from(n / 4),
        ..Recur::default()
    });
    let made = engine.recur(q(), recur.collect(), at(10.0)).await.unwrap();
    assert!(made.iter().all(Result::is_ok));
    for queue in [None, Some(&q())] {
        let [forward, back] =
            all_pages(async |place| engine.recurring_page(queue, place, 6).await).await;
        let found: Vec<_> = forward.iter().map(|found| found.id.clone()).collect();
        let expected: Vec<String> = (0..25).map(|n| format!("r{n:02}")).collect();
        assert_eq!((found, forward), (expected, back));
    }

    let books = {
        engine.create_queue("books").await.unwrap();
        engine.record_queue("books").await.unwrap()
    };
    for n in 0..13 {
        let state = if n % 2 == 0 { "[\"A\"]" } else { "5.5e1" };
        let made = engine.create_record(&books, n.to_string(), state.to_owned());
        made.await.unwrap();
    }
    for (which, count) in [
        (LabelFilter::All, 13),
        (LabelFilter::Labeled(r#"["A""#.to_owned()), 7),
    ] {
        let [forward, back] = all_pages(async |place| {
            let (page, total) = engine.records_of(&books, &which, place, 3).await?;
            assert_eq!(total, count as i64);
            Ok(page)
        })
        .await;
        assert_eq!((forward.len(), &forward), (count, &back), "{which:?}");
    }
    engine.close().await;
}
