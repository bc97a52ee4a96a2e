//! Traces: spans of requests, commit groups and statements, exported with OpenTelemetry's protocol (OTLP over HTTP).
//!
//! The cargo feature `otlp` contains the export. Without the feature, the types of this module are empty, and its
//! functions do nothing. With the feature, but without an endpoint, each of them only reads one static value.
//!
//! A span never contains payloads, IDs of jobs, tokens or paths: only methods, the patterns of routes, statuses, codes
//! of errors, the IDs of requests, and the texts of statements, whose values are bound.

#[cfg(feature = "otlp")]
mod client;
#[cfg(not(feature = "otlp"))]
#[path = "traces/off.rs"]
mod export;
#[cfg(feature = "otlp")]
#[path = "traces/otlp.rs"]
mod export;

pub use export::*;

/// The header of W3C's Trace Context. In the response to a claim of one job, it is the trace in which the job was
/// created.
pub const TRACEPARENT: &str = "traceparent";

/// The databases, as OpenTelemetry calls them.
pub const SQLITE: &str = "sqlite";
pub const POSTGRES: &str = "postgresql";
