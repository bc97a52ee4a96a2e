//! Authentication and authorization flags of `serve` and `dev`, and the allowed host names.

use clap::Args;
use clap::builder::FalseyValueParser;

use super::secrets::{
    Secret, SecretFile, UiKeys, UiKeysFile, password, password_file, token, token_file, ui_keys,
    ui_keys_file,
};
use crate::auth::{Admin, Auth, Credentials, Role, Secrets};
use crate::secret::Hash;

/// Authentication, authorization and allowed hosts.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Authentication and access")]
pub struct Access {
    /// Admin token: full access to the dashboard, /token, /metrics, qless, Relay and Jobq. Programs send
    /// `Authorization: Bearer TOKEN`. On the sign-in page it is the password, with any name, unless --admin-user is
    /// set.
    #[arg(long, env = "SWITCHYARD_ADMIN_TOKEN", hide_env_values = true, value_parser = token, value_name = "TOKEN")]
    #[arg(group = "admin-token-source")]
    pub admin_token: Option<Secret>,
    /// File with the value of --admin-token, or with two accepted values, one per line. SIGHUP reloads the file.
    #[arg(long, env = "SWITCHYARD_ADMIN_TOKEN_FILE", value_parser = token_file, value_name = "PATH")]
    #[arg(group = "admin-token-source")]
    pub admin_token_file: Option<SecretFile>,
    /// Name of an admin, who signs in with --admin-password on the sign-in page or by Basic authentication, and has the
    /// same access as with --admin-token.
    #[arg(long, env = "SWITCHYARD_ADMIN_USER", hide_env_values = true, value_parser = user, value_name = "NAME")]
    #[arg(requires = "admin-password-source")]
    pub admin_user: Option<String>,
    /// Password of --admin-user.
    #[arg(long, env = "SWITCHYARD_ADMIN_PASSWORD", hide_env_values = true, value_parser = password)]
    #[arg(
        requires = "admin_user",
        group = "admin-password-source",
        value_name = "PASSWORD"
    )]
    pub admin_password: Option<Secret>,
    /// File with the value of --admin-password, or with two accepted values, one per line. SIGHUP reloads the file.
    #[arg(long, env = "SWITCHYARD_ADMIN_PASSWORD_FILE", value_parser = password_file, value_name = "PATH")]
    #[arg(requires = "admin_user", group = "admin-password-source")]
    pub admin_password_file: Option<SecretFile>,
    /// Dashboard credentials of one person: the role (viewer, operator or admin), the name and the secret. Repeatable.
    /// In the environment variable, separate several keys with commas or whitespace.
    #[arg(long = "ui-key", env = "SWITCHYARD_UI_KEYS", hide_env_values = true, value_parser = ui_keys)]
    #[arg(value_name = "ROLE:NAME:SECRET")]
    pub ui_keys: Vec<UiKeys>,
    /// File with more values of --ui-key, separated by commas or whitespace. SIGHUP reloads the file.
    #[arg(long, env = "SWITCHYARD_UI_KEYS_FILE", value_parser = ui_keys_file, value_name = "PATH")]
    pub ui_keys_file: Option<UiKeysFile>,
    /// Role of dashboard users who present no credentials: viewer, operator or admin [default: admin if no dashboard
    /// credentials are set, otherwise no access]. Does not affect qless, lmstfy, Relay and Jobq.
    #[arg(long, env = "SWITCHYARD_UI_OPEN_AS", value_parser = role, value_name = "ROLE")]
    pub ui_open_as: Option<Role>,
    /// Token that qless clients must send: `Authorization: Bearer TOKEN`, or AUTH over the Redis protocol. If it is not
    /// set, they need no token.
    #[arg(long, env = "SWITCHYARD_QLESS_TOKEN", hide_env_values = true, value_parser = token, value_name = "TOKEN")]
    #[arg(group = "qless-token-source")]
    pub qless_token: Option<Secret>,
    /// File with the value of --qless-token, or with two accepted values, one per line. SIGHUP reloads the file.
    #[arg(long, env = "SWITCHYARD_QLESS_TOKEN_FILE", value_parser = token_file, value_name = "PATH")]
    #[arg(group = "qless-token-source")]
    pub qless_token_file: Option<SecretFile>,
    /// Token that Relay clients must send: `Authorization: Bearer TOKEN`. If it is not set, they need no token.
    #[arg(long, env = "SWITCHYARD_RELAY_TOKEN", hide_env_values = true, value_parser = token, value_name = "TOKEN")]
    #[arg(group = "relay-token-source")]
    pub relay_token: Option<Secret>,
    /// File with the value of --relay-token, or with two accepted values, one per line. SIGHUP reloads the file.
    #[arg(long, env = "SWITCHYARD_RELAY_TOKEN_FILE", value_parser = token_file, value_name = "PATH")]
    #[arg(group = "relay-token-source")]
    pub relay_token_file: Option<SecretFile>,
    /// Token that Jobq clients must send: `Authorization: Bearer TOKEN`. If it is not set, they need no token.
    #[arg(long, env = "SWITCHYARD_JOBQ_TOKEN", hide_env_values = true, value_parser = token, value_name = "TOKEN")]
    #[arg(group = "jobq-token-source")]
    pub jobq_token: Option<Secret>,
    /// File with the value of --jobq-token, or with two accepted values, one per line. SIGHUP reloads the file.
    #[arg(long, env = "SWITCHYARD_JOBQ_TOKEN_FILE", value_parser = token_file, value_name = "PATH")]
    #[arg(group = "jobq-token-source")]
    pub jobq_token_file: Option<SecretFile>,
    /// Allow a non-loopback --listen or --redis-listen address without --qless-token. Every client that can connect
    /// then has full access to qless.
    #[arg(long, env = "SWITCHYARD_OPEN_QLESS", value_parser = FalseyValueParser::new())]
    #[arg(conflicts_with = "qless-token-source")]
    pub open_qless: bool,
    /// Allow a non-loopback --listen address without --relay-token. Every client that can connect then has full access
    /// to Relay.
    #[arg(long, env = "SWITCHYARD_OPEN_RELAY", value_parser = FalseyValueParser::new())]
    #[arg(conflicts_with = "relay-token-source")]
    pub open_relay: bool,
    /// Allow a non-loopback --listen address without --jobq-token. Every client that can connect then has full access
    /// to Jobq.
    #[arg(long, env = "SWITCHYARD_OPEN_JOBQ", value_parser = FalseyValueParser::new())]
    #[arg(conflicts_with = "jobq-token-source")]
    pub open_jobq: bool,
    /// Accept lmstfy requests without a token. Every client that can connect then has full access to all namespaces.
    #[arg(long, env = "SWITCHYARD_NO_AUTH", value_parser = FalseyValueParser::new())]
    pub no_auth: bool,
    /// Allow non-loopback addresses although the dashboard, qless, Relay, Jobq or the metrics have no credentials.
    /// Every client that can connect then has full access to each of them that has none.
    #[arg(long, env = "SWITCHYARD_INSECURE", value_parser = FalseyValueParser::new())]
    pub insecure: bool,
    /// Host name that clients use for this server. Repeatable, or separated by commas. Requests whose host is not an IP
    /// address, localhost or one of these names get 421. The server checks this if it listens on loopback, if an API
    /// accepts requests without credentials, or if this flag is set.
    #[arg(long = "allowed-host", env = "SWITCHYARD_ALLOWED_HOSTS", value_delimiter = ',', value_parser = host)]
    #[arg(value_name = "NAME")]
    pub allowed_hosts: Vec<String>,
}

