//! The checks of configuration, files and database.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::Finding;
use crate::config::{Loaded, Serve, Source, Value};
use crate::engine::{Engine, EngineSettings};
use crate::store::{Inspection, database_file, inspect, without_password};

/// Inconsistencies that are listed at most.
const LISTED_MAX: usize = 5;

/// A difference from the database's clock that is larger than this, in microseconds, is reported.
const CLOCK_DIFFERENCE_MAX: i64 = 5_000_000;

/// The oldest version that has all features that the migrations use. Tested with PostgreSQL 15.
const POSTGRES_MIN: u32 = 13;

/// What keeps the server from starting, and what it exposes.
pub fn configuration(serve: &Serve) -> Vec<Finding> {
    let settings = match serve.settings() {
        Ok(settings) => settings,
        Err(why) => return vec![Finding::problem("configuration", why)],
    };
    match serve.exposure(&settings.auth) {
        Err(why) => vec![Finding::problem("access", why)],
        Ok(warnings) if warnings.is_empty() => vec![
            Finding::ok("configuration", "valid"),
            Finding::ok(
                "access",
                format!(
                    "no API is open on a non-loopback address (listening on {})",
                    serve.listen
                ),
            ),
        ],
        Ok(warnings) => {
            let mut findings = vec![Finding::ok("configuration", "valid")];
            findings.extend(
                warnings
                    .into_iter()
                    .map(|why| Finding::warning("access", why)),
            );
            findings
        }
    }
}

/// The permissions of the files that hold jobs or secrets.
pub fn files(loaded: &Loaded, serve: &Serve) -> Vec<Finding> {
    let mut files: Vec<PathBuf> = Vec::new();
    if let Some(database) = database_file(&serve.database) {
        for suffix in ["", "-wal", "-shm", ".lock", ".reserve"] {
            let mut name = database.as_os_str().to_owned();
            name.push(suffix);
            files.push(PathBuf::from(name));
        }
        files.retain(|file| file.exists());
    }
    files.extend(serve.access.secret_files().map(PathBuf::from));
    files.extend(serve.alerts.secret_file().map(PathBuf::from));
    files.extend(serve.network.tls_key.iter().map(PathBuf::from));
    let is_secret_in_file = |setting: &crate::config::Setting| {
        setting.value == Value::Secret && matches!(setting.source, Source::File(_))
    };
    if loaded.settings.iter().any(is_secret_in_file) {
        files.extend(loaded.file.clone());
    }
    let findings: Vec<Finding> = files.iter().filter_map(|file| permissions(file)).collect();
    if findings.is_empty() {
        let count = files.len();
        return vec![Finding::ok(
            "files",
            format!("no file is readable by other users ({count} checked)"),
        )];
    }
    findings
}

fn permissions(path: &Path) -> Option<Finding> {
    let shown = path.display();
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) => return Some(Finding::problem("files", format!("{shown}: {error}"))),
    };
    // A pipe or a device that provides a secret has no content of its own.
    if !found.is_file() {
        return None;
    }
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o022 != 0 {
        return Some(Finding::problem(
            "files",
            format!("{shown} can be changed by others (mode {mode:o}); chmod 600"),
        ));
    }
    if is_exposed(mode, found.uid()) {
        return Some(Finding::warning(
            "files",
            format!("{shown} can be read by others (mode {mode:o}); chmod 600"),
        ));
    }
    let user = rustix::process::geteuid().as_raw();
    if user != 0 && found.uid() != user {
        return Some(Finding::warning(
            "files",
            format!("{shown} belongs to another user ({})", found.uid()),
        ));
    }
    None
}

/// Whether users other than the owner can read a file. A file that belongs to root may be readable by its group, so
/// that the service can read its secrets but not change them.
fn is_exposed(mode: u32, owner: u32) -> bool {
    let allowed = if owner == 0 { 0o040 } else { 0 };
    mode & 0o044 & !allowed != 0
}

