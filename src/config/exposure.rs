//! What a server exposes to others, checked before it listens.

use std::net::SocketAddr;

use super::secrets::{FromFile, SECRET_CHARS_MIN, Secret, SecretFile, check_regular};
use super::{Access, Monitoring};
use crate::auth::{Api, Auth, Credentials, Hosts, is_loopback};
use crate::http::MetricsAccess;

impl Access {
    /// Checks what others can reach at all addresses where the server listens: `main`, `redis`, and that of the
    /// metrics. Returns how the metrics are protected, and warnings.
    ///
    /// # Errors
    /// As those of [`Access::check`], of [`Access::check_redis`] and of [`Monitoring::access`].
    pub fn check_all(
        &self,
        main: SocketAddr,
        redis: Option<SocketAddr>,
        monitoring: &Monitoring,
        auth: &Auth,
    ) -> Result<(MetricsAccess, Vec<String>), String> {
        let mut warnings = self.check(main, auth)?;
        if let Some(redis) = redis {
            warnings.extend(self.check_redis(redis, auth)?);
        }
        let (metrics, warning) = monitoring.access(self, auth)?;
        warnings.extend(warning);
        Ok((metrics, warnings))
    }

    /// Checks what others can reach when the server listens on this address. Returns warnings if it may listen.
    ///
    /// # Errors
    /// If an API would be open on a non-loopback address without a flag that says so, or if a secret is too short.
    pub fn check(&self, listen: SocketAddr, auth: &Auth) -> Result<Vec<String>, String> {
        let mut warnings = Vec::new();
        let open = auth.open_apis(self.no_auth);
        if !open.is_empty() && (auth.has_credentials() || !is_loopback(listen)) {
            let open = open.join("; ");
            warnings.push(format!(
                "accepting unauthenticated requests at {listen}: {open}"
            ));
        }
        let long_enough = self.check_lengths();
        if is_loopback(listen) {
            warnings.extend(long_enough.err());
            return Ok(warnings);
        }
        let omitted = self.open_by_omission(auth);
        if !omitted.is_empty() && !self.insecure {
            return Err(format!(
                "cannot listen on {listen}: these APIs would accept unauthenticated requests: {}; set a token for \
                 each, open it explicitly, or open all with --insecure",
                omitted.join(", ")
            ));
        }
        long_enough.map_err(|why| format!("cannot listen on {listen}: {why}"))?;
        Ok(warnings)
    }

    /// Checks that qless may be served over the Redis protocol at this address. Returns a warning if clients
    /// unexpectedly need no token.
    ///
    /// # Errors
    /// If the address is not on loopback, and the token is too short, or missing without `--open-qless` or
    /// `--insecure`.
    pub fn check_redis(&self, listen: SocketAddr, auth: &Auth) -> Result<Option<String>, String> {
        let is_open = !auth.has_token(Api::Qless);
        if !is_loopback(listen) {
            if is_open && !self.open_qless && !self.insecure {
                return Err(format!(
                    "cannot listen on {listen}: qless would accept unauthenticated requests; set --qless-token, open it \
                     with --open-qless, or open all with --insecure"
                ));
            }
            self.check_lengths()
                .map_err(|why| format!("cannot listen on {listen}: {why}"))?;
        }
        let is_unexpected = is_open && (auth.has_credentials() || !is_loopback(listen));
        let warning = format!(
            "accepting unauthenticated requests at {listen}: qless over the Redis protocol"
        );
        Ok(is_unexpected.then_some(warning))
    }

    /// Reloads the files with secrets. Returns the new credentials of a server that listens on this address.
    /// Each file must be a regular one: a pipe would have nothing left to read.
    ///
    /// # Errors
    /// If a file cannot be read or has no valid secret, or if a secret is too short.
    pub fn reload(&self, listen: SocketAddr) -> Result<Credentials, String> {
        let access = Access {
            admin_token_file: reload("--admin-token-file", self.admin_token_file.as_ref())?,
            admin_password_file: reload(
                "--admin-password-file",
                self.admin_password_file.as_ref(),
            )?,
            ui_keys_file: reload("--ui-keys-file", self.ui_keys_file.as_ref())?,
            qless_token_file: reload("--qless-token-file", self.qless_token_file.as_ref())?,
            relay_token_file: reload("--relay-token-file", self.relay_token_file.as_ref())?,
            jobq_token_file: reload("--jobq-token-file", self.jobq_token_file.as_ref())?,
            ..self.clone()
        };
        access.long_enough_credentials(listen)
    }

    /// The credentials for a server that listens on this address.
    ///
    /// # Errors
    /// As [`Access::credentials`]; also if a secret is too short.
    fn long_enough_credentials(&self, listen: SocketAddr) -> Result<Credentials, String> {
        let credentials = self.credentials()?;
        if !is_loopback(listen) {
            self.check_lengths()?;
        }
        Ok(credentials)
    }

