//! Collects what an actor's transaction changes, before and after, for the audit log.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;

use crate::engine::audit::Actor;
use crate::engine::model::config::Config;
use crate::engine::model::job::{Job, JobKey};
use crate::engine::model::job_rows;
use crate::engine::model::queue::Queue;
use crate::engine::model::recurring::Recurring;
use crate::engine::operations::{JobAction, OperationState};
use crate::engine::unit_of_work::transaction::WriteRequest;
use crate::engine::unit_of_work::{LoadedJob, UnitOfWork};
use crate::engine::verbs::admin::alerts::AlertRule;
use crate::secret::Hash;
use crate::store::Statement;

/// Bytes of `before`, and of `after`, in one entry.
const ITEMS_BYTES_MAX: usize = 4_000;

/// Tags of a job, and characters of a value, in an entry.
const TAGS_MAX: usize = 20;
const VALUE_CHARS_MAX: usize = 500;

/// Hexadecimal digits of the hash of a payload in an entry.
const HASH_DIGITS: usize = 16;

/// The audit entry of a transaction.
pub struct Audit {
    actor: Arc<Actor>,
    /// Recurring jobs as loaded.
    recurring: HashMap<String, Recurring>,
    before: Vec<String>,
    after: Vec<String>,
    /// An upper bound of the size in bytes of each list: the sum of the longer texts of the items.
    bytes: usize,
    items: i64,
}

/// An item before or after the change. Instead of a changed payload, it has the payload's size and hash, and instead of
/// a token, the token's token ID.
#[derive(Serialize)]
#[serde(untagged)]
enum Item<'a> {
    Job {
        job: &'a str,
        state: &'a str,
        queue: String,
        priority: f64,
        tags: &'a [String],
        tracked: bool,
        /// The label of a record's state.
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<String>,
        /// The size and the hash of the payload, if it has changed.
        #[serde(skip_serializing_if = "Option::is_none")]
        payload: Option<String>,
    },
    Tracked {
        job: &'a str,
        tracked: bool,
    },
    Queue {
        queue: &'a str,
        paused: bool,
        #[serde(skip_serializing_if = "str::is_empty")]
        reason: &'a str,
        /// When the pause ends.
        #[serde(skip_serializing_if = "Option::is_none")]
        until: Option<String>,
        listed: bool,
    },
    Recurring {
        recurring: &'a str,
        queue: String,
        interval: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        cron: Option<String>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        paused: bool,
        priority: f64,
        retries: i64,
        backlog: i64,
        tags: &'a [String],
    },
    Option {
        option: &'a str,
        value: String,
    },
    Token {
        token: &'a str,
        namespace: &'a str,
    },
    Worker {
        worker: &'a str,
    },
    Operation {
        operation: i64,
        #[serde(flatten)]
        action: &'a JobAction,
        stage: &'static str,
        /// The number of jobs when it was created.
        jobs: i64,
    },
    Search {
        search: &'a str,
        text: &'a str,
    },
    AlertRule {
        alert: &'a str,
        /// Without the path, which can contain a secret.
        webhook: String,
        problems: String,
        after: i64,
    },
    Mute {
        mute: &'a str,
        reason: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        hours: Option<i64>,
    },
    Repaired {
        inconsistencies: usize,
    },
    Deleted {
        deleted: usize,
    },
}

impl Audit {
    /// An audit entry, if the transaction belongs to an actor.
    pub fn of_first(requests: &[WriteRequest]) -> Option<Box<Audit>> {
        let actor = requests.first()?.actor.as_ref()?;
        Some(Box::new(Audit {
            actor: Arc::clone(actor),
            recurring: HashMap::new(),
            before: Vec::new(),
            after: Vec::new(),
            bytes: 0,
            items: 0,
        }))
    }

    /// Counts `items` changed items, and keeps this one if there is room.
    fn add(&mut self, items: i64, before: Option<&Item<'_>>, after: Option<&Item<'_>>) {
        self.items += items;
        let text = |item: Option<&Item<'_>>| serde_json::to_string(&item).unwrap_or_default();
        let (before, after) = (text(before), text(after));
        let bytes = self.bytes + before.len().max(after.len()) + 1;
        if bytes <= ITEMS_BYTES_MAX {
            self.bytes = bytes;
            self.before.push(before);
            self.after.push(after);
        }
    }
}

