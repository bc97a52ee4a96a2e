//! The metrics and their labels. `docs/monitoring.md` describes each.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use super::{Monitor, process};
use crate::engine::{
    Counts, DatabaseInfo, EffectiveState, EventTotals, Protocol, Queue, QueueCounts, QueueTotals,
    Time,
};
use crate::memory;
use crate::metrics::text::{Exposition, Format, Kind};

/// What the metrics need from the database.
pub struct DatabaseMetrics {
    pub info: DatabaseInfo,
    pub queues: Arc<Vec<QueueCounts>>,
    pub workers: i64,
}

/// Everything that one response is made from.
pub struct Snapshot {
    pub monitor: Monitor,
    /// `None` if the database did not respond.
    pub database: Option<DatabaseMetrics>,
    /// When the response was begun.
    pub began: Instant,
}

/// The labels of the queues that have none of their own.
const OTHER: Labels<'static> = Labels("other", Cow::Borrowed("other"), Cow::Borrowed("other"));

/// Maximum length of a name in a label. Clients name queues, and each name is repeated about 50 times.
const LABEL_BYTES_MAX: usize = 128;

/// The labels of a queue.
struct Labels<'a>(&'static str, Cow<'a, str>, Cow<'a, str>);

impl<'a> Labels<'a> {
    fn of(queue: &'a Queue) -> Labels<'a> {
        let key = &queue.key;
        let shown = |name: &'a str| match name.get(..name.floor_char_boundary(LABEL_BYTES_MAX)) {
            // The number keeps names apart that begin alike.
            Some(start) if start.len() < name.len() => Cow::from(format!("{start}… #{}", queue.id)),
            _ => Cow::from(name),
        };
        let protocol = key.protocol.as_str();
        Labels(protocol, shown(&key.namespace), shown(&key.name))
    }

    fn pairs(&self) -> [(&str, &str); 3] {
        let Labels(protocol, namespace, queue) = self;
        [
            ("protocol", protocol),
            ("namespace", namespace),
            ("queue", queue),
        ]
    }
}

/// The labels of a queue. For `None`, the labels that all queues without labels of their own share.
fn labels(queue: Option<&Queue>) -> Labels<'_> {
    queue.map_or(OTHER, Labels::of)
}

/// The jobs of a queue, or of all queues without labels of their own.
#[derive(Clone, Copy, Default)]
struct Jobs {
    counts: Counts,
    oldest_waiting: Option<Time>,
    is_paused: bool,
}

impl Snapshot {
    /// All metrics.
    pub fn to_text(&self, format: Format) -> String {
        let out = &mut Exposition::new(format);
        let totals = self.monitor.0.engine.event_totals();
        self.build(out);
        self.server(out);
        self.writer(out);
        self.database(out);
        self.http(out);
        self.jobs(out, &totals);
        events(out, &totals);
        process::write(out);
        out.single(
            "switchyard_metrics_collection_seconds",
            Kind::Gauge,
            "How long the collection of these metrics took.",
            self.began.elapsed().as_secs_f64(),
        );
        std::mem::replace(out, Exposition::new(format)).finish()
    }

    fn build(&self, out: &mut Exposition) {
        let database = self.database.as_ref();
        let (kind, version) = database.map_or(("", ""), |it| (it.info.kind, &*it.info.version));
        let labels = [
            ("version", env!("CARGO_PKG_VERSION")),
            ("database", kind),
            ("database_version", version),
        ];
        out.metric(
            "switchyard_build",
            Kind::Info,
            "Versions of the server and of its database.",
        )
        .sample(&labels, 1);
    }

    fn server(&self, out: &mut Exposition) {
        let monitor = &self.monitor.0;
        let engine = &monitor.engine;
        out.single(
            "switchyard_leader",
            Kind::Gauge,
            "Whether this server runs maintenance: 1 or 0.",
            u8::from(engine.is_leader()),
        );
        out.single(
            "switchyard_long_polls",
            Kind::Gauge,
            "Requests that wait for a job.",
            engine.waiting_polls(),
        );
        let mut streams = out.metric(
            "switchyard_event_streams",
            Kind::Gauge,
            "Open event streams.",
        );
        streams.sample(&[("kind", "dashboard")], monitor.feed.listeners());
        streams.sample(&[("kind", "qless")], monitor.gauges.qless_streams.get());
        if let Some(database) = &self.database {
            out.single(
                "switchyard_workers",
                Kind::Gauge,
                "qless workers that were active within max-worker-age; at most 10,000.",
                database.workers,
            );
            out.single(
                "switchyard_servers",
                Kind::Gauge,
                "Servers that use the database.",
                database.info.servers,
            );
        }
    }

