//! `switchyard doctor`: what is wrong with this installation, and a bundle for support.

mod checks;
mod machine;

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use chrono::{DateTime, SecondsFormat};
use serde_json::{Value, json};

use super::output::printable;
use super::{Outcome, config, now, print};
use crate::config::{Doctor, Loaded};
use crate::store::Inspection;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Ok,
    /// Worth a look; the installation works.
    Warning,
    /// The installation does not work, or is at risk.
    Problem,
}

/// The result of one check.
#[derive(Clone, Debug)]
struct Finding {
    check: &'static str,
    level: Level,
    message: String,
    /// Details that may contain names of queues and jobs, so they are neither in the JSON report nor in the bundle.
    details: Vec<String>,
}

impl Finding {
    fn new(check: &'static str, level: Level, message: impl Into<String>) -> Finding {
        Finding {
            check,
            level,
            message: message.into(),
            details: Vec::new(),
        }
    }

    fn ok(check: &'static str, message: impl Into<String>) -> Finding {
        Finding::new(check, Level::Ok, message)
    }

    fn warning(check: &'static str, message: impl Into<String>) -> Finding {
        Finding::new(check, Level::Warning, message)
    }

    fn problem(check: &'static str, message: impl Into<String>) -> Finding {
        Finding::new(check, Level::Problem, message)
    }

    fn json(&self) -> Value {
        json!({"check": self.check, "level": self.level.name(), "message": self.message})
    }
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Problem => "problem",
        }
    }
}

pub async fn run(loaded: &Loaded, options: &Doctor) -> Outcome {
    let now = now();
    let mut findings = checks::configuration(&options.serve);
    findings.extend(checks::files(loaded, &options.serve));
    findings.extend(machine::check(&options.serve.database, now));
    let (inspection, of_database) = checks::database(&options.serve, now).await;
    findings.extend(of_database);
    let problems = findings
        .iter()
        .filter(|it| it.level == Level::Problem)
        .count();
    let report: Vec<Value> = findings.iter().map(Finding::json).collect();
    if let Some(path) = &options.bundle {
        write_bundle(path, &bundle(loaded, now, &report, inspection.as_ref()))?;
    }
    if options.json {
        let report = json!({"problems": problems, "findings": report});
        print(&format!("{report:#}\n"));
    } else {
        findings.iter().for_each(show);
    }
    match problems {
        0 => Ok(()),
        1 => Err("1 problem".into()),
        count => Err(format!("{count} problems").into()),
    }
}

fn show(finding: &Finding) {
    let Finding {
        check,
        level,
        message,
        details,
    } = finding;
    // Names in the database, and messages of Postgres, can be of other people.
    let message = printable(message);
    print(&format!("{:<8} {check:<14} {message}\n", level.name()));
    for detail in details {
        print(&format!("{:<23} {}\n", "", printable(detail)));
    }
}

/// What support needs to know, without payloads, names of queues, and secrets.
fn bundle(loaded: &Loaded, now: i64, report: &[Value], inspection: Option<&Inspection>) -> Value {
    let at = DateTime::from_timestamp_micros(now).unwrap_or_default();
    let settings = loaded
        .settings
        .iter()
        .map(|it| config::line(loaded, it, true));
    let settings: Vec<String> = settings.map(|line| line.trim_end().to_owned()).collect();
    let database = inspection.map(|it| {
        let rows: serde_json::Map<String, Value> = it
            .rows
            .iter()
            .map(|(name, count)| (name.clone(), json!(count)))
            .collect();
        json!({
            "kind": it.info.kind,
            "version": it.info.version,
            "bytes": it.info.bytes,
            "migration": it.info.migration,
            "expected_migration": it.expected,
            "is_in_use": it.is_in_use,
            "rows": rows,
        })
    });
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "at": at.to_rfc3339_opts(SecondsFormat::Secs, true),
        "machine": machine::describe(),
        "findings": report,
        "settings": settings,
        "database": database,
    })
}

/// Writes the bundle to a new file that only its owner can read.
fn write_bundle(path: &Path, bundle: &Value) -> Result<(), String> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(format!("{bundle:#}\n").as_bytes()));
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}
