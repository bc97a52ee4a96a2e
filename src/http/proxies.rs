//! Reads the client's address, scheme, host and base path from the headers of trusted proxies. The headers of other
//! peers are ignored.

use std::net::{IpAddr, SocketAddr};

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use ipnet::IpNet;

use crate::request::BasePath;
use crate::request::client::{ClientAddress, Https};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
/// The path that a proxy has removed from the beginning of the address.
const X_FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// Maximum number of hops that are read, from the last. A client can add any number before them.
const HOPS_MAX: usize = 32;

const HOST_BYTES_MAX: usize = 255;

/// The trusted proxies.
#[derive(Clone, Debug, Default)]
pub struct Proxies(pub Vec<IpNet>);

impl Proxies {
    /// Whether a peer at this address is a trusted proxy.
    pub fn trust(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Applies the headers of a trusted proxy: the client's address, scheme and base path become extensions, and the
    /// host replaces the `Host` header. If no header names a scheme, it is that of the connection.
    pub fn read(&self, peer: IpAddr, is_tls: bool, request: &mut Request) {
        let forwarded = self.by_proxy(peer, request.headers());
        if forwarded
            .as_ref()
            .and_then(|forwarded| forwarded.https)
            .unwrap_or(is_tls)
        {
            request.extensions_mut().insert(Https);
        }
        let Some(forwarded) = forwarded else {
            return;
        };
        if let Some(client) = forwarded.client {
            request.extensions_mut().insert(ClientAddress(client));
        }
        if let Some(host) = forwarded.host {
            request.headers_mut().insert(header::HOST, host);
        }
        if let Some(base_path) = forwarded.base_path {
            request.extensions_mut().insert(base_path);
        }
    }

    /// The forwarded facts, if the peer is a trusted proxy.
    fn by_proxy(&self, peer: IpAddr, headers: &HeaderMap) -> Option<Forwarded> {
        (!self.0.is_empty() && self.trust(peer)).then(|| self.forwarded(headers))?
    }

    /// The forwarded facts; `None` if the headers are malformed or contradict each other.
    fn forwarded(&self, headers: &HeaderMap) -> Option<Forwarded> {
        let hops = elements(headers, &header::FORWARDED);
        let hops: Vec<Option<Hop<'_>>> = hops.into_iter().map(Hop::parse).collect();
        let named = hops.iter().map(|hop| address(hop.as_ref()?.client?));
        let named = self.client(named.collect())?;
        let listed = elements(headers, &X_FORWARDED_FOR);
        let listed = self.client(listed.into_iter().map(address).collect())?;
        let (client, at) = match (named, listed) {
            // A proxy that sets only one of the headers may forward the client's value of the other, and the client
            // must not choose which hop counts.
            (Some(one), Some(other)) if one.0 != other.0 => return None,
            (Some(one), Some(other)) => (Some(one.0), one.1.min(other.1)),
            (Some(client), None) | (None, Some(client)) => (Some(client.0), client.1),
            (None, None) => (None, 0),
        };
        let of_hop = |texts: &[&str]| {
            let last = texts.len().checked_sub(1)?;
            texts
                .get(last - at.min(last))
                .map(|text| (*text).to_owned())
        };
        let hop = hops.iter().rev().nth(at).and_then(Option::as_ref);
        let scheme = of_hop(&elements(headers, &X_FORWARDED_PROTO));
        let scheme = scheme.or_else(|| hop?.scheme.map(str::to_owned));
        let host = of_hop(&elements(headers, &X_FORWARDED_HOST));
        let host = host.or_else(|| hop?.host.map(str::to_owned));
        Some(Forwarded {
            client,
            https: scheme.map(|scheme| scheme.eq_ignore_ascii_case("https")),
            host: host
                .filter(|host| is_host(host))
                .and_then(|host| HeaderValue::try_from(host).ok()),
            base_path: base_path(&elements(headers, &X_FORWARDED_PREFIX)),
        })
    }

    /// The client and its index from the end: the last hop that is not a trusted proxy, or else the first hop.
    /// `Some(None)` without hops; `None` if a hop after the client, or the client, has no address.
    #[expect(clippy::option_option, reason = "malformed is not the same as absent")]
    fn client(&self, hops: Vec<Option<IpAddr>>) -> Option<Option<(IpAddr, usize)>> {
        let mut found = None;
        for (at, hop) in hops.into_iter().rev().enumerate() {
            let hop = hop?;
            found = Some((hop, at));
            if !self.trust(hop) {
                break;
            }
        }
        Some(found)
    }
}

/// The facts about a request in the headers of a trusted proxy.
struct Forwarded {
    client: Option<IpAddr>,
    https: Option<bool>,
    host: Option<HeaderValue>,
    base_path: Option<BasePath>,
}

/// An element of `Forwarded` (RFC 7239).
#[derive(Default)]
struct Hop<'a> {
    client: Option<&'a str>,
    scheme: Option<&'a str>,
    host: Option<&'a str>,
}

