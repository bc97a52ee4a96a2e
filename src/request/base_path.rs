//! The path below which clients reach this server, if a proxy serves several programs under one host name.

use std::fmt;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::Uri;
use axum::http::uri::PathAndQuery;

/// Maximum length of a base path, in bytes.
pub const BASE_PATH_BYTES_MAX: usize = 255;

/// The path before every path of this server, as clients see it, such as `/queues`. As an extension of a request, it is
/// what the dashboard adds to its links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BasePath(Arc<str>);

impl BasePath {
    /// Parses a path; `None` for the root. A slash at the end makes no difference.
    ///
    /// # Errors
    /// If it is too long or does not begin with a slash, if browsers would resolve it to another path or host, or if it
    /// needs percent-encoding.
    pub fn parse(text: &str) -> Result<Option<BasePath>, &'static str> {
        if text.len() > BASE_PATH_BYTES_MAX {
            return Err("must have at most 255 bytes");
        }
        if !text.starts_with('/') {
            return Err("must begin with a slash, such as /queues");
        }
        let path = text.strip_suffix('/').unwrap_or(text);
        if path.is_empty() {
            return Ok(None);
        }
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let is_segment = |segment: &str| {
            !segment.is_empty()
                && segment.bytes().all(is_plain)
                && segment != "."
                && segment != ".."
        };
        match path.split('/').skip(1).all(is_segment) {
            true => Ok(Some(BasePath(path.into()))),
            false => Err("must consist of segments of letters, digits and -._~, such as /queues"),
        }
    }

    /// The base path of the request with these extensions.
    pub fn of(extensions: &axum::http::Extensions) -> Option<&BasePath> {
        extensions.get()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Removes this path from the address of a request, and records in the extensions the path that clients see in
    /// front. A request outside of this path keeps its address: a health check, or a request whose proxy has removed
    /// the path.
    pub fn apply(&self, request: &mut Request) {
        let rest = self.rest(request.uri());
        let by_proxy = request.extensions().get::<BasePath>();
        let base = match (by_proxy, &rest) {
            // The proxy has removed a path that is before this one.
            (Some(BasePath(outer)), Some(_)) => BasePath(format!("{outer}{}", self.0).into()),
            (Some(outer), None) => outer.clone(),
            (None, _) => self.clone(),
        };
        request.extensions_mut().insert(base);
        if let Some(rest) = rest {
            *request.uri_mut() = rest;
        }
    }

    /// The address without this path; `None` if it is not below this path.
    pub fn rest(&self, uri: &Uri) -> Option<Uri> {
        let path = uri.path().strip_prefix(&*self.0)?;
        if !path.is_empty() && !path.starts_with('/') {
            return None;
        }
        let path = if path.is_empty() { "/" } else { path };
        let rest = match uri.query() {
            Some(query) => PathAndQuery::try_from(format!("{path}?{query}")),
            None => PathAndQuery::try_from(path),
        };
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = Some(rest.ok()?);
        Uri::from_parts(parts).ok()
    }
}

impl fmt::Display for BasePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn parsed(text: &str) -> BasePath {
        BasePath::parse(text).unwrap().unwrap()
    }

    #[test]
    fn a_base_path_is_a_plain_path() {
        for (text, expected) in [
            ("/", None),
            ("/queues", Some("/queues")),
            ("/queues/", Some("/queues")),
            ("/a/b-c_d.e~1", Some("/a/b-c_d.e~1")),
        ] {
            let base = BasePath::parse(text).unwrap();
            assert_eq!(base.as_ref().map(BasePath::as_str), expected, "{text}");
        }
        for text in [
            "",
            "queues",
            "//",
            "//host",
            "/a//b",
            "/a/../b",
            "/.",
            "/a b",
            "/a%2f",
            "/a?b",
            "/a#b",
            "/a\\b",
            "/\"",
            "/<",
            "/ä",
            "https://host/queues",
        ] {
            assert!(BasePath::parse(text).is_err(), "{text}");
        }
        for (bytes, is_valid) in [(254, true), (255, true), (256, false)] {
            let text = format!("/{}", "a".repeat(bytes - 1));
            assert_eq!(BasePath::parse(&text).is_ok(), is_valid, "{bytes} bytes");
        }
    }

    #[test]
    fn a_request_below_the_base_path_loses_it_once() {
        let base = parsed("/queues");
        for (address, by_proxy, rest, seen) in [
            ("/queues/ui?a=/queues", None, "/ui?a=/queues", "/queues"),
            ("/queues", None, "/", "/queues"),
            ("/queues?x", None, "/?x", "/queues"),
            ("/queues/queues/a%2Fb", None, "/queues/a%2Fb", "/queues"),
            ("/queuesx", None, "/queuesx", "/queues"),
            ("/health", None, "/health", "/queues"),
            ("http://host/queues/ui", None, "http://host/ui", "/queues"),
            ("/ui", Some("/outer"), "/ui", "/outer"),
            ("/queues/ui", Some("/outer"), "/ui", "/outer/queues"),
        ] {
            let mut request = Request::new(Body::empty());
            *request.uri_mut() = address.parse().unwrap();
            if let Some(outer) = by_proxy {
                request.extensions_mut().insert(parsed(outer));
            }
            base.apply(&mut request);
            assert_eq!(request.uri().to_string(), rest, "{address}");
            let found = BasePath::of(request.extensions()).unwrap();
            assert_eq!(found.as_str(), seen, "{address}");
        }
    }
}
