//! The search over all jobs: each kind of term on a real database, pages, and limits.

use std::time::Duration;

use super::*;
use switchyard::engine::{Enqueue, Mode, SearchLimits, SearchResult};
use switchyard::search::Search;

const HOUR: i64 = 3_600_000_000;

/// Searches with this text, with a limit of hours.
async fn find(
    engine: &Engine,
    text: &str,
    after: Option<i64>,
    reach: SearchLimits,
    hours: i64,
) -> SearchResult {
    let search = Search::parse(text).unwrap_or_else(|mistake| panic!("{text}: {mistake}"));
    let now = Time(engine.now(None).0 + hours * HOUR);
    engine
        .search(&search, after, reach, Some(now))
        .await
        .unwrap()
}

fn patient() -> SearchLimits {
    SearchLimits {
        time: Duration::from_secs(60),
        ..SearchLimits::default()
    }
}

/// The IDs that a search finds, sorted.
async fn found(engine: &Engine, text: &str) -> Vec<String> {
    found_in(engine, text, 0).await
}

/// The IDs that a search finds, some hours from now.
async fn found_in(engine: &Engine, text: &str, hours: i64) -> Vec<String> {
    let found = find(engine, text, None, patient(), hours).await;
    assert!(!found.is_cut && found.next.is_none(), "{text}");
    let mut ids = ids(&found.jobs);
    ids.sort();
    ids
}

async fn track(engine: &Engine, ids: &[&str]) {
    let jobs = ids.iter().map(|id| (JobKey::qless(*id), Vec::new()));
    for tracked in engine.track(jobs.collect(), None).await.unwrap() {
        tracked.unwrap();
    }
}

/// Jobs of every protocol, in most states.
async fn fill(engine: &Engine) {
    let letter = Put {
        klass: Some("Mail::Send".to_owned()),
        tags: Some(vec!["vip".to_owned(), "<b>".to_owned()]),
        priority: Some(7.0),
        retries: Some(0),
        body: r#"{"user": {"id": 42}, "total": 99.5, "big": 12345678901234567890}"#.to_owned(),
        ..new("letter")
    };
    let later = Put {
        delay: Some(1_800.0),
        ..new("later")
    };
    let after = Put {
        depends: Some(vec!["letter".to_owned()]),
        ..new("after")
    };
    add_to(engine, "mail", vec![letter, later, after]).await;
    track(engine, &["letter", "later"]).await;
    add_to(engine, "desk", vec![new("held"), new("plain")]).await;
    let claim = Claim::of(QueueKey::qless("desk"), "host-1", 1);
    assert_eq!(ids(&engine.claim(claim, None).await.unwrap()), ["held"]);
    add_to(engine, "broken", vec![new("torn"), new("done")]).await;
    let claim = Claim::of(QueueKey::qless("broken"), "ada", 2);
    assert_eq!(engine.claim(claim, None).await.unwrap().len(), 2);
    let fail = Fail {
        key: JobKey::qless("torn"),
        group: "TimeoutError".to_owned(),
        message: "Connection reset by peer".to_owned(),
        body: None,
    };
    engine.fail(vec![fail], holder("ada"), None).await.unwrap();
    let turn = (JobKey::qless("done"), "{}".to_owned(), None);
    engine
        .complete(vec![turn], holder("ada"), None)
        .await
        .unwrap();
    let publish = Publish {
        ttl_s: 7_200,
        ..lmstfy_job("eyJ1c2VyIjp7ImlkIjo0Mn19")
    };
    let shop = QueueKey::lmstfy("shop", "mail");
    engine.publish(shop, vec![publish]).await.unwrap();
    let enqueue = Enqueue {
        queue: QueueKey::relay("mail"),
        id: "relayed".to_owned(),
        timeout_s: 60,
        max_retries: None,
        payload: r#"[{"user": {"id": 42}}]"#.to_owned(),
        state: None,
        run_at: None,
    };
    engine.enqueue(vec![enqueue], Mode::Unique).await.unwrap();
    engine.create_queue("books").await.unwrap();
    let books = engine.record_queue("books").await.unwrap();
    let payload = r#"{"user":{"id":42},"title":"Dune"}"#.to_owned();
    engine
        .create_record(&books, payload, "null".to_owned())
        .await
        .unwrap();
}