fn shorten(value: &str) -> String {
    let mut chars = value.chars();
    let mut short: String = chars.by_ref().take(VALUE_CHARS_MAX).collect();
    if chars.next().is_some() {
        short.push('…');
    }
    short
}

fn first_tags(tags: &[String]) -> &[String] {
    tags.get(..TAGS_MAX).unwrap_or(tags)
}

impl UnitOfWork {
    /// Remembers the recurring jobs as loaded, before verbs change them.
    pub fn begin_audit(&mut self) {
        if let Some(audit) = &mut self.audit {
            let read = self.recurring.iter();
            let read =
                read.filter_map(|(id, loaded)| Some((id.clone(), loaded.recurring.clone()?)));
            audit.recurring = read.collect();
        }
    }

    /// Adds the changed jobs and recurring jobs, before they are written.
    pub fn audit_jobs(&mut self) {
        let Some(mut audit) = self.audit.take() else {
            return;
        };
        let changed = |loaded: &&LoadedJob| loaded.version.is_none() || loaded.before.is_some();
        let mut jobs: Vec<&LoadedJob> = self.jobs.values().filter(changed).collect();
        jobs.sort_by_key(|loaded| loaded.job.seq);
        for (job, _) in &self.removed {
            audit.add(1, Some(&self.job_item(job, false, false)), None);
        }
        for loaded in jobs {
            let before = loaded.before.as_deref();
            let edited = before.is_some_and(|before| is_edited(before, &loaded.job));
            let before = before.map(|job| self.job_item(job, false, edited));
            let after = self.job_item(&loaded.job, true, edited);
            audit.add(1, before.as_ref(), Some(&after));
        }
        for (id, since) in &self.tracking {
            let key = JobKey::qless(id.as_str());
            let is_noted = |loaded: &LoadedJob| changed(&loaded);
            let (was, is) = (self.tracked.contains(id), since.is_some());
            if was == is || self.jobs.get(&key).is_some_and(is_noted) {
                continue;
            }
            let item = |tracked| Item::Tracked { job: id, tracked };
            audit.add(1, Some(&item(was)), Some(&item(is)));
        }
        for (id, loaded) in self.recurring.iter().filter(|(_, loaded)| loaded.changed) {
            let before = audit.recurring.get(id).cloned();
            let before = before.as_ref().map(|it| self.recurring_item(it));
            let after = loaded.recurring.as_ref().map(|it| self.recurring_item(it));
            audit.add(1, before.as_ref(), after.as_ref());
        }
        self.audit = Some(audit);
    }

    /// Adds the operations that were started, stopped or undone, before they are written.
    pub fn audit_operations(&mut self) {
        let Some(audit) = &mut self.audit else {
            return;
        };
        for (operation, before) in self.operations.decided() {
            let item = |state: OperationState| Item::Operation {
                operation: operation.id,
                action: &operation.action,
                stage: state.as_str(),
                jobs: operation.total,
            };
            let (before, after) = (before.map(item), item(operation.state));
            audit.add(1, before.as_ref(), Some(&after));
        }
    }

    /// Adds a search that was saved, or deleted (no `text`).
    pub fn audit_search(&mut self, search: &str, text: Option<&str>) {
        if let Some(audit) = &mut self.audit {
            let is_gone = text.is_none();
            let text = text.unwrap_or_default();
            let item = Some(&Item::Search { search, text });
            match is_gone {
                true => audit.add(1, item, None),
                false => audit.add(1, None, item),
            }
        }
    }

    /// Adds an alert rule that was added, or deleted (not `exists`).
    pub fn audit_alert_rule(&mut self, rule: &AlertRule, exists: bool) {
        if let Some(audit) = &mut self.audit {
            let item = Some(&Item::AlertRule {
                alert: &rule.name,
                webhook: rule.origin(),
                problems: rule.kinds.join(", "),
                after: rule.after_s,
            });
            match exists {
                true => audit.add(1, None, item),
                false => audit.add(1, item, None),
            }
        }
    }

    /// Adds a muted failure group, or without `hours` the end of a mute.
    pub fn audit_mute(&mut self, mute: &str, reason: &str, hours: Option<i64>) {
        if let Some(audit) = &mut self.audit {
            let item = Some(&Item::Mute {
                mute,
                reason,
                hours,
            });
            match hours {
                Some(_) => audit.add(1, None, item),
                None => audit.add(1, item, None),
            }
        }
    }

