//! The kinds of messages of failed jobs. Messages are read in batches, and only their fingerprints are kept: 10,000
//! messages can occupy 40 MB.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use crate::budget::Budget;
use crate::engine::{Allowance, Engine, Evaluated, FailureEntry, QueueId, Result, Time};
use crate::search::{Fingerprint, MESSAGE_CHARS_MAX};
use crate::ui::pages::failures::load::counts;
use crate::ui::pages::failures::model::MessageKind;

/// Maximum number of newest jobs that the page of a group analyzes.
const JOBS_MAX: usize = 10_000;

/// Jobs whose messages are in memory at the same time.
const BATCH: usize = 1_000;

/// Characters that a page fingerprints: enough for the messages of all analyzed jobs. Takes up to 1 s.
const CHARS_MAX: u64 = (JOBS_MAX * MESSAGE_CHARS_MAX) as u64;

/// Characters of the example of a kind of message.
const EXAMPLE_CHARS: usize = 120;

/// A failed job whose message was analyzed.
#[derive(Debug)]
pub struct AnalyzedJob {
    pub seq: i64,
    pub at: Time,
    pub queue: QueueId,
    /// The index of its worker, and the hash of its fingerprint.
    worker: usize,
    hash: String,
}

/// Analyzed jobs, newest first.
#[derive(Debug, Default)]
pub struct Analysis {
    pub jobs: Vec<AnalyzedJob>,
    workers: Vec<String>,
}

/// The newest jobs of a failure group that failed at `from` or later: up to 10,000, fewer if fingerprints take too long.
pub async fn analyze_group(engine: &Engine, group: &str, from: Time) -> Result<Analysis> {
    let mut allowance = engine.allowance(CHARS_MAX);
    let (mut analysis, mut known) = (Analysis::default(), HashMap::new());
    while analysis.jobs.len() < JOBS_MAX {
        let last = analysis.jobs.last().map(|job| (job.at, job.seq));
        let found = engine.failed_since(&[group], from, last, BATCH).await?;
        let found = found.into_iter().next().unwrap_or_default();
        let count = found.len();
        let (found, prints) = fingerprints(found, &mut allowance).await?;
        let is_last = count < BATCH || prints.len() < count;
        for (job, print) in found.into_iter().zip(prints) {
            let worker = *known.entry(job.worker).or_insert_with_key(|name| {
                analysis.workers.push(name.clone());
                analysis.workers.len() - 1
            });
            analysis.jobs.push(AnalyzedJob {
                seq: job.seq,
                at: job.at,
                queue: job.queue,
                worker,
                hash: print.hash,
            });
        }
        if is_last {
            break;
        }
    }
    Ok(analysis)
}

/// For each of these failure groups, how many of up to `count` newest jobs were analyzed, and the most frequent kind of
/// their messages.
pub async fn top_message_kinds(
    engine: &Engine,
    groups: &[&str],
    from: Time,
    count: usize,
) -> Result<Vec<(usize, Option<MessageKind>)>> {
    let mut allowance = engine.allowance(CHARS_MAX);
    let mut all = Vec::new();
    for some in groups.chunks(BATCH / count) {
        for jobs in engine.failed_since(some, from, None, count).await? {
            let (jobs, prints) = fingerprints(jobs, &mut allowance).await?;
            let hashes = prints.iter().map(|print| print.hash.as_str());
            let kind = kinds(hashes).into_iter().next();
            let kind = kind.map(|kind| {
                let message = jobs.get(kind.newest).map(|job| job.message.as_str());
                message_kind(message.unwrap_or_default(), kind.count)
            });
            all.push((jobs.len(), kind));
        }
    }
    Ok(all)
}

/// The kinds of messages of a failure group.
pub struct MessageKinds {
    /// Most frequent first.
    pub listed: Vec<MessageKind>,
    /// How many others there are.
    pub others: usize,
    /// The selected one, without text if no message has its fingerprint.
    pub selected: Option<MessageKind>,
}

impl Analysis {
    /// The kinds of messages, of which up to `max` are listed, and the one with the fingerprint `selected`, unless that
    /// is empty.
    pub async fn kinds(&self, engine: &Engine, max: usize, selected: &str) -> Result<MessageKinds> {
        let mut all = kinds(self.jobs.iter().map(|job| job.hash.as_str()));
        let is_selected = |kind: &KindCount<'_>| kind.hash == selected;
        let count = all.iter().copied().find(is_selected);
        let count = count.map_or(0, |kind| kind.count);
        let others = all.split_off(max.min(all.len()));
        let others_count = others.len();
        all.extend(others.into_iter().find(is_selected));
        let mut listed = self.described(engine, &all).await?;
        let found = listed.iter().find(|kind| kind.hash == selected).cloned();
        listed.truncate(max);
        Ok(MessageKinds {
            listed,
            others: others_count,
            selected: (!selected.is_empty()).then(|| {
                found.unwrap_or_else(|| MessageKind {
                    hash: selected.to_owned(),
                    text: String::new(),
                    example: String::new(),
                    count,
                })
            }),
        })
    }

