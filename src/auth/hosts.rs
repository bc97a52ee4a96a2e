//! The hosts that a request may name.
//!
//! A browser lets a page read everything of the page's own origin, and an origin is a name, not an address. If the
//! owner of a name points it at this server (DNS rebinding), the page becomes same-origin with the server. It cannot do
//! that with an IP address or with `localhost`, and the browser always sends the name as the host.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use axum::http::{Request, Version, header};

use super::Rejected;

/// The hosts that requests may name.
#[derive(Clone, Debug)]
pub enum Hosts {
    /// Every host: all APIs require credentials, which pages of other origins lack.
    Any,
    /// IP addresses, `localhost`, and these names; each with any port.
    Only(Vec<String>),
}

impl Default for Hosts {
    fn default() -> Self {
        Hosts::Only(Vec::new())
    }
}

impl Hosts {
    /// Checks the host of a request. HTTP/1.0 requests may lack one: no browser sends them, but health checks do.
    ///
    /// # Errors
    /// If the host is missing, ambiguous or not allowed.
    pub fn check<B>(&self, request: &Request<B>) -> Result<(), Rejected> {
        let mut headers = request.headers().get_all(header::HOST).iter();
        let (host, second) = (headers.next(), headers.next());
        if second.is_some() {
            return Err(Rejected::SeveralHosts);
        }
        // The absolute form of HTTP/1.1, or `:authority` of HTTP/2.
        let authority = request.uri().authority();
        if host.is_none() && authority.is_none() && request.version() != Version::HTTP_10 {
            return Err(Rejected::NoHost);
        }
        let is_allowed = host.is_none_or(|host| self.allow(host.as_bytes()))
            && authority.is_none_or(|authority| self.allow(authority.as_str().as_bytes()));
        if is_allowed {
            Ok(())
        } else {
            Err(Rejected::UnknownHost)
        }
    }

    fn allow(&self, host: &[u8]) -> bool {
        let Hosts::Only(names) = self else {
            return true;
        };
        let Ok(host) = str::from_utf8(host) else {
            return false;
        };
        if is_address(host) {
            return true;
        }
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            Some(_) => return false,
            None => host,
        };
        let name = name.strip_suffix('.').unwrap_or(name);
        let is = |allowed: &str| allowed.eq_ignore_ascii_case(name);
        is("localhost") || names.iter().any(|allowed| is(allowed))
    }
}

/// Whether this is an IP address, with or without a port.
fn is_address(host: &str) -> bool {
    let bracketed = |host: &str| {
        let inside = host.strip_prefix('[')?.strip_suffix(']')?;
        inside.parse::<Ipv6Addr>().ok()
    };
    host.parse::<SocketAddr>().is_ok()
        || host.parse::<Ipv4Addr>().is_ok()
        || bracketed(host).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(names: &[&str]) -> Hosts {
        Hosts::Only(names.iter().map(|&name| name.to_owned()).collect())
    }

    #[test]
    fn addresses_localhost_and_allowed_names_are_hosts() {
        let hosts = only(&["jobs.example"]);
        for host in [
            "127.0.0.1",
            "127.0.0.1:3000",
            "10.1.2.3:80",
            "[::1]",
            "[::1]:3000",
            "localhost",
            "LOCALHOST:3000",
            "localhost.:3000",
            "jobs.example",
            "Jobs.Example:443",
        ] {
            assert!(hosts.allow(host.as_bytes()), "{host}");
        }
        for host in [
            "",
            ":3000",
            "evil.example",
            "evil.example:3000",
            "jobs.example.evil.example",
            "x.jobs.example",
            "jobs.example:x",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.1:x",
            "user@127.0.0.1",
            "::1",
            "[::1",
            "[evil]:3000",
            "2130706433",
        ] {
            assert!(!hosts.allow(host.as_bytes()), "{host}");
            assert!(Hosts::Any.allow(host.as_bytes()), "{host}");
        }
        assert!(!hosts.allow(b"\xff"));
    }

    #[test]
    fn a_request_names_one_host() {
        let check = |version, uri: &str, hosts: &[&str]| {
            let mut request = Request::builder().version(version).uri(uri);
            for host in hosts {
                request = request.header(header::HOST, *host);
            }
            Hosts::default().check(&request.body(()).unwrap())
        };
        let (old, new, two) = (Version::HTTP_10, Version::HTTP_11, Version::HTTP_2);
        assert_eq!(check(old, "/", &[]), Ok(()));
        assert_eq!(check(new, "/", &[]), Err(Rejected::NoHost));
        assert_eq!(check(two, "/", &[]), Err(Rejected::NoHost));
        assert_eq!(check(new, "/", &["localhost"]), Ok(()));
        assert_eq!(check(old, "/", &["evil"]), Err(Rejected::UnknownHost));
        let several = check(new, "/", &["localhost", "localhost"]);
        assert_eq!(several, Err(Rejected::SeveralHosts));
        assert_eq!(check(two, "http://[::1]:1/", &[]), Ok(()));
        let evil = check(two, "http://evil/", &["localhost"]);
        assert_eq!(evil, Err(Rejected::UnknownHost));
        let evil = check(new, "http://localhost/", &["evil"]);
        assert_eq!(evil, Err(Rejected::UnknownHost));
    }
}