#[tokio::test]
async fn each_kind_of_term_selects_the_matching_jobs() {
    let engine = open(false).await;
    fill(&engine).await;
    let published = found(&engine, "api:lmstfy").await;
    let published = published[0].as_str();
    for (text, wanted) in [
        ("letter", &["letter"][..]),
        ("LET send", &["letter"]),
        ("etter", &[]),
        ("state:failed", &["torn"]),
        ("state:failed,complete", &["done", "torn"]),
        ("state:complete queue:broken", &["done"]),
        ("state:complete queue:mail", &[]),
        ("state:scheduled", &["later"]),
        ("state:depends", &["after"]),
        ("state:running", &["held"]),
        ("state:stalled", &[]),
        ("state:record", &["1"]),
        ("state:waiting queue:m*", &["letter", published, "relayed"]),
        (
            "state:waiting -api:lmstfy -queue:desk",
            &["letter", "relayed"],
        ),
        ("queue:mail api:qless", &["after", "later", "letter"]),
        ("ns:shop", &[published]),
        ("ns:shops", &[]),
        ("api:relay", &["relayed"]),
        ("class:Mail::*", &["letter"]),
        ("tag:vip", &["letter"]),
        ("tag:<b> tag:vip", &["letter"]),
        ("tag:nothing", &[]),
        ("tag:v* -tag:vip", &[]),
        ("worker:host-1", &["held"]),
        ("worker:*", &["held"]),
        ("worker:ada", &[]),
        ("tracked:yes", &["letter", "later"]),
        ("tracked:yes tag:vip", &["letter"]),
        ("-tracked:no state:scheduled", &["later"]),
        ("tracked:no queue:mail api:qless", &["after"]),
        ("type:TimeoutError", &["torn"]),
        ("type:TimeoutError state:failed", &["torn"]),
        ("type:Other state:failed", &[]),
        ("error:\"connection reset\"", &["torn"]),
        ("data.user.id:42", &["1", "letter", published]),
        ("data.0.user.id:42", &["relayed"]),
        ("data.total:>99 data.big:12345678901234567890", &["letter"]),
        ("data.big:12345678901234567891", &[]),
        ("priority:>=7", &["letter"]),
        ("tries:0 api:qless", &["letter"]),
        ("data.user.id:42 -tag:vip", &["1", published]),
        ("tag:vip OR state:failed", &["letter", "torn"]),
        (
            "(queue:broken OR queue:desk) -state:complete",
            &["held", "plain", "torn"],
        ),
        (
            "data.0.user.id:42 OR tag:vip data.total:>99",
            &["letter", "relayed"],
        ),
        ("payload:dune OR payload:TOTAL", &["1", "letter"]),
        ("payload:user api:lmstfy", &[published]),
        ("-payload:user api:relay", &[]),
        ("created:>1h", &[]),
        ("'; DROP", &[]),
    ] {
        let mut wanted = wanted.to_vec();
        wanted.sort_unstable();
        assert_eq!(found(&engine, text).await, wanted, "{text}");
    }
    assert_eq!(found(&engine, "").await.len(), 10);
    assert_eq!(found(&engine, "created:<1h").await.len(), 10);
}

#[tokio::test]
async fn searches_use_the_effective_state() {
    let engine = open(false).await;
    fill(&engine).await;
    // The lease has expired, the scheduled job is due, and the lmstfy job's time to live has ended.
    assert_eq!(found_in(&engine, "state:running", 3).await, [""; 0]);
    assert_eq!(
        found_in(&engine, "state:stalled worker:host-*", 3).await,
        ["held"]
    );
    assert_eq!(found_in(&engine, "state:scheduled", 3).await, [""; 0]);
    let waiting = found_in(&engine, "state:waiting", 3).await;
    assert_eq!(waiting, ["later", "letter", "plain", "relayed"]);
    assert_eq!(found_in(&engine, "api:lmstfy", 3).await, [""; 0]);
    assert_eq!(found_in(&engine, "created:>2h", 3).await.len(), 9);
    assert_eq!(found_in(&engine, "updated:<2h", 3).await, [""; 0]);
    // Since it became due, half an hour after it was put, and since its lease expired, a minute after it was claimed.
    assert_eq!(found_in(&engine, "updated:<160m", 3).await, ["later"]);
    let since_a_minute = found_in(&engine, "updated:<10770s", 3).await;
    assert_eq!(since_a_minute, ["held", "later"]);
}