/// Maximum number of dashboard keys: a request's credentials are compared with each.
const UI_KEYS_MAX: usize = 1_000;

impl Access {
    /// The credentials, and the access without them.
    ///
    /// # Errors
    /// See [`Access::credentials`]; also if there are too many host names.
    pub fn auth(&self) -> Result<Auth, String> {
        if self.allowed_hosts.len() > ALLOWED_HOSTS_MAX {
            return Err(format!(
                "--allowed-host: {} names; the limit is {ALLOWED_HOSTS_MAX}",
                self.allowed_hosts.len()
            ));
        }
        Ok(Auth::new(self.credentials()?, self.ui_open_as))
    }

    /// All credentials.
    ///
    /// # Errors
    /// If a dashboard key is invalid, if there are too many, or if the secret of one is also that of another key or of
    /// the admin.
    pub fn credentials(&self) -> Result<Credentials, String> {
        let mut ui = Vec::new();
        for keys in &self.ui_keys {
            ui.extend(keys.0.clone()?.into_iter().map(|it| it.key));
        }
        let from_file = self.ui_keys_file.iter().flat_map(|file| &file.content);
        ui.extend(from_file.map(|it| it.key.clone()));
        if ui.len() > UI_KEYS_MAX {
            return Err(format!(
                "--ui-key: {} keys; the limit is {UI_KEYS_MAX}",
                ui.len()
            ));
        }
        let admin_token = secrets(self.admin_token, self.admin_token_file.as_ref());
        let admin_password = secrets(self.admin_password, self.admin_password_file.as_ref());
        let mut known: Vec<Hash> = admin_token
            .iter()
            .chain(admin_password.iter())
            .copied()
            .collect();
        for key in &ui {
            if known.contains(&key.secret) {
                let name = &key.identity.name;
                return Err(format!(
                    "--ui-key: the secret of {name} is already used by another credential; choose another one"
                ));
            }
            known.push(key.secret);
        }
        Ok(Credentials {
            admin: Admin {
                token: admin_token,
                login: self.admin_user.clone().map(|user| (user, admin_password)),
            },
            ui,
            qless: secrets(self.qless_token, self.qless_token_file.as_ref()),
            relay: secrets(self.relay_token, self.relay_token_file.as_ref()),
            jobq: secrets(self.jobq_token, self.jobq_token_file.as_ref()),
        })
    }
}

/// The values of a secret, from its flag or from its file.
fn secrets(flag: Option<Secret>, file: Option<&SecretFile>) -> Secrets {
    let from_file = file.into_iter().flat_map(|file| &file.content);
    let all = flag.iter().chain(from_file);
    all.map(|secret| secret.hash).collect()
}

fn role(text: &str) -> Result<Role, &'static str> {
    Role::parse(text).ok_or("expected viewer, operator or admin")
}

/// Maximum number of names in `--allowed-host`: the host of a request is compared with each.
const ALLOWED_HOSTS_MAX: usize = 100;

/// Maximum length of a host name in characters, as in DNS.
const HOST_CHARS_MAX: usize = 253;

fn host(text: &str) -> Result<String, &'static str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let name = text.trim();
    if name.is_empty() || name.len() > HOST_CHARS_MAX || !name.bytes().all(is_plain) {
        return Err(
            "expected a host name without scheme and port: letters, digits, hyphens, underscores, dots",
        );
    }
    Ok(name.strip_suffix('.').unwrap_or(name).to_owned())
}

fn user(text: &str) -> Result<String, &'static str> {
    if text.contains(':') {
        return Err("a user name cannot contain a colon");
    }
    if text.is_empty() {
        return Err("must not be empty");
    }
    Ok(text.to_owned())
}
