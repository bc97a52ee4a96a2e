//! Tests of the server program over HTTP. The qless tests follow the interface table and the examples of its
//! documentation.

#[cfg(test)]
#[path = "../support/mod.rs"]
mod support;

#[cfg(test)]
mod add;
#[cfg(test)]
mod auth;
#[cfg(test)]
mod backup;
#[cfg(test)]
mod base_path;
#[cfg(test)]
mod bench;
#[cfg(test)]
mod cancel;
#[cfg(test)]
mod check;
#[cfg(test)]
mod claim_several_queues;
#[cfg(test)]
mod cli;
#[cfg(test)]
mod clock;
#[cfg(test)]
mod cluster;
#[cfg(test)]
mod command;
#[cfg(test)]
mod complete;
#[cfg(test)]
mod concurrency;
#[cfg(test)]
mod config_file;
#[cfg(test)]
mod connections;
#[cfg(test)]
mod copy;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod depends;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod documented_examples;
#[cfg(test)]
mod due;
#[cfg(test)]
mod envelope;
#[cfg(test)]
mod events;
#[cfg(test)]
mod exports;
#[cfg(test)]
mod fail;
#[cfg(test)]
mod find;
#[cfg(test)]
mod forget;
#[cfg(test)]
mod get;
#[cfg(test)]
mod grace;
#[cfg(test)]
mod health;
#[cfg(test)]
mod heartbeat;
#[cfg(test)]
mod import;
#[cfg(test)]
mod jobq;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod lmstfy;
#[cfg(test)]
mod logs;
#[cfg(all(test, target_os = "linux"))]
mod machine_clock;
#[cfg(test)]
mod many;
#[cfg(test)]
mod max_concurrency;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod meta;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod names;
#[cfg(test)]
mod notes;
#[cfg(test)]
mod notify;
#[cfg(test)]
mod openapi;
#[cfg(test)]
mod operations;
#[cfg(test)]
mod options;
#[cfg(test)]
mod order;
#[cfg(test)]
mod pause;
#[cfg(test)]
mod pgbouncer;
// Records the writes of the server with a preloaded library.
#[cfg(test)]
#[cfg(target_os = "linux")]
mod power;
#[cfg(test)]
mod priority;
#[cfg(test)]
mod proxies;
#[cfg(test)]
mod prune;
#[cfg(test)]
mod queue_pages;
#[cfg(test)]
mod queues;
#[cfg(test)]
mod recovery;
#[cfg(test)]
mod recurring;
#[cfg(test)]
mod redis;
#[cfg(test)]
mod relay;
#[cfg(test)]
mod releases;
#[cfg(test)]
mod request_id;
#[cfg(test)]
mod requeue;
#[cfg(test)]
mod restart;
#[cfg(test)]
mod roles;
#[cfg(test)]
mod rust_page;
#[cfg(test)]
mod series;
#[cfg(test)]
mod sizes;
#[cfg(test)]
mod soak;
#[cfg(test)]
mod spawning;
#[cfg(test)]
mod stats;
#[cfg(test)]
mod stop;
#[cfg(test)]
mod stream;
#[cfg(test)]
mod tags;
#[cfg(test)]
mod timeout;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod tokens;
#[cfg(test)]
mod track;
#[cfg(test)]
mod unauthenticated;
#[cfg(test)]
mod undepend;
#[cfg(test)]
mod upgrade;
#[cfg(test)]
mod wait;
#[cfg(test)]
mod work;
#[cfg(test)]
mod workers;
