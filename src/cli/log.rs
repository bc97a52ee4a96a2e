//! The log: its format and its level.

use std::io;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::Directive;

use crate::config::{LogFormat, Subcommand};
use crate::http::REQUESTS;

/// Starts the log, as the flags of the subcommand and `RUST_LOG` say.
pub fn start(subcommand: &Subcommand) {
    let monitoring = match subcommand {
        Subcommand::Serve(options) => Some(&options.monitoring),
        Subcommand::Dev(options) => Some(&options.monitoring),
        Subcommand::Token(_) | Subcommand::Copy(_) => None,
    };
    let mut filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    if monitoring.is_some_and(|it| it.log_requests)
        && let Ok(directive) = format!("{REQUESTS}={}", LevelFilter::INFO).parse::<Directive>()
    {
        // Whatever the level of the other lines.
        filter = filter.add_directive(directive);
    }
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        // Otherwise tracing panics when standard error is a closed pipe.
        .log_internal_errors(false);
    match monitoring.map(|it| it.log_format).unwrap_or_default() {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().flatten_event(true).with_span_list(false).init(),
    }
}
