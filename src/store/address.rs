//! Database URLs: what they may contain, and how they are shown, without their passwords.

use std::str::FromStr;
use std::time::Duration;

use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use tokio::time::timeout;

use super::error::StoreError;

/// How long a command waits for a database that accepts connections and does not respond.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// What replaces a part of a URL that may contain a password.
const HIDDEN: &str = "…";

/// The parameters of a Postgres URL that contain no secret.
const SHOWN_PARAMETERS: [&str; 16] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "port",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-mode",
    "ssl-root-cert",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "statement-cache-capacity",
    "user",
];

/// Whether the URL is meant to be that of a Postgres database.
pub fn is_postgres(address: &str) -> bool {
    address.starts_with("postgres:") || address.starts_with("postgresql:")
}

/// The connection options of a Postgres URL. Unknown parameters are ignored, as sqlx does, but it would log their
/// values, which can be secrets (`sslpassword`).
///
/// # Errors
/// If the URL is invalid.
pub fn postgres_options(address: &str) -> Result<PgConnectOptions, StoreError> {
    let wrong = || StoreError::Address(without_password(address));
    // Without `//`, all that follows would be the name of a database.
    let (scheme, _) = address.split_once("://").ok_or_else(wrong)?;
    if !["postgres", "postgresql"].contains(&scheme) {
        return Err(wrong());
    }
    let (location, query) = address.split_once('?').unwrap_or((address, ""));
    let all = query.split('&').filter(|part| !part.is_empty());
    let (known, unknown): (Vec<&str>, Vec<&str>) = all.partition(|part| is_known(part));
    if !unknown.is_empty() {
        tracing::warn!(
            parameters = unknown.len(),
            "ignored unknown parameters of the database URL"
        );
    }
    let address = format!("{location}?{}", known.join("&"));
    PgConnectOptions::from_str(&address).map_err(|_| wrong())
}

/// Opens the only connection of a command that imports or copies. Waits up to 60 s.
///
/// # Errors
/// If the database cannot be reached or does not respond.
pub async fn connect_once(options: &PgConnectOptions) -> Result<Box<PgConnection>, StoreError> {
    let connecting = timeout(CONNECT_TIMEOUT, options.connect()).await;
    Ok(Box::new(connecting.map_err(|_| StoreError::Timeout)??))
}

/// Whether this is a parameter that a Postgres URL can have.
fn is_known(part: &str) -> bool {
    let name = name(part);
    is_shown(part) || ["password", "options"].contains(&name) || name.starts_with("options[")
}

fn is_shown(part: &str) -> bool {
    SHOWN_PARAMETERS.contains(&name(part))
}

fn name(part: &str) -> &str {
    part.split('=').next().unwrap_or_default()
}

/// The URL without its password. If it is not clear where in it a password may be, most of it is left out.
pub fn without_password(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return without_separator(address);
    };
    if scheme == "sqlite" {
        return address.to_owned();
    }
    if !is_scheme(scheme) {
        return HIDDEN.to_owned();
    }
    let (location, query) = rest.split_once('?').unwrap_or((rest, ""));
    let query = query.split('#').next().unwrap_or_default();
    let parts = query.split('&');
    // The password contains an unescaped `?`.
    if parts
        .clone()
        .any(|part| part.contains('@') && !is_known(part))
    {
        return format!("{scheme}://{HIDDEN}");
    }
    let location = without_credentials(scheme, location);
    let shown: Vec<&str> = parts.filter(|part| is_shown(part)).collect();
    match shown.is_empty() {
        true => format!("{scheme}://{location}"),
        false => format!("{scheme}://{location}?{}", shown.join("&")),
    }
}

/// A URL without `://`: a file, or a mistake such as `postgres:user:secret@host` or `host=h password=secret`.
fn without_separator(address: &str) -> String {
    let is_file = !address.contains([':', '@', '=']);
    if is_file || address.starts_with("sqlite:") {
        return address.to_owned();
    }
    match address.split_once(':') {
        Some((scheme, _)) if is_scheme(scheme) => format!("{scheme}:{HIDDEN}"),
        _ => HIDDEN.to_owned(),
    }
}

fn is_scheme(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphabetic())
}

