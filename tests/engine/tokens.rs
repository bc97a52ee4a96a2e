//! Tokens of lmstfy namespaces.

use std::path::Path;
use std::time::Duration;

use switchyard::engine::{Claim, Engine, EngineSettings, Error, QueueKey, TokenError};
use tempfile::TempDir;

use super::{database, engine, new, open};

const SECRET: &str = "a-secret-of-20-bytes";

async fn open_at(path: &Path) -> Engine {
    let options = EngineSettings {
        database: database::address(path),
        trust_client_clock: true,
        ..EngineSettings::default()
    };
    Engine::open(&options).await.unwrap()
}

async fn names(engine: &Engine) -> Vec<String> {
    let tokens = engine.tokens().await.unwrap();
    tokens.into_iter().map(|token| token.token_id).collect()
}

#[tokio::test]
async fn a_namespace_lists_only_its_own_tokens() {
    let engine = engine().await;
    for (namespace, count) in [("a", 2), ("b", 3)] {
        for n in 0..count {
            let secret = Some(format!("secret-of-{namespace}-number-{n}"));
            let made = engine.create_token(namespace, "", secret).await;
            let secret = made.unwrap();
            engine
                .authenticate_token(namespace, &secret)
                .await
                .unwrap()
                .unwrap();
        }
    }
    let all = engine.tokens().await.unwrap();
    for namespace in ["a", "b", "c", ""] {
        let own = engine.tokens_of(namespace).await.unwrap();
        let expected = all.iter().filter(|token| token.namespace == namespace);
        assert!(own.iter().eq(expected), "{namespace}");
        assert!(own.iter().all(|token| token.last_used_at.is_some()));
    }
    let counts = engine.token_counts().await.unwrap();
    assert_eq!(counts, [("a".to_owned(), 2), ("b".to_owned(), 3)]);
    engine.close().await;
}