impl<'a> Hop<'a> {
    fn parse(element: &'a str) -> Option<Hop<'a>> {
        let mut hop = Hop::default();
        for pair in element
            .split(';')
            .map(str::trim)
            .filter(|pair| !pair.is_empty())
        {
            let (name, value) = pair.split_once('=')?;
            let value = match value.strip_prefix('"') {
                Some(quoted) => quoted.strip_suffix('"')?,
                None => value,
            };
            if value.contains(['"', '\\']) {
                return None;
            }
            match name.to_ascii_lowercase().as_str() {
                "for" => hop.client = Some(value),
                "proto" => hop.scheme = Some(value),
                "host" => hop.host = Some(value),
                _ => {}
            }
        }
        Some(hop)
    }
}

/// The elements of a list header, in the order in which the proxies added them: the last ones, because the client can
/// add any number before them. One that is not text is empty, and therefore invalid: the client may have added it, so
/// it must not affect the others. Addresses and hosts contain no commas, so quoted commas need no handling.
fn elements<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Vec<&'a str> {
    let values = headers.get_all(name).iter().rev();
    let last_first = values.flat_map(|value| value.as_bytes().rsplit(|byte| *byte == b','));
    let text = |element| str::from_utf8(element).unwrap_or_default().trim();
    let mut elements: Vec<&str> = last_first.map(text).take(HOPS_MAX).collect();
    elements.reverse();
    elements
}

/// The address of a hop: with an optional port, and IPv6 with optional brackets.
fn address(text: &str) -> Option<IpAddr> {
    let address = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            let is_port = port.is_empty() || port.strip_prefix(':')?.parse::<u16>().is_ok();
            IpAddr::V6(Some(address).filter(|_| is_port)?.parse().ok()?)
        }
        None => match text.parse::<SocketAddr>() {
            Ok(address) => address.ip(),
            Err(_) => text.parse().ok()?,
        },
    };
    Some(address.to_canonical())
}

/// The path that the proxies have removed, outermost first; `None` if one of the values is not a base path.
fn base_path(removed: &[&str]) -> Option<BasePath> {
    let mut whole = String::new();
    for path in removed {
        if let Some(path) = BasePath::parse(path).ok()? {
            whole.push_str(path.as_str());
        }
    }
    BasePath::parse(&whole).ok().flatten()
}

