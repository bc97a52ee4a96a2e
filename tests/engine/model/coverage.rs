//! Counts how often each verb and each refusal was reached.

use std::collections::BTreeMap;

use super::steps::{NAMES, REFUSALS};

#[derive(Debug, Default)]
pub struct Coverage {
    pub steps: u64,
    /// Per verb: accepted, and refused.
    verbs: BTreeMap<String, (u64, u64)>,
    refusals: BTreeMap<String, u64>,
}

impl Coverage {
    pub fn add(&mut self, verb: &str, outcome: &str) {
        self.steps += 1;
        let counts = self.verbs.entry(verb.to_owned()).or_default();
        for result in outcome.split(',') {
            match result.strip_prefix('!') {
                Some(refusal) => {
                    counts.1 += 1;
                    *self.refusals.entry(refusal.to_owned()).or_default() += 1;
                }
                None => counts.0 += 1,
            }
        }
    }

    /// How often the verb was accepted.
    pub fn count(&self, verb: &str) -> u64 {
        self.verbs.get(verb).map_or(0, |counts| counts.0)
    }

    pub fn print(&self) {
        println!("verb: accepted, refused");
        for (verb, (accepted, refused)) in &self.verbs {
            println!("  {verb}: {accepted}, {refused}");
        }
        for (refusal, count) in &self.refusals {
            println!("  refused as {refusal}: {count}");
        }
    }

    /// The verbs that were never accepted, and the refusals that never came.
    pub fn missing(&self) -> Vec<String> {
        let verbs = NAMES.iter().filter(|name| self.count(name) == 0);
        let refusals = REFUSALS.iter();
        let refusals = refusals.filter(|name| !self.refusals.contains_key(**name));
        verbs
            .chain(refusals)
            .map(|name| (*name).to_owned())
            .collect()
    }
}
