//! The context of server functions: [`PageContext`] for reads, [`ActionContext`] for actions.
//!
//! [`PageContext`]: crate::ui::context::PageContext
//! [`ActionContext`]: crate::ui::context::ActionContext

use std::fmt;
use std::sync::Arc;

use axum::http::{Extensions, HeaderValue, StatusCode, header, request};
use leptos::prelude::*;
use leptos_axum::ResponseOptions;

use crate::auth::{AuthMethod, Role};
use crate::engine::{Engine, Error};
use crate::redis_clients::Clients;
use crate::request::RequestId;
use crate::ui::display::Setting;
use crate::ui::error::PageError;
use crate::ui::http::Dashboard;
use crate::ui::http::audit::PendingEntry;
use crate::ui::http::feed::Feed;
use crate::ui::page_request::{Flash, PageRequest, page_request};
use crate::ui::urls::encoding::is_dashboard_page;
use crate::ui::{access, cookies};

/// Runs a server function that reads, for users with at least the role `least`.
///
/// # Errors
/// If the user lacks the role, or the engine cannot read.
pub async fn read<T>(
    least: Role,
    load: impl AsyncFnOnce(PageContext) -> Result<T, Error>,
) -> Result<T, PageError> {
    let context = PageContext::new(least)?;
    let loaded = load(context.clone()).await;
    context.loaded(loaded)
}

/// Like [`read`], for something that may not exist; `missing` returns the error message for that case.
///
/// # Errors
/// As [`read`], and if it does not exist.
pub async fn read_or_missing<T>(
    least: Role,
    load: impl AsyncFnOnce(PageContext) -> Result<Option<T>, Error>,
    missing: impl FnOnce() -> String,
) -> Result<T, PageError> {
    let context = PageContext::new(least)?;
    let loaded = load(context.clone()).await;
    context.loaded(loaded)?.ok_or_else(|| {
        context.set_status(StatusCode::NOT_FOUND);
        PageError::Missing(missing())
    })
}

/// The context of a server function that reads.
#[derive(Clone)]
pub struct PageContext {
    pub engine: Engine,
    pub feed: Feed,
    /// Whether lmstfy namespaces need no token.
    pub no_auth: bool,
    /// Whether the server sends alerts.
    pub sends_alerts: bool,
    /// The clients that are connected over the Redis protocol.
    pub clients: Arc<Clients>,
    is_refresh: bool,
    response: ResponseOptions,
    request_id: Option<RequestId>,
}

impl PageContext {
    fn new(least: Role) -> Result<PageContext, PageError> {
        let parts = Parts::check(least)?;
        Ok(PageContext {
            engine: parts.dashboard.engine_for(parts.request.method),
            feed: parts.dashboard.feed,
            no_auth: parts.dashboard.no_auth,
            sends_alerts: parts.dashboard.sends_alerts,
            clients: parts.dashboard.clients,
            is_refresh: parts.request.is_refresh,
            response: parts.response,
            request_id: parts.extensions.get().cloned(),
        })
    }

    /// Unwraps a result of the engine. On error, logs it and sets the status.
    fn loaded<T>(&self, result: Result<T, Error>) -> Result<T, PageError> {
        result.map_err(|error| {
            tracing::error!(%error, "failed to load a page");
            self.set_status(StatusCode::SERVICE_UNAVAILABLE);
            let id = match &self.request_id {
                Some(RequestId(id)) => format!(" See the server log for request ID {id}."),
                None => String::new(),
            };
            PageError::Unavailable(sentence(&error) + &id)
        })
    }

    /// Browsers log every status but 200 as an error, so the status of a refresh is always 200.
    fn set_status(&self, status: StatusCode) {
        if !self.is_refresh {
            self.response.set_status(status);
        }
    }
}

/// The context of an action.
#[derive(Clone)]
pub struct ActionContext {
    /// The engine, which adds the changes to the audit entry.
    pub engine: Engine,
    /// The name of the user.
    pub user: String,
    /// Whether the server sends alerts.
    pub sends_alerts: bool,
    audit: Option<PendingEntry>,
    response: ResponseOptions,
}

/// The longest address to which an action or a function returns, in bytes. Pages with shorter names than 4 KiB have
/// shorter ones.
pub const RETURN_BYTES_MAX: usize = 20 << 10;