fn is_host(host: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]_".contains(&byte);
    (1..=HOST_BYTES_MAX).contains(&host.len()) && host.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use axum::extract::ConnectInfo;

    use super::*;

    fn client(peer: &str, headers: &[(&'static str, &str)]) -> (String, bool, String) {
        let proxies = ["10.0.0.0/8", "fd00::/8"].map(|it| it.parse().unwrap());
        let proxies = Proxies(proxies.into());
        let peer: IpAddr = peer.parse().unwrap();
        let mut request = Request::new(axum::body::Body::empty());
        request
            .headers_mut()
            .insert("host", HeaderValue::from_static("inner"));
        for (name, value) in headers {
            // Each character is one byte.
            let bytes: Vec<u8> = value.chars().map(|it| u8::try_from(it).unwrap()).collect();
            let value = HeaderValue::from_bytes(&bytes).unwrap();
            request.headers_mut().append(*name, value);
        }
        proxies.read(peer, false, &mut request);
        request
            .extensions_mut()
            .insert(ConnectInfo(SocketAddr::new(peer, 1)));
        let address = ClientAddress::of(request.extensions()).unwrap().to_string();
        let host = request.headers()["host"].to_str().unwrap().to_owned();
        (address, Https::is_set(request.extensions()), host)
    }

    #[test]
    fn the_client_is_the_last_hop_that_is_not_a_trusted_proxy() {
        for (headers, expected) in [
            (&[][..], "10.0.0.1"),
            (&[("x-forwarded-for", "192.0.2.7")], "192.0.2.7"),
            (&[("x-forwarded-for", "6.6.6.6, 192.0.2.7")], "192.0.2.7"),
            (
                &[("x-forwarded-for", "6.6.6.6, 192.0.2.7,10.1.2.3")],
                "192.0.2.7",
            ),
            (
                &[
                    ("x-forwarded-for", "6.6.6.6"),
                    ("x-forwarded-for", "192.0.2.7"),
                ],
                "192.0.2.7",
            ),
            (&[("x-forwarded-for", "10.9.9.9, 10.1.2.3")], "10.9.9.9"),
            (&[("x-forwarded-for", "nonsense, 192.0.2.7")], "192.0.2.7"),
            (&[("x-forwarded-for", "\u{ff}, 192.0.2.7")], "192.0.2.7"),
            (
                &[
                    ("x-forwarded-for", "caf\u{c3}\u{a9}"),
                    ("x-forwarded-for", "192.0.2.7"),
                ],
                "192.0.2.7",
            ),
            (&[("forwarded", "for=\u{ff}, for=192.0.2.7")], "192.0.2.7"),
            (
                &[
                    ("x-forwarded-for", "192.0.2.7"),
                    ("x-forwarded-proto", "\u{ff}"),
                ],
                "192.0.2.7",
            ),
            (&[("x-forwarded-for", "192.0.2.7:4711")], "192.0.2.7"),
            (
                &[("x-forwarded-for", "2001:db8::7, fd00::1")],
                "2001:db8::7",
            ),
            (&[("x-forwarded-for", "[2001:db8::7]:4711")], "2001:db8::7"),
            (&[("x-forwarded-for", "::ffff:192.0.2.7")], "192.0.2.7"),
            (&[("forwarded", "for=192.0.2.7;proto=http")], "192.0.2.7"),
            (
                &[(
                    "forwarded",
                    "for=6.6.6.6, For=\"[2001:db8::7]:1\", for=10.1.2.3",
                )],
                "2001:db8::7",
            ),
            (&[("forwarded", "nonsense, for=192.0.2.7")], "192.0.2.7"),
            (
                &[
                    ("forwarded", "for=192.0.2.7"),
                    ("x-forwarded-for", "192.0.2.7"),
                ],
                "192.0.2.7",
            ),
        ] {
            assert_eq!(client("10.0.0.1", headers).0, expected, "{headers:?}");
            assert_eq!(client("11.0.0.1", headers).0, "11.0.0.1", "not trusted");
        }
    }

    #[test]
    fn the_scheme_is_that_of_the_connection_unless_a_trusted_proxy_names_another() {
        let proxies = Proxies(vec!["10.0.0.0/8".parse().unwrap()]);
        let is_https = |peer: [u8; 4], scheme: Option<&'static str>, is_tls| {
            let mut request = Request::new(axum::body::Body::empty());
            if let Some(scheme) = scheme {
                let scheme = HeaderValue::from_static(scheme);
                request.headers_mut().insert(X_FORWARDED_PROTO, scheme);
            }
            proxies.read(peer.into(), is_tls, &mut request);
            Https::is_set(request.extensions())
        };
        let (proxy, stranger) = ([10, 0, 0, 1], [11, 0, 0, 1]);
        for is_tls in [false, true] {
            assert_eq!(is_https(proxy, None, is_tls), is_tls);
            assert!(is_https(proxy, Some("https"), is_tls));
            assert!(!is_https(proxy, Some("http"), is_tls));
            assert_eq!(is_https(stranger, Some("https"), is_tls), is_tls);
            assert_eq!(is_https(stranger, Some("http"), is_tls), is_tls);
        }
    }

    #[test]
    fn malformed_or_contradictory_headers_are_ignored() {
        for headers in [
            &[
                ("x-forwarded-for", "nonsense"),
                ("x-forwarded-proto", "https"),
            ][..],
            &[("x-forwarded-for", "192.0.2.7, nonsense")],
            &[("x-forwarded-for", "")],
            &[("x-forwarded-for", "192.0.2.7,")],
            &[("x-forwarded-for", "192.0.2.7:99999")],
            &[("x-forwarded-for", "[192.0.2.7]")],
            &[("forwarded", "for=_hidden;proto=https")],
            &[("forwarded", "for=unknown")],
            &[("forwarded", "for=\"192.0.2.7")],
            &[("forwarded", "192.0.2.7")],
            &[
                ("forwarded", "for=6.6.6.6"),
                ("x-forwarded-for", "192.0.2.7"),
            ],
        ] {
            let expected = ("10.0.0.1".to_owned(), false, "inner".to_owned());
            assert_eq!(client("10.0.0.1", headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn a_client_cannot_hide_behind_many_hops() {
        for count in [0, 31, 32, 33, 1_000] {
            for (name, forged, added) in [
                ("x-forwarded-for", "6.6.6.6,", "192.0.2.7"),
                ("forwarded", "for=6.6.6.6,", "for=192.0.2.7"),
            ] {
                let hops = forged.repeat(count) + added;
                let expected = ("192.0.2.7".to_owned(), false, "inner".to_owned());
                assert_eq!(
                    client("10.0.0.1", &[(name, &hops)]),
                    expected,
                    "{name}: {count}"
                );
            }
        }
    }

    #[test]
    fn the_base_path_is_what_trusted_proxies_have_removed() {
        for (values, expected) in [
            (&["/queues"][..], Some("/queues")),
            (&["/queues/"], Some("/queues")),
            (&["/a, /b"], Some("/a/b")),
            (&["/a", "/b/c"], Some("/a/b/c")),
            (&["/"], None),
            (&[""], None),
            (&["//evil.example"], None),
            (&["https://evil.example"], None),
            (&["/a/../b"], None),
            (&["/a\"onclick=x"], None),
        ] {
            let proxies = Proxies(vec!["10.0.0.0/8".parse().unwrap()]);
            for (peer, is_trusted) in [([10, 0, 0, 1], true), ([11, 0, 0, 1], false)] {
                let mut request = Request::new(axum::body::Body::empty());
                for value in values {
                    let value = HeaderValue::from_static(value);
                    request.headers_mut().append(X_FORWARDED_PREFIX, value);
                }
                proxies.read(peer.into(), false, &mut request);
                let found = BasePath::of(request.extensions()).map(BasePath::as_str);
                let expected = expected.filter(|_| is_trusted);
                assert_eq!(found, expected, "{values:?}");
            }
        }
    }

    #[test]
    fn a_host_has_up_to_255_bytes() {
        for (bytes, is_taken) in [
            (0, false),
            (1, true),
            (254, true),
            (255, true),
            (256, false),
        ] {
            assert_eq!(is_host(&"h".repeat(bytes)), is_taken, "{bytes} bytes");
        }
    }

    #[test]
    fn scheme_and_host_are_those_of_the_clients_hop() {
        for (headers, https, host) in [
            (
                &[
                    ("x-forwarded-proto", "https"),
                    ("x-forwarded-host", "q.example"),
                ][..],
                true,
                "q.example",
            ),
            (&[("x-forwarded-proto", "HTTPS")], true, "inner"),
            // A header that the client sends does not shift the hops of another one.
            (
                &[
                    ("forwarded", "for=192.0.2.7, for=10.1.2.3"),
                    ("x-forwarded-for", "192.0.2.7"),
                    ("x-forwarded-proto", "https, http"),
                ],
                false,
                "inner",
            ),
            (
                &[
                    ("forwarded", "for=192.0.2.7;proto=http"),
                    ("x-forwarded-for", "192.0.2.7, 10.1.2.3"),
                    ("x-forwarded-proto", "https, http"),
                ],
                false,
                "inner",
            ),
            (&[("x-forwarded-proto", "http")], false, "inner"),
            (&[("x-forwarded-host", "evil/path")], false, "inner"),
            (
                &[("forwarded", "for=192.0.2.7;proto=https;host=q.example")],
                true,
                "q.example",
            ),
            (
                &[
                    ("x-forwarded-for", "192.0.2.7, 10.1.2.3"),
                    ("x-forwarded-proto", "https, http"),
                    ("x-forwarded-host", "evil.example, q.example, inner.example"),
                ],
                true,
                "q.example",
            ),
        ] {
            let (_, is_https, its) = client("10.0.0.1", headers);
            assert_eq!((is_https, its.as_str()), (https, host), "{headers:?}");
            let (_, is_https, its) = client("11.0.0.1", headers);
            assert_eq!((is_https, its.as_str()), (false, "inner"), "{headers:?}");
        }
    }
}
