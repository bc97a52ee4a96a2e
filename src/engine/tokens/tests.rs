//! Batch sizes of token maintenance.

use crate::engine::tokens::expiry::Expiry;
use crate::engine::verbs::admin::tokens::create;
use std::ops::Range;

use super::*;
use crate::engine::engine_without_tasks as engine;
use crate::engine::maintenance::SystemTask;
use crate::engine::maintenance::tasks::MaintenanceTask;

/// The namespace and the secret of the token with this number. Namespaces have few tokens each, because a request is
/// compared with all tokens of its namespace.
fn place(n: usize) -> (String, String) {
    (format!("ns-{}", n / 20), format!("secret-number-{n:020}"))
}

/// Creates the tokens with these numbers, `ago_s` seconds in the past.
async fn make(engine: &Engine, numbers: Range<usize>, ago_s: f64, expires: Option<Expiry>) {
    let now = engine.now(None).plus_seconds(-ago_s);
    let made = engine.write(Needs::default(), Some(now), 1, move |work| {
        for (namespace, secret) in numbers.clone().map(place) {
            create(work, &namespace, "", Hash::of(secret), expires)?;
        }
        Ok(())
    });
    made.await.unwrap();
}

#[tokio::test]
async fn up_to_500_expired_tokens_are_removed_at_once() {
    let engine = engine().await;
    for (count, first) in [(499, 499), (500, 500), (501, 500)] {
        let a_second = Some(Expiry::After(1_000_000));
        make(&engine, 0..count, 31.0 * 86_400.0, a_second).await;
        let remove = async || {
            engine
                .run_system_task(SystemTask::Maintain(MaintenanceTask::DeleteExpiredTokens))
                .await
                .unwrap()
        };
        let removed = remove().await;
        assert_eq!(removed, first, "{count} tokens");
        assert_eq!(
            MaintenanceTask::DeleteExpiredTokens.may_have_more(removed),
            count >= 500
        );
        assert_eq!(remove().await, count - first);
    }
    engine.close().await;
}

#[tokio::test]
async fn up_to_500_last_uses_are_stored_at_once() {
    let engine = engine().await;
    let save = async || {
        let stored = async || {
            let rows = engine.readers().rows(Statement::new(last_use::STORED, []));
            rows.await.unwrap().len()
        };
        let before = stored().await;
        engine.save_token_uses().await.unwrap();
        stored().await - before
    };
    for (from, count, first) in [(0, 499, 499), (1_000, 500, 500), (2_000, 501, 500)] {
        let numbers = from..from + count;
        make(&engine, numbers.clone(), 1.0, None).await;
        for (namespace, secret) in numbers.map(place) {
            engine
                .authenticate_token(&namespace, &secret)
                .await
                .unwrap()
                .unwrap();
        }
        assert_eq!(save().await, first, "{count} uses");
        assert_eq!(save().await, count - first);
    }
    engine.close().await;
}
