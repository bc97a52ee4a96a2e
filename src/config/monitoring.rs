//! Settings of metrics, logs and traces.

use std::net::SocketAddr;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueEnum};

use super::Access;
use crate::auth::{Auth, is_loopback};
use crate::engine::COUNTED_QUEUES;
use crate::http::MetricsAccess;

/// Metrics, logs and traces.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Monitoring")]
pub struct Monitoring {
    /// Address and port of a second listener that serves only /metrics and the health checks; port 0 picks a free port.
    /// On loopback, /metrics needs no credentials there; on other addresses it needs dashboard credentials of the admin
    /// role, unless --open-metrics is set.
    #[arg(long, env = "SWITCHYARD_METRICS_LISTEN", value_name = "ADDRESS:PORT")]
    pub metrics_listen: Option<SocketAddr>,
    /// Allow a non-loopback --metrics-listen address without credentials. Every client that can connect then reads the
    /// metrics, which contain the names of queues and namespaces.
    #[arg(long, env = "SWITCHYARD_OPEN_METRICS", value_parser = FalseyValueParser::new())]
    pub open_metrics: bool,
    /// Number of queues with metrics of their own, up to 1,000. The others are counted together, with the label value
    /// "other".
    #[arg(long, env = "SWITCHYARD_METRICS_QUEUES", value_name = "N", default_value_t = COUNTED_QUEUES)]
    #[arg(value_parser = queues)]
    pub metrics_queues: usize,
    /// Format of the log on standard error.
    #[arg(long, env = "SWITCHYARD_LOG_FORMAT", value_enum, default_value_t)]
    #[arg(value_name = "FORMAT")]
    pub log_format: LogFormat,
    /// Log each request with its ID, method, route, status, error code and duration, at the level info.
    #[arg(long, env = "SWITCHYARD_LOG_REQUESTS", value_parser = FalseyValueParser::new())]
    pub log_requests: bool,
    /// Export traces with OpenTelemetry's protocol, over HTTP with protobuf, to this collector, such as
    /// http://127.0.0.1:4318. The path /v1/traces is appended. The server reads the other settings from OpenTelemetry's
    /// own variables, such as OTEL_TRACES_SAMPLER. Release builds, packages and `make serve` can export; a plain cargo
    /// build needs the feature otlp [default: none].
    #[arg(
        long,
        env = "SWITCHYARD_OTLP_ENDPOINT",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub otlp_endpoint: Option<String>,
}

/// The format of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One line per message, colored on a terminal.
    #[default]
    Text,
    /// One JSON object per message and line.
    Json,
}

/// Maximum of `--metrics-queues`: each queue has about 50 lines in a response.
const QUEUES_MAX: usize = 1_000;

fn queues(text: &str) -> Result<usize, String> {
    let number = text.parse::<usize>().ok();
    let number = number.filter(|number| *number <= QUEUES_MAX);
    number.ok_or_else(|| format!("expected a number from 0 to {QUEUES_MAX}"))
}

impl Monitoring {
    /// Who can read the metrics at `--metrics-listen`, and a warning if every client can.
    ///
    /// # Errors
    /// If metrics would be open on a non-loopback address without a flag that says so, if that flag has no listener, or
    /// if a secret is too short.
    pub fn access(
        &self,
        access: &Access,
        auth: &Auth,
    ) -> Result<(MetricsAccess, Option<String>), String> {
        let Some(listen) = self.metrics_listen else {
            let why = "--open-metrics needs --metrics-listen";
            return match self.open_metrics {
                true => Err(why.to_owned()),
                false => Ok(Default::default()),
            };
        };
        let requires_credentials =
            !is_loopback(listen) && !self.open_metrics && !auth.admin_is_open();
        let is_omitted = !is_loopback(listen) && !requires_credentials && !self.open_metrics;
        if is_omitted && !access.insecure {
            return Err(format!(
                "cannot listen on {listen}: the metrics would accept unauthenticated requests; set --admin-token, or \
                 open them with --open-metrics"
            ));
        }
        if requires_credentials {
            let long_enough = access.check_lengths();
            long_enough.map_err(|why| format!("cannot listen on {listen}: {why}"))?;
        }
        let is_open = !requires_credentials && !is_loopback(listen);
        let warning =
            is_open.then(|| format!("accepting unauthenticated requests at {listen}: metrics"));
        let hosts = access.hosts_of(is_loopback(listen) || is_open);
        let access = MetricsAccess {
            requires_credentials,
            hosts,
        };
        Ok((access, warning))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::auth::Hosts;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        monitoring: Monitoring,
        #[command(flatten)]
        access: Access,
    }

    fn accessed(flags: &str) -> Result<(MetricsAccess, Option<String>), String> {
        let words = ["switchyard"].into_iter().chain(flags.split_whitespace());
        let flags = Flags::try_parse_from(words).map_err(|error| error.to_string())?;
        let auth = flags.access.auth()?;
        flags.monitoring.access(&flags.access, &auth)
    }

    #[test]
    fn metrics_on_a_non_loopback_address_need_credentials_or_a_flag() {
        const ADMIN: &str = "--admin-token the-secret-of-the-admin";
        for (flags, credentials, warns) in [
            ("--metrics-listen 127.0.0.1:1", false, false),
            (&*format!("--metrics-listen [::1]:1 {ADMIN}"), false, false),
            (&*format!("--metrics-listen 0.0.0.0:1 {ADMIN}"), true, false),
            (
                &*format!("--metrics-listen 0.0.0.0:1 --open-metrics {ADMIN}"),
                false,
                true,
            ),
            ("--metrics-listen 0.0.0.0:1 --open-metrics", false, true),
            ("--metrics-listen 0.0.0.0:1 --insecure", false, true),
            (
                "--metrics-listen 0.0.0.0:1 --ui-open-as viewer",
                true,
                false,
            ),
        ] {
            let (access, warning) = accessed(flags).unwrap();
            assert_eq!(access.requires_credentials, credentials, "{flags}");
            assert_eq!(warning.is_some(), warns, "{flags}");
            let is_limited = matches!(access.hosts, Hosts::Only(_));
            assert_eq!(is_limited, !credentials, "{flags}");
        }
        for flags in [
            "--metrics-listen 0.0.0.0:1",
            "--metrics-listen [::]:1 --ui-open-as admin",
            "--metrics-listen 0.0.0.0:1 --admin-token short",
            "--open-metrics",
        ] {
            assert!(accessed(flags).is_err(), "{flags}");
        }
    }

    #[test]
    fn the_number_of_queues_has_its_limit() {
        for (number, is_accepted) in [("0", true), ("1000", true), ("1001", false), ("x", false)] {
            let flags = format!("--metrics-queues {number}");
            assert_eq!(accessed(&flags).is_ok(), is_accepted, "{number}");
        }
    }
}
