//! The jobs that an import has found, imported, left unchanged and skipped, with the reasons.

use std::collections::BTreeMap;

/// Names that the report gives for each reason.
const EXAMPLES_MAX: usize = 5;

/// Characters of a name that the report shows.
const NAME_CHARS_MAX: usize = 80;

/// Different reasons that the report lists; others are counted together.
const REASONS_MAX: usize = 100;

/// Counts of one kind of thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Read from the source.
    pub found: u64,
    pub imported: u64,
    /// The target had it.
    pub existing: u64,
    pub skipped: u64,
}

#[derive(Clone, Debug, Default)]
struct Reason {
    count: u64,
    examples: Vec<String>,
}

/// The report of an import.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// By protocol and kind, such as `qless` and `waiting`.
    counts: BTreeMap<(&'static str, &'static str), Count>,
    reasons: BTreeMap<String, Reason>,
    notes: Vec<String>,
}

impl Report {
    /// The counts of a kind of thing, for changing.
    pub fn count(&mut self, protocol: &'static str, kind: &'static str) -> &mut Count {
        self.counts.entry((protocol, kind)).or_default()
    }

    /// The number of things read from the source.
    pub fn found(&self) -> u64 {
        self.counts.values().map(|count| count.found).sum()
    }

    /// The number of jobs, or other things, of one kind that were imported.
    pub fn imported(&self, protocol: &'static str, kind: &'static str) -> u64 {
        let count = self.counts.get(&(protocol, kind));
        count.map_or(0, |count| count.imported)
    }

    /// Counts a thing that was not imported.
    pub fn skip(
        &mut self,
        protocol: &'static str,
        kind: &'static str,
        name: &str,
        reason: impl Into<String>,
    ) {
        self.count(protocol, kind).skipped += 1;
        let mut reason = format!("{protocol} {kind}: {}", reason.into());
        if self.reasons.len() >= REASONS_MAX && !self.reasons.contains_key(&reason) {
            reason = "other reasons".to_owned();
        }
        let reason = self.reasons.entry(reason).or_default();
        reason.count += 1;
        if reason.examples.len() < EXAMPLES_MAX {
            let name = name.chars().take(NAME_CHARS_MAX);
            reason.examples.push(name.collect());
        }
    }

    /// The number of things that were not imported.
    pub fn skipped(&self) -> u64 {
        self.counts.values().map(|count| count.skipped).sum()
    }

    /// Adds a remark.
    pub fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }

    /// The report as lines. After a dry run, which opens no target, the counts are those of an import into an empty
    /// one, and the column of existing things has dashes. The caller must escape the lines for a terminal, because
    /// names from the source can contain control characters.
    pub fn lines(&self, is_dry_run: bool) -> Vec<String> {
        let imported = if is_dry_run {
            "would import"
        } else {
            "imported"
        };
        let titles = ["found", imported, "already exist", "skipped"].map(str::to_owned);
        let mut lines = vec![line("", &titles)];
        for ((protocol, kind), count) in &self.counts {
            let numbers = [count.found, count.imported, count.existing, count.skipped];
            let name = format!("{protocol} {kind}");
            let mut cells = numbers.map(|number| number.to_string());
            if is_dry_run {
                cells[2] = "–".to_owned();
            }
            lines.push(line(&name, &cells));
        }
        for (reason, Reason { count, examples }) in &self.reasons {
            let examples = examples.join(", ");
            lines.push(format!("skipped {count}, {reason} ({examples})"));
        }
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        lines
    }
}

fn line(name: &str, cells: &[String; 4]) -> String {
    let cells: String = cells.iter().map(|cell| format!("{cell:>15}")).collect();
    format!("{name:<24}{cells}")
}
