//! The client of a request: its address, and whether it uses HTTPS.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use axum::extract::ConnectInfo;
use axum::http::Extensions;

/// The address of a request's client: the connection's peer, or the client that a trusted proxy names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

impl ClientAddress {
    /// The client of the request with these extensions; `None` if it did not come over a connection.
    pub fn of(extensions: &Extensions) -> Option<IpAddr> {
        if let Some(ClientAddress(address)) = extensions.get() {
            return Some(*address);
        }
        let peer = extensions.get::<ConnectInfo<SocketAddr>>();
        peer.map(|ConnectInfo(peer)| peer.ip().to_canonical())
    }
}

/// The client uses HTTPS, on the connection itself or to a trusted proxy.
#[derive(Clone, Copy, Debug)]
pub struct Https;

impl Https {
    /// Whether the request with these extensions came over HTTPS.
    pub fn is_set(extensions: &Extensions) -> bool {
        extensions.get::<Https>().is_some()
    }
}

/// The network of the client. Requests that did not come over a connection share one.
pub fn network_of(from: Option<IpAddr>) -> IpAddr {
    network(from.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)))
}

/// The network that counts as one client: an IPv4 address, or an IPv6 network of 64 bits.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) => {
            let bits = ip.to_bits() & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from_bits(bits))
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}
