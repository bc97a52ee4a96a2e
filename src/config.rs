//! Settings: one struct, from flags and the environment.

use std::net::SocketAddr;

use clap::builder::FalseyValueParser;
use clap::{Args, Parser, Subcommand};

use crate::engine::Options;
use crate::server::Settings;
use crate::store::Durability;

/// A job-queue server that speaks several protocols, with a dashboard at /ui.
#[derive(Debug, Parser)]
#[command(version, about)]
pub struct Command {
    #[command(subcommand)]
    pub action: Action,
}

#[derive(Debug, Subcommand)]
pub enum Action {
    /// Serve queues and dashboard.
    Serve(Serve),
    /// Serve a temporary database in which made-up queues, workers, jobs and failures keep moving.
    Dev {
        /// Address to listen on; port 0 takes a free one.
        #[arg(long, env = "SWITCHYARD_LISTEN", default_value = "127.0.0.1:3000")]
        listen: SocketAddr,
    },
    /// Copy everything that one database holds into another, empty one, while no server uses them.
    Copy(Databases),
}

/// A database and another one.
#[derive(Debug, Args)]
pub struct Databases {
    /// The database to copy from: sqlite://FILE or postgres://USER@HOST/DATABASE.
    #[arg(long, env = "SWITCHYARD_FROM", hide_env_values = true)]
    pub from: String,
    /// The database to copy to. A file is made; a PostgreSQL database must be there, and be empty.
    #[arg(long, env = "SWITCHYARD_TO", hide_env_values = true)]
    pub to: String,
}

#[derive(Debug, Args)]
pub struct Serve {
    /// Address to listen on; port 0 takes a free one.
    #[arg(long, env = "SWITCHYARD_LISTEN", default_value = "127.0.0.1:3000")]
    pub listen: SocketAddr,
    /// Where the jobs live: sqlite://FILE, sqlite::memory: for a temporary file, or
    /// postgres://USER@HOST/DATABASE, which several servers may share.
    #[arg(
        long,
        env = "SWITCHYARD_DATABASE",
        hide_env_values = true,
        default_value = "sqlite://switchyard.db"
    )]
    pub database: String,
    /// What an acknowledged write survives: full (loss of power) or process (kill -9).
    #[arg(long, env = "SWITCHYARD_DURABILITY", value_enum, default_value_t)]
    pub durability: Durability,
    /// Postgres: do without SKIP LOCKED, for engines that speak its language and lack it.
    #[arg(long, env = "SWITCHYARD_NO_SKIP_LOCKED", value_parser = FalseyValueParser::new())]
    pub no_skip_locked: bool,
    /// Postgres: do without LISTEN and NOTIFY; other servers are noticed by looking, once a second.
    #[arg(long, env = "SWITCHYARD_NO_NOTIFY", value_parser = FalseyValueParser::new())]
    pub no_notify: bool,
    /// Let the `now` of a request be its time, and do nothing of our own accord. For tests of clients.
    #[arg(long, env = "SWITCHYARD_TRUST_CLIENT_CLOCK", value_parser = FalseyValueParser::new())]
    pub trust_client_clock: bool,
    /// Let POST /flush empty the whole database.
    #[arg(long, env = "SWITCHYARD_ALLOW_FLUSH", value_parser = FalseyValueParser::new())]
    pub allow_flush: bool,
}

impl Serve {
    /// How the server is to behave.
    pub fn settings(&self) -> Settings {
        Settings {
            engine: Options {
                database: self.database.clone(),
                durability: self.durability,
                no_skip_locked: self.no_skip_locked,
                no_notify: self.no_notify,
                trust_client_clock: self.trust_client_clock,
            },
            allow_flush: self.allow_flush,
        }
    }
}
