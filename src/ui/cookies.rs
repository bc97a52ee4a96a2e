//! The cookies of the dashboard. Over HTTPS, the middleware `http/guard.rs` adds `Secure` to each.

use super::display::Setting;
use super::page_request::Flash;
use super::urls::encoding::{name_of, segment};

/// Carries a [`Flash`] from an action to the next page: `done.<text>`, `refused.<text>`, or with an
/// operation to undo `done-<id>.<text>`; the text is percent-encoded.
pub const FLASH: &str = "switchyard_flash";

/// Carries the secret of a session.
pub const SESSION: &str = "switchyard_session";

/// Until when the user of the browser has seen the failures, in microseconds since 1970.
pub const FAILURES_SEEN: &str = "switchyard_failures";

/// How long a browser keeps display settings, in seconds.
const SETTING_AGE_S: i64 = 31_536_000;

/// How long a flash is kept until the next page is requested, in seconds.
const FLASH_AGE_S: i64 = 60;

/// Maximum length of a flash. Browsers accept 4 kB per cookie, including percent-encoding.
const FLASH_CHARS_MAX: usize = 400;
const FLASH_BYTES_MAX: usize = 1_200;

/// The value of a cookie in a `Cookie` header.
pub fn get<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    header
        .split(';')
        .filter_map(|cookie| cookie.trim().split_once('='))
        .find_map(|(key, value)| (key == name).then_some(value))
}

/// The flash in a `Cookie` header.
pub fn get_flash(header: &str) -> Option<Flash> {
    let (outcome, text) = get(header, FLASH)?.split_once('.')?;
    let undo = outcome.strip_prefix("done-");
    Some(Flash {
        done: outcome == "done" || undo.is_some(),
        text: shortened(&name_of(text)),
        undo: undo.and_then(|id| id.parse().ok()),
    })
}

/// A `Set-Cookie` header with a flash, cut to the maximum length.
pub fn flash(flash: &Flash) -> String {
    let short = shortened(&flash.text);
    let outcome = match (flash.done, flash.undo) {
        (true, Some(id)) => format!("done-{id}"),
        (true, None) => "done".to_owned(),
        (false, _) => "refused".to_owned(),
    };
    let value = format!("{outcome}.{}", segment(&short));
    set(FLASH, &value, FLASH_AGE_S, "Strict")
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(FLASH_CHARS_MAX).collect();
    short.truncate(short.floor_char_boundary(FLASH_BYTES_MAX));
    short
}

/// A `Set-Cookie` header that deletes the flash.
pub fn delete_flash() -> String {
    set(FLASH, "", 0, "Strict")
}

/// A `Set-Cookie` header with the secret of a session. It is not `SameSite=Strict`, so that links from other sites,
/// such as alerts, do not require a new sign-in. Actions accept only requests from the dashboard's own pages
/// (`http/guard.rs`).
pub fn session(secret: &str, age_s: i64) -> String {
    set(SESSION, secret, age_s, "Lax")
}

/// A `Set-Cookie` header that deletes the session.
pub fn delete_session() -> String {
    session("", 0)
}

/// A `Set-Cookie` header with a display setting. It deletes the cookie of the default.
pub fn setting(setting: &Setting, value: &str) -> String {
    match setting.value(Some(value)) {
        value if setting.is_default(value) => set(setting.cookie, "", 0, "Lax"),
        value => set(setting.cookie, value, SETTING_AGE_S, "Lax"),
    }
}

/// A `Set-Cookie` header with the time until which the user has seen the failures.
pub fn failures_seen(until: i64) -> String {
    set(FAILURES_SEEN, &until.to_string(), SETTING_AGE_S, "Lax")
}

/// The time until which the user has seen the failures, in a `Cookie` header.
pub fn get_failures_seen(header: &str) -> Option<i64> {
    let until: i64 = get(header, FAILURES_SEEN)?.parse().ok()?;
    // The user can choose any value. Postgres could not subtract a negative one from other times.
    Some(until.max(0))
}

fn set(name: &str, value: &str, age_s: i64, same_site: &str) -> String {
    format!("{name}={value}; Path=/ui; Max-Age={age_s}; HttpOnly; SameSite={same_site}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_until_which_failures_were_seen_is_not_negative() {
        let seen = |value: &str| get_failures_seen(&format!("a=b; {FAILURES_SEEN}={value}"));
        for (value, until) in [
            ("1700000000000000", Some(1_700_000_000_000_000)),
            ("0", Some(0)),
            ("-1", Some(0)),
            ("-9223372036854775808", Some(0)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("", None),
        ] {
            assert_eq!(seen(value), until, "{value}");
        }
        assert_eq!(get_failures_seen(""), None);
    }
}
