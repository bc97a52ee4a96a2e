//! Secrets: on the command line, in the environment, and in files as container platforms provide them.

use std::fs;

use crate::auth::{Identity, Role, SECRETS_MAX, UiKey};
use crate::secret::{Hash, read_file, read_file_again};

/// Minimum length of a secret on a server that listens on a non-loopback address, in characters.
pub const SECRET_CHARS_MIN: usize = 16;

/// A secret as it is configured. Only its hash is kept.
#[derive(Clone, Copy, Debug)]
pub struct Secret {
    pub hash: Hash,
    /// Whether it is shorter than [`SECRET_CHARS_MIN`].
    pub is_short: bool,
}

/// Dashboard keys, or why they are invalid. The error is reported later, because clap would print the keys too.
#[derive(Clone, Debug)]
pub struct UiKeys(pub(super) Result<Vec<ConfiguredKey>, String>);

/// A dashboard key, and whether its secret is short.
#[derive(Clone, Debug)]
pub struct ConfiguredKey {
    pub key: UiKey,
    pub is_short: bool,
}

/// The content of a file with secrets, and how to reload it.
#[derive(Clone, Debug)]
pub struct FromFile<T> {
    path: String,
    parse: fn(&str) -> Result<T, String>,
    pub content: T,
}

/// A file with the values of one secret.
pub type SecretFile = FromFile<Vec<Secret>>;

/// A file with dashboard keys.
pub type UiKeysFile = FromFile<Vec<ConfiguredKey>>;

impl<T> FromFile<T> {
    /// Reads the file.
    ///
    /// # Errors
    /// If it cannot be read, or has no valid content.
    pub fn read(path: &str, parse: fn(&str) -> Result<T, String>) -> Result<FromFile<T>, String> {
        Ok(FromFile {
            path: path.to_owned(),
            parse,
            content: parse(&read_file(path)?)?,
        })
    }

    /// Reloads the file.
    ///
    /// # Errors
    /// If it is not a regular file, cannot be read, or has no valid content.
    pub fn reload(&self) -> Result<FromFile<T>, String> {
        let path = &self.path;
        let content = read_file_again(path).and_then(|text| (self.parse)(&text));
        let content = content.map_err(|why| format!("{path}: {why}"))?;
        Ok(FromFile {
            path: path.clone(),
            parse: self.parse,
            content,
        })
    }

    pub fn path(&self) -> &str {
        &self.path
    }
}

/// Checks that a file can be read again: a pipe would have nothing left to read.
///
/// # Errors
/// If it exists and is not a regular file.
pub fn check_regular(path: &str) -> Result<(), String> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err("not a regular file".to_owned()),
        _ => Ok(()),
    }
}

/// Maximum length of the name in a key, in characters.
const UI_NAME_CHARS_MAX: usize = 64;

#[expect(clippy::unnecessary_wraps, reason = "clap asks for a Result")]
pub fn ui_keys(text: &str) -> Result<UiKeys, String> {
    Ok(UiKeys(
        all_ui_keys(text).map_err(|why| format!("--ui-key: {why}")),
    ))
}

/// The dashboard keys in this file, separated as in the environment variable.
pub fn ui_keys_file(path: &str) -> Result<UiKeysFile, String> {
    FromFile::read(path, all_ui_keys)
}

fn all_ui_keys(text: &str) -> Result<Vec<ConfiguredKey>, String> {
    let all = text.split([',', ' ', '\t', '\r', '\n']);
    let keys = all.filter(|key| !key.is_empty()).map(ui_key);
    let keys: Vec<ConfiguredKey> = keys.collect::<Result<_, _>>()?;
    if keys.is_empty() {
        return Err("must not be empty".to_owned());
    }
    Ok(keys)
}

fn ui_key(text: &str) -> Result<ConfiguredKey, String> {
    let mut parts = text.splitn(3, ':');
    let (Some(role), Some(name), Some(secret)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("expected ROLE:NAME:SECRET, without commas or whitespace".to_owned());
    };
    let role = Role::parse(role);
    let role = role.ok_or("a key starts with viewer:, operator: or admin:")?;
    let is_visible = |c: char| !c.is_control() && !c.is_whitespace();
    if !(1..=UI_NAME_CHARS_MAX).contains(&name.chars().count()) || !name.chars().all(is_visible) {
        return Err(format!(
            "the name in a key must have 1 to {UI_NAME_CHARS_MAX} visible characters"
        ));
    }
    let secret = password(secret).map_err(|why| format!("the secret of {name}: {why}"))?;
    let name = name.to_owned();
    Ok(ConfiguredKey {
        key: UiKey {
            identity: Identity { name, role },
            secret: secret.hash,
        },
        is_short: secret.is_short,
    })
}

/// Trims the token, because HTTP clients and servers trim the header that carries it.
pub fn token(text: &str) -> Result<Secret, &'static str> {
    password(text.trim())
}

/// Refuses an empty password: it is more likely a mistake than the intention to accept everyone.
pub fn password(text: &str) -> Result<Secret, &'static str> {
    if text.is_empty() {
        return Err("must not be empty");
    }
    Ok(Secret {
        hash: Hash::of(text),
        is_short: text.chars().count() < SECRET_CHARS_MIN,
    })
}

/// The tokens in this file, one per line.
pub fn token_file(path: &str) -> Result<SecretFile, String> {
    FromFile::read(path, |text| lines(text, token))
}

/// The passwords in this file, one per line.
pub fn password_file(path: &str) -> Result<SecretFile, String> {
    FromFile::read(path, |text| lines(text, password))
}

/// The secrets of a file: one, or two while it is rotated. Empty lines do not count.
fn lines(
    text: &str,
    parse: fn(&str) -> Result<Secret, &'static str>,
) -> Result<Vec<Secret>, String> {
    let lines = text.lines().filter(|line| !line.is_empty());
    let secrets: Vec<Secret> = lines.map(parse).collect::<Result<_, _>>()?;
    if secrets.len() > SECRETS_MAX {
        return Err(format!(
            "{} lines with a secret; the limit is {SECRETS_MAX}",
            secrets.len()
        ));
    }
    Ok(secrets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_in_a_key_has_up_to_64_characters() {
        for (chars, is_name) in [(0, false), (1, true), (63, true), (64, true), (65, false)] {
            let key = format!("viewer:{}:a-long-enough-secret", "é".repeat(chars));
            assert_eq!(ui_key(&key).is_ok(), is_name, "{chars} characters");
        }
    }

    #[test]
    fn a_secret_of_less_than_16_characters_is_short() {
        for (chars, is_short) in [(15, true), (16, false), (17, false)] {
            let secret = token(&"é".repeat(chars)).unwrap();
            assert_eq!(secret.is_short, is_short, "{chars} characters");
        }
    }

    #[test]
    fn a_file_has_one_or_two_tokens() {
        for (text, expected) in [
            ("one", Some(1)),
            ("one\ntwo", Some(2)),
            ("one\r\n two ", Some(2)),
            ("\n\none\n\ntwo", Some(2)),
            ("one\ntwo\nthree", None),
            ("one\n \ntwo", None),
        ] {
            let read = lines(text, token).ok().map(|secrets| secrets.len());
            assert_eq!(read, expected, "{text:?}");
        }
        let secrets = lines("one\n two ", token).unwrap();
        let hashes: Vec<Hash> = secrets.iter().map(|secret| secret.hash).collect();
        assert_eq!(hashes, ["one", "two"].map(Hash::of));
        let passwords = lines("one\n two ", password).unwrap();
        assert_eq!(passwords[1].hash, Hash::of(" two "));
    }
}