/// The user, host and path without the password.
fn without_credentials(scheme: &str, location: &str) -> String {
    // A password may contain an unescaped `@`, so the last one separates the host.
    let (user, host) = match location.rsplit_once('@') {
        Some((credentials, host)) => match credentials.split_once(':') {
            Some((user, _)) => (user, host),
            // In the URL of a Redis server, this is the password.
            None if scheme.starts_with("redis") => ("", host),
            None => (credentials, host),
        },
        None => ("", location),
    };
    // A text in place of the port is probably the password of a URL without a host.
    let authority = host.split('/').next().unwrap_or_default();
    let host = match authority.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') && !port.chars().all(|c| c.is_ascii_digit()) => {
            format!("{name}:{HIDDEN}")
        }
        _ => host.to_owned(),
    };
    match user {
        "" => host,
        user => format!("{user}@{host}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (address, expected) in [
            (
                "postgres://user:secret@host:1/db",
                "postgres://user@host:1/db",
            ),
            (
                "postgresql://user:se/cr@et@host/db?sslmode=require",
                "postgresql://user@host/db?sslmode=require",
            ),
            (
                "postgres://host/db?user=me&password=secret&port=1",
                "postgres://host/db?user=me&port=1",
            ),
            (
                "postgres://host/db?user=me@home&password=se@cret",
                "postgres://host/db?user=me@home",
            ),
            ("postgres://host/db?password=secret", "postgres://host/db"),
            ("mysql://user:secret@host/db", "mysql://user@host/db"),
            ("postgres://host/db", "postgres://host/db"),
            ("postgres://[::1]:5432/db", "postgres://[::1]:5432/db"),
            ("postgres://[::1]/db", "postgres://[::1]/db"),
            ("postgres://%2Frun%2Fpg/db", "postgres://%2Frun%2Fpg/db"),
            ("redis://host:6379/2", "redis://host:6379/2"),
            ("redis://user:secret@host/2", "redis://user@host/2"),
            ("sqlite://a/b.db", "sqlite://a/b.db"),
            ("sqlite:a@b.db", "sqlite:a@b.db"),
            ("sqlite::memory:", "sqlite::memory:"),
            ("jobs.db", "jobs.db"),
        ] {
            assert_eq!(without_password(address), expected);
        }
    }

    #[test]
    fn passwords_in_malformed_addresses_are_not_shown() {
        for (address, expected) in [
            ("postgres:user:secret@host/db", "postgres:…"),
            ("postgres:/user:secret@host/db", "postgres:…"),
            ("user:secret@host/db", "user:…"),
            ("secret@host/db", "…"),
            ("host=h password=secret", "…"),
            ("user:secret@host://db", "…"),
            ("postgres://user:se?cret@host/db", "postgres://…"),
            ("postgres://user:se#cret@host/db", "postgres://user@host/db"),
            ("postgres://user:secret", "postgres://user:…"),
            ("postgres://user:secret/db", "postgres://user:…"),
            ("postgres://h/db?pass%77ord=secret", "postgres://h/db"),
            ("postgres://h/db?sslpassword=secret", "postgres://h/db"),
            ("postgres://h/db?port=1#secret", "postgres://h/db?port=1"),
            ("postgres://h/db?password=a&secret", "postgres://h/db"),
            ("redis://:secret@host", "redis://host"),
            ("redis://secret@host", "redis://host"),
        ] {
            assert_eq!(without_password(address), expected);
            if address.starts_with("postgres:") {
                let shown = postgres_options(address).err().map(|why| why.to_string());
                let shown = shown.unwrap_or_default();
                assert!(
                    !shown.contains("secret") && !shown.contains("cret@"),
                    "{shown}"
                );
            }
        }
    }

    #[test]
    fn unknown_parameters_are_ignored() {
        let options = postgres_options("postgres://u@h:1/d?sslpassword=secret&port=2&&password=x");
        let options = options.unwrap();
        assert_eq!((options.get_host(), options.get_port()), ("h", 2));
        assert_eq!(options.get_database(), Some("d"));
    }

    #[test]
    fn an_address_without_slashes_or_of_another_scheme_is_refused() {
        for address in [
            "postgres:user:secret@host/db",
            "postgres:/user@host",
            "postgresql:h",
            "mysql://h/d",
        ] {
            assert!(
                matches!(postgres_options(address), Err(StoreError::Address(_))),
                "{address}"
            );
        }
    }
}