/// The database: version, migrations, indexes, integrity, consistency.
pub async fn database(serve: &Serve, now: i64) -> (Option<Inspection>, Vec<Finding>) {
    let address = without_password(&serve.database);
    if address.contains(":memory:") {
        let finding = Finding::warning(
            "database",
            "temporary; all jobs are lost when the server stops",
        );
        return (None, vec![finding]);
    }
    let found = match inspect(&serve.database, now).await {
        Ok(Some(found)) => found,
        Ok(None) => {
            let finding = Finding::warning(
                "database",
                format!("{address} has no tables yet; the server creates them"),
            );
            return (None, vec![finding]);
        }
        Err(error) => {
            let finding = Finding::problem("database", format!("cannot open {address}: {error}"));
            return (None, vec![finding]);
        }
    };
    let mut findings = vec![version(&found), migrations(&found), indexes(&found)];
    findings.extend(found.clock.map(|clock| difference(clock - now)));
    if !found.damage.is_empty() {
        let mut finding = Finding::problem("integrity", "the file is damaged; restore a backup");
        finding.details.clone_from(&found.damage);
        findings.push(finding);
    } else {
        findings.push(Finding::ok("integrity", "no damage found"));
        findings.extend(definitions(&found));
        if found.info.migration == found.expected {
            findings.push(consistency(&serve.database).await);
        }
    }
    (Some(found), findings)
}

fn version(found: &Inspection) -> Finding {
    let info = &found.info;
    let in_use = if found.is_in_use {
        "in use by a server"
    } else {
        "not in use"
    };
    let message = format!(
        "{} {}, {} MiB, {in_use}",
        info.kind,
        info.version,
        info.bytes >> 20
    );
    let major = info
        .version
        .split('.')
        .next()
        .and_then(|it| it.parse::<u32>().ok());
    match (info.kind, major) {
        ("PostgreSQL", Some(major)) if major < POSTGRES_MIN => Finding::problem(
            "database",
            format!("{message}; PostgreSQL {POSTGRES_MIN} or newer is required"),
        ),
        _ => Finding::ok("database", message),
    }
}

fn migrations(found: &Inspection) -> Finding {
    let (has, expects) = (found.info.migration, found.expected);
    if has > expects {
        return Finding::problem(
            "migrations",
            format!(
                "the schema is version {has}, from a newer program; this one knows up to {expects}"
            ),
        );
    }
    if has < expects {
        return Finding::warning(
            "migrations",
            format!(
                "the schema is version {has}; the next start of this program migrates it to {expects}"
            ),
        );
    }
    Finding::ok(
        "migrations",
        format!("the schema is version {has}, as expected"),
    )
}

fn indexes(found: &Inspection) -> Finding {
    let missing = &found.missing_indexes;
    if missing.is_empty() {
        return Finding::ok("indexes", "none is missing");
    }
    Finding::problem(
        "indexes",
        format!("missing, which makes requests slow: {}", missing.join(", ")),
    )
}

/// `None` if there is nothing to say.
fn definitions(found: &Inspection) -> Option<Finding> {
    let changed = &found.changed_definitions;
    let message =
        "the file has unexpected tables or indexes; another program has created or changed it";
    (!changed.is_empty()).then(|| {
        let mut finding = Finding::problem("definitions", message);
        finding.details.clone_from(changed);
        finding
    })
}

fn difference(micros: i64) -> Finding {
    let seconds = micros / 1_000_000;
    if micros.abs() > CLOCK_DIFFERENCE_MAX {
        return Finding::warning(
            "database clock",
            format!("differs from this machine's by {seconds} s"),
        );
    }
    Finding::ok("database clock", "agrees with this machine's")
}

/// The engine's own check.
async fn consistency(database: &str) -> Finding {
    let options = EngineSettings {
        database: database.to_owned(),
        without_tasks: true,
        ..EngineSettings::default()
    };
    let engine = match Engine::open(&options).await {
        Ok(engine) => engine,
        Err(error) => return Finding::problem("consistency", error.detail()),
    };
    let checked = engine.check(None).await;
    engine.close().await;
    match checked {
        Err(error) => Finding::problem("consistency", error.detail()),
        Ok(found) if found.is_empty() => Finding::ok("consistency", "no inconsistencies"),
        Ok(found) => {
            let message = format!(
                "inconsistencies: {}; POST /check or the Check page repairs them",
                found.len()
            );
            let mut finding = Finding::problem("consistency", message);
            let listed = found.iter().take(LISTED_MAX).map(|it| it.message.clone());
            finding.details = listed.collect();
            finding
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_of_root_may_be_readable_by_the_group_of_the_service() {
        for (mode, owner, expected) in [
            (0o600, 0, false),
            (0o640, 0, false),
            (0o644, 0, true),
            (0o604, 0, true),
            (0o600, 1000, false),
            (0o640, 1000, true),
            (0o604, 1000, true),
        ] {
            assert_eq!(is_exposed(mode, owner), expected, "{mode:o} {owner}");
        }
    }
}
