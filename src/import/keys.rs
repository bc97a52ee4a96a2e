//! Which keys of qless and lmstfy a Redis database has.
//!
//! qless (qless-core 0.10, `base.lua`, `job.lua` and `queue.lua`): `ql:j:<jid>` is a hash, with `-history`,
//! `-dependencies` and `-dependents` beside it; `ql:q:<queue>-work`, `-locks`, `-scheduled`, `-depends` and `-recur`
//! are sorted sets of jids; `ql:f:<group>` is a list, `ql:completed` a sorted set, `ql:r:<jid>` a recurring job.
//!
//! lmstfy (bitleak/lmstfy, `engine/redis` and `auth/token.go`): `j/<namespace>/<queue>/<id>` is a body,
//! `q/<namespace>/<queue>` a ready queue, `d/<namespace>/<queue>` a dead-letter queue, `timer_set` holds delayed and
//! running jobs, `tk/<pool>/<namespace>` tokens, and `m/…` the names of namespaces and queues.

use std::collections::{BTreeMap, BTreeSet};

use super::redis::{Redis, Reply};
use super::report::Report;
use super::{NAMED_MAX, Result};
use crate::engine::{Engine, JobKey};

/// Keys that are looked up in the target at once.
const LOOKED_UP: usize = 500;

/// The sorted sets of a qless queue that list jobs.
pub const LISTS: [&str; 4] = ["locks", "work", "scheduled", "depends"];

/// The delayed and running jobs of lmstfy.
pub const TIMERS: &str = "timer_set";

/// The keys that were found.
#[derive(Debug, Default)]
pub struct Keys {
    /// Names of qless queues.
    pub queues: BTreeSet<String>,
    /// Names of failure groups.
    pub groups: BTreeSet<String>,
    /// The number of job hashes of qless.
    pub qless_jobs: u64,
    /// Namespaces and names of lmstfy queues with ready, and with dead jobs.
    pub ready: BTreeSet<(String, String)>,
    pub dead: BTreeSet<(String, String)>,
    /// Pools and namespaces that have tokens.
    pub tokens: BTreeSet<(String, String)>,
    /// The number of bodies of lmstfy jobs.
    pub lmstfy_jobs: u64,
    /// The number of these jobs that the target already has, and some of their IDs.
    pub existing: u64,
    pub examples: Vec<String>,
    /// Keys that are not imported, by what they are.
    rest: BTreeMap<&'static str, u64>,
}

