//! The log: its format, and its level, which can change while the server runs.

use std::io::{self, IsTerminal};
use std::sync::OnceLock;

use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::config::{LogFormat, Subcommand};
use crate::engine::AUDIT_TARGET;
use crate::http::REQUESTS;
use crate::request::logged;

/// Replaces the filter of the log.
type SetFilter = Box<dyn Fn(EnvFilter) -> Result<(), String> + Send + Sync>;

static FILTER: OnceLock<SetFilter> = OnceLock::new();

/// Starts the log, as the options of the subcommand and `RUST_LOG` say. `None` if the configuration file is wrong.
pub fn start(subcommand: Option<&Subcommand>) {
    let (monitoring, level) = match subcommand {
        Some(Subcommand::Serve(options)) => (Some(&options.monitoring), Some(&options.log_level)),
        Some(Subcommand::Dev(options)) => (Some(&options.monitoring), None),
        _ => (None, None),
    };
    let log_requests = monitoring.is_some_and(|it| it.log_requests);
    let filter = match level {
        Some(level) => filter(level).ok(),
        None => std::env::var("RUST_LOG")
            .ok()
            .and_then(|level| filter(&level).ok()),
    };
    let filter = filter.unwrap_or_else(|| without_queries(EnvFilter::new("info")));
    let has_no_color = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
    let filter = with_requests(filter, log_requests);
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(io::stderr().is_terminal() && !has_no_color)
        .with_writer(io::stderr)
        // Otherwise tracing panics when standard error is a closed pipe.
        .log_internal_errors(false);
    match monitoring.map(|it| it.log_format).unwrap_or_default() {
        LogFormat::Text => init(lines, filter),
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true).with_span_list(false);
            init(lines, filter);
        }
    }
}

/// Starts the log with this layer, which writes its lines.
fn init(lines: impl Layer<Registry> + Send + Sync, filter: EnvFilter) {
    let (filter, handle) = reload::Layer::new(filter);
    keep(handle);
    let log = tracing_subscriber::registry().with(InRequest(lines));
    log.with(filter).init();
}

/// Writes each line in a span of the request that it belongs to. The span exists only while the line is written.
struct InRequest<L>(L);

impl<S: Subscriber, L: Layer<S>> Layer<S> for InRequest<L> {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        self.0.on_new_span(attributes, id, context);
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let _in_request = logged::span().entered();
        self.0.on_event(event, context);
    }
}

/// Changes the level of the log.
///
/// # Errors
/// If it is not a valid filter.
pub fn set_level(level: &str, log_requests: bool) -> Result<(), String> {
    let filter = filter(level).map_err(|error| error.to_string())?;
    let filter = with_requests(filter, log_requests);
    FILTER.get().map_or(Ok(()), |set| set(filter))
}

/// Adds the lines of the audit log, and with `log_requests` those of requests. They are written at every level of the
/// other lines.
fn with_requests(filter: EnvFilter, log_requests: bool) -> EnvFilter {
    let filter = with_level(filter, AUDIT_TARGET, LevelFilter::INFO);
    match log_requests {
        true => with_level(filter, REQUESTS, LevelFilter::INFO),
        false => filter,
    }
}

/// Sets the level of a log target.
fn with_level(filter: EnvFilter, target: &str, level: LevelFilter) -> EnvFilter {
    match format!("{target}={level}").parse() {
        Ok(directive) => filter.add_directive(directive),
        Err(_) => filter,
    }
}

fn keep<S: 'static>(handle: Handle<EnvFilter, S>) {
    let set = move |filter| handle.reload(filter).map_err(|error| error.to_string());
    drop(FILTER.set(Box::new(set)));
}

/// The log target of the parser of Jobq queries.
const QUERY_PARSER: &str = "sqlite3Parser";

/// The filter that a level or directives describe. Directives for the parser of queries have no effect.
fn filter(level: &str) -> Result<EnvFilter, ParseError> {
    let kept = level.split(',').map(str::trim);
    let kept = kept.filter(|directive| !directive.contains(QUERY_PARSER));
    let filter = EnvFilter::try_new(kept.collect::<Vec<_>>().join(","))?;
    Ok(without_queries(filter))
}

/// The parser of Jobq queries logs parts of a wrong query as they are, line breaks included, so a client could forge
/// log lines. The error of the query already says what is wrong, so the parser never logs.
fn without_queries(filter: EnvFilter) -> EnvFilter {
    with_level(filter, QUERY_PARSER, LevelFilter::OFF)
}