    fn writer(&self, out: &mut Exposition) {
        let engine = &self.monitor.0.engine;
        let writer = engine.writer_metrics();
        out.metric(
            "switchyard_commit_duration_seconds",
            Kind::Histogram,
            "Duration of the last database call of each transaction that changed something, which commits it.",
        )
        .histogram(&[], &writer.commit_s);
        out.metric(
            "switchyard_writer_hold_duration_seconds",
            Kind::Histogram,
            "How long each commit group occupied the writer, so that other writes waited.",
        )
        .histogram(&[], &writer.hold_s);
        out.metric(
            "switchyard_commit_requests",
            Kind::Histogram,
            "Requests that shared a transaction.",
        )
        .histogram(&[], &writer.commit_requests);
        out.single(
            "switchyard_transactions_failed",
            Kind::Counter,
            "Transactions that failed; their requests got an error.",
            writer.failed_transactions,
        );
        out.single(
            "switchyard_writer_queue_length",
            Kind::Gauge,
            "Requests that wait for the writer or run in it; at most 4,096.",
            writer.queued,
        );
        out.single(
            "switchyard_writable",
            Kind::Gauge,
            "Whether the writer runs: 1 or 0. At 0, restart the server.",
            u8::from(engine.can_write()),
        );
        out.single(
            "switchyard_disk_full",
            Kind::Gauge,
            "Whether new jobs are refused because the disk is full: 1 or 0.",
            u8::from(engine.is_disk_full()),
        );
    }

    fn database(&self, out: &mut Exposition) {
        let readers = self.monitor.0.engine.reader_use();
        out.single(
            "switchyard_database_up",
            Kind::Gauge,
            "Whether the database responded: 1 or 0.",
            u8::from(self.database.is_some()),
        );
        let name = "switchyard_database_connections";
        let mut open = out.metric(name, Kind::Gauge, "Connections that read, by state.");
        open.sample(&[("state", "busy")], readers.busy);
        open.sample(&[("state", "idle")], readers.idle);
        out.single(
            "switchyard_database_max_connections",
            Kind::Gauge,
            "Maximum number of connections that read.",
            readers.max,
        );
        let Some(database) = &self.database else {
            return;
        };
        out.single(
            "switchyard_database_size_bytes",
            Kind::Gauge,
            "Size of the database, without its write-ahead log.",
            database.info.bytes,
        );
        if let Some(bytes) = database.info.log_bytes {
            out.single(
                "switchyard_database_wal_size_bytes",
                Kind::Gauge,
                "Size of the write-ahead log of SQLite.",
                bytes,
            );
        }
    }

    fn http(&self, out: &mut Exposition) {
        let monitor = &self.monitor.0;
        out.single(
            "switchyard_http_connections",
            Kind::Gauge,
            "Open connections of clients.",
            monitor.gauges.connections.get(),
        );
        out.single(
            "switchyard_redis_connections",
            Kind::Gauge,
            "Open connections over the Redis protocol.",
            monitor.gauges.redis_connections.get(),
        );
        out.single(
            "switchyard_request_memory_bytes",
            Kind::Gauge,
            "Memory that is reserved for large bodies and responses.",
            memory::reserved(),
        );
        let routes = monitor.http.routes();
        let name = "switchyard_http_requests";
        let mut requests = out.metric(name, Kind::Counter, "Requests that were answered.");
        for (route, counts) in &routes {
            for (status, count) in counts.statuses() {
                let labels = [
                    ("method", route.method),
                    ("route", &*route.path),
                    ("status", &*status),
                ];
                requests.sample(&labels, count);
            }
        }
        let mut durations = out.metric(
            "switchyard_http_request_duration_seconds",
            Kind::Histogram,
            "Time from the header of a request to that of its response, long polls included.",
        );
        for (route, counts) in &routes {
            let labels = [("method", route.method), ("route", &*route.path)];
            durations.histogram(&labels, &counts.durations());
        }
        let name = "switchyard_errors";
        let mut errors = out.metric(
            name,
            Kind::Counter,
            "Requests that were answered with an error.",
        );
        for (error, count) in monitor.http.errors() {
            errors.sample(&[("api", error.api), ("code", error.code)], count);
        }
    }

