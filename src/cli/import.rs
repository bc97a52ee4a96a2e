//! `switchyard import`: copies the jobs of qless, lmstfy or Relay into a database.

use std::time::Instant;

use super::output::printable;
use super::{Outcome, Progress, print, print_notice};
use crate::config;
use crate::import::{Import, Report};
use crate::store::without_password;

pub async fn run(options: &config::Import) -> Outcome {
    let started = Instant::now();
    let import = Import {
        database: options.database.database.clone(),
        existing: options.existing,
        dry_run: options.dry_run,
        lmstfy_pool: options.lmstfy_pool.clone(),
    };
    let mut progress = Progress::after_interval();
    let mut on_progress = |report: &Report| {
        if progress.is_due(false) {
            print_notice(&format!("{} entries read", report.found()));
        }
    };
    let (source, done) = match (&options.from_redis, &options.from_postgres) {
        (Some(url), _) => (url, import.from_redis(url, &mut on_progress).await),
        (None, Some(url)) => (url, import.from_postgres(url, &mut on_progress).await),
        (None, None) => return Err("--from-redis or --from-postgres is missing".into()),
    };
    let source = without_password(source);
    let report = done.map_err(|error| format!("cannot import {source}: {error}"))?;
    print(&text(&report, options.dry_run));
    let seconds = started.elapsed().as_secs_f64();
    let target = without_password(&import.database);
    print(&match options.dry_run {
        true => format!("read {source} in {seconds:.1} s; nothing was imported\n"),
        false => {
            format!("imported {source} into {target} and compared the counts in {seconds:.1} s\n")
        }
    });
    Ok(())
}

/// The report, with escapes in the names of the source.
fn text(report: &Report, is_dry_run: bool) -> String {
    let lines = report.lines(is_dry_run);
    lines
        .iter()
        .map(|line| format!("{}\n", printable(line)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_source_do_not_act_on_the_terminal() {
        let (hostile, mut report) = ("a\0\x1b[31m\n\u{202e}b", Report::default());
        report.note(&format!("1 job is missing: {hostile}"));
        report.skip("qless", "waiting", hostile, format!("of {hostile}"));
        let text = text(&report, false);
        assert!(!text.contains(['\0', '\x1b', '\u{202e}']), "{text:?}");
        assert_eq!(text.lines().count(), 4, "{text:?}");
    }

    #[test]
    fn a_dry_run_does_not_count_what_the_target_has() {
        let mut report = Report::default();
        report.count("qless", "waiting").found = 2;
        let cells = |is_dry_run| -> Vec<String> {
            let text = text(&report, is_dry_run);
            let row = text.lines().nth(1).expect("a row follows the titles");
            row.split_whitespace().map(str::to_owned).collect()
        };
        assert_eq!(cells(true), ["qless", "waiting", "2", "0", "–", "0"]);
        assert_eq!(cells(false), ["qless", "waiting", "2", "0", "0", "0"]);
    }
}
