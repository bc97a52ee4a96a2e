//! A server whose log the test can read.

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;

use tempfile::TempDir;

use super::{Server, database};

/// A server with its own database and its log.
#[derive(Debug)]
pub struct Logged {
    pub server: Server,
    folder: TempDir,
    /// The address of its database.
    pub database: String,
}

impl Logged {
    /// A server with these options that logs as `RUST_LOG=level`.
    pub fn with(level: &str, options: &[&str]) -> Logged {
        let folder = TempDir::new().expect("a folder");
        let database = database::address(&folder.path().join("jobs.db"));
        let mut command = Server::command(&database, options);
        let log = File::create(folder.path().join("log")).expect("a file for the log");
        command
            .env("RUST_LOG", level)
            .env("NO_COLOR", "1")
            .stderr(Stdio::from(log));
        Logged {
            server: Server::run(command),
            folder,
            database,
        }
    }

    /// The file of its database.
    pub fn database_path(&self) -> PathBuf {
        self.folder.path().join("jobs.db")
    }

    /// The log so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).expect("the log")
    }

    /// Stops the server gracefully. It must stop before the time limit for requests in progress.
    pub async fn stop_in_time(&mut self) {
        self.server.terminate();
        let status = self.server.stopped().await;
        let log = self.log();
        assert!(status.success(), "{status}: {log}");
        assert!(!log.contains("did not end before shutdown"), "{log}");
    }

    /// The contents of all files in the folder of the database except the log.
    pub fn files(&self) -> Vec<u8> {
        let files = std::fs::read_dir(self.folder.path()).expect("the folder");
        let paths = files.map(|file| file.expect("a file").path());
        let is_log = |path: &PathBuf| path.file_name().is_some_and(|name| name == "log");
        // The reserve is 32 MiB of zeros, which take a minute to search.
        let is_reserve = |path: &PathBuf| path.extension().is_some_and(|end| end == "reserve");
        let written = paths.filter(|path| !is_log(path) && !is_reserve(path));
        let contents = written.flat_map(|path| {
            // The file may have been removed: SQLite deletes the WAL when the last connection closes.
            std::fs::read(&path).unwrap_or_default()
        });
        contents.collect()
    }
}

/// Whether the bytes contain the text.
pub fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}
