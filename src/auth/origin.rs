//! Whether a browser sent a request on behalf of a page of another site.

use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The origin of a request, from its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOrigin {
    /// A page of this server, or the user (address bar, bookmark).
    SameOrigin,
    /// A page of another site.
    CrossSite,
    /// Unknown: the client is not a browser, or it is a browser that follows a link over plain HTTP.
    Unknown,
}

impl RequestOrigin {
    /// Browsers send `Sec-Fetch-Site` over HTTPS and to loopback, and `Origin` with every form. A page over plain HTTP
    /// counts as another site than the same host over HTTPS, because anyone on the network can change it. A request
    /// that is not known to use HTTPS can still come from an HTTPS page, through a proxy that is not trusted.
    pub fn of(headers: &HeaderMap, uri: &Uri, is_https: bool) -> RequestOrigin {
        let text = |name: HeaderName| headers.get(name).map(HeaderValue::to_str);
        let is_same_origin = match (text(SEC_FETCH_SITE), text(header::ORIGIN)) {
            (Some(site), _) => matches!(site, Ok("same-origin" | "none")),
            (None, Some(Ok(origin))) => {
                // HTTP/2 has no Host header but an authority.
                let host = match uri.authority() {
                    Some(authority) => Some(authority.as_str()),
                    None => text(header::HOST).and_then(Result::ok),
                };
                let plain = origin.strip_prefix("http://").filter(|_| !is_https);
                let origin = origin.strip_prefix("https://").or(plain);
                origin.is_some() && origin == host
            }
            (None, Some(Err(_))) => false,
            (None, None) => return RequestOrigin::Unknown,
        };
        if is_same_origin {
            RequestOrigin::SameOrigin
        } else {
            RequestOrigin::CrossSite
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(headers: &[(&'static str, &'static str)]) -> RequestOrigin {
        over(false, headers)
    }

    fn over(is_https: bool, headers: &[(&'static str, &'static str)]) -> RequestOrigin {
        let headers = headers
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect();
        RequestOrigin::of(&headers, &Uri::from_static("/ui/fn/retry"), is_https)
    }

    #[test]
    fn requests_of_own_pages_have_the_same_origin() {
        for headers in [
            &[("sec-fetch-site", "same-origin"), ("host", "q:3000")][..],
            &[("sec-fetch-site", "none")],
            &[("origin", "http://q:3000"), ("host", "q:3000")],
            &[("origin", "https://q.example"), ("host", "q.example")],
        ] {
            assert_eq!(origin(headers), RequestOrigin::SameOrigin, "{headers:?}");
        }
    }

    #[test]
    fn requests_of_other_sites_are_cross_site() {
        for headers in [
            &[
                ("sec-fetch-site", "cross-site"),
                ("origin", "http://q:3000"),
                ("host", "q:3000"),
            ][..],
            &[("sec-fetch-site", "same-site"), ("host", "q:3000")],
            &[("origin", "http://evil.example"), ("host", "q:3000")],
            &[("origin", "http://q:3001"), ("host", "q:3000")],
            &[("origin", "null"), ("host", "q:3000")],
            &[("origin", "null")],
        ] {
            assert_eq!(origin(headers), RequestOrigin::CrossSite, "{headers:?}");
        }
    }

    #[test]
    fn over_https_a_plain_page_of_the_same_host_is_cross_site() {
        let plain = [("origin", "http://q.example"), ("host", "q.example")];
        let secure = [("origin", "https://q.example"), ("host", "q.example")];
        assert_eq!(over(true, &plain), RequestOrigin::CrossSite);
        assert_eq!(over(true, &secure), RequestOrigin::SameOrigin);
        assert_eq!(over(false, &secure), RequestOrigin::SameOrigin);
    }

    #[test]
    fn requests_without_both_headers_have_an_unknown_origin() {
        assert_eq!(origin(&[]), RequestOrigin::Unknown);
        assert_eq!(origin(&[("host", "q:3000")]), RequestOrigin::Unknown);
    }
}
