//! Settings: one struct, from flags and the environment.

use std::net::SocketAddr;
use std::time::Duration;

use clap::builder::FalseyValueParser;
use clap::{Args, Parser, Subcommand};

use crate::api::views::Role;
use crate::doors::{Admin, Doors, UiKey, Who};
use crate::engine::Options;
use crate::secret::Hash;
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
        /// Put so many jobs of all protocols in all states into it first; a million takes a minute or two.
        #[arg(long, default_value_t = 0, value_name = "N")]
        jobs: usize,
        #[command(flatten)]
        access: Access,
    },
    /// Tokens: who may use a namespace of lmstfy. Works while a server runs on the database.
    #[command(subcommand)]
    Token(Token),
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

#[derive(Debug, Subcommand)]
pub enum Token {
    /// Make a token of a namespace, and print it: only its hash is kept, so it is not shown again.
    Create {
        #[command(flatten)]
        place: Place,
        /// What opens with the token: 1 to 255 letters, digits, hyphens and underscores.
        namespace: String,
        /// Whom or what the token is for.
        #[arg(long, default_value = "")]
        description: String,
        /// The token, instead of one that is made up: 20 to 255 visible ASCII characters without a colon.
        #[arg(
            long,
            env = "SWITCHYARD_TOKEN",
            hide_env_values = true,
            allow_hyphen_values = true
        )]
        token: Option<String>,
    },
    /// List the tokens of a namespace, or of all: namespace, public name, when it was made, description.
    List {
        #[command(flatten)]
        place: Place,
        namespace: Option<String>,
    },
    /// Revoke a token. When the command ends, no server lets anybody in with it.
    Revoke {
        #[command(flatten)]
        place: Place,
        namespace: String,
        /// The token, or its public name: sha256:…, as in the list.
        #[arg(allow_hyphen_values = true)]
        token: String,
    },
}

/// Which database.
#[derive(Debug, Args)]
pub struct Place {
    /// Where the jobs live: sqlite://FILE, or postgres://USER@HOST/DATABASE.
    #[arg(
        long,
        env = "SWITCHYARD_DATABASE",
        hide_env_values = true,
        default_value = DATABASE
    )]
    pub database: String,
}

/// The database, where none is named.
const DATABASE: &str = "sqlite://switchyard.db";

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
        default_value = DATABASE
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
    /// Seconds after which a queue of lmstfy or Relay goes that is empty, and in which nothing happens.
    #[arg(long, env = "SWITCHYARD_EMPTY_QUEUE_AGE", default_value_t = 600)]
    pub empty_queue_age: u32,
    /// The longest body of a job of lmstfy, in bytes.
    #[arg(long, env = "SWITCHYARD_LMSTFY_BODY_MAX", default_value_t = LMSTFY_BODY_MAX)]
    pub lmstfy_body_max: usize,
    /// The largest body of a request of Relay, in bytes.
    #[arg(long, env = "SWITCHYARD_RELAY_BODY_MAX", default_value_t = RELAY_BODY_MAX)]
    pub relay_body_max: usize,
    /// The largest body of a request of Jobq, in bytes.
    #[arg(long, env = "SWITCHYARD_JOBQ_BODY_MAX", default_value_t = JOBQ_BODY_MAX)]
    pub jobq_body_max: usize,
    /// What the dashboard calls this server, on every page: production, staging, …
    #[arg(long, env = "SWITCHYARD_ENVIRONMENT", value_parser = environment, value_name = "NAME")]
    pub environment: Option<String>,
    #[command(flatten)]
    pub access: Access,
}

