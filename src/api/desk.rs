//! The server's side of a server function: it finds the engine, gives the answer its status, and leads
//! a form back to the page it came from.

use std::fmt;

use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use leptos::prelude::*;
use leptos_axum::ResponseOptions;

use super::Trouble;
use super::roles;
use super::views::{AuthMethod, Role};
use crate::app::display::Setting;
use crate::app::visit::{self, Flash};
use crate::dashboard::{Dashboard, Feed, Noted};
use crate::engine::{Engine, Error, JobKey};
use crate::request::RequestId;

/// Seconds for which a browser keeps what was chosen.
const CHOICE_AGE_S: u32 = 31_536_000;

/// Seconds within which the page after an action must be asked for.
const FLASH_AGE_S: u32 = 60;

/// The longest flash in characters, and in bytes; a cookie has a limit of 4 kB, percent-encoded.
const FLASH_CHARS_MAX: usize = 400;
const FLASH_BYTES_MAX: usize = 1_200;

/// What a server function has at hand.
pub struct Desk {
    pub engine: Engine,
    pub feed: Feed,
    /// Whether lmstfy's namespaces stand open to everybody.
    pub no_auth: bool,
    /// Who asks.
    pub who: String,
    refresh: bool,
    /// The action that is done, for the audit.
    noted: Option<Noted>,
    response: ResponseOptions,
    request_id: Option<RequestId>,
}

impl Desk {
    /// From the context that the dashboard's router provides, for a principal that has at least the role `least`.
    ///
    /// Every server function names its role here. The check does not depend on the path of the request, so no spelling
    /// of an address avoids it.
    ///
    /// # Errors
    /// If the principal lacks the role, or the context is missing.
    pub fn here(least: Role) -> Result<Desk, Trouble> {
        let visit = visit::visit();
        if visit.method == AuthMethod::Unauthenticated || !visit.may(least) {
            if let Some(response) = use_context::<ResponseOptions>().filter(|_| !visit.refresh) {
                response.set_status(StatusCode::FORBIDDEN);
            }
            return Err(Trouble::Forbidden(roles::forbidden(least, visit.role)));
        }
        let request = use_context::<Parts>();
        let extensions = request
            .map(|request| request.extensions)
            .unwrap_or_default();
        let noted = extensions.get::<Noted>().cloned();
        match (use_context::<Dashboard>(), use_context::<ResponseOptions>()) {
            (Some(dashboard), Some(response)) => Ok(Desk {
                engine: match &noted {
                    Some(noted) => noted.engine(&dashboard.engine),
                    None => dashboard.engine,
                },
                noted,
                feed: dashboard.feed,
                no_auth: dashboard.no_auth,
                refresh: visit.refresh,
                who: visit.who,
                response,
                request_id: extensions.get().cloned(),
            }),
            _ => Err(Trouble::Unavailable(
                "The server is still starting.".to_owned(),
            )),
        }
    }

    /// What the engine said; if it could not, with the status that tells so.
    pub fn answer<T>(&self, result: Result<T, Error>) -> Result<T, Trouble> {
        result.map_err(|error| {
            tracing::error!(%error, "failed to load a page");
            self.set_status(StatusCode::SERVICE_UNAVAILABLE);
            let id = match &self.request_id {
                Some(RequestId(id)) => {
                    format!(" See the server log for request ID {id}.")
                }
                None => String::new(),
            };
            Trouble::Unavailable(sentence(&error) + &id)
        })
    }

    /// What the engine found; if there is none, with status 404.
    pub fn found<T>(
        &self,
        result: Result<Option<T>, Error>,
        missing: impl FnOnce() -> String,
    ) -> Result<T, Trouble> {
        self.answer(result)?.ok_or_else(|| {
            self.set_status(StatusCode::NOT_FOUND);
            Trouble::Missing(missing())
        })
    }

    /// Ends an action: back to where its form stood, where a flash tells what happened.
    pub fn back<E: fmt::Display>(
        &self,
        back: &str,
        done: Result<String, E>,
    ) -> Result<(), Trouble> {
        let flash = match done {
            Ok(text) => Flash { done: true, text },
            Err(error) => Flash {
                done: false,
                text: sentence(&error),
            },
        };
        if let Some(noted) = &self.noted {
            noted.say(flash.done, &flash.text);
        }
        self.set_cookie(&flash_cookie(&flash));
        self.lead_back(back)
    }

    /// Back to where the form stood.
    pub fn lead_back(&self, back: &str) -> Result<(), Trouble> {
        let target = if visit::is_ours(back) { back } else { "/ui" };
        let location = HeaderValue::from_str(target)
            .map_err(|_| Trouble::Request("The form has an invalid return page.".to_owned()))?;
        self.response.insert_header(header::LOCATION, location);
        self.response.set_status(StatusCode::SEE_OTHER);
        Ok(())
    }

    /// Keeps what was chosen in a cookie; for what is usual anyway, there is none.
    pub fn remember(&self, setting: &Setting, chosen: &str) {
        let (value, age) = match setting.value(Some(chosen)) {
            value if setting.is_usual(value) => ("", 0),
            value => (value, CHOICE_AGE_S),
        };
        self.set_cookie(&format!(
            "{}={value}; Path=/ui; Max-Age={age}; HttpOnly; SameSite=Lax",
            setting.cookie
        ));
    }

    fn set_status(&self, status: StatusCode) {
        if !self.refresh {
            self.response.set_status(status);
        }
    }

    fn set_cookie(&self, cookie: &str) {
        if let Ok(cookie) = HeaderValue::from_str(cookie) {
            self.response.append_header(header::SET_COOKIE, cookie);
        }
    }
}

/// The cookie that carries a flash to the next page, cut to what it can hold.
pub fn flash_cookie(flash: &Flash) -> String {
    let mut short: String = flash.text.chars().take(FLASH_CHARS_MAX).collect();
    short.truncate(short.floor_char_boundary(FLASH_BYTES_MAX));
    let value = visit::segment(&short);
    let done = if flash.done { "done" } else { "refused" };
    format!(
        "{}={done}.{value}; Path=/ui; Max-Age={FLASH_AGE_S}; HttpOnly; SameSite=Strict",
        visit::FLASH_COOKIE
    )
}

/// A refusal as a sentence.
pub fn sentence(error: &impl fmt::Display) -> String {
    let text = error.to_string();
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), chars.as_str()),
        None => text,
    }
}

/// The key of a job that a page names.
pub fn job_key(id: &str) -> JobKey {
    JobKey::qless(id)
}

/// What a retry of a whole group says: `count` was asked for, `moved` were there.
pub fn retried(moved: usize, count: usize, group: &str) -> String {
    let jobs = |n: usize| if n == 1 { "job" } else { "jobs" };
    if moved == count {
        format!("Retried {moved} {} of “{group}”.", jobs(moved))
    } else {
        format!(
            "Retried {moved} of {count} {} of “{group}”. The others were no longer failed.",
            jobs(count)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_a_sentence() {
        let error = Error::AlreadyComplete { id: "a".to_owned() };
        assert_eq!(sentence(&error), "Job \"a\" is already complete.");
    }

    #[test]
    fn a_retry_says_how_many_and_what_became_of_the_rest() {
        assert_eq!(retried(1, 1, "E"), "Retried 1 job of “E”.");
        assert_eq!(
            retried(10, 12, "E"),
            "Retried 10 of 12 jobs of “E”. The others were no longer failed."
        );
    }
}
