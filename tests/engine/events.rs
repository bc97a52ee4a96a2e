//! Events are read in batches of limited size.

use serde_json::Value;
use switchyard::engine::{Fail, JobKey};

use super::{add, engine, holder, new, open, pop, put, q};

/// The messages have 6 MiB in total, and several times that as JSON within JSON.
#[tokio::test]
async fn events_come_in_order_with_truncated_long_messages() {
    let engine = open(false).await;
    let jobs: Vec<_> = (0..200).map(|n| new(&format!("j{n}"))).collect();
    let put = engine.put(q(), jobs, "client".to_owned(), None);
    put.await
        .unwrap()
        .into_iter()
        .for_each(|id| drop(id.unwrap()));
    let claim = switchyard::engine::Claim::of(q(), "w", 200);
    let jobs = engine.claim(claim, None).await.unwrap();
    let fail = |key: JobKey| Fail {
        key,
        group: "g".to_owned(),
        message: "\u{1}é".repeat(10_000),
        body: None,
    };
    let fails = jobs.into_iter().map(|job| fail(job.key)).collect();
    let failed = engine.fail(fails, holder("w"), None).await.unwrap();
    failed.into_iter().for_each(Result::unwrap);

    let (first, _) = engine.events(0, 1, Some("log")).await.unwrap();
    assert_eq!(first.len(), 1);
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let (some, last) = engine.events(after, 70, None).await.unwrap();
        if some.is_empty() && last == after {
            break;
        }
        after = last;
        all.extend(some);
    }
    assert_eq!(after, engine.last_event().await.unwrap());
    assert!(
        all.iter().zip(1..).all(|(event, n)| event.seq == n),
        "each once, in order"
    );
    let data = all
        .iter()
        .map(|event| serde_json::from_str::<Value>(&event.data).unwrap());
    let failures: Vec<_> = data.filter(|data| data["event"] == "failed").collect();
    assert_eq!(failures.len(), 200);
    // A stream keeps what its client has not read, so it reads less at a time.
    let (at_once, _) = engine.events(0, 10_000, None).await.unwrap();
    assert_eq!(at_once.len(), all.len());
    let (mut streamed, mut after) = (Vec::new(), 0);
    while after < engine.last_event().await.unwrap() {
        let (some, last) = engine
            .events_of_stream(256 << 10, after, 10_000, None)
            .await
            .unwrap();
        let bytes: usize = some.iter().map(|event| event.data.len()).sum();
        assert!(bytes < 300 << 10, "{bytes} bytes at once");
        after = last;
        streamed.extend(some);
    }
    assert_eq!(streamed, all);
    assert_eq!(failures[0]["message"], "\u{1}é".repeat(500));
}

#[tokio::test]
async fn a_list_has_at_most_1_mib_of_events() {
    let engine = open(false).await;
    let jobs: Vec<_> = (0..5_000).map(|n| new(&format!("{n:0250}"))).collect();
    add(&engine, &q(), jobs).await;
    let (mut ids, mut after, mut lists) = (Vec::new(), 0, 0);
    while after < engine.last_event().await.unwrap() {
        let (some, last) = engine.events(after, 10_000, Some("log")).await.unwrap();
        let bytes: usize = some.iter().map(|event| event.data.len()).sum();
        // The last event may exceed it.
        assert!(bytes < (1 << 20) + 1_000, "{bytes} bytes");
        for event in some {
            let data: Value = serde_json::from_str(&event.data).unwrap();
            ids.push(data["id"].as_str().unwrap().to_owned());
        }
        (after, lists) = (last, lists + 1);
    }
    let all = (0..5_000).map(|n| format!("{n:0250}"));
    assert_eq!(ids, all.collect::<Vec<_>>());
    assert!(lists > 1);
}

#[tokio::test]
async fn reading_after_the_newest_event_returns_to_the_newest() {
    let engine = engine().await;
    put(&engine, 0.0, new("a")).await;
    pop(&engine, 1.0, "w", 1).await;
    let newest = engine.last_event().await.unwrap();
    assert_eq!(
        engine.events(newest + 100, 10, None).await.unwrap(),
        (Vec::new(), newest)
    );
}
