//! `switchyard token`: creates, lists and revokes tokens directly in the database, whether or not a server has it open.

use chrono::{DateTime, SecondsFormat};

use super::{Outcome, print, print_notice};
use crate::config::Token;
use crate::engine::{self, Engine, EngineSettings, Time};
use crate::secret::read_stdin;
use crate::store::without_password;

pub async fn run(command: &Token) -> Outcome {
    let (Token::Create { database, .. }
    | Token::List { database, .. }
    | Token::Revoke { database, .. }) = command
    else {
        // The others talk to a server (`remote/token.rs`).
        return Ok(());
    };
    let url = database.database.clone();
    let database = without_password(&url);
    if database.contains(":memory:") {
        return Err(format!(
            "{database} is a temporary database that only its server can open; use POST /token/NAMESPACE of that server instead"
        )
        .into());
    }
    let options = EngineSettings {
        database: url,
        without_tasks: true,
        ..EngineSettings::default()
    };
    let engine = Engine::open(&options)
        .await
        .map_err(|error| format!("cannot open {database}: {}", error.detail()))?;
    let outcome = run_on(&engine, command).await;
    engine.close().await;
    outcome
}

async fn run_on(engine: &Engine, command: &Token) -> Outcome {
    match command {
        Token::Create {
            namespace,
            description,
            token,
            token_file,
            expires,
            ..
        } => {
            let token = token.as_ref().or(token_file.as_ref());
            let token = token.map(|it| read_argument(it)).transpose()?;
            let token = engine
                .create_token_until(namespace, description, token, *expires)
                .await?;
            let applied = wait_until_applied(engine).await;
            print_notice(&format!(
                "token of namespace {namespace} (it is not shown again, because only its hash is stored):"
            ));
            print(&format!("{token}\n"));
            applied?;
        }
        Token::List { namespace, .. } => {
            for token in engine.tokens().await? {
                if namespace.as_ref().is_none_or(|it| *it == token.namespace) {
                    print(&line(&token));
                }
            }
        }
        Token::Revoke {
            namespace, token, ..
        } => {
            let token = read_argument(token)?;
            if !engine.revoke_token(namespace, &token).await? {
                return Err(format!("namespace {namespace} has no such token").into());
            }
            wait_until_applied(engine).await?;
            print_notice("revoked: every server refuses the token from now on");
        }
        Token::Remote(_) => {}
    }
    Ok(())
}

/// The token of an argument; a hyphen reads it from standard input.
fn read_argument(argument: &str) -> Result<String, String> {
    if argument == "-" {
        return read_stdin();
    }
    Ok(argument.to_owned())
}

/// Waits until the server that has the file open, if any, applies the change.
async fn wait_until_applied(engine: &Engine) -> Outcome {
    if engine.wait_until_noticed().await? {
        return Ok(());
    }
    Err(
        "the change is stored, but the running server has not applied it within 10 s; check its log"
            .into(),
    )
}

/// RFC 3339 in UTC, to the second.
fn timestamp(at: Time) -> String {
    let at = DateTime::from_timestamp_micros(at.0).unwrap_or_default();
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// A line of `token list`, separated by tabs. Control characters in the description become spaces.
fn line(token: &engine::Token) -> String {
    let created = timestamp(token.created_at);
    let expires = match token.expires_at.map(timestamp) {
        Some(at) if token.is_expired => format!("expired {at}"),
        Some(at) => format!("expires {at}"),
        None => "never expires".to_owned(),
    };
    let used = match token.last_used_at.map(timestamp) {
        Some(at) => format!("used {at}"),
        None => "not used".to_owned(),
    };
    let is_safe = |c: char| !c.is_control();
    let description: String = token
        .description
        .chars()
        .map(|c| if is_safe(c) { c } else { ' ' })
        .collect();
    format!(
        "{}\t{}\t{created}\t{description}\t{expires}\t{used}\n",
        token.namespace, token.token_id
    )
}
