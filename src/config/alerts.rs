//! Settings of alerts, and of links from failures.

use clap::Args;

use super::secrets::FromFile;
use crate::alerts::Settings;
use crate::http::FailureLink;
use crate::secret::SigningKey;

/// A file with the secret.
type SigningKeyFile = Box<FromFile<SigningKey>>;

/// Minimum length of the secret, in characters.
const SECRET_CHARS_MIN: usize = 16;

/// Alerts: webhooks that the server calls when problems begin and end. Rules are created on the page /ui/alerts.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Alerts and failures")]
pub struct Alerts {
    /// Secret that signs the bodies of alerts with HMAC-SHA256; at least 16 characters. Without it, the server sends
    /// no alerts. Set the same secret on all servers of a database.
    #[arg(long, env = "SWITCHYARD_ALERT_SECRET", hide_env_values = true, value_parser = key, value_name = "SECRET")]
    #[arg(group = "alert-secret-source")]
    pub alert_secret: Option<SigningKey>,
    /// File with the value of --alert-secret.
    #[arg(long, env = "SWITCHYARD_ALERT_SECRET_FILE", value_parser = key_file, value_name = "PATH")]
    #[arg(group = "alert-secret-source")]
    pub alert_secret_file: Option<SigningKeyFile>,
    /// URL of an issue tracker, to which the page of a failure group links: http or https, with the placeholders {group},
    /// {message} and {queue} after the host. Example: https://tracker.example/search?q={group}.
    #[arg(long, env = "SWITCHYARD_FAILURE_LINK", value_parser = FailureLink::parse, value_name = "URL")]
    pub failure_link: Option<FailureLink>,
}

#[expect(clippy::unnecessary_wraps, reason = "clap asks for a Result")]
fn key(text: &str) -> Result<SigningKey, String> {
    Ok(SigningKey::new(text))
}

fn key_file(path: &str) -> Result<SigningKeyFile, String> {
    FromFile::read(path, key).map(Box::new)
}

impl Alerts {
    /// The path of the file with the secret.
    pub fn secret_file(&self) -> Option<&str> {
        self.alert_secret_file.as_ref().map(|file| file.path())
    }

    /// The settings, if there is a secret.
    ///
    /// # Errors
    /// If the secret is too short. The parser of flags does not check that, because its error would contain the secret.
    pub fn settings(&self, environment: Option<&str>) -> Result<Option<Settings>, String> {
        let key = self
            .alert_secret
            .as_ref()
            .or(self.alert_secret_file.as_ref().map(|file| &file.content));
        let Some(key) = key else { return Ok(None) };
        if key.chars() < SECRET_CHARS_MIN {
            return Err(format!(
                "the secret of --alert-secret must have at least {SECRET_CHARS_MIN} characters"
            ));
        }
        Ok(Some(Settings {
            key: key.clone(),
            environment: environment.unwrap_or_default().to_owned(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        alerts: Alerts,
    }

    #[test]
    fn a_secret_has_at_least_16_characters_and_is_not_shown() {
        for (chars, is_accepted) in [(1, false), (15, false), (16, true), (17, true)] {
            let secret = "s".repeat(chars);
            let flags = Flags::try_parse_from(["switchyard", "--alert-secret", &secret]).unwrap();
            assert!(!format!("{flags:?}").contains("sss"));
            let settings = flags.alerts.settings(Some("production"));
            match settings {
                Ok(settings) => assert!(is_accepted && settings.is_some(), "{chars}"),
                Err(why) => assert!(!is_accepted && !why.contains("sss"), "{chars}: {why}"),
            }
        }
        let none = Flags::try_parse_from(["switchyard"]).unwrap();
        assert!(none.alerts.settings(None).unwrap().is_none());
    }
}