#[tokio::test]
async fn a_timed_out_job_is_found_where_it_is_listed_and_counted() {
    let engine = open(false).await;
    add(&engine, &q(), ["a", "b"].map(new).to_vec()).await;
    engine.claim(Claim::of(q(), "w", 1), None).await.unwrap();
    let key = JobKey::qless("a");
    let timed_out = engine.time_out(vec![key], None).await;
    timed_out.unwrap().remove(0).unwrap();
    let counts = engine.queue(&q(), None).await.unwrap().unwrap().counts;
    assert_eq!((counts.waiting, counts.stalled), (2, 0));
    assert_eq!(found(&engine, "state:waiting queue:q").await, ["a", "b"]);
    assert_eq!(found(&engine, "state:stalled queue:q").await, [""; 0]);
    engine.close().await;
}

#[tokio::test]
async fn an_exact_id_is_found_in_every_protocol() {
    let engine = open(false).await;
    fill(&engine).await;
    let exact = async |text: &str| ids(&find(&engine, text, None, patient(), 0).await.exact);
    assert_eq!(exact("letter").await, ["letter"]);
    assert_eq!(exact("relayed").await, ["relayed"]);
    assert_eq!(exact("\"1\"").await, ["1"]);
    assert_eq!(exact("lette").await, [""; 0]);
    assert_eq!(exact("letter -tag:x").await, [""; 0]);
    // Jobs of a deleted queue are not found.
    let books = engine.record_queue("books").await.unwrap();
    engine.delete_queue(&books).await.unwrap();
    assert_eq!(exact("1").await, [""; 0]);
    assert_eq!(found(&engine, "state:record").await, [""; 0]);
    assert_eq!(found(&engine, "data.title:Dune").await, [""; 0]);
}

