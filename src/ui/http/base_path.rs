//! Adds the path below which clients reach the server ([`BasePath`]) to the links of pages, to redirects and to
//! cookies. The code of the dashboard inside this layer knows only addresses that begin with `/ui`.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use memchr::{memchr, memchr2, memmem};

use crate::engine::RESPONSE_BYTES_MAX;
use crate::request::BasePath;
use crate::ui::http::is_page;

/// The attributes that contain addresses.
const LINKS: [&[u8]; 4] = [b"href", b"action", b"formaction", b"src"];

/// Adds the base path to a response, if the request has one.
pub async fn add(request: Request, next: Next) -> Response {
    let Some(base) = BasePath::of(request.extensions()).cloned() else {
        return next.run(request).await;
    };
    let (mut parts, body) = next.run(request).await.into_parts();
    add_to_headers(&mut parts.headers, &base);
    if !is_page(&parts.headers) {
        return Response::from_parts(parts, body);
    }
    let Ok(page) = to_bytes(body, RESPONSE_BYTES_MAX).await else {
        let why = "The page is too large.\n";
        return (StatusCode::INTERNAL_SERVER_ERROR, why).into_response();
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    let page = with_base(&page, base.as_str().as_bytes());
    Response::from_parts(parts, Body::from(page))
}

/// Adds the base path to a redirect and to the paths of cookies.
fn add_to_headers(headers: &mut HeaderMap, base: &BasePath) {
    if let Some(address) = headers.get(header::LOCATION)
        && is_local(address.as_bytes())
        && let Ok(address) =
            HeaderValue::from_bytes(&[base.as_str().as_bytes(), address.as_bytes()].concat())
    {
        headers.insert(header::LOCATION, address);
    }
    if let header::Entry::Occupied(mut cookies) = headers.entry(header::SET_COOKIE) {
        for cookie in cookies.iter_mut() {
            let with_base = cookie
                .to_str()
                .ok()
                .map(|cookie| cookie.replacen("; Path=/", &format!("; Path={base}/"), 1))
                .and_then(|cookie| HeaderValue::try_from(cookie).ok());
            if let Some(with_base) = with_base {
                *cookie = with_base;
            }
        }
    }
}

/// Whether an address is a path on this server.
fn is_local(address: &[u8]) -> bool {
    address.starts_with(b"/") && !address.starts_with(b"//")
}

/// A page with the base path before each local address in [`LINKS`]. The addresses of Leptos' scripts already have it.
/// The text of a page, where jobs can contain anything, stays as it is: a tag begins with `<`, which is escaped in
/// text.
fn with_base(page: &[u8], base: &[u8]) -> Vec<u8> {
    let scripts = [base, b"/ui/pkg/"].concat();
    let mut written = Vec::with_capacity(page.len() + page.len() / 16);
    let mut rest = page;
    while let Some(at) = memchr(b'<', rest) {
        let (text, tag) = rest.split_at(at);
        written.extend_from_slice(text);
        let (end, name) = tag_name(tag);
        let Some(attributes) = tag.get(end..) else {
            rest = tag;
            break;
        };
        written.extend_from_slice(tag.get(..end).unwrap_or_default());
        rest = match name {
            Some(name) => {
                let after = copy_attributes(attributes, base, &scripts, &mut written);
                // The content of a script is not HTML.
                match name {
                    b"script" | b"style" => copy_until(after, b"</", &mut written),
                    _ => after,
                }
            }
            None if tag.starts_with(b"<!--") => copy_until(attributes, b"-->", &mut written),
            None => attributes,
        };
    }
    written.extend_from_slice(rest);
    written
}

/// The length of `<` and the name of a tag, and the name; no name for an end tag, a comment or a declaration.
fn tag_name(tag: &[u8]) -> (usize, Option<&[u8]>) {
    let name = tag.get(1..).unwrap_or_default();
    let length = name
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-')
        .count();
    match name.get(..length) {
        Some(name) if length > 0 => (1 + length, Some(name)),
        _ => (1, None),
    }
}

/// Copies the text before a mark. Returns the rest, which begins with the mark.
fn copy_until<'a>(text: &'a [u8], mark: &[u8], to: &mut Vec<u8>) -> &'a [u8] {
    let at = memmem::find(text, mark).unwrap_or(text.len());
    let (before, rest) = text.split_at(at);
    to.extend_from_slice(before);
    rest
}

