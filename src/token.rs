//! `switchyard token`: tokens are made, listed and revoked on the database itself, whether or not a server has it
//! open.

use std::error::Error;
use std::io::Write;

use chrono::{DateTime, SecondsFormat};
use switchyard::config::{Token, read_stdin};
use switchyard::engine::{self, Engine, Options, Time};
use switchyard::store::shown;

use crate::say;

type Outcome = Result<(), Box<dyn Error>>;

/// Does what the command says.
pub async fn run(command: Token) -> Outcome {
    let (Token::Create { place, .. } | Token::List { place, .. } | Token::Revoke { place, .. }) =
        &command;
    let database = shown(&place.database);
    if database.contains(":memory:") {
        return Err(format!(
            "{database} exists only inside its server; use POST /token/NAMESPACE instead"
        )
        .into());
    }
    let options = Options {
        database: place.database.clone(),
        brief: true,
        ..Options::default()
    };
    let engine = Engine::open(&options)
        .await
        .map_err(|error| format!("cannot open {database}: {}", error.detail()))?;
    let outcome = on(&engine, command).await;
    engine.close().await;
    outcome
}

async fn on(engine: &Engine, command: Token) -> Outcome {
    match command {
        Token::Create {
            namespace,
            description,
            token,
            token_file,
            expires,
            ..
        } => {
            let token = token.or(token_file).map(given).transpose()?;
            let token = engine
                .create_token_until(&namespace, &description, token, expires)
                .await?;
            let noticed = noticed(engine).await;
            tell(&format!(
                "token for the namespace {namespace} (not shown again; only its hash is stored):"
            ));
            say(&format!("{token}\n"));
            noticed?;
        }
        Token::List { namespace, .. } => {
            for token in engine.tokens().await? {
                if namespace.as_ref().is_none_or(|it| *it == token.namespace) {
                    say(&line(&token));
                }
            }
        }
        Token::Revoke {
            namespace, token, ..
        } => {
            let token = given(token)?;
            if !engine.revoke_token(&namespace, &token).await? {
                return Err(format!("the namespace {namespace} has no such token").into());
            }
            noticed(engine).await?;
            tell("token revoked");
        }
    }
    Ok(())
}

/// The token that an argument means: a hyphen means standard input.
fn given(argument: String) -> Result<String, String> {
    if argument == "-" {
        return read_stdin();
    }
    Ok(argument)
}

/// Waits until the server that has the file open knows.
async fn noticed(engine: &Engine) -> Outcome {
    if engine.noticed().await? {
        return Ok(());
    }
    Err("done, but the running server has not applied the change yet".into())
}

/// A moment, to the second.
fn moment(at: Time) -> String {
    let at = DateTime::from_timestamp_micros(at.0).unwrap_or_default();
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// A token in one line, for people and for programs. A description may hold anything.
fn line(token: &engine::Token) -> String {
    let made = moment(token.created_at);
    let expires = match token.expires_at.map(moment) {
        Some(at) if token.is_expired => format!("expired {at}"),
        Some(at) => format!("expires {at}"),
        None => "never expires".to_owned(),
    };
    let used = match token.last_used_at.map(moment) {
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
        "{}\t{}\t{made}\t{description}\t{expires}\t{used}\n",
        token.namespace, token.name
    )
}

/// Says it beside the output, which programs read. Whoever has closed the pipe does not want to know.
fn tell(text: &str) {
    drop(writeln!(std::io::stderr(), "{text}"));
}