    /// The numbers of jobs.
    fn jobs(&self, out: &mut Exposition, totals: &EventTotals) {
        let Some(database) = &self.database else {
            return;
        };
        let rows = rows(&database.queues, totals);
        out.single(
            "switchyard_queues",
            Kind::Gauge,
            "Queues, including those without labels of their own.",
            database
                .queues
                .iter()
                .filter(|it| !it.queue.forgotten)
                .count(),
        );
        let mut jobs = out.metric("switchyard_jobs", Kind::Gauge, "Jobs by queue and state.");
        for (queue, row) in &rows {
            let own = labels(*queue);
            let [protocol, namespace, name] = own.pairs();
            for state in states(*queue) {
                let labels = [protocol, namespace, name, ("state", state.as_str())];
                jobs.sample(&labels, row.counts.of(state));
            }
        }
        let now = self.monitor.0.engine.now(None);
        let mut oldest = out.metric(
            "switchyard_oldest_waiting_job_seconds",
            Kind::Gauge,
            "How long the oldest waiting job has been available; 0 if none is waiting.",
        );
        for (queue, row) in &rows {
            let age = row
                .oldest_waiting
                .map_or(0.0, |at| now.seconds() - at.seconds());
            oldest.sample(&labels(*queue).pairs(), age.max(0.0));
        }
        let name = "switchyard_queue_paused";
        let mut paused = out.metric(name, Kind::Gauge, "Whether the queue is paused: 1 or 0.");
        for (queue, row) in rows.iter().filter(|(queue, _)| queue.is_some()) {
            paused.sample(&labels(*queue).pairs(), u8::from(row.is_paused));
        }
    }
}

/// The states in which jobs of a queue can be.
fn states(queue: Option<&Queue>) -> impl Iterator<Item = EffectiveState> {
    let protocol = queue.map(|queue| queue.key.protocol);
    EffectiveState::ALL.into_iter().filter(move |state| {
        let is_record = *state == EffectiveState::Record;
        protocol.is_none_or(|protocol| is_record == (protocol == Protocol::Jobq))
    })
}

/// The jobs of each queue with labels of its own, and last those of all others.
fn rows<'a>(queues: &[QueueCounts], totals: &'a EventTotals) -> Vec<(Option<&'a Queue>, Jobs)> {
    let mut by_id: HashMap<_, _> = queues.iter().map(|it| (it.queue.id, it)).collect();
    let mut rows = Vec::new();
    for (queue, _) in &totals.queues {
        // A queue created since the counts were read has none.
        let found = by_id.remove(&queue.id);
        let jobs = Jobs {
            counts: found.map(|it| it.counts).unwrap_or_default(),
            oldest_waiting: found.and_then(|it| it.oldest_waiting),
            is_paused: found.is_some_and(|it| it.pause.is_some()),
        };
        rows.push((Some(&**queue), jobs));
    }
    let mut other = Jobs::default();
    for rest in by_id.into_values() {
        other.counts = other.counts.plus(rest.counts);
        let oldest = [other.oldest_waiting, rest.oldest_waiting];
        other.oldest_waiting = oldest.into_iter().flatten().min();
    }
    rows.push((None, other));
    rows
}

/// The events of queues since the server started.
fn events(out: &mut Exposition, totals: &EventTotals) {
    let named = totals
        .queues
        .iter()
        .map(|(queue, it)| (Labels::of(queue), it));
    let all: Vec<_> = named.chain([(OTHER, &totals.other)]).collect();
    type Read = fn(&QueueTotals) -> u64;
    let counters: [(&'static str, &str, Read); 7] = [
        (
            "switchyard_jobs_put",
            "Jobs that entered the queue: put, moved, or requeued by an operator.",
            |it| it.put,
        ),
        ("switchyard_jobs_claimed", "Claims.", QueueTotals::claimed),
        (
            "switchyard_jobs_completed",
            "Completions.",
            QueueTotals::completed,
        ),
        (
            "switchyard_jobs_failed",
            "Failures, without dead-lettered jobs.",
            |it| it.failed,
        ),
        (
            "switchyard_jobs_retried",
            "Jobs that a worker returned to the queue for another attempt.",
            |it| it.retried,
        ),
        (
            "switchyard_leases_expired",
            "Leases that a worker did not end in time.",
            |it| it.expired,
        ),
        (
            "switchyard_jobs_dead_lettered",
            "Jobs that were dead-lettered.",
            QueueTotals::dead_lettered,
        ),
    ];
    for (name, help, read) in counters {
        let mut metric = out.metric(name, Kind::Counter, help);
        for (labels, totals) in &all {
            metric.sample(&labels.pairs(), read(totals));
        }
    }
    let mut waits = out.metric(
        "switchyard_job_wait_seconds",
        Kind::Histogram,
        "Time from availability to claim; for qless, from the last put, retry or timeout, including delays; after an expired lease, from the previous claim.",
    );
    for (labels, totals) in &all {
        waits.histogram(&labels.pairs(), &totals.waits());
    }
    let mut runs = out.metric(
        "switchyard_job_run_seconds",
        Kind::Histogram,
        "Time from the claim of completed jobs to their completion.",
    );
    for (labels, totals) in &all {
        runs.histogram(&labels.pairs(), &totals.runs());
    }
}
