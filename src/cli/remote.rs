//! The commands that manage a running server over HTTP, one file per kind of object. They call the server functions of
//! the dashboard, so that roles apply and the audit log records the changes. Only `job put` and `token remote create`
//! use the APIs: a form is limited to one job, and a new token's secret is shown only on the page of its form.

mod config;
mod failure;
pub mod feed;
mod job;
mod operation;
mod put;
mod queue;
mod recurring;
pub mod rows;
mod targets;
mod token;
mod worker;

use std::io::{BufRead, IsTerminal, Write};

use hyper::header::{self, HeaderName};
use leptos::server_fn::ServerFn;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::exit::{Code, Failure};
use super::output::{json_line, printable};
use super::{Outcome, print, print_notice};
use crate::client::{Client, Response};
use crate::config::{Connection, Remote};
use crate::ui::cookies::get_flash;

pub use config::run as config;
pub use failure::run as failure;
pub use job::{run as job, show as show_job};
pub use operation::run as operation;
pub use queue::{complete as complete_queues, pause, resume, run as queue};
pub use recurring::run as recurring;
pub use targets::{begin, change};
pub use token::run as token;
pub use worker::run as worker;

/// The result of a command.
type Result<T, E = Failure> = std::result::Result<T, E>;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// A server, and how the output is formatted.
#[derive(Clone, Debug)]
pub struct Session {
    pub client: Client,
    pub json: bool,
}

/// What an action has done.
#[derive(Clone, Debug)]
pub struct ActionOutcome {
    /// A sentence. Can contain any characters.
    pub message: String,
    /// The operation that undoes the action.
    pub undo: Option<i64>,
    /// The page that shows the result.
    pub page: String,
}

impl Session {
    /// # Errors
    /// If the address of the server or the CA file is wrong.
    pub fn new(remote: &Remote) -> Result<Session> {
        Session::connect(&remote.connection, remote.json)
    }

    /// # Errors
    /// See [`Session::new`].
    pub fn connect(connection: &Connection, json: bool) -> Result<Session> {
        let client = connection.client().map_err(Failure::usage)?;
        Ok(Session { client, json })
    }

    /// Calls a server function that reads.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses the request.
    pub async fn read<F>(&self, call: F) -> Result<F::Output>
    where
        F: ServerFn + Serialize,
        F::Output: DeserializeOwned,
    {
        let form = encoded(&call)?;
        let response = self.post(F::PATH, form, false).await?;
        response.json().map_err(|error| {
            Failure::new(
                Code::Error,
                format!(
                    "{error}; check that the server has the same version as this program ({})",
                    env!("CARGO_PKG_VERSION")
                ),
            )
        })
    }

    /// Calls a server function that changes something.
    ///
    /// # Errors
    /// If the server cannot be reached, or refuses the request or the change.
    pub async fn act<F: ServerFn + Serialize>(&self, call: F) -> Result<ActionOutcome> {
        let form = encoded(&call)?;
        let response = self.post(F::PATH, form, true).await?;
        let header = |name| {
            let values = response.headers().get_all(name).into_iter();
            values.filter_map(|value| value.to_str().ok())
        };
        let flash = header(header::SET_COOKIE).find_map(get_flash);
        let flash = flash
            .ok_or_else(|| Failure::new(Code::Error, "the server sent no result of the action"))?;
        if !flash.done {
            return Err(Failure::new(Code::Refused, flash.text));
        }
        Ok(ActionOutcome {
            message: flash.text,
            undo: flash.undo,
            page: header(header::LOCATION)
                .next()
                .unwrap_or_default()
                .to_owned(),
        })
    }

    async fn post(&self, path: &str, form: String, is_action: bool) -> Result<Response> {
        let segments = path.split('/').filter(|segment| !segment.is_empty());
        let request = self
            .client
            .post(segments)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            // No page of another site has caused the request.
            .header(SEC_FETCH_SITE, "same-origin")
            .bytes(form);
        let request = if is_action {
            request.accept(303)
        } else {
            request
        };
        Ok(request.send().await?)
    }

    /// One line of JSON, or a text for people.
    fn format(&self, json: impl FnOnce() -> Value, text: impl FnOnce() -> String) -> String {
        if self.json {
            json_line(&json())
        } else {
            text()
        }
    }

    /// The rows as lines of JSON, or a table for people.
    fn format_rows<T>(
        &self,
        rows: &[T],
        json: impl Fn(&T) -> Value,
        table: impl FnOnce(&[T]) -> String,
    ) -> String {
        if self.json {
            rows.iter().map(|row| json_line(&json(row))).collect()
        } else {
            table(rows)
        }
    }

    /// Reports what was done to `target`.
    fn report(&self, target: &str, done: &ActionOutcome) {
        let json = || {
            serde_json::json!({
                "target": target, "ok": true, "message": done.message, "undo": done.undo,
            })
        };
        print(&self.format(json, || format!("{}\n", printable(&done.message))));
    }

    /// Runs an action on each target. Reports each result, and continues after a failure.
    async fn each<T>(
        &self,
        targets: impl IntoIterator<Item = T>,
        name: impl Fn(&T) -> String,
        act: impl AsyncFn(&Session, &T) -> Result<ActionOutcome>,
    ) -> Outcome {
        let mut worst = None;
        for target in targets {
            match act(self, &target).await {
                Ok(done) => self.report(&name(&target), &done),
                // No other target would succeed.
                Err(failure) if failure.code == Code::Unreachable => return Err(failure.into()),
                Err(failure) => {
                    self.report_failure(&name(&target), &failure);
                    worst = worst.max(Some(failure.code));
                }
            }
        }
        worst.map_or(Ok(()), |code| Err(Failure::reported(code).into()))
    }

    /// Reports why nothing was done to `target`.
    fn report_failure(&self, target: &str, failure: &Failure) {
        if self.json {
            print(&json_line(&serde_json::json!({
                "target": target, "ok": false, "error": failure.message,
            })));
        }
        print_notice(&format!(
            "error: {}: {}",
            printable(target),
            printable(&failure.message)
        ));
    }

    /// Asks on the terminal.
    ///
    /// # Errors
    /// If the answer is not yes, or there is no terminal and `yes` is not set.
    fn confirm(&self, question: &str, yes: bool) -> Result<()> {
        if yes {
            return Ok(());
        }
        let stdin = std::io::stdin();
        if !stdin.is_terminal() {
            return Err(Failure::usage(format!("{question} Pass --yes to confirm.")));
        }
        let mut stderr = std::io::stderr();
        drop(write!(stderr, "{} [y/N] ", printable(question)).and_then(|()| stderr.flush()));
        let mut answer = String::new();
        let read = stdin.lock().read_line(&mut answer);
        match (read, answer.trim().to_lowercase().as_str()) {
            (Ok(_), "y" | "yes") => Ok(()),
            _ => Err(Failure::new(
                Code::Error,
                "not confirmed; nothing was changed",
            )),
        }
    }
}

/// The form of a server function.
fn encoded(call: &impl Serialize) -> Result<String> {
    let form = serde_qs::to_string(call);
    form.map_err(|error| Failure::usage(format!("the request cannot be encoded: {error}")))
}