impl ActionContext {
    /// The context of an action that requires the role `least`.
    ///
    /// # Errors
    /// If the user lacks the role.
    pub fn new(least: Role) -> Result<ActionContext, PageError> {
        let parts = Parts::check(least)?;
        let audit = parts.extensions.get::<PendingEntry>().cloned();
        Ok(ActionContext {
            sends_alerts: parts.dashboard.sends_alerts,
            engine: match &audit {
                Some(audit) => audit.engine(&parts.dashboard.engine),
                None => parts.dashboard.engine,
            },
            user: parts.request.user,
            audit,
            response: parts.response,
        })
    }

    /// Ends the action: redirects to `page`, which shows the message, and records the message in the audit log.
    ///
    /// # Errors
    /// As [`ActionContext::redirect`].
    pub fn redirect_with_message(
        &self,
        page: &str,
        is_done: bool,
        text: String,
        undo: Option<i64>,
    ) -> Result<(), PageError> {
        if let Some(audit) = &self.audit {
            audit.set_outcome(is_done, &text);
        }
        let flash = Flash {
            done: is_done,
            text,
            undo,
        };
        self.set_cookie(&cookies::flash(&flash));
        self.redirect(page)
    }

    /// Redirects to a page of the dashboard; to the overview if `page` is not one, or longer than any.
    ///
    /// # Errors
    /// If `page` is not a valid header value.
    pub fn redirect(&self, page: &str) -> Result<(), PageError> {
        let is_page = page.len() <= RETURN_BYTES_MAX && is_dashboard_page(page);
        let page = if is_page { page } else { "/ui" };
        let location = HeaderValue::from_str(page)
            .map_err(|_| PageError::Request("The form has an invalid return page.".to_owned()))?;
        self.response.insert_header(header::LOCATION, location);
        self.response.set_status(StatusCode::SEE_OTHER);
        Ok(())
    }

    /// Stores a display setting in its cookie; deletes the cookie of the default.
    pub fn store_setting(&self, setting: &Setting, value: &str) {
        self.set_cookie(&cookies::setting(setting, value));
    }

    /// Notes in the browser that its user has seen the failures until this time, in microseconds since 1970.
    pub fn see_failures(&self, until: i64) {
        self.set_cookie(&cookies::failures_seen(until));
    }

    fn set_cookie(&self, cookie: &str) {
        if let Ok(cookie) = HeaderValue::from_str(cookie) {
            self.response.append_header(header::SET_COOKIE, cookie);
        }
    }
}

/// The common part of both contexts; the router provides it (`http.rs`).
struct Parts {
    request: PageRequest,
    dashboard: Dashboard,
    response: ResponseOptions,
    extensions: Extensions,
}

impl Parts {
    /// Checks the role of the user. The check does not depend on the path of the request, so no spelling of an address
    /// avoids it.
    fn check(least: Role) -> Result<Parts, PageError> {
        let request = page_request();
        let response = use_context::<ResponseOptions>();
        if request.method == AuthMethod::Unauthenticated || !request.may(least) {
            if let Some(response) = response.filter(|_| !request.is_refresh) {
                response.set_status(StatusCode::FORBIDDEN);
            }
            let why = access::forbidden(least, request.role);
            return Err(PageError::Forbidden(why));
        }
        let parts = use_context::<request::Parts>();
        match (use_context::<Dashboard>(), response) {
            (Some(dashboard), Some(response)) => Ok(Parts {
                request,
                dashboard,
                response,
                extensions: parts.map(|parts| parts.extensions).unwrap_or_default(),
            }),
            _ => Err(PageError::Unavailable(
                "The server is still starting.".to_owned(),
            )),
        }
    }
}

/// An error as a sentence: with a capital letter and, unless it is a question, a full stop.
pub fn sentence(error: &impl fmt::Display) -> String {
    let text = error.to_string();
    let mut chars = text.chars();
    let Some(first) = chars.next() else {
        return text;
    };
    let end = if text.ends_with(['.', '?']) { "" } else { "." };
    format!("{}{}{end}", first.to_uppercase(), chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_becomes_a_sentence() {
        let error = Error::AlreadyComplete { id: "a".to_owned() };
        assert_eq!(sentence(&error), "Job \"a\" is already complete.");
        assert_eq!(sentence(&"this is wrong."), "This is wrong.");
        assert_eq!(sentence(&"longer or shorter?"), "Longer or shorter?");
    }
}
