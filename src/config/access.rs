//! Authentication and authorization flags of `serve` and `dev`, and the allowed host names.

use std::sync::Arc;

use clap::Args;
use clap::builder::FalseyValueParser;

use super::secrets::{
    Secret, UiKeys, password, password_file, token, token_file, ui_keys, ui_keys_file,
};
use crate::api::views::Role;
use crate::doors::{Admin, Doors};
use crate::secret::Hash;

/// Who may come in.
#[derive(Debug, Args)]
#[command(next_help_heading = "Who may come in")]
pub struct Access {
    /// What opens the dashboard and /token, and everything else: `Authorization: Bearer TOKEN`, or in a browser
    /// as the password of any name.
    #[arg(long, env = "SWITCHYARD_ADMIN_TOKEN", hide_env_values = true, value_parser = token, value_name = "TOKEN")]
    #[arg(group = "admin-token-source")]
    pub admin_token: Option<Secret>,
    /// File with the value of --admin-token.
    #[arg(long, env = "SWITCHYARD_ADMIN_TOKEN_FILE", value_parser = token_file, value_name = "PATH")]
    #[arg(group = "admin-token-source")]
    pub admin_token_file: Option<Secret>,
    /// The name that opens the same with --admin-password, in a browser or elsewhere.
    #[arg(long, env = "SWITCHYARD_ADMIN_USER", hide_env_values = true, value_parser = user, value_name = "NAME")]
    #[arg(requires = "admin-password-source")]
    pub admin_user: Option<String>,
    /// The password of --admin-user.
    #[arg(long, env = "SWITCHYARD_ADMIN_PASSWORD", hide_env_values = true, value_parser = password)]
    #[arg(
        requires = "admin_user",
        group = "admin-password-source",
        value_name = "PASSWORD"
    )]
    pub admin_password: Option<Secret>,
    /// File with the value of --admin-password.
    #[arg(long, env = "SWITCHYARD_ADMIN_PASSWORD_FILE", value_parser = password_file, value_name = "PATH")]
    #[arg(requires = "admin_user", group = "admin-password-source")]
    pub admin_password_file: Option<Secret>,
    /// What opens the dashboard for somebody by name, as a viewer, an operator or an admin; may be given several
    /// times. In the environment the keys stand one after the other, with a comma or white space between them.
    #[arg(long = "ui-key", env = "SWITCHYARD_UI_KEYS", hide_env_values = true, value_parser = ui_keys)]
    #[arg(value_name = "ROLE:NAME:SECRET")]
    pub ui_keys: Vec<UiKeys>,
    /// File with more values of --ui-key, separated by commas or white space.
    #[arg(long, env = "SWITCHYARD_UI_KEYS_FILE", value_parser = ui_keys_file, value_name = "PATH")]
    pub ui_keys_file: Option<UiKeys>,
    /// What the dashboard lets those do who show no key: viewer, operator or admin. If it is not said, and no key of
    /// the dashboard is set, everything; with a key, nothing. The APIs have doors of their own.
    #[arg(long, env = "SWITCHYARD_UI_OPEN_AS", value_parser = role, value_name = "ROLE")]
    pub ui_open_as: Option<Role>,
    /// What opens qless: `Authorization: Bearer TOKEN`.
    #[arg(long, env = "SWITCHYARD_QLESS_TOKEN", hide_env_values = true, value_parser = token, value_name = "TOKEN")]
    #[arg(group = "qless-token-source")]
    pub qless_token: Option<Secret>,
    /// File with the value of --qless-token.
    #[arg(long, env = "SWITCHYARD_QLESS_TOKEN_FILE", value_parser = token_file, value_name = "PATH")]
    #[arg(group = "qless-token-source")]
    pub qless_token_file: Option<Secret>,
    /// What opens Relay: `Authorization: Bearer TOKEN`.
    #[arg(long, env = "SWITCHYARD_RELAY_TOKEN", hide_env_values = true, value_parser = token, value_name = "TOKEN")]
    #[arg(group = "relay-token-source")]
    pub relay_token: Option<Secret>,
    /// File with the value of --relay-token.
    #[arg(long, env = "SWITCHYARD_RELAY_TOKEN_FILE", value_parser = token_file, value_name = "PATH")]
    #[arg(group = "relay-token-source")]
    pub relay_token_file: Option<Secret>,
    /// What opens Jobq: `Authorization: Bearer TOKEN`.
    #[arg(long, env = "SWITCHYARD_JOBQ_TOKEN", hide_env_values = true, value_parser = token, value_name = "TOKEN")]
    #[arg(group = "jobq-token-source")]
    pub jobq_token: Option<Secret>,
    /// File with the value of --jobq-token.
    #[arg(long, env = "SWITCHYARD_JOBQ_TOKEN_FILE", value_parser = token_file, value_name = "PATH")]
    #[arg(group = "jobq-token-source")]
    pub jobq_token_file: Option<Secret>,
    /// Accept qless requests without a token, also on an address that others can reach.
    #[arg(long, env = "SWITCHYARD_OPEN_QLESS", value_parser = FalseyValueParser::new())]
    #[arg(conflicts_with = "qless-token-source")]
    pub open_qless: bool,
    /// Accept Relay requests without a token, also on an address that others can reach.
    #[arg(long, env = "SWITCHYARD_OPEN_RELAY", value_parser = FalseyValueParser::new())]
    #[arg(conflicts_with = "relay-token-source")]
    pub open_relay: bool,
    /// Accept Jobq requests without a token, also on an address that others can reach.
    #[arg(long, env = "SWITCHYARD_OPEN_JOBQ", value_parser = FalseyValueParser::new())]
    #[arg(conflicts_with = "jobq-token-source")]
    pub open_jobq: bool,
    /// Let everybody into lmstfy's namespaces, without a token.
    #[arg(long, env = "SWITCHYARD_NO_AUTH", value_parser = FalseyValueParser::new())]
    pub no_auth: bool,
    /// Listen on an address that others can reach without a token for any API, as if each were opened explicitly.
    #[arg(long, env = "SWITCHYARD_INSECURE", value_parser = FalseyValueParser::new())]
    pub insecure: bool,
    /// Host name under which clients reach this server; may be given several times, in the environment separated by
    /// commas. On loopback, and where an API is open, only IP addresses, localhost and these names are accepted.
    #[arg(long = "allowed-host", env = "SWITCHYARD_ALLOWED_HOSTS", value_delimiter = ',', value_parser = host)]
    #[arg(value_name = "NAME")]
    pub allowed_hosts: Vec<String>,
}