    /// Adds repaired inconsistencies.
    pub fn audit_repair(&mut self, inconsistencies: usize) {
        if let Some(audit) = &mut self.audit {
            let items = i64::try_from(inconsistencies).unwrap_or(i64::MAX);
            audit.add(items, Some(&Item::Repaired { inconsistencies }), None);
        }
    }

    /// Adds the other changes, and returns the statement that writes the entry, if anything was changed.
    pub(in crate::engine) fn audit_write(&mut self) -> Option<Statement> {
        let mut audit = self.audit.take()?;
        for queue in self.changed_queues.values() {
            let before = self.queues.by_id(queue.id);
            if before.as_deref() == Some(queue) {
                continue;
            }
            let before = before.as_deref().map(queue_item);
            audit.add(1, before.as_ref(), Some(&queue_item(queue)));
        }
        for (option, value) in &self.changed_options {
            let item = |value: String| Item::Option {
                option,
                value: shorten(&value),
            };
            let was = self.config.get(option);
            let is = value.clone().or_else(|| Config::default_value(option));
            if was == is {
                continue;
            }
            let (was, is) = (was.map(item), is.map(item));
            audit.add(1, was.as_ref(), is.as_ref());
        }
        for change in &self.tokens.changes {
            let (token, namespace) = (change.token_id(), change.namespace.as_str());
            let token = Some(Item::Token {
                token: &token,
                namespace,
            });
            let (before, after) = if change.created.is_some() {
                (None, token)
            } else {
                (token, None)
            };
            audit.add(1, before.as_ref(), after.as_ref());
        }
        for worker in &self.forgotten_workers {
            audit.add(1, Some(&Item::Worker { worker }), None);
        }
        if self.affected_rows > 0 {
            let deleted = self.affected_rows;
            let items = i64::try_from(deleted).unwrap_or(i64::MAX);
            audit.add(items, None, Some(&Item::Deleted { deleted }));
        }
        if audit.items == 0 {
            return None;
        }
        let list = |items: &[String]| format!("[{}]", items.join(","));
        let (before, after) = (list(&audit.before), list(&audit.after));
        Some(audit.actor.record(self.now, before, after, audit.items))
    }

    fn job_item<'a>(&self, job: &'a Job, is_after: bool, with_payload: bool) -> Item<'a> {
        let id = &job.key.id;
        Item::Job {
            job: id,
            state: job.state.as_str(),
            queue: self.queue_name(job.queue),
            priority: job.priority,
            tags: first_tags(&job.tags),
            tracked: if is_after {
                self.is_tracked(id)
            } else {
                self.tracked.contains(id)
            },
            label: job_rows::label(job),
            payload: job.body.read().filter(|_| with_payload).map(|text| {
                let hash = Hash::of(text).hex();
                let hash = hash.get(..HASH_DIGITS).unwrap_or_default();
                format!("{} bytes, SHA-256 {hash}…", text.len())
            }),
        }
    }

    fn recurring_item<'a>(&self, recurring: &'a Recurring) -> Item<'a> {
        Item::Recurring {
            recurring: &recurring.id,
            queue: self.queue_name(recurring.queue),
            interval: recurring.interval_s(),
            cron: recurring
                .cron
                .as_ref()
                .map(|cron| format!("{} {}", cron.expression, cron.zone)),
            paused: recurring.is_paused(),
            priority: recurring.priority,
            retries: recurring.retries,
            backlog: recurring.backlog,
            tags: first_tags(&recurring.tags),
        }
    }
}

/// Whether the payload of a job has changed.
fn is_edited(before: &Job, after: &Job) -> bool {
    let texts = before.body.read().zip(after.body.read());
    texts.is_some_and(|(before, after)| before != after)
}

fn queue_item(queue: &Queue) -> Item<'_> {
    let pause = queue.pause.as_ref();
    let until = pause.and_then(|pause| pause.until?.iso());
    Item::Queue {
        queue: &queue.key.name,
        paused: pause.is_some(),
        reason: pause.map_or("", |pause| &pause.reason),
        until,
        listed: !queue.forgotten,
    }
}
