//! Settings of connections and of the proxies in front of the server.

use std::net::IpAddr;
use std::time::Duration;

use clap::Args;
use ipnet::IpNet;

use crate::server::{Limits, Proxies};

/// Connections, and proxies in front of the server.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connections")]
pub struct Network {
    /// Address or network of a reverse proxy whose X-Forwarded-For, -Proto, -Host and Forwarded headers are used.
    /// Repeat it, or separate several with commas. From all other peers these headers are ignored.
    #[arg(
        long = "trusted-proxy",
        env = "SWITCHYARD_TRUSTED_PROXY",
        value_name = "CIDR"
    )]
    #[arg(value_delimiter = ',', value_parser = cidr)]
    pub trusted_proxies: Vec<IpNet>,
    /// Most open connections [default: three quarters of the open files the system permits, up to 16384].
    #[arg(long, env = "SWITCHYARD_MAX_CONNECTIONS", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub max_connections: Option<u32>,
    /// Most open connections of one client address, an IPv6 network of 64 bits counted as one [default: half of all].
    #[arg(long, env = "SWITCHYARD_MAX_CONNECTIONS_PER_ADDRESS", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub max_connections_per_address: Option<u32>,
    /// For tests: seconds that replace every limit on the time of a connection.
    #[arg(long, hide = true)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub connection_timeout: Option<u16>,
}

impl Network {
    /// The limits on connections.
    pub fn limits(&self) -> Limits {
        let count = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
        let mut limits = match self.max_connections {
            Some(connections) => Limits::with_connections(count(connections)),
            None => Limits::default(),
        };
        if let Some(connections) = self.max_connections_per_address {
            limits.per_address = count(connections);
        }
        if let Some(seconds) = self.connection_timeout {
            let time = Duration::from_secs(u64::from(seconds));
            limits = Limits {
                header: time,
                idle: time,
                body: time,
                stalled: time,
                ..limits
            };
        }
        limits
    }

    /// The proxies that are trusted.
    pub fn proxies(&self) -> Proxies {
        Proxies(self.trusted_proxies.clone())
    }
}

fn cidr(text: &str) -> Result<IpNet, &'static str> {
    let text = text.trim();
    let address = text.parse::<IpAddr>().map(IpNet::from);
    let network = text.parse().or(address);
    network.map_err(|_| "expected an IP address or a network such as 10.0.0.0/8")
}