#[tokio::test]
async fn pages_have_no_gaps_or_duplicates_while_jobs_are_added() {
    let engine = open(false).await;
    let some = |range: std::ops::Range<i32>| -> Vec<Put> {
        let job = |number: i32| Put {
            tags: (number % 2 == 0).then(|| vec!["even".to_owned()]),
            ..new(&format!("j{number:03}"))
        };
        range.map(job).collect()
    };
    add_to(&engine, "q", some(0..125)).await;
    // By number, by an index of states, and by tag; each also needs a filter.
    for (text, step, last) in [
        ("j", 1, 124),
        ("state:waiting j", 1, 124),
        ("tag:even j", 2, 124),
    ] {
        let (mut after, mut all, mut pages) = (None, Vec::new(), 0);
        loop {
            let page = find(&engine, text, after, patient(), 0).await;
            assert!(page.jobs.len() <= 50 && !page.is_cut);
            all.extend(ids(&page.jobs).into_iter().filter(|id| id.starts_with('j')));
            add_to(
                &engine,
                "q",
                vec![Put {
                    tags: Some(vec!["even".to_owned()]),
                    ..new(&format!("jx-{text}-{pages}"))
                }],
            )
            .await;
            pages += 1;
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        all.retain(|id| !id.starts_with("jx"));
        let wanted: Vec<String> = (0..=last)
            .rev()
            .step_by(step)
            .map(|n| format!("j{n:03}"))
            .collect();
        assert_eq!(all, wanted, "{text}");
        assert!(pages >= 2);
    }
    let page = find(&engine, "j124", None, patient(), 0).await;
    assert_eq!((page.jobs.len(), page.next), (1, None));
}

#[tokio::test]
async fn a_search_that_stops_at_a_limit_says_so_and_can_continue() {
    let engine = open(false).await;
    let jobs = (0..100)
        .map(|number| new(&format!("j{number:03}")))
        .collect();
    add_to(&engine, "q", jobs).await;
    add_to(&engine, "other", vec![new("last")]).await;
    let short = SearchLimits {
        scanned: 40,
        ..patient()
    };
    for (text, considered, rest) in [("j000", 101, 21), ("queue:q j000", 100, 20)] {
        let (mut after, mut scanned, mut all) = (None, Vec::new(), Vec::new());
        loop {
            let found = find(&engine, text, after, short, 0).await;
            assert_eq!(found.considered, considered, "{text}");
            assert_eq!(found.is_cut, found.next.is_some());
            scanned.push(found.scanned);
            all.extend(ids(&found.jobs));
            after = found.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(all, ["j000"], "{text}");
        assert_eq!(scanned, [40, 40, rest], "{text}");
    }
    // The first few hundred jobs are searched regardless of the time.
    let more = (100..2_000).map(|number| new(&format!("j{number:04}")));
    add_to(&engine, "q", more.collect()).await;
    let hurried = SearchLimits {
        time: Duration::ZERO,
        ..SearchLimits::default()
    };
    let found = find(&engine, "nothing", None, hurried, 0).await;
    assert!((500..2_001).contains(&found.scanned), "{found:?}");
    assert!(found.is_cut && found.next.is_some() && found.scanned_down_to.is_some());
}

/// Puts `count` jobs into the queue, claims them and completes them.
async fn complete_many(engine: &Engine, queue: &str, count: usize) {
    let jobs = (0..count).map(|n| new(&format!("{queue}-{n}")));
    add_to(engine, queue, jobs.collect()).await;
    let claim = Claim::of(QueueKey::qless(queue), "w", count);
    let claimed = engine.claim(claim, None).await.unwrap();
    let done = claimed
        .into_iter()
        .map(|job| (job.key, "{}".to_owned(), None));
    for result in engine
        .complete(done.collect(), holder("w"), None)
        .await
        .unwrap()
    {
        result.unwrap();
    }
}

#[tokio::test]
async fn a_queue_a_class_and_a_state_are_found_below_any_number_of_other_jobs() {
    let engine = open(false).await;
    complete_many(&engine, "old", 5).await;
    let rare = |n: i32| Put {
        klass: Some("Rare".to_owned()),
        ..new(&format!("rare-{n}"))
    };
    add_to(&engine, "old", (0..7).map(rare).collect()).await;
    complete_many(&engine, "busy", 900).await;
    // Newer jobs that are scheduled, and not due.
    let later = |n: i32| Put {
        delay: Some(600.0),
        ..new(&format!("later-{n}"))
    };
    add_to(&engine, "busy", (0..600).map(later).collect()).await;
    let few = SearchLimits {
        scanned: 60,
        ..patient()
    };
    for (text, count) in [
        ("queue:old", 12),
        ("queue:old state:complete", 5),
        ("state:waiting", 7),
        ("state:waiting queue:busy", 0),
        ("class:Rare", 7),
        ("class:Rare state:waiting queue:o*", 7),
        ("class:Rare state:failed", 0),
        ("class:Rare rare-3", 1),
        ("class:Nothing", 0),
    ] {
        let found = find(&engine, text, None, few, 0).await;
        assert_eq!(found.jobs.len(), count, "{text}");
        assert!(!found.is_cut && found.next.is_none(), "{text}: {found:?}");
        assert!(found.scanned <= count.max(7), "{text}: {}", found.scanned);
    }
    // A queue with most of the jobs is read page by page, without gaps.
    let mut all = Vec::new();
    let mut after = None;
    loop {
        let page = find(&engine, "queue:busy", after, patient(), 0).await;
        assert!(!page.is_cut, "{page:?}");
        all.extend(page.jobs.iter().map(|job| job.seq));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(all.len(), 1_500);
    assert!(all.is_sorted_by(|a, b| a > b));
}
