//! `switchyard backup` and `switchyard restore`: verified copies of SQLite databases.

use super::{Outcome, print, print_notice};
use crate::config::{Backup, Restore};
use crate::engine::{Engine, EngineSettings};
use crate::store::{self, VerifiedCopy};

/// Inconsistencies that an error names at most.
const NAMED_MAX: usize = 5;

pub async fn run(options: &Backup) -> Outcome {
    let copy = store::back_up(&options.database.database, &options.file).await?;
    let checks = check(&copy).await?;
    let bytes = copy.publish()?;
    print(&format!(
        "{}: {bytes} bytes, verified ({checks})\n",
        options.file.display()
    ));
    Ok(())
}

pub async fn restore(options: &Restore) -> Outcome {
    let copy = store::restore(&options.file, &options.database.database, options.force).await?;
    let checks = check(&copy).await?;
    let bytes = copy.replace().await?;
    print(&format!(
        "{}: restored {bytes} bytes, verified ({checks})\n",
        options.database.database
    ));
    Ok(())
}

/// Runs the engine's consistency check on the copy, and returns the names of all checks that have passed.
async fn check(copy: &VerifiedCopy) -> Result<&'static str, String> {
    if !copy.is_current {
        print_notice(
            "the database is from an older version of Switchyard, so its consistency is not checked",
        );
        return Ok("integrity");
    }
    let options = EngineSettings {
        database: copy.address(),
        without_tasks: true,
        ..EngineSettings::default()
    };
    let engine = Engine::open(&options)
        .await
        .map_err(|error| format!("cannot open the copy: {}", error.detail()))?;
    let checked = engine.check_offline().await;
    engine.close().await;
    let found = checked.map_err(|error| format!("cannot check the copy: {}", error.detail()))?;
    if found.is_empty() {
        return Ok("integrity, consistency");
    }
    let named: Vec<&str> = found
        .iter()
        .take(NAMED_MAX)
        .map(|it| it.message.as_str())
        .collect();
    Err(format!(
        "inconsistencies ({}): {}; POST /check repairs them on a running server",
        found.len(),
        named.join("; ")
    ))
}
