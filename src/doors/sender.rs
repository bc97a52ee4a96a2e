//! Whose page made a browser send a request.

use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Who sent a request, as far as the request tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// A page of ours, or the person at the browser's keyboard.
    Ours,
    /// A page of another site.
    AnotherSite,
    /// It does not say: no browser, or an old one that follows a link.
    Unknown,
}

impl Sender {
    /// Browsers send `Sec-Fetch-Site` over HTTPS and to this machine, and `Origin` with every form. A plain page is
    /// another site than the same host over HTTPS, because anyone on the network can change it. A request that is not
    /// known to use HTTPS may come from an HTTPS page all the same: through a proxy that is not trusted.
    pub fn of(headers: &HeaderMap, uri: &Uri, is_https: bool) -> Sender {
        let text = |name: HeaderName| headers.get(name).map(HeaderValue::to_str);
        let is_ours = match (text(SEC_FETCH_SITE), text(header::ORIGIN)) {
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
            (None, None) => return Sender::Unknown,
        };
        if is_ours {
            Sender::Ours
        } else {
            Sender::AnotherSite
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(headers: &[(&'static str, &'static str)]) -> Sender {
        over(false, headers)
    }

    fn over(is_https: bool, headers: &[(&'static str, &'static str)]) -> Sender {
        let headers = headers
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect();
        Sender::of(&headers, &Uri::from_static("/ui/fn/retry"), is_https)
    }

    #[test]
    fn our_own_pages_are_ours() {
        for headers in [
            &[("sec-fetch-site", "same-origin"), ("host", "q:3000")][..],
            &[("sec-fetch-site", "none")],
            &[("origin", "http://q:3000"), ("host", "q:3000")],
            &[("origin", "https://q.example"), ("host", "q.example")],
        ] {
            assert_eq!(sender(headers), Sender::Ours, "{headers:?}");
        }
    }

    #[test]
    fn nobody_elses_are() {
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
            assert_eq!(sender(headers), Sender::AnotherSite, "{headers:?}");
        }
    }

    #[test]
    fn over_https_a_plain_page_of_the_same_host_is_another_site() {
        let plain = [("origin", "http://q.example"), ("host", "q.example")];
        let secure = [("origin", "https://q.example"), ("host", "q.example")];
        assert_eq!(over(true, &plain), Sender::AnotherSite);
        assert_eq!(over(true, &secure), Sender::Ours);
        assert_eq!(over(false, &secure), Sender::Ours);
    }

    #[test]
    fn who_says_nothing_is_unknown() {
        assert_eq!(sender(&[]), Sender::Unknown);
        assert_eq!(sender(&[("host", "q:3000")]), Sender::Unknown);
    }
}