/// Who may come in.
#[derive(Debug, Args)]
#[command(next_help_heading = "Who may come in")]
pub struct Access {
    /// What opens the dashboard and /token, and everything else: `Authorization: Bearer TOKEN`, or in a browser
    /// as the password of any name.
    #[arg(long, env = "SWITCHYARD_ADMIN_TOKEN", hide_env_values = true, value_parser = token, value_name = "TOKEN")]
    pub admin_token: Option<Hash>,
    /// The name that opens the same with --admin-password, in a browser or elsewhere.
    #[arg(long, env = "SWITCHYARD_ADMIN_USER", hide_env_values = true, value_parser = user, value_name = "NAME")]
    #[arg(requires = "admin_password")]
    pub admin_user: Option<String>,
    /// The password of --admin-user.
    #[arg(long, env = "SWITCHYARD_ADMIN_PASSWORD", hide_env_values = true, value_parser = password)]
    #[arg(requires = "admin_user", value_name = "PASSWORD")]
    pub admin_password: Option<Hash>,
    /// What opens the dashboard for somebody by name, as a viewer, an operator or an admin; may be given several
    /// times. In the environment the keys stand one after the other, with a comma or white space between them.
    #[arg(long = "ui-key", env = "SWITCHYARD_UI_KEYS", hide_env_values = true, value_parser = ui_keys)]
    #[arg(value_name = "ROLE:NAME:SECRET")]
    pub ui_keys: Vec<UiKeys>,
    /// What the dashboard lets those do who show no key: viewer, operator or admin. If it is not said, and no key of
    /// the dashboard is set, everything; with a key, nothing. The APIs have doors of their own.
    #[arg(long, env = "SWITCHYARD_UI_OPEN_AS", value_parser = role, value_name = "ROLE")]
    pub ui_open_as: Option<Role>,
    /// What opens qless: `Authorization: Bearer TOKEN`.
    #[arg(long, env = "SWITCHYARD_QLESS_TOKEN", hide_env_values = true, value_parser = token, value_name = "TOKEN")]
    pub qless_token: Option<Hash>,
    /// What opens Relay: `Authorization: Bearer TOKEN`.
    #[arg(long, env = "SWITCHYARD_RELAY_TOKEN", hide_env_values = true, value_parser = token, value_name = "TOKEN")]
    pub relay_token: Option<Hash>,
    /// What opens Jobq: `Authorization: Bearer TOKEN`.
    #[arg(long, env = "SWITCHYARD_JOBQ_TOKEN", hide_env_values = true, value_parser = token, value_name = "TOKEN")]
    pub jobq_token: Option<Hash>,
    /// Let everybody into lmstfy's namespaces, without a token.
    #[arg(long, env = "SWITCHYARD_NO_AUTH", value_parser = FalseyValueParser::new())]
    pub no_auth: bool,
    /// Listen on an address that others can reach, though neither an admin nor a qless token is set.
    #[arg(long, env = "SWITCHYARD_INSECURE", value_parser = FalseyValueParser::new())]
    pub insecure: bool,
}

/// Keys of the dashboard, or what is wrong with them. What is wrong is told later, for clap would tell the keys too.
#[derive(Clone, Debug)]
pub struct UiKeys(Result<Vec<UiKey>, String>);

/// The most keys of the dashboard: each is compared with what somebody shows.
const UI_KEYS_MAX: usize = 1_000;

/// The longest name of somebody who has a key, in characters.
const UI_NAME_CHARS_MAX: usize = 64;

impl Access {
    /// The keys of the doors.
    ///
    /// # Errors
    /// If a key of the dashboard is none, or two are the same.
    pub fn doors(&self) -> Result<Doors, String> {
        let mut ui = Vec::new();
        for keys in &self.ui_keys {
            ui.extend(keys.0.clone()?);
        }
        if ui.len() > UI_KEYS_MAX {
            return Err(format!("--ui-key: there may be {UI_KEYS_MAX} keys at most"));
        }
        let admin = [self.admin_token, self.admin_password];
        let mut secrets: Vec<Hash> = admin.into_iter().flatten().collect();
        for key in &ui {
            if secrets.contains(&key.secret) {
                let name = &key.who.name;
                return Err(format!(
                    "--ui-key: the secret of {name} opens something else already"
                ));
            }
            secrets.push(key.secret);
        }
        Ok(Doors {
            admin: Admin {
                token: self.admin_token,
                login: self.admin_user.clone().zip(self.admin_password),
            },
            ui,
            ui_open_as: self.ui_open_as,
            qless: self.qless_token,
            relay: self.relay_token,
            jobq: self.jobq_token,
        })
    }
}

