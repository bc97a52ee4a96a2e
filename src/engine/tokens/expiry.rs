//! The expiry of a token: a duration from now, or a date and time.

use std::str::FromStr;

use chrono::DateTime;

use crate::engine::clock::Time;
use crate::engine::tokens::TokenError;
use crate::search::parse_duration;

/// The longest lifetime of a token, in days.
pub const LIFETIME_DAYS_MAX: i64 = 3_650;

/// The shortest lifetime of a token, 1 s, in microseconds.
const LIFE_MIN: i64 = 1_000_000;

const LIFE_MAX: i64 = LIFETIME_DAYS_MAX * 86_400 * 1_000_000;

/// The longest text, in bytes.
const TEXT_BYTES_MAX: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Microseconds after the creation of the token.
    After(i64),
    At(Time),
}

impl FromStr for Expiry {
    type Err = TokenError;

    /// # Errors
    /// [`TokenError::Expiry`].
    fn from_str(text: &str) -> Result<Expiry, TokenError> {
        let text = text.trim();
        if text.len() > TEXT_BYTES_MAX {
            return Err(TokenError::Expiry);
        }
        if let Some(micros) = parse_duration(text) {
            return Ok(Expiry::After(micros));
        }
        let date = DateTime::parse_from_rfc3339(text).map_err(|_| TokenError::Expiry)?;
        Ok(Expiry::At(Time(date.timestamp_micros())))
    }
}

impl Expiry {
    /// The expiry of a token that is created at `now`.
    ///
    /// # Errors
    /// [`TokenError::Life`].
    pub fn resolve(self, now: Time) -> Result<Time, TokenError> {
        let life = match self {
            Expiry::After(micros) => micros,
            Expiry::At(date) => date.0.saturating_sub(now.0),
        };
        if !(LIFE_MIN..=LIFE_MAX).contains(&life) {
            return Err(TokenError::Life);
        }
        Ok(Time(now.0.saturating_add(life)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(1_800_000_000_000_000);

    fn resolve(text: &str) -> Result<i64, TokenError> {
        let date = text.parse::<Expiry>()?.resolve(NOW)?;
        Ok(date.0 - NOW.0)
    }

    #[test]
    fn durations_have_a_unit() {
        for (text, seconds) in [
            ("1s", 1),
            ("90s", 90),
            ("5m", 300),
            ("12h", 43_200),
            ("30d", 30 * 86_400),
            (" 30d ", 30 * 86_400),
            ("007d", 7 * 86_400),
        ] {
            assert_eq!(resolve(text), Ok(seconds * 1_000_000), "{text:?}");
        }
        for text in [
            "",
            " ",
            "d",
            "30",
            "30 d",
            "-1d",
            "+1d",
            "1.5h",
            "1D",
            "1y",
            "1d2h",
            "１d",
            "never",
            "99999999999999999999d",
            &"0".repeat(65),
        ] {
            assert_eq!(resolve(text), Err(TokenError::Expiry), "{text:?}");
        }
    }

    #[test]
    fn a_lifetime_is_from_1_second_to_3650_days() {
        let day = 86_400;
        let longest = LIFETIME_DAYS_MAX * day;
        for (seconds, is_allowed) in [
            (0, false),
            (1, true),
            (2, true),
            (longest - 1, true),
            (longest, true),
            (longest + 1, false),
        ] {
            let expected = if is_allowed {
                Ok(seconds * 1_000_000)
            } else {
                Err(TokenError::Life)
            };
            assert_eq!(resolve(&format!("{seconds}s")), expected, "{seconds} s");
        }
        for (days, is_allowed) in [(-1, true), (0, true), (1, false)] {
            let text = format!("{}d", LIFETIME_DAYS_MAX + days);
            assert_eq!(resolve(&text).is_ok(), is_allowed, "{text}");
        }
    }

    #[test]
    fn a_date_has_the_same_limits() {
        for (life, is_allowed) in [
            (i64::MIN, false),
            (-1, false),
            (0, false),
            (LIFE_MIN - 1, false),
            (LIFE_MIN, true),
            (LIFE_MIN + 1, true),
            (LIFE_MAX - 1, true),
            (LIFE_MAX, true),
            (LIFE_MAX + 1, false),
        ] {
            let expiry = Expiry::At(Time(NOW.0.saturating_add(life)));
            let expected = if is_allowed {
                Ok(Time(NOW.0 + life))
            } else {
                Err(TokenError::Life)
            };
            assert_eq!(expiry.resolve(NOW), expected, "{life}");
        }
    }

    #[test]
    fn dates_are_rfc_3339() {
        let parsed = |text: &str| text.parse::<Expiry>();
        let at = |seconds: i64| Ok(Expiry::At(Time(seconds * 1_000_000)));
        assert_eq!(parsed("2030-01-31T00:00:00Z"), at(1_896_048_000));
        assert_eq!(parsed("2030-01-31T02:00:00+02:00"), at(1_896_048_000));
        for text in ["2030-01-31", "2030-01-31T00:00:00", "2030-02-30T00:00:00Z"] {
            assert_eq!(parsed(text), Err(TokenError::Expiry), "{text}");
        }
    }
}
