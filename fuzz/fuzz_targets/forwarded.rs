//! Parses the input as the headers of a request, one per line. Checks the handling of proxies, hosts and origins.
//!
//! `cargo fuzz run forwarded` (see `fuzz/Cargo.toml`).
#![no_main]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderName, HeaderValue, header};
use auth::hosts::Hosts;
use auth::origin::RequestOrigin;
use libfuzzer_sys::fuzz_target;
use http::proxies::Proxies;
use request::BasePath;
use request::client::{ClientAddress, Https};

#[allow(dead_code, reason = "the server uses all of it")]
#[path = "../../src/request"]
mod request {
    pub mod base_path;
    pub mod client;

    pub use base_path::BasePath;
}

#[allow(dead_code, reason = "the server uses all of it")]
#[path = "../../src/http"]
mod http {
    pub mod proxies;
}

#[allow(dead_code, reason = "the server uses all of it")]
#[path = "../../src/auth"]
mod auth {
    pub mod hosts;
    pub mod origin;

    /// Why a request is rejected; a subset of the server's reasons.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Rejected {
        NoHost,
        SeveralHosts,
        UnknownHost,
    }
}

const PROXY: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const STRANGER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// A request with these header lines.
fn request(data: &[u8]) -> Request {
    let mut request = Request::new(Body::empty());
    for line in data.split(|byte| *byte == b'\n') {
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let (Some(name), Some(value)) = (parts.next(), parts.next()) else {
            continue;
        };
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name), HeaderValue::from_bytes(value))
        {
            request.headers_mut().append(name, value);
        }
    }
    request
}

/// The request after the server has applied the headers of this peer.
fn read(peer: IpAddr, is_tls: bool, data: &[u8]) -> Request {
    let proxies = Proxies(vec!["10.0.0.0/8".parse().unwrap()]);
    let mut request = request(data);
    proxies.read(peer, is_tls, &mut request);
    request
        .extensions_mut()
        .insert(ConnectInfo(SocketAddr::new(peer, 1)));
    request
}

#[path = "../memory.rs"]
mod memory;

fuzz_target!(|data: &[u8]| {
    let _memory = memory::check();
    for is_tls in [false, true] {
        let plain = read(STRANGER, is_tls, data);
        assert_eq!(ClientAddress::of(plain.extensions()), Some(STRANGER));
        assert_eq!(Https::is_set(plain.extensions()), is_tls);
        assert_eq!(plain.headers(), request(data).headers());
        assert_eq!(BasePath::of(plain.extensions()), None);
    }
    let request = read(PROXY, false, data);
    let client = ClientAddress::of(request.extensions()).unwrap();
    assert_eq!(client, client.to_canonical());
    if let Some(base) = BasePath::of(request.extensions()) {
        assert_eq!(BasePath::parse(base.as_str()), Ok(Some(base.clone())));
    }
    let is_allowed = Hosts::default().check(&request).is_ok();
    let mut hosts = request.headers().get_all(header::HOST).iter();
    if let (true, Some(host)) = (is_allowed, hosts.next()) {
        let host = host.to_str().unwrap();
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let is_local = name.trim_end_matches('.').eq_ignore_ascii_case("localhost");
        let is_address = host.parse::<SocketAddr>().is_ok()
            || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        assert!(is_local || is_address, "{host}");
    }
    let sender = |is_https| RequestOrigin::of(request.headers(), request.uri(), is_https);
    // A request that is accepted over HTTPS is also accepted over HTTP.
    if sender(true) == RequestOrigin::SameOrigin {
        assert_eq!(sender(false), RequestOrigin::SameOrigin);
    }
});
