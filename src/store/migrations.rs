//! The migrations of both databases, as part of the program. A released file never changes: a database holds the
//! checksum of each one that has run, and the server refuses to open it when they differ.

use sqlx::AssertSqlSafe;
use sqlx::SqlSafeStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};

/// The migrations of a folder, each with its file name. Both folders have the same names.
macro_rules! migrations {
    ($folder:literal) => {
        migrations!($folder:
            "0001_engine"
            "0002_config"
            "0003_qless"
            "0004_servers"
            "0005_tokens"
            "0006_lmstfy"
            "0007_relay"
            "0008_jobq"
            "0009_operations"
            "0010_audit"
            "0011_due"
            "0012_searches"
            "0013_revisions"
            "0014_quotas"
            "0015_token_use"
            "0016_lists"
            "0017_long_bodies"
            "0018_scripts"
            "0019_pauses"
            "0020_cron"
            "0021_alerts"
            "0022_mutes"
            "0023_recurring_due"
            "0024_cache_revisions"
            "0025_long_texts_last"
            "0026_recurring_rows"
            "0027_removed_bodies"
        )
    };
    ($folder:literal: $($file:literal)*) => {
        [$(($file, include_str!(concat!("../../migrations/", $folder, "/", $file, ".sql")))),*]
    };
}

pub(super) fn sqlite() -> Migrator {
    migrator(&migrations!("sqlite"))
}

pub(super) fn postgres() -> Migrator {
    migrator(&migrations!("postgres"))
}

/// The version of the last migration.
pub(super) fn newest(migrator: &Migrator) -> Option<i64> {
    migrator.iter().map(|step| step.version).max()
}

fn migrator(files: &[(&'static str, &'static str)]) -> Migrator {
    let migrations = (1..).zip(files).map(|(number, (file, sql))| {
        let (version, description) = file.split_once('_').unwrap_or(("", file));
        let version = version.parse().unwrap_or(number);
        Migration::new(
            version,
            description.replace('_', " ").into(),
            MigrationType::Simple,
            AssertSqlSafe(*sql).into_sql_str(),
            false,
        )
    });
    Migrator::with_migrations(migrations.collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use sqlx::Connection;
    use sqlx::sqlite::SqliteConnection;

    use super::*;

    /// SQLite reads through a long text to reach the columns after it, and compares whole rows of a table without
    /// numbers.
    #[tokio::test]
    async fn long_texts_are_the_last_columns_of_numbered_rows() {
        let mut database = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        sqlite().run(&mut database).await.unwrap();
        let jobs = ["body", "tags", "failure_message", "work_state", "history"];
        for (table, long) in [("jobs", &jobs[..]), ("recurring", &["tags", "body"])] {
            let columns = "SELECT name FROM pragma_table_info($1) ORDER BY cid";
            let columns = sqlx::query_scalar(columns).bind(table);
            let columns: Vec<String> = columns.fetch_all(&mut database).await.unwrap();
            let last: Vec<&str> = columns.iter().map(String::as_str).collect();
            assert!(last.ends_with(long), "{columns:?}");
            let numbered = "SELECT wr = 0 FROM pragma_table_list WHERE name = $1";
            let numbered = sqlx::query_scalar(numbered).bind(table);
            let is_numbered: bool = numbered.fetch_one(&mut database).await.unwrap();
            assert!(is_numbered, "{table}");
        }
    }

    #[test]
    fn every_file_of_the_folders_is_a_migration_with_the_version_of_its_name() {
        for (folder, migrator) in [("sqlite", sqlite()), ("postgres", postgres())] {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/").to_owned() + folder;
            let files = fs::read_dir(folder).unwrap();
            let mut files: Vec<(String, String)> = files
                .map(|file| file.unwrap().path())
                .map(|path| {
                    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
                    (name, fs::read_to_string(path).unwrap())
                })
                .collect();
            files.sort();
            let migrations = migrator.iter().map(|step| {
                let name = format!("{:04}_{}", step.version, step.description.replace(' ', "_"));
                (name, step.sql.as_str().to_owned())
            });
            assert_eq!(migrations.collect::<Vec<_>>(), files);
        }
    }
}
