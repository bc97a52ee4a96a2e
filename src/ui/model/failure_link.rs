//! The pattern of links from failures to an issue tracker.

use crate::ui::urls::encoding::encode;

/// Maximum length of a pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1_000;

/// Maximum number of characters of a value in a link. Some servers refuse long addresses.
const VALUE_CHARS_MAX: usize = 200;

/// The placeholders.
const PLACEHOLDERS: [&str; 3] = ["{group}", "{message}", "{queue}"];

/// A pattern such as `https://tracker.example/search?q={group}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureLink(String);

impl FailureLink {
    /// Checks a pattern: http or https, with known placeholders, which must come after the host.
    ///
    /// # Errors
    /// A description of what is wrong.
    pub fn parse(text: &str) -> Result<FailureLink, String> {
        let wrong = |why: &str| Err(format!("{why}; expected https://HOST/PATH?q={{group}}"));
        let rest = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("http://"));
        let Some(rest) = rest else {
            return wrong("the address must begin with http:// or https://");
        };
        let is_plain = |c: char| !c.is_whitespace() && !c.is_control();
        if text.len() > PATTERN_BYTES_MAX || !text.chars().all(is_plain) {
            return wrong("the address is too long, or has spaces or control characters");
        }
        let (host, _) = rest.split_once('/').unwrap_or((rest, ""));
        if host.is_empty() || host.contains(['{', '@', '?', '#', '\\']) {
            return wrong("the address needs a host, without a user or placeholders");
        }
        let mut left = text.to_owned();
        for placeholder in PLACEHOLDERS {
            left = left.replace(placeholder, "");
        }
        if left.contains(['{', '}']) {
            return wrong("the placeholders are {group}, {message} and {queue}");
        }
        Ok(FailureLink(text.to_owned()))
    }

    /// The address for a failure. The values are percent-encoded, so they cannot change its other parts.
    pub fn address(&self, group: &str, message: &str, queue: &str) -> String {
        let mut address = String::new();
        let mut rest = self.0.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            address.push_str(before);
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            let value = match name {
                "group" => group,
                "message" => message,
                _ => queue,
            };
            let words: Vec<&str> = value.split_whitespace().collect();
            let short: String = words.join(" ").chars().take(VALUE_CHARS_MAX).collect();
            encode(&short, &mut address);
            rest = after;
        }
        address.push_str(rest);
        address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_encoded_and_cannot_be_placeholders() {
        let link =
            FailureLink::parse("https://t.example/{queue}/s?q={group}+{message}#top").unwrap();
        assert_eq!(
            link.address("a&b={message}", "it\n\"broke\" <b>", "../x"),
            "https://t.example/..%2Fx/s?q=a%26b%3D%7Bmessage%7D+it%20%22broke%22%20%3Cb%3E#top"
        );
        let long = link.address("", &"é".repeat(300), "");
        assert_eq!(long.matches("%C3%A9").count(), 200);
    }

    #[test]
    fn patterns_are_http_addresses_with_known_placeholders_after_the_host() {
        for pattern in [
            "http://a/{group}",
            "https://a.example:8443/?q={message}",
            "https://a",
        ] {
            assert!(FailureLink::parse(pattern).is_ok(), "{pattern}");
        }
        for pattern in [
            "",
            "javascript:alert(1)//{group}",
            "data:text/html,{group}",
            "//a/{group}",
            "https://{group}/",
            "https://u@a/",
            "https:///{group}",
            "https://a/{unknown}",
            "https://a/{group",
            "https://a/ {group}",
        ] {
            assert!(FailureLink::parse(pattern).is_err(), "{pattern}");
        }
        for (bytes, is_valid) in [(999, true), (1_000, true), (1_001, false)] {
            let pattern = format!("https://a/{}", "x".repeat(bytes - 10));
            assert_eq!(FailureLink::parse(&pattern).is_ok(), is_valid, "{bytes}");
        }
    }
}
