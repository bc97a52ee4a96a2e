//! Secrets: on the command line, in the environment, and in files as container platforms provide them.

use std::fs::File;
use std::io::{self, Read};

use crate::api::views::Role;
use crate::doors::{UiKey, Who};
use crate::secret::Hash;

/// The shortest secret that is accepted beyond loopback, in characters.
pub const SECRET_CHARS_MIN: usize = 16;

/// The largest file of secrets, in bytes.
pub const SECRET_FILE_BYTES_MAX: u64 = 256 << 10;

/// A secret as it is configured. Only its hash is kept.
#[derive(Clone, Copy, Debug)]
pub struct Secret {
    pub hash: Hash,
    /// Whether it is shorter than [`SECRET_CHARS_MIN`].
    pub is_short: bool,
}

/// Keys of the dashboard, or what is wrong with them. The error is reported later, because clap would print the keys too.
#[derive(Clone, Debug)]
pub struct UiKeys(pub(super) Result<Vec<ConfiguredKey>, String>);

/// A key of the dashboard, and whether its secret is short.
#[derive(Clone, Debug)]
pub struct ConfiguredKey {
    pub key: UiKey,
    pub is_short: bool,
}

/// The longest name in a key, in characters.
const UI_NAME_CHARS_MAX: usize = 64;

#[expect(clippy::unnecessary_wraps, reason = "clap asks for a Result")]
pub fn ui_keys(text: &str) -> Result<UiKeys, String> {
    Ok(UiKeys(
        all_ui_keys(text).map_err(|why| format!("--ui-key: {why}")),
    ))
}

/// The keys of the dashboard in this file, separated as in the environment.
pub fn ui_keys_file(path: &str) -> Result<UiKeys, String> {
    Ok(UiKeys(Ok(all_ui_keys(&read_file(path)?)?)))
}

fn all_ui_keys(text: &str) -> Result<Vec<ConfiguredKey>, String> {
    let all = text.split([',', ' ', '\t', '\r', '\n']);
    let keys = all.filter(|key| !key.is_empty()).map(ui_key);
    let keys: Vec<ConfiguredKey> = keys.collect::<Result<_, _>>()?;
    if keys.is_empty() {
        return Err("it is empty".to_owned());
    }
    Ok(keys)
}

fn ui_key(text: &str) -> Result<ConfiguredKey, String> {
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
    Ok(ConfiguredKey {
        key: UiKey {
            who: Who { name, role },
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
        return Err("it is empty");
    }
    Ok(Secret {
        hash: Hash::of(text),
        is_short: text.chars().count() < SECRET_CHARS_MIN,
    })
}

/// The token in this file.
pub fn token_file(path: &str) -> Result<Secret, String> {
    Ok(token(&read_file(path)?)?)
}

/// The password in this file.
pub fn password_file(path: &str) -> Result<Secret, String> {
    Ok(password(&read_file(path)?)?)
}

/// The text in this file, without the newlines at its end.
///
/// # Errors
/// If it cannot be read, is empty or too long.
pub fn read_file(path: &str) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    read(file)
}

/// The text on standard input, without the newlines at its end.
///
/// # Errors
/// If it cannot be read, is empty or too long.
pub fn read_stdin() -> Result<String, String> {
    read(io::stdin()).map_err(|why| format!("standard input: {why}"))
}

fn read(source: impl Read) -> Result<String, String> {
    let mut text = String::new();
    let mut source = source.take(SECRET_FILE_BYTES_MAX + 1);
    let length = source
        .read_to_string(&mut text)
        .map_err(|error| error.to_string())?;
    if u64::try_from(length).is_ok_and(|length| length > SECRET_FILE_BYTES_MAX) {
        return Err(format!("it has more than {SECRET_FILE_BYTES_MAX} bytes"));
    }
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    Ok(text.to_owned())
}
