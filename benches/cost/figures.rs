//! Figures: the instructions per operation of each section, their file format, and the comparison of two sets.

use std::fmt;

use super::Result;

/// Maximum increase over the committed figure, in percent.
const TOLERANCE: f64 = 3.0;

/// Below this difference to the committed figure, in percent, that figure is out of date.
const STALE: f64 = -5.0;

/// Instructions per operation of each section, with the compiler that built them.
pub struct Figures {
    compiler: String,
    sections: Vec<(String, u64)>,
}

impl Figures {
    pub fn of_this_compiler(sections: Vec<(String, u64)>) -> Figures {
        Figures {
            compiler: env!("SWITCHYARD_RUSTC").to_owned(),
            sections,
        }
    }

    /// The lower figure of each section.
    pub fn lowest(mut self, other: &Figures) -> Figures {
        for ((_, figure), (_, others)) in self.sections.iter_mut().zip(&other.sections) {
            *figure = (*figure).min(*others);
        }
        self
    }

    /// Parses the format that `Display` writes.
    pub fn read(text: &str) -> Result<Figures> {
        let (first, rest) = text.split_once('\n').ok_or("no figures")?;
        let sections = rest.lines().map(|line| {
            let wrong = || format!("not a figure: {line}");
            let (name, instructions) = line.split_once('\t').ok_or_else(wrong)?;
            Ok((name.to_owned(), instructions.parse().map_err(|_| wrong())?))
        });
        Ok(Figures {
            compiler: first.trim_start_matches("# ").to_owned(),
            sections: sections.collect::<Result<_>>()?,
        })
    }

    /// Prints both sets side by side. Returns false if a figure is too high or has no committed one. Returns true if
    /// the compilers differ, because the sets are not comparable then.
    pub fn compare(&self, committed: &Figures) -> bool {
        let mut over_budget = Vec::new();
        let mut stale = false;
        println!(
            "{:<28}{:>12}{:>12}{:>9}",
            "instructions per operation", "committed", "now", "change"
        );
        for (name, now) in &self.sections {
            let before = committed.sections.iter().find(|(known, _)| known == name);
            let Some((_, before)) = before else {
                println!("{name:<28}{:>12}{now:>12}", "-");
                over_budget.push(name.as_str());
                continue;
            };
            let change = (*now as f64 / *before as f64 - 1.0) * 100.0;
            println!("{name:<28}{before:>12}{now:>12}{change:>+8.1}%");
            if change > TOLERANCE {
                over_budget.push(name);
            }
            stale |= change < STALE;
        }
        if self.compiler != committed.compiler {
            println!(
                "not compared: the figures were measured with {}, and this is {}",
                committed.compiler, self.compiler
            );
            return true;
        }
        if over_budget.is_empty() {
            if stale {
                println!(
                    "some sections cost less than the committed figures: update them with `make cost ARGS=--accept`"
                );
            }
            return true;
        }
        println!(
            "more expensive by over {TOLERANCE} %: {}. Make it cheaper, or raise the figures in the same change with \
             `make cost ARGS=--accept` and say why",
            over_budget.join(", ")
        );
        false
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# {}", self.compiler)?;
        for (name, instructions) in &self.sections {
            writeln!(f, "{name}\t{instructions}")?;
        }
        Ok(())
    }
}
