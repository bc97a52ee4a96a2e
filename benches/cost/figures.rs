//! Figures: what one operation of each section costs, how they are written, and how two sets are compared.

use std::fmt;

use super::Result;

/// More than this above the committed figure, in percent, is dearer.
const TOLERANCE: f64 = 3.0;

/// This far below it the committed figure is out of date.
const STALE: f64 = -5.0;

/// Instructions of one operation, by section, as a compiler made them.
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

    /// Of each section the lower figure.
    pub fn lowest(mut self, other: &Figures) -> Figures {
        for ((_, figure), (_, others)) in self.sections.iter_mut().zip(&other.sections) {
            *figure = (*figure).min(*others);
        }
        self
    }

    /// Reads what [`Figures`] displays as.
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

    /// Prints both beside each other. False if something is dearer than committed, or was not committed; but
    /// another compiler than that of the committed figures proves nothing.
    pub fn compare(&self, committed: &Figures) -> bool {
        let mut dearer = Vec::new();
        let mut stale = false;
        println!(
            "{:<28}{:>12}{:>12}{:>9}",
            "instructions per operation", "committed", "now", "change"
        );
        for (name, now) in &self.sections {
            let before = committed.sections.iter().find(|(known, _)| known == name);
            let Some((_, before)) = before else {
                println!("{name:<28}{:>12}{now:>12}", "-");
                dearer.push(name.as_str());
                continue;
            };
            let change = (*now as f64 / *before as f64 - 1.0) * 100.0;
            println!("{name:<28}{before:>12}{now:>12}{change:>+8.1}%");
            if change > TOLERANCE {
                dearer.push(name);
            }
            stale |= change < STALE;
        }
        if self.compiler != committed.compiler {
            println!(
                "not held to the figures: they are of {}, and this is {}",
                committed.compiler, self.compiler
            );
            return true;
        }
        if dearer.is_empty() {
            if stale {
                println!(
                    "some cost less than committed: commit the figures of `make cost ARGS=--accept`"
                );
            }
            return true;
        }
        println!(
            "dearer by more than {TOLERANCE} %: {}. Make it cheaper, or raise the figures in the same change with \
             `make cost ARGS=--accept` and say why",
            dearer.join(", ")
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
