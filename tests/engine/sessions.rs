//! Expiry of dashboard sessions and audit entries.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use futures::{StreamExt, stream};
use switchyard::engine::{
    AUDIT_ANONYMOUS, AUDIT_ENTRIES_OF_NAME_MAX, Actor, AuditFilter, Engine, JobKey, SESSION_AGE_S,
    SESSION_IDLE_S, SESSIONS_MAX, Session, Time,
};
use switchyard::secret::Hash;

use super::{at, engine, new, open, put};

fn session(name: &str) -> Session {
    Session {
        name: name.to_owned(),
        proof: Hash::of("a key"),
    }
}

async fn begin(engine: &Engine, secret: &str, now: i64) {
    let now = at(now as f64);
    engine
        .begin_session(Hash::of(secret), session("ada"), now)
        .await
        .unwrap();
}

async fn is_valid(engine: &Engine, secret: &str, now: i64) -> bool {
    let found = engine.session(Hash::of(secret), at(now as f64), ()).await;
    found.unwrap().is_some()
}

#[tokio::test]
async fn an_unused_session_expires() {
    let engine = engine().await;
    begin(&engine, "secret", 0).await;
    let found = engine
        .session(Hash::of("secret"), at(1.0), ())
        .await
        .unwrap();
    assert_eq!(found, Some(session("ada")));
    assert!(!is_valid(&engine, "another", 1).await);
    assert!(is_valid(&engine, "secret", SESSION_IDLE_S - 1).await);
    // It was used recently.
    assert!(is_valid(&engine, "secret", 2 * SESSION_IDLE_S - 2).await);
    assert!(!is_valid(&engine, "secret", 3 * SESSION_IDLE_S - 2).await);
}

#[tokio::test]
async fn a_session_expires_after_a_week_regardless_of_use() {
    let engine = engine().await;
    begin(&engine, "secret", 0).await;
    let mut now = 0;
    while now + SESSION_IDLE_S / 2 < SESSION_AGE_S {
        now += SESSION_IDLE_S / 2;
        assert!(is_valid(&engine, "secret", now).await, "{now}");
    }
    assert!(!is_valid(&engine, "secret", SESSION_AGE_S).await);
    // One of the next sessions to start deletes it.
    for n in 0..100 {
        begin(&engine, &format!("new{n}"), SESSION_AGE_S).await;
    }
    assert!(!is_valid(&engine, "secret", 1).await);
}

#[tokio::test]
async fn a_session_that_was_ended_is_deleted() {
    let engine = engine().await;
    begin(&engine, "one", 0).await;
    begin(&engine, "other", 0).await;
    engine.end_session(Hash::of("one")).await.unwrap();
    assert!(!is_valid(&engine, "one", 1).await);
    assert!(is_valid(&engine, "other", 1).await);
}

#[tokio::test]
async fn beyond_the_limit_the_oldest_sessions_are_deleted() {
    let engine = engine().await;
    let now = UNIX_EPOCH.elapsed().unwrap().as_secs() as i64;
    let begin = |n: i64| {
        // Sessions that start at the engine's time share transactions.
        let first = || Time((now - 60) * 1_000_000 + n);
        let name = format!("name-{n}");
        engine.begin_session(
            Hash::of(n.to_string()),
            session(&name),
            (n < 200).then(first),
        )
    };
    let begin_some = async |from: i64, to: i64| {
        for n in (from..to).step_by(100) {
            let begun = futures::future::join_all((n..n + 100).map(begin)).await;
            begun.into_iter().for_each(Result::unwrap);
        }
    };
    begin_some(0, SESSIONS_MAX).await;
    assert!(is_valid(&engine, "0", now).await);
    begin_some(SESSIONS_MAX, SESSIONS_MAX + 200).await;
    assert!(!is_valid(&engine, "0", now).await);
    assert!(is_valid(&engine, "200", now).await);
    assert!(is_valid(&engine, &(SESSIONS_MAX + 199).to_string(), now).await);
}

#[tokio::test]
async fn a_user_has_20_sessions_and_ends_no_others() {
    let engine = engine().await;
    let begin = async |hash: &str, name: &str, at: i64| {
        let (hash, at) = (Hash::of(hash), Some(Time(at)));
        let begun = engine.begin_session(hash, session(name), at);
        begun.await.unwrap();
    };
    begin("admin", "ada", 0).await;
    for n in 1..=25 {
        begin(&n.to_string(), "vera", n).await;
    }
    for n in 1..=25 {
        let is_valid = is_valid(&engine, &n.to_string(), 1).await;
        assert_eq!(is_valid, n > 5, "{n}");
    }
    assert!(is_valid(&engine, "admin", 1).await);
}