    /// The credentials of a reloaded configuration, for a server that was started with `auth` and `no_auth`.
    ///
    /// # Errors
    /// As [`Access::reload`]; also if an API would get its first credentials or lose its last, because a running
    /// server neither opens nor closes an API.
    pub fn replacements(
        &self,
        listen: SocketAddr,
        auth: &Auth,
        no_auth: bool,
    ) -> Result<Credentials, String> {
        let credentials = self.long_enough_credentials(listen)?;
        let new = Auth::new(credentials.clone(), auth.ui_open_as);
        let is_same = new.open_apis(no_auth) == auth.open_apis(no_auth)
            && new.ui_has_keys() == auth.ui_has_keys();
        if !is_same {
            let why = "an API would get its first credentials or lose its last ones; that requires a restart";
            return Err(why.to_owned());
        }
        Ok(credentials)
    }

    /// Checks that all files with secrets can be read again.
    ///
    /// # Errors
    /// If one is not a regular file: a pipe would have nothing left to read.
    pub fn check_files(&self) -> Result<(), String> {
        for path in self.secret_files() {
            check_regular(path).map_err(|why| format!("{path}: {why}"))?;
        }
        Ok(())
    }

    /// The paths of the files with secrets.
    pub fn secret_files(&self) -> impl Iterator<Item = &str> {
        let tokens = [
            &self.admin_token_file,
            &self.admin_password_file,
            &self.qless_token_file,
            &self.relay_token_file,
            &self.jobq_token_file,
        ];
        let keys = self.ui_keys_file.iter().map(FromFile::path);
        let tokens = tokens.into_iter().flatten().map(FromFile::path);
        tokens.chain(keys)
    }

    /// The hosts that requests may name. On a non-loopback address, if every API needs credentials, only
    /// `--allowed-host` limits them.
    pub fn hosts(&self, listen: SocketAddr, auth: &Auth) -> Hosts {
        let is_limited = is_loopback(listen) || !auth.open_apis(self.no_auth).is_empty();
        self.hosts_of(is_limited)
    }

    /// The hosts that requests may name at a listener. If `is_limited` is false, only `--allowed-host` limits them.
    pub fn hosts_of(&self, is_limited: bool) -> Hosts {
        if is_limited || !self.allowed_hosts.is_empty() {
            Hosts::Only(self.allowed_hosts.clone())
        } else {
            Hosts::Any
        }
    }

    /// The APIs that are open although no flag says so, each with the flags that protect or open it.
    fn open_by_omission(&self, auth: &Auth) -> Vec<&'static str> {
        let apis = [
            (
                !auth.ui_has_keys() && self.ui_open_as.is_none(),
                "the dashboard, /token and /metrics (--admin-token or --ui-open-as)",
            ),
            (
                !auth.has_token(Api::Qless) && !self.open_qless,
                "qless (--qless-token or --open-qless)",
            ),
            (
                !auth.has_token(Api::Relay) && !self.open_relay,
                "Relay (--relay-token or --open-relay)",
            ),
            (
                !auth.has_token(Api::Jobq) && !self.open_jobq,
                "Jobq (--jobq-token or --open-jobq)",
            ),
        ];
        let omitted = apis.into_iter().filter(|(is_omitted, _)| *is_omitted);
        omitted.map(|(_, api)| api).collect()
    }

    /// Checks the lengths of all secrets.
    ///
    /// # Errors
    /// If one is too short for a server that others can reach.
    pub fn check_lengths(&self) -> Result<(), String> {
        let short = self.short_secrets();
        if short.is_empty() {
            return Ok(());
        }
        Err(format!(
            "secrets need at least {SECRET_CHARS_MIN} characters; too short: {}",
            short.join(", ")
        ))
    }

    /// The flags whose secrets are short.
    fn short_secrets(&self) -> Vec<&'static str> {
        let is_short = |secret: &Option<Secret>| secret.is_some_and(|secret| secret.is_short);
        let in_file = |file: &Option<SecretFile>| {
            let secrets = file.iter().flat_map(|file| &file.content);
            secrets.into_iter().any(|secret| secret.is_short)
        };
        let given = self.ui_keys.iter().filter_map(|keys| keys.0.as_ref().ok());
        let from_file = self.ui_keys_file.iter().map(|file| &file.content);
        let mut keys = given.chain(from_file).flatten();
        let flags = [
            (is_short(&self.admin_token), "--admin-token"),
            (in_file(&self.admin_token_file), "--admin-token-file"),
            (is_short(&self.admin_password), "--admin-password"),
            (in_file(&self.admin_password_file), "--admin-password-file"),
            (keys.any(|key| key.is_short), "--ui-key"),
            (is_short(&self.qless_token), "--qless-token"),
            (in_file(&self.qless_token_file), "--qless-token-file"),
            (is_short(&self.relay_token), "--relay-token"),
            (in_file(&self.relay_token_file), "--relay-token-file"),
            (is_short(&self.jobq_token), "--jobq-token"),
            (in_file(&self.jobq_token_file), "--jobq-token-file"),
        ];
        let short = flags.into_iter().filter(|(is_short, _)| *is_short);
        short.map(|(_, flag)| flag).collect()
    }
}

/// Reloads the file of this flag, if there is one.
fn reload<T: Clone>(flag: &str, file: Option<&FromFile<T>>) -> Result<Option<FromFile<T>>, String> {
    let file = file.map(FromFile::reload).transpose();
    file.map_err(|why| format!("{flag}: {why}"))
}
