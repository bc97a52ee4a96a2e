//! `switchyard copy`: copies one database to another and verifies the result.

use std::time::Instant;

use super::{Outcome, Progress, print, print_notice};
use crate::store::{self, Copied, Progress as CopyProgress, without_password};

pub async fn run(from: &str, to: &str) -> Outcome {
    let started = Instant::now();
    let mut progress = Progress::new();
    let mut report = |at: CopyProgress| {
        if progress.is_due(at.total > 0 && at.rows >= at.total) {
            print_notice(&format!(
                "{} {}: {} of {} rows",
                at.phase, at.table, at.rows, at.total
            ));
        }
    };
    let copied = store::copy(from, to, &mut report).await.map_err(|error| {
        format!(
            "cannot copy {} to {}: {error}",
            without_password(from),
            without_password(to)
        )
    })?;
    print(&format!(
        "{:<16}{:>12}  checksum, equal on both sides\n",
        "table", "rows"
    ));
    for Copied {
        table,
        rows,
        checksum,
    } in &copied
    {
        print(&format!("{table:<16}{rows:>12}  {checksum:016x}\n"));
    }
    let rows: u64 = copied.iter().map(|copied| copied.rows).sum();
    let seconds = started.elapsed().as_secs_f64();
    print(&format!(
        "{rows} rows copied and verified in {seconds:.1} s, from {} to {}\n",
        without_password(from),
        without_password(to)
    ));
    Ok(())
}