#[tokio::test]
async fn one_user_cannot_displace_audit_entries_of_others() {
    let engine = open(false).await;
    let note_as = async |n: i64, who: &str, role: &str| {
        let actor = Actor {
            id: format!("{n:08}"),
            who: who.to_owned(),
            role: role.to_owned(),
            ..Actor::default()
        };
        engine.record_outcome(&actor, true, "Done.").await.unwrap();
    };
    note_as(0, "ada", "viewer").await;
    // A failed sign-in is recorded under the name that was tried, without a role.
    note_as(99_999_999, "vera", "operator").await;
    let names = ["vera", "ada", "unknown"].into_iter().cycle();
    let flood = (1..=AUDIT_ENTRIES_OF_NAME_MAX + 1_000).zip(names);
    let flood = flood.map(|(n, who)| note_as(n, who, ""));
    stream::iter(flood)
        .buffer_unordered(200)
        .collect::<Vec<_>>()
        .await;
    let of = async |who: &str| {
        let filter = AuditFilter {
            who: who.to_owned(),
            ..AuditFilter::default()
        };
        engine.audit_entries(&filter, None, 100_000).await.unwrap()
    };
    for (who, role) in [("ada", "viewer"), ("vera", "operator")] {
        let entries = of(who).await;
        assert!(
            entries.iter().any(|entry| entry.actor.role == role),
            "{who}"
        );
    }
    let kept = of("").await.len();
    // Entries are deleted from time to time.
    assert!((9_000..10_600).contains(&kept), "{kept}");
}

#[tokio::test]
async fn entries_without_changes_cannot_displace_changes() {
    let engine = open(false).await;
    put(&engine, 0.0, new("a")).await;
    let actor = |id: &str| Actor {
        id: id.to_owned(),
        who: "vera".to_owned(),
        role: "operator".to_owned(),
        ..Actor::default()
    };
    let session = actor("session");
    let begun = engine.record_session(&session, true, "Signed in.");
    begun.await.unwrap();
    let acting = engine.acting_as(Arc::new(actor("change")));
    acting.cancel(vec![JobKey::qless("a")], None).await.unwrap();
    let flood = (1..=AUDIT_ENTRIES_OF_NAME_MAX + 1_000).map(async |n| {
        let actor = actor(&format!("{n:08}"));
        engine.record_outcome(&actor, true, "Done.").await.unwrap();
    });
    stream::iter(flood)
        .buffer_unordered(200)
        .collect::<Vec<_>>()
        .await;
    let all = AuditFilter::default();
    let kept = engine.audit_entries(&all, None, 100_000).await.unwrap();
    let changes = kept.iter().filter(|entry| entry.items > 0);
    let changes: Vec<_> = changes.map(|entry| entry.actor.id.as_str()).collect();
    assert_eq!(changes, ["change", "session"]);
    // Entries are deleted from time to time.
    assert!((9_000..10_600).contains(&kept.len()), "{}", kept.len());
}

#[tokio::test]
async fn a_user_cannot_displace_the_changes_of_the_last_days() {
    let engine = open(false).await;
    let change_as = async |n: i64, who: &str| {
        let actor = Actor {
            id: format!("{who} {n:08}"),
            who: who.to_owned(),
            role: "operator".to_owned(),
            ..Actor::default()
        };
        let begun = engine.record_session(&actor, true, "Signed in.");
        begun.await.unwrap();
    };
    let most = AUDIT_ENTRIES_OF_NAME_MAX + 1_000;
    for (who, expected) in [("vera", most..most + 1), (AUDIT_ANONYMOUS, 9_000..10_600)] {
        stream::iter((0..most).map(|n| change_as(n, who)))
            .buffer_unordered(200)
            .collect::<Vec<_>>()
            .await;
        let filter = AuditFilter {
            who: who.to_owned(),
            ..AuditFilter::default()
        };
        let entries = engine.audit_entries(&filter, None, 100_000).await;
        let kept = i64::try_from(entries.unwrap().len()).unwrap();
        assert!(expected.contains(&kept), "{who}: {kept}");
    }
}

#[tokio::test]
async fn changes_are_recorded_even_without_an_outcome() {
    let engine = open(false).await;
    let job = vec![new("a")];
    engine
        .put(super::q(), job, "client".to_owned(), None)
        .await
        .unwrap();
    let actor = Arc::new(Actor {
        id: "1".to_owned(),
        who: "ada".to_owned(),
        action: "cancel".to_owned(),
        target: "x".repeat(10_000),
        ..Actor::default()
    });
    let acting = engine.acting_as(Arc::clone(&actor));
    acting.cancel(vec![JobKey::qless("a")], None).await.unwrap();
    let all = AuditFilter::default();
    let found = engine.audit_entries(&all, None, 10).await.unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].done && found[0].items == 1 && found[0].message.is_empty());
    assert!(found[0].before.contains(r#""job":"a""#));
    assert_eq!(found[0].actor.target.len(), 4_096);
    engine
        .record_outcome(&actor, true, "It is gone.")
        .await
        .unwrap();
    let found = engine.audit_entries(&all, None, 10).await.unwrap();
    assert_eq!((found.len(), found[0].message.as_str()), (1, "It is gone."));
    assert!(found[0].before.contains(r#""job":"a""#), "it is not lost");
    // Changes by API clients are not recorded.
    put(&engine, 0.0, new("b")).await;
    assert_eq!(engine.audit_entries(&all, None, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_action_of_several_transactions_is_one_entry() {
    let engine = open(false).await;
    let jobs = (0..3).map(|n| new(&n.to_string())).collect();
    engine
        .put(super::q(), jobs, "client".to_owned(), None)
        .await
        .unwrap();
    let actor = Arc::new(Actor {
        id: "1".to_owned(),
        ..Actor::default()
    });
    let acting = engine.acting_as(actor);
    for id in ["0", "1", "2"] {
        let job = (JobKey::qless(id), 1.0);
        acting.prioritize(vec![job], None).await.unwrap();
    }
    let all = AuditFilter::default();
    let found = engine.audit_entries(&all, None, 10).await.unwrap();
    assert_eq!((found.len(), found[0].items), (1, 3));
}