#[tokio::test]
async fn a_token_is_valid_in_its_namespace_until_revoked() {
    let engine = engine().await;
    let one = engine.create_token("ns", "for ada", None).await.unwrap();
    let other = engine.create_token("ns", "for bob", None).await.unwrap();
    assert!(one.len() >= 32 && one != other, "{one} {other}");
    assert!(
        engine
            .authenticate_token("ns", &one)
            .await
            .unwrap()
            .is_some()
    );
    let grant = engine
        .authenticate_token("ns", &other)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(grant.namespace(), "ns");
    assert!(engine.is_valid_grant(&grant).await.unwrap());
    for (namespace, secret) in [
        ("ns", ""),
        ("ns", "wrong"),
        ("ns", &format!("{one}x")),
        ("other", &one),
        ("", &one),
        ("NS", &one),
        ("ns", &one.to_uppercase()),
    ] {
        let admitted = engine.authenticate_token(namespace, secret).await.unwrap();
        assert_eq!(admitted, None, "{namespace} {secret}");
    }
    assert!(engine.revoke_token("ns", &other).await.unwrap());
    assert!(!engine.revoke_token("ns", &other).await.unwrap());
    assert_eq!(engine.authenticate_token("ns", &other).await.unwrap(), None);
    assert!(
        !engine.is_valid_grant(&grant).await.unwrap(),
        "it was revoked since"
    );
    assert!(
        engine
            .authenticate_token("ns", &one)
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn tokens_are_listed_and_revoked_by_a_public_name() {
    let engine = engine().await;
    let given = Some(SECRET.to_owned());
    assert_eq!(engine.create_token("b", "x", given).await.unwrap(), SECRET);
    let secret = engine.create_token("a", "", None).await.unwrap();
    let tokens = engine.tokens().await.unwrap();
    let shown: Vec<_> = tokens
        .iter()
        .map(|token| (token.namespace.as_str(), token.description.as_str()))
        .collect();
    assert_eq!(shown, [("a", ""), ("b", "x")]);
    assert!(tokens[0].created_at.0 > 0);
    // printf %s a-secret-of-20-bytes | sha256sum
    assert_eq!(tokens[1].token_id, "sha256:8d175a103b197698");
    let grant = engine.authenticate_token("a", &secret).await.unwrap();
    let debug = format!("{tokens:?} {grant:?}");
    assert!(
        !debug.contains(&secret) && !debug.contains(SECRET),
        "{debug}"
    );
    let name = &tokens[1].token_id;
    assert_eq!(engine.authenticate_token("b", name).await.unwrap(), None);
    assert!(!engine.revoke_token("a", name).await.unwrap());
    assert!(
        !engine
            .revoke_token("b", name.trim_end_matches(char::is_alphanumeric))
            .await
            .unwrap()
    );
    assert!(engine.revoke_token("b", name).await.unwrap());
    assert_eq!(names(&engine).await, [tokens[0].token_id.clone()]);
}

#[tokio::test]
async fn invalid_tokens_are_rejected_with_a_reason() {
    let engine = engine().await;
    let long = "d".repeat(1_024);
    let (shortest, longest) = ("s".repeat(20), "s".repeat(255));
    let name = "n".repeat(255);
    let made = engine.create_token(&name, &long, Some(longest)).await;
    made.unwrap();
    let (shorter, less) = ("n".repeat(254), "d".repeat(1_023));
    for secret in [21, 254] {
        let made = engine.create_token(&shorter, &less, Some("t".repeat(secret)));
        made.await.unwrap();
    }
    engine
        .create_token("A-z_0", "", Some(shortest.clone()))
        .await
        .unwrap();
    for (namespace, description, secret, flaw) in [
        ("", "", None, TokenError::Namespace),
        ("a b", "", None, TokenError::Namespace),
        ("a/b", "", None, TokenError::Namespace),
        ("ü", "", None, TokenError::Namespace),
        (&format!("{name}n"), "", None, TokenError::Namespace),
        ("v0", "", None, TokenError::Reserved),
        ("ns", &format!("{long}d"), None, TokenError::Description),
        ("ns", "nul\0", None, TokenError::Description),
        ("ns", "", Some("s".repeat(19)), TokenError::TooShort),
        ("ns", "", Some("s".repeat(256)), TokenError::TooLong),
        ("ns", "", Some(format!("{SECRET}:")), TokenError::Characters),
        ("ns", "", Some(format!("{SECRET} ")), TokenError::Characters),
        ("ns", "", Some(format!("{SECRET}é")), TokenError::Characters),
        ("A-z_0", "", Some(shortest.clone()), TokenError::Exists),
    ] {
        let refused = engine.create_token(namespace, description, secret).await;
        assert_eq!(refused.unwrap_err(), Error::BadToken(flaw));
    }
    assert!(TokenError::Reserved.to_string().contains("v0"));
    // Several namespaces can have a token with the same secret.
    engine.create_token("ns", "", Some(shortest)).await.unwrap();
}

#[tokio::test]
async fn a_namespace_has_at_most_1000_tokens() {
    let engine = engine().await;
    let create = |n: i32| {
        let secret = Some(format!("secret-number-{n:020}"));
        engine.create_token("full", "", secret)
    };
    for n in (0..1_000).step_by(100) {
        let created = futures::future::join_all((n..n + 100).map(create)).await;
        created.into_iter().for_each(|token| drop(token.unwrap()));
    }
    let refused = engine.create_token("full", "", None).await.unwrap_err();
    assert!(matches!(refused, Error::TooMany { max: 1_000, .. }));
    engine.create_token("other", "", None).await.unwrap();
    let name = names(&engine).await.remove(500);
    assert!(engine.revoke_token("full", &name).await.unwrap());
    engine.create_token("full", "", None).await.unwrap();
}

#[tokio::test]
async fn tokens_survive_a_restart_and_a_flush() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("tokens.db");
    let engine = open_at(&path).await;
    let kept = engine.create_token("ns", "kept", None).await.unwrap();
    let gone = engine.create_token("ns", "gone", None).await.unwrap();
    engine.revoke_token("ns", &gone).await.unwrap();
    engine.flush().await.unwrap();
    assert!(
        engine
            .authenticate_token("ns", &kept)
            .await
            .unwrap()
            .is_some()
    );
    engine.close().await;
    let engine = open_at(&path).await;
    assert!(
        engine
            .authenticate_token("ns", &kept)
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(engine.authenticate_token("ns", &gone).await.unwrap(), None);
    engine.close().await;
}

#[tokio::test]
async fn token_changes_apply_to_all_servers_at_once() {
    if database::postgres().is_none() {
        println!("not run: it needs PostgreSQL (scripts/postgres.sh)");
        return;
    }
    let folder = TempDir::new().unwrap();
    let (one, other) = (open_at(folder.path()).await, open_at(folder.path()).await);
    let secret = one.create_token("ns", "", None).await.unwrap();
    let grant = other
        .authenticate_token("ns", &secret)
        .await
        .unwrap()
        .unwrap();
    assert!(one.revoke_token("ns", &secret).await.unwrap());
    assert!(!other.is_valid_grant(&grant).await.unwrap());
    assert_eq!(other.authenticate_token("ns", &secret).await.unwrap(), None);
    let given = || Some(SECRET.to_owned());
    let (a, b) = tokio::join!(
        one.create_token("ns", "", given()),
        other.create_token("ns", "", given())
    );
    let lost = [a, b].into_iter().find_map(Result::err);
    assert_eq!(lost, Some(Error::BadToken(TokenError::Exists)));
    assert_eq!(names(&one).await, names(&other).await);
}

#[tokio::test]
async fn token_changes_do_not_block_claims_and_polls() {
    let engine = open(false).await;
    let waiting = {
        let engine = engine.clone();
        let claim = Claim::of(QueueKey::qless("q"), "w", 1);
        let wait = Duration::from_secs(30);
        tokio::spawn(async move { engine.claim_or_wait(claim, wait, None).await })
    };
    let secret = engine.create_token("ns", "", None).await.unwrap();
    assert!(engine.revoke_token("ns", &secret).await.unwrap());
    let put = engine.put(QueueKey::qless("q"), vec![new("a")], "c".to_owned(), None);
    put.await.unwrap().remove(0).unwrap();
    let jobs = waiting.await.unwrap().unwrap();
    assert_eq!(jobs[0].key.id, "a");
}