/// Copies the attributes of a tag, up to its `>`, with the base path in addresses. Returns the rest.
fn copy_attributes<'a>(
    mut rest: &'a [u8],
    base: &[u8],
    scripts: &[u8],
    to: &mut Vec<u8>,
) -> &'a [u8] {
    loop {
        let Some(at) = memchr2(b'"', b'>', rest) else {
            to.extend_from_slice(rest);
            return &[];
        };
        let (before, after) = rest.split_at(at);
        to.extend_from_slice(before);
        if after.starts_with(b">") {
            return after;
        }
        let value = after.get(1..).unwrap_or_default();
        let end = memchr(b'"', value).map_or(value.len(), |end| end + 1);
        let (value, after) = value.split_at(end);
        to.push(b'"');
        if is_link(before) && is_local(value) && !value.starts_with(scripts) {
            to.extend_from_slice(base);
        }
        to.extend_from_slice(value);
        rest = after;
    }
}

/// Whether this text, which ends before the quotation mark of a value, names an attribute of [`LINKS`].
fn is_link(before: &[u8]) -> bool {
    let Some(name) = before.strip_suffix(b"=") else {
        return false;
    };
    LINKS.iter().any(|link| {
        let rest = name.strip_suffix(*link);
        rest.is_some_and(|rest| rest.last().is_some_and(u8::is_ascii_whitespace))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(page: &str) -> String {
        String::from_utf8(with_base(page.as_bytes(), b"/queues")).unwrap()
    }

    #[test]
    fn links_forms_and_files_get_the_base_path() {
        for (given, expected) in [
            (r#"<a href="/ui">x</a>"#, r#"<a href="/queues/ui">x</a>"#),
            (
                r#"<a class="x" href="/ui/jobs?q=a" id=b>x</a>"#,
                r#"<a class="x" href="/queues/ui/jobs?q=a" id=b>x</a>"#,
            ),
            (
                r#"<form method="post" action="/ui/fn/retry"><button formaction="/ui/x">"#,
                r#"<form method="post" action="/queues/ui/fn/retry"><button formaction="/queues/ui/x">"#,
            ),
            (
                r#"<!DOCTYPE html><!--<a href="/ui">--><link rel="icon" href="/ui/favicon.svg"><img src="/ui/x">"#,
                r#"<!DOCTYPE html><!--<a href="/ui">--><link rel="icon" href="/queues/ui/favicon.svg"><img src="/queues/ui/x">"#,
            ),
            (
                r#"<a title="a > b" href="/ui">"#,
                r#"<a title="a > b" href="/queues/ui">"#,
            ),
        ] {
            assert_eq!(page(given), expected);
        }
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        for same in [
            r#"<p>href="/ui" &lt;a href="/ui"&gt;</p>"#,
            r##"<a href="#top">"##,
            r#"<a href="//host/ui">"#,
            r#"<a href="https://host/ui">"#,
            r#"<a href="?page=2">"#,
            r#"<input name="back" value="/ui/jobs">"#,
            r#"<a data-href="/ui" xhref="/ui">"#,
            r#"<a title=" href=&quot;/ui&quot;">"#,
            r#"<link href="/queues/ui/pkg/1/switchyard.css">"#,
            r#"<script nonce="x">if (a<b) document.body.innerHTML = '<a href="/ui">';</script>"#,
            r#"<textarea name="meta">{"href": "/ui"}</textarea>"#,
            r#"<svg viewBox="0 0 1 1"><path d="M0 0"></path></svg>"#,
            "<",
            "<a href=\"/u",
            "<a",
            "text",
            "",
        ] {
            let expected = same.replace("<a href=\"/u", "<a href=\"/queues/u");
            let is_cut = same == "<a href=\"/u";
            assert_eq!(page(same), if is_cut { expected.as_str() } else { same });
        }
    }

    #[test]
    fn redirects_and_cookies_get_the_base_path() {
        let base = BasePath::parse("/queues").unwrap().unwrap();
        for (given, expected) in [
            ("/ui/jobs/a?b#c", "/queues/ui/jobs/a?b#c"),
            ("https://host/ui", "https://host/ui"),
            ("//host/ui", "//host/ui"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::LOCATION, HeaderValue::from_static(given));
            add_to_headers(&mut headers, &base);
            assert_eq!(headers[header::LOCATION], expected);
        }
        let mut headers = HeaderMap::new();
        for cookie in ["a=1; Path=/ui; Max-Age=1; HttpOnly", "b=; Path=/ui"] {
            headers.append(header::SET_COOKIE, HeaderValue::from_static(cookie));
        }
        add_to_headers(&mut headers, &base);
        let cookies: Vec<_> = headers.get_all(header::SET_COOKIE).iter().collect();
        let expected = [
            "a=1; Path=/queues/ui; Max-Age=1; HttpOnly",
            "b=; Path=/queues/ui",
        ];
        assert_eq!(cookies, expected);
    }
}