/// What a key is.
#[derive(Debug, PartialEq)]
enum Key<'a> {
    QlessJob(&'a str),
    QlessQueue(&'a str),
    Failures(&'a str),
    LmstfyJob(&'a str),
    Ready(&'a str, &'a str),
    Dead(&'a str, &'a str),
    Tokens(&'a str, &'a str),
    /// Imported by its own name or together with another key.
    Known,
    Rest(&'static str),
}

impl<'a> Key<'a> {
    fn of(key: &'a str) -> Key<'a> {
        if let Some(jid) = qless_job_id(key) {
            return Key::QlessJob(jid);
        }
        if let Some(rest) = key.strip_prefix("ql:") {
            return Key::of_qless(rest);
        }
        let parts: Vec<&str> = key.splitn(4, '/').collect();
        match parts.as_slice() {
            &["j", _, _, id] => Key::LmstfyJob(id),
            &["q", namespace, queue] => Key::Ready(namespace, queue),
            &["d", namespace, queue] => Key::Dead(namespace, queue),
            &["tk", pool, namespace] => Key::Tokens(pool, namespace),
            &["m", "ns", ..] | &[TIMERS] => Key::Known,
            _ => Key::Rest("other keys"),
        }
    }

    /// A key of qless, without its prefix, that is not a job hash.
    fn of_qless(key: &'a str) -> Key<'a> {
        if let Some(name) = key.strip_prefix("q:") {
            let lists = LISTS.iter().chain(&["recur"]);
            let mut queue = lists.filter_map(|list| name.strip_suffix(*list)?.strip_suffix('-'));
            return queue
                .next()
                .map_or(Key::Rest("other keys"), Key::QlessQueue);
        }
        if let Some(group) = key.strip_prefix("f:") {
            return Key::Failures(group);
        }
        match key {
            "config" | "queues" | "paused_queues" | "failures" | "completed" | "tracked"
            | "workers" | "tags" => Key::Known,
            _ if key.starts_with("s:") => Key::Rest("statistics of qless"),
            _ if ["j:", "r:", "w:", "t:"]
                .iter()
                .any(|it| key.starts_with(it)) =>
            {
                Key::Known
            }
            _ => Key::Rest("other keys"),
        }
    }
}

/// The jid of a job hash of qless; `None` for all other keys, such as the history of a job.
pub fn qless_job_id(key: &str) -> Option<&str> {
    let parts = ["-history", "-dependencies", "-dependents"];
    let jid = key.strip_prefix("ql:j:")?;
    (!parts.iter().any(|part| jid.ends_with(part))).then_some(jid)
}

/// Finds all keys, and counts the jobs that the target already has.
///
/// # Errors
/// If the source or the target cannot be read.
pub async fn find(redis: &mut Redis, engine: Option<&Engine>) -> Result<Keys> {
    let mut keys = Keys::default();
    let mut cursor = Some("0".to_owned());
    while let Some(at) = cursor {
        let (page, next) = redis.scan(&at).await?;
        cursor = next;
        let mut jobs = Vec::new();
        for key in &page {
            match key.text() {
                Some(key) => keys.add(&key, &mut jobs),
                None => keys.add_rest("keys that are not UTF-8"),
            }
        }
        if let Some(engine) = engine {
            keys.look_up(engine, &jobs).await?;
        }
    }
    Ok(keys)
}

impl Keys {
    fn add(&mut self, key: &str, jobs: &mut Vec<JobKey>) {
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        match Key::of(key) {
            Key::QlessJob(jid) => {
                self.qless_jobs += 1;
                jobs.push(JobKey::qless(jid));
            }
            Key::LmstfyJob(id) => {
                self.lmstfy_jobs += 1;
                jobs.push(JobKey::lmstfy(id));
            }
            Key::QlessQueue(name) => self.queues.extend([name.to_owned()]),
            Key::Failures(group) => self.groups.extend([group.to_owned()]),
            Key::Ready(namespace, queue) => self.ready.extend([pair(namespace, queue)]),
            Key::Dead(namespace, queue) => self.dead.extend([pair(namespace, queue)]),
            Key::Tokens(pool, namespace) => self.tokens.extend([pair(pool, namespace)]),
            Key::Known => {}
            Key::Rest(what) => self.add_rest(what),
        }
    }

    fn add_rest(&mut self, what: &'static str) {
        *self.rest.entry(what).or_default() += 1;
    }

    async fn look_up(&mut self, engine: &Engine, jobs: &[JobKey]) -> Result<()> {
        for some in jobs.chunks(LOOKED_UP) {
            let found = engine.existing_jobs(some).await?;
            self.existing += found.len() as u64;
            let room = NAMED_MAX.saturating_sub(self.examples.len());
            self.examples
                .extend(found.into_iter().take(room).map(|key| key.id));
        }
        Ok(())
    }

    /// The number of entries in all lists of jobs. It changes while clients work.
    ///
    /// # Errors
    /// If the source cannot be read.
    pub async fn count_listed(&self, redis: &mut Redis) -> Result<usize> {
        let mut count = redis.count(&["ZCARD", "ql:completed"]).await?;
        count += redis.count(&["ZCARD", TIMERS]).await?;
        for queue in &self.queues {
            for list in LISTS {
                let key = format!("ql:q:{queue}-{list}");
                count += redis.count(&["ZCARD", &key]).await?;
            }
        }
        for group in &self.groups {
            count += redis.count(&["LLEN", &format!("ql:f:{group}")]).await?;
        }
        for (prefix, queues) in [("q", &self.ready), ("d", &self.dead)] {
            for (namespace, queue) in queues {
                let key = format!("{prefix}/{namespace}/{queue}");
                count += redis.count(&["LLEN", &key]).await?;
            }
        }
        Ok(count)
    }

    /// Notes the keys that are not imported.
    pub fn note_rest(&self, report: &mut Report) {
        for (what, count) in &self.rest {
            report.note(&format!("not imported: {what} ({count})"));
        }
    }
}

/// Whether a reply of `HMGET` has any field.
pub fn has_fields(fields: &[Reply]) -> bool {
    fields.iter().any(|field| *field != Reply::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_recognized_by_their_names() {
        for (key, expected) in [
            ("ql:j:a", Key::QlessJob("a")),
            ("ql:j:a:b-1", Key::QlessJob("a:b-1")),
            ("ql:j:a-history", Key::Known),
            ("ql:j:a-dependents", Key::Known),
            ("ql:q:work-work", Key::QlessQueue("work")),
            ("ql:q:a-b-scheduled", Key::QlessQueue("a-b")),
            ("ql:q:only-recur", Key::QlessQueue("only")),
            ("ql:f:a:b", Key::Failures("a:b")),
            ("ql:s:wait:86400:q", Key::Rest("statistics of qless")),
            ("ql:config", Key::Known),
            (
                "j/ns/q/01AN4Z07BY79KA1307SR9X4MV3",
                Key::LmstfyJob("01AN4Z07BY79KA1307SR9X4MV3"),
            ),
            ("q/ns/mail", Key::Ready("ns", "mail")),
            ("d/ns/mail", Key::Dead("ns", "mail")),
            ("tk/default/ns", Key::Tokens("default", "ns")),
            ("m/ns/ns", Key::Known),
            ("timer_set", Key::Known),
            ("session:1", Key::Rest("other keys")),
        ] {
            assert_eq!(Key::of(key), expected, "{key}");
        }
    }
}