/// The most keys of the dashboard: each is compared with what somebody shows.
const UI_KEYS_MAX: usize = 1_000;

impl Access {
    /// The keys of the doors.
    ///
    /// # Errors
    /// If a key of the dashboard is none, or two are the same; or if there are too many host names.
    pub fn doors(&self) -> Result<Doors, String> {
        let mut ui = Vec::new();
        for keys in self.ui_keys.iter().chain(&self.ui_keys_file) {
            ui.extend(keys.0.clone()?.into_iter().map(|it| it.key));
        }
        if self.allowed_hosts.len() > ALLOWED_HOSTS_MAX {
            return Err(format!(
                "--allowed-host: at most {ALLOWED_HOSTS_MAX} names are allowed"
            ));
        }
        if ui.len() > UI_KEYS_MAX {
            return Err(format!("--ui-key: there may be {UI_KEYS_MAX} keys at most"));
        }
        let hash = |secret: Option<Secret>| secret.map(|secret| secret.hash);
        let admin_token = hash(self.admin_token.or(self.admin_token_file));
        let admin_password = hash(self.admin_password.or(self.admin_password_file));
        let admin = [admin_token, admin_password];
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
                token: admin_token,
                login: self.admin_user.clone().zip(admin_password),
            },
            ui,
            ui_open_as: self.ui_open_as,
            qless: hash(self.qless_token.or(self.qless_token_file)),
            relay: hash(self.relay_token.or(self.relay_token_file)),
            jobq: hash(self.jobq_token.or(self.jobq_token_file)),
            throttle: Arc::default(),
        })
    }
}

fn role(text: &str) -> Result<Role, &'static str> {
    Role::parse(text).ok_or("it is viewer, operator or admin")
}

/// The most names in `--allowed-host`: each is compared with the host of a request.
const ALLOWED_HOSTS_MAX: usize = 100;

/// The longest host name in characters, as in DNS.
const HOST_CHARS_MAX: usize = 253;

fn host(text: &str) -> Result<String, &'static str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let name = text.trim();
    if name.is_empty() || name.len() > HOST_CHARS_MAX || !name.bytes().all(is_plain) {
        return Err("it is a host name without scheme and port: letters, digits, hyphens, dots");
    }
    Ok(name.strip_suffix('.').unwrap_or(name).to_owned())
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
