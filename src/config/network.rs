//! Settings of connections and of the proxies in front of the server.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use ipnet::{IpNet, Ipv4Net};

use crate::http::{Limits, Proxies, Tls};
use crate::request::BasePath;

/// Maximum of `--hsts`: two years, in seconds.
const HSTS_MAX_S: i64 = 63_072_000;

/// Connections, and proxies in front of the server.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connections")]
pub struct Network {
    /// Address and port to listen on for qless clients that use the Redis protocol. Without this flag, they cannot
    /// connect.
    #[arg(long, env = "SWITCHYARD_REDIS_LISTEN", value_name = "ADDRESS:PORT")]
    pub redis_listen: Option<SocketAddr>,
    /// Address or network of a reverse proxy. The server takes the client's address, the scheme, the host and the base
    /// path from its headers X-Forwarded-For, -Proto, -Host and -Prefix or Forwarded, and ignores these headers from
    /// all other peers. Repeatable, or separated by commas.
    #[arg(
        long = "trusted-proxy",
        env = "SWITCHYARD_TRUSTED_PROXY",
        value_name = "CIDR"
    )]
    #[arg(value_delimiter = ',', value_parser = cidr)]
    pub trusted_proxies: Vec<IpNet>,
    /// Path of the server on its proxy, such as /queues. The server removes it from the beginning of request paths and
    /// adds it to the links of the dashboard [default: none].
    #[arg(long, env = "SWITCHYARD_BASE_PATH", value_name = "PATH")]
    #[arg(value_parser = base_path)]
    pub base_path: Option<String>,
    /// File with the TLS certificate in PEM format, followed by the certificates of its issuers. The server then
    /// accepts only HTTPS. SIGHUP reloads certificate and key.
    #[arg(long, env = "SWITCHYARD_TLS_CERT", value_name = "FILE")]
    #[arg(requires = "tls_key")]
    pub tls_cert: Option<String>,
    /// File with the unencrypted private key of the TLS certificate in PEM format.
    #[arg(long, env = "SWITCHYARD_TLS_KEY", value_name = "FILE")]
    #[arg(requires = "tls_cert")]
    pub tls_key: Option<String>,
    /// Tell browsers to use only HTTPS for this host, for this many seconds (Strict-Transport-Security). Without a
    /// value, for one year. 0 cancels it in browsers.
    #[arg(long, env = "SWITCHYARD_HSTS", value_name = "SECONDS")]
    #[arg(num_args = 0..=1, default_missing_value = "31536000")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=HSTS_MAX_S))]
    pub hsts: Option<u32>,
    /// Maximum number of open connections; with --redis-listen, of each of the two listeners. Beyond it, the server
    /// closes connections that wait for their client [default: three quarters of the limit on open files, with
    /// --redis-listen three eighths; at most 16,384].
    #[arg(long, env = "SWITCHYARD_MAX_CONNECTIONS", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub max_connections: Option<u32>,
    /// Maximum number of open connections per client address; an IPv6 /64 network counts as one [default: half of
    /// --max-connections].
    #[arg(long, env = "SWITCHYARD_MAX_CONNECTIONS_PER_ADDRESS", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub max_connections_per_address: Option<u32>,
    /// For tests: seconds that replace all time limits of a connection.
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
                transaction: time,
                ..limits
            };
        }
        limits
    }

    /// How many long polls may wait at once, so that connections are left for other requests: three quarters of them.
    pub fn polls(&self) -> usize {
        let limits = match self.redis_listen {
            Some(_) => self.limits().of_two(),
            None => self.limits(),
        };
        (limits.connections / 4 * 3).max(1)
    }

    /// The certificate and key of HTTPS, if they are configured.
    ///
    /// # Errors
    /// See [`Tls::load`].
    pub fn tls(&self) -> Result<Option<Arc<Tls>>, String> {
        match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Tls::load(certificate, key).map(Some),
            _ => Ok(None),
        }
    }

    /// Seconds of `Strict-Transport-Security`.
    ///
    /// # Errors
    /// If no request can arrive over HTTPS.
    pub fn hsts(&self) -> Result<Option<u32>, String> {
        if self.hsts.is_some() && self.tls_cert.is_none() && self.trusted_proxies.is_empty() {
            let why = "--hsts needs HTTPS: set --tls-cert and --tls-key, or --trusted-proxy";
            return Err(why.to_owned());
        }
        Ok(self.hsts)
    }

    /// The proxies that are trusted.
    pub fn proxies(&self) -> Proxies {
        Proxies(self.trusted_proxies.clone())
    }

    /// The path below which clients reach the server.
    pub fn base_path(&self) -> Option<BasePath> {
        let path = self.base_path.as_deref()?;
        BasePath::parse(path).ok().flatten()
    }
}

fn base_path(text: &str) -> Result<String, &'static str> {
    BasePath::parse(text).map(|_| text.to_owned())
}

fn cidr(text: &str) -> Result<IpNet, &'static str> {
    let text = text.trim();
    let address = text.parse::<IpAddr>().map(IpNet::from);
    let network = text.parse().or(address);
    let network = network.map_err(|_| "expected an IP address or a network such as 10.0.0.0/8");
    network.map(canonical)
}

/// An IPv4 network that is written as an IPv6 one (`::ffff:10.0.0.0/104`), as IPv4: peers are compared in that form.
fn canonical(network: IpNet) -> IpNet {
    let mapped = match network {
        IpNet::V6(v6) => v6
            .addr()
            .to_ipv4_mapped()
            .zip(v6.prefix_len().checked_sub(96)),
        IpNet::V4(_) => None,
    };
    let v4 = mapped.and_then(|(address, bits)| Ipv4Net::new(address, bits).ok());
    v4.map_or(network, IpNet::V4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_network_is_one_of_ipv4() {
        for (text, expected) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("::ffff:192.0.2.1", "192.0.2.1/32"),
            ("::ffff:0:0/96", "0.0.0.0/0"),
            ("::/0", "::/0"),
            ("fd00::/8", "fd00::/8"),
        ] {
            assert_eq!(cidr(text).unwrap().to_string(), expected, "{text}");
        }
        for wrong in ["", "10.0.0.0/33", "::/129", "proxy"] {
            assert!(cidr(wrong).is_err(), "{wrong}");
        }
        let proxies = Proxies(vec![cidr("::ffff:10.0.0.0/104").unwrap()]);
        assert!(proxies.trust("10.1.2.3".parse().unwrap()));
        assert!(proxies.trust("::ffff:10.1.2.3".parse().unwrap()));
        assert!(!proxies.trust("11.0.0.1".parse().unwrap()));
    }
}
