//! The machine's clock of one server, which the test sets.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::Server;

/// The source of the library that changes the clock (`LD_PRELOAD`).
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/machine_clock.c");

/// The clock from which servers take the time. Timers use real time.
pub struct MachineClock(TempDir);

impl MachineClock {
    /// A clock that shows the real time.
    pub fn new() -> MachineClock {
        let clock = MachineClock(TempDir::new().expect("a folder"));
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]);
        compiler.arg(clock.library()).arg(SOURCE);
        let compiled = compiler
            .status()
            .expect("the C compiler that links Rust programs");
        assert!(compiled.success(), "the library is compiled");
        clock.set(0);
        clock
    }

    /// Sets the clock to the real time plus this offset in seconds.
    pub fn set(&self, ahead_s: i64) {
        // Replaces the file by a rename, so that a server never reads a part of the number.
        let new = self.0.path().join("new");
        fs::write(&new, ahead_s.to_string()).expect("a file of the test");
        fs::rename(new, self.file()).expect("a file of the test");
    }

    /// A server on this database whose machine has this clock.
    pub fn server(&self, database: &str, options: &[&str]) -> Server {
        let mut command = Server::command(database, options);
        command.env("LD_PRELOAD", self.library());
        command.env("CLOCK_FILE", self.file());
        Server::run(command)
    }

    fn library(&self) -> PathBuf {
        self.0.path().join("clock.so")
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("ahead")
    }
}
