//! What log lines show of the request that they belong to: its ID, method and path. A request about which nothing is
//! logged costs neither a span nor formatting.

use std::fmt::{self, Write};

use axum::extract::Request;
use axum::http::Method;
use tokio::task::futures::TaskLocalFuture;
use tokio::task_local;
use tracing::Span;
use uuid::Uuid;

task_local! {
    /// The request of this task.
    static CURRENT: LoggedRequest;
}

/// A request as log lines show it.
#[derive(Clone, Debug)]
pub struct LoggedRequest {
    id: Uuid,
    method: Method,
    /// A copy of what is logged, because the URI keeps the connection's buffer of the whole header, also while a long
    /// poll waits.
    path: Box<str>,
}

impl LoggedRequest {
    pub fn new(id: Uuid, request: &Request) -> LoggedRequest {
        let path = request.uri().path();
        let logged = path.get(..path.floor_char_boundary(PATH_BYTES_MAX));
        LoggedRequest {
            id,
            method: request.method().clone(),
            path: logged.unwrap_or_default().into(),
        }
    }

    /// Log lines of `future` show this request.
    pub fn scope<F: Future>(self, future: F) -> TaskLocalFuture<LoggedRequest, F> {
        CURRENT.scope(self, future)
    }
}

/// A span of the request of this task, if there is one.
pub fn span() -> Span {
    CURRENT.try_with(span_of).unwrap_or_else(|_| Span::none())
}

fn span_of(request: &LoggedRequest) -> Span {
    let mut id = [0; 32];
    let id = &*request.id.simple().encode_lower(&mut id);
    // At the highest level, so that the ID is logged at every level. Without the query, which can contain tokens.
    tracing::error_span!(
        "request",
        id,
        method = %Escaped(request.method.as_str()),
        path = %Path(&request.path)
    )
}

/// What is before the namespace in `/token/{namespace}/{token}`.
const TOKEN: &str = "/token/";

/// A path for the log: without the token of `/token/{namespace}/{token}`, also below a wrong prefix, escaped, and cut.
struct Path<'a>(&'a str);

/// Characters of a path that are logged.
const PATH_CHARS_MAX: usize = 200;

/// Bytes of a path that are kept for the log: more than these characters have.
const PATH_BYTES_MAX: usize = 1_000;

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with_namespace = self.0.match_indices(TOKEN).find_map(|(at, _)| {
            let namespace = at + TOKEN.len();
            let end = namespace + self.0.get(namespace..)?.find('/')? + 1;
            self.0.get(..end)
        });
        match with_namespace {
            Some(shown) => write!(f, "{}…", Escaped(shown)),
            None => Escaped(self.0).fmt(f),
        }
    }
}

/// The beginning of a text, with everything but printable ASCII escaped: other characters can turn the log's direction
/// or control the terminal that shows it.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.0.chars();
        for char in chars.by_ref().take(PATH_CHARS_MAX) {
            match char {
                ' '..='~' => f.write_char(char)?,
                _ => write!(f, "{}", char.escape_unicode())?,
            }
        }
        match chars.next() {
            Some(_) => f.write_char('…'),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_shown_without_a_token() {
        for (path, shown) in [
            ("/token/ns/secret", "/token/ns/…"),
            ("/token/ns/secret/", "/token/ns/…"),
            ("/token/ns/secret/limit", "/token/ns/…"),
            ("//token/ns/secret", "//token/ns/…"),
            ("/queues/token/ns/secret", "/queues/token/ns/…"),
            ("/token/ns", "/token/ns"),
            ("/token/ns/", "/token/ns/…"),
            ("/token", "/token"),
            ("/tokens/ns/job", "/tokens/ns/job"),
            ("/api/ns/token", "/api/ns/token"),
            ("/", "/"),
            ("*", "*"),
            ("/ui/\u{202e}\u{9b}31m\n", "/ui/\\u{202e}\\u{9b}31m\\u{a}"),
            ("/token/\u{202e}/x", "/token/\\u{202e}/…"),
        ] {
            assert_eq!(Path(path).to_string(), shown, "{path}");
        }
        let whole = "/".repeat(200);
        assert_eq!(Path(&whole).to_string(), whole);
        assert_eq!(Path(&format!("{whole}/")).to_string(), format!("{whole}…"));
    }
}