    /// Reads the message of the newest job of each kind. A kind whose newest job has changed meanwhile is left out.
    async fn described(
        &self,
        engine: &Engine,
        kinds: &[KindCount<'_>],
    ) -> Result<Vec<MessageKind>> {
        let newest = |kind: &KindCount<'_>| self.jobs.get(kind.newest).map(|job| job.seq);
        let seqs: Vec<i64> = kinds.iter().filter_map(newest).collect();
        let jobs = engine.failed_jobs(&seqs).await?;
        let described = kinds.iter().filter_map(|kind| {
            let job = jobs.iter().find(|job| Some(job.seq) == newest(kind))?;
            let described = message_kind(&job.failure.as_ref()?.message, kind.count);
            (described.hash == kind.hash).then_some(described)
        });
        Ok(described.collect())
    }

    /// The jobs whose message has this fingerprint; all if it is empty.
    pub fn matching(&self, hash: &str) -> Vec<&AnalyzedJob> {
        let matches = |job: &&AnalyzedJob| hash.is_empty() || job.hash == hash;
        self.jobs.iter().filter(matches).collect()
    }

    /// The workers of most of these jobs.
    pub fn workers(&self, jobs: &[&AnalyzedJob], max: usize) -> Vec<(String, i64)> {
        let names = jobs.iter().filter_map(|job| self.workers.get(job.worker));
        let counted = counts(names.filter(|name| !name.is_empty()));
        let most = counted.into_iter().take(max);
        most.map(|(name, n)| (name.clone(), n)).collect()
    }
}

/// A kind of messages.
#[derive(Clone, Copy)]
struct KindCount<'a> {
    hash: &'a str,
    /// The number of messages.
    count: i64,
    /// The index of the newest one.
    newest: usize,
}

/// The kinds of messages, most frequent first, then newest first.
fn kinds<'a>(hashes: impl Iterator<Item = &'a str>) -> Vec<KindCount<'a>> {
    let mut kinds: HashMap<&str, KindCount<'_>> = HashMap::new();
    for (newest, hash) in hashes.enumerate() {
        let first = KindCount {
            hash,
            count: 0,
            newest,
        };
        kinds.entry(hash).or_insert(first).count += 1;
    }
    let mut kinds: Vec<_> = kinds.into_values().collect();
    kinds.sort_by_key(|kind| (Reverse(kind.count), kind.newest));
    kinds
}

/// The kind of this message.
fn message_kind(message: &str, count: i64) -> MessageKind {
    let print = Fingerprint::of(message);
    MessageKind {
        hash: print.hash,
        text: print.text,
        example: beginning(message),
        count,
    }
}

/// The beginning of a message, on one line.
fn beginning(message: &str) -> String {
    let mut line = String::new();
    for word in message.split_whitespace().take(EXAMPLE_CHARS) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().take(EXAMPLE_CHARS));
    }
    line.chars().take(EXAMPLE_CHARS).collect()
}

/// The fingerprints of messages, newest job first, until the allowance is used up, and the jobs that they belong to.
async fn fingerprints(
    jobs: Vec<FailureEntry>,
    allowance: &mut Allowance,
) -> Result<(Vec<FailureEntry>, Vec<Fingerprint>)> {
    let jobs = Arc::new(jobs);
    let evaluate = {
        let jobs = Arc::clone(&jobs);
        move |budget: &mut Budget| {
            let mut prints = Vec::with_capacity(jobs.len());
            for job in jobs.iter() {
                if let Err(exceeded) = budget.spend(job.message.len().min(MESSAGE_CHARS_MAX)) {
                    return Evaluated {
                        value: prints,
                        exceeded: Some(exceeded),
                    };
                }
                prints.push(Fingerprint::of(&job.message));
            }
            Evaluated {
                value: prints,
                exceeded: None,
            }
        }
    };
    let prints = allowance.run(evaluate).await?.value;
    let mut jobs = Arc::unwrap_or_clone(jobs);
    jobs.truncate(prints.len());
    Ok((jobs, prints))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_sorted_by_frequency_then_by_age() {
        let newest = ["c", "no 1", "b", "no 22", "b 'x'"].map(Fingerprint::of);
        let found: Vec<_> = kinds(newest.iter().map(|print| print.hash.as_str()))
            .into_iter()
            .map(|kind| (kind.hash.to_owned(), kind.count, kind.newest))
            .collect();
        let hash = |text: &str| Fingerprint::of(text).hash;
        let expected = [("no 3", 2, 1), ("c", 1, 0), ("b", 1, 2), ("b 'y'", 1, 4)];
        assert_eq!(found, expected.map(|(text, n, at)| (hash(text), n, at)));
    }

    #[test]
    fn an_example_is_the_first_120_characters_on_one_line() {
        assert_eq!(beginning(" a\n  b "), "a b");
        let long = "é".repeat(121);
        assert_eq!(beginning(&long).chars().count(), EXAMPLE_CHARS);
        assert_eq!(
            beginning(&format!("a {long}")),
            format!("a {}", "é".repeat(118))
        );
    }
}