fn role(text: &str) -> Result<Role, &'static str> {
    Role::parse(text).ok_or("it is viewer, operator or admin")
}

#[expect(clippy::unnecessary_wraps, reason = "clap asks for a Result")]
fn ui_keys(text: &str) -> Result<UiKeys, String> {
    let all = text.split([',', ' ', '\t', '\r', '\n']);
    let keys = all.filter(|key| !key.is_empty()).map(ui_key);
    let keys: Result<Vec<UiKey>, String> = keys.collect();
    Ok(UiKeys(match keys {
        Ok(keys) if keys.is_empty() => Err("--ui-key: it is empty".to_owned()),
        keys => keys.map_err(|why| format!("--ui-key: {why}")),
    }))
}

fn ui_key(text: &str) -> Result<UiKey, String> {
    let mut parts = text.splitn(3, ':');
    let (Some(role), Some(name), Some(secret)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("a key is ROLE:NAME:SECRET, without a comma or white space".to_owned());
    };
    let role = Role::parse(role);
    let role = role.ok_or("a key begins with viewer:, operator: or admin:")?;
    let is_visible = |c: char| !c.is_control() && !c.is_whitespace();
    if !(1..=UI_NAME_CHARS_MAX).contains(&name.chars().count()) || !name.chars().all(is_visible) {
        return Err(format!(
            "the name in a key has 1 to {UI_NAME_CHARS_MAX} visible characters"
        ));
    }
    let secret = password(secret).map_err(|why| format!("the secret of {name}: {why}"))?;
    let name = name.to_owned();
    Ok(UiKey {
        who: Who { name, role },
        secret,
    })
}

/// White space around a token would be cut off on its way here, so it is not part of it.
fn token(text: &str) -> Result<Hash, &'static str> {
    password(text.trim())
}

fn user(text: &str) -> Result<String, &'static str> {
    if text.contains(':') {
        return Err("a name with a colon cannot be sent");
    }
    if text.is_empty() {
        return Err("it is empty");
    }
    Ok(text.to_owned())
}

/// The longest name of an environment, in characters.
const ENVIRONMENT_CHARS_MAX: usize = 40;

fn environment(text: &str) -> Result<String, String> {
    let name = text.trim();
    let length = name.chars().count();
    if !(1..=ENVIRONMENT_CHARS_MAX).contains(&length) || name.chars().any(char::is_control) {
        return Err(format!(
            "it has 1 to {ENVIRONMENT_CHARS_MAX} visible characters"
        ));
    }
    Ok(name.to_owned())
}

/// An empty variable is likelier a mistake than the wish to let everybody in.
fn password(text: &str) -> Result<Hash, &'static str> {
    if text.is_empty() {
        return Err("it is empty");
    }
    Ok(Hash::of(text))
}

/// The largest body of a request of Relay, as the original has it.
pub const RELAY_BODY_MAX: usize = 2 << 20;

/// The largest body of a request of Jobq, of which its document says nothing.
pub const JOBQ_BODY_MAX: usize = 2 << 20;

/// The longest body of a job of lmstfy: smaller than 64 kB (document, The limits on parameters).
pub const LMSTFY_BODY_MAX: usize = 65_535;

impl Serve {
    /// How the server is to behave.
    ///
    /// # Errors
    /// See [`Access::doors`].
    pub fn settings(&self) -> Result<Settings, String> {
        Ok(Settings {
            engine: Options {
                database: self.database.clone(),
                durability: self.durability,
                no_skip_locked: self.no_skip_locked,
                no_notify: self.no_notify,
                trust_client_clock: self.trust_client_clock,
                empty_queue_age: Some(Duration::from_secs(u64::from(self.empty_queue_age))),
                brief: false,
            },
            allow_flush: self.allow_flush,
            doors: self.access.doors()?,
            environment: self.environment.clone(),
            no_auth: self.access.no_auth,
            lmstfy_body_max: self.lmstfy_body_max,
            relay_body_max: self.relay_body_max,
            jobq_body_max: self.jobq_body_max,
        })
    }
}
