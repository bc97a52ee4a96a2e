//! Encodes names as path segments, and checks addresses. Percent-encodes by hand and imports nothing, so that the fuzz
//! target `addresses` can compile this file alone.

/// Whether an address is a page of the dashboard.
pub fn is_dashboard_page(address: &str) -> bool {
    address
        .strip_prefix("/ui")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
        && address
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\')
        && !address.split(['?', '#']).next().is_some_and(is_ambiguous)
}

/// Whether browsers and the pages' router resolve this path to another one: they resolve `.` and `..`, even if
/// percent-encoded, and treat `\` as `/`. No page has such an address; see [`segment`].
pub fn is_ambiguous(path: &str) -> bool {
    let is_dots = |segment: &str| matches!(&*decode(segment), "." | "..");
    path.contains('\\') || path.split('/').any(is_dots)
}

/// A name as one segment of a path. Gets a leading `~` if it is `.` or `..` (which browsers resolve), empty, or starts
/// with `~`.
pub fn segment(name: &str) -> String {
    let mut segment = String::with_capacity(name.len());
    if name.is_empty() || name == "." || name == ".." || name.starts_with('~') {
        segment.push('~');
    }
    encode(name, &mut segment);
    segment
}

/// The name in a segment of a path.
pub fn name_of(segment: &str) -> String {
    let name = without_nul(decode(segment));
    match name.strip_prefix('~') {
        Some(rest) => rest.to_owned(),
        None => name,
    }
}

/// The decoded segments of a path. Equivalent spellings of a path have the same segments.
pub fn segments(path: &str) -> Vec<String> {
    let segments = path.split('/').filter(|segment| !segment.is_empty());
    segments.map(decode).collect()
}

/// Percent-encodes everything but unreserved characters.
pub fn encode(text: &str, into: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            into.push(byte.into());
        } else {
            into.push('%');
            into.extend([byte >> 4, byte & 15].map(|digit| {
                char::from_digit(digit.into(), 16).map_or('0', |c| c.to_ascii_uppercase())
            }));
        }
    }
}

/// Replaces NUL, which names cannot contain and Postgres does not accept, with U+FFFD.
pub fn without_nul(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "\u{FFFD}")
    } else {
        text
    }
}

/// Percent-decodes once. Invalid encodings are left as they are.
pub fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        let digits = after.split_at_checked(2).filter(|_| first == b'%');
        let coded = digits.and_then(|(digits, after)| {
            let text = std::str::from_utf8(digits).ok()?;
            // from_str_radix also accepts a sign.
            let byte = u8::from_str_radix(text, 16)
                .ok()
                .filter(|_| !text.starts_with('+'))?;
            Some((byte, after))
        });
        match coded {
            Some((byte, after)) => {
                bytes.push(byte);
                rest = after;
            }
            None => bytes.push(first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_survives_encoding_and_decoding() {
        for name in [
            "mail",
            "a/b",
            "../x",
            "..",
            ".",
            "",
            "~",
            "~..",
            "日本",
            "<img src=x onerror=alert(1)>",
            "?",
            "#",
            "%",
            "%2F",
            "%2e%2e",
            "a b",
            "a+b",
            "\\",
            "\"",
            "'",
        ] {
            let segment = segment(name);
            assert_eq!(name_of(&segment), name);
            assert!(!segment.is_empty() && segment != "." && segment != "..");
            assert!(
                segment
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte))
            );
        }
    }

    #[test]
    fn invalid_encodings_stay_unchanged() {
        for text in ["%", "%2", "%zz", "%+1", "100%"] {
            assert_eq!(decode(text), text);
        }
        assert_eq!(decode("%41%"), "A%");
    }

    #[test]
    fn return_addresses_are_pages_of_the_dashboard() {
        for ours in ["/ui", "/ui?x=1", "/ui/jobs/a%2Fb"] {
            assert!(is_dashboard_page(ours), "{ours}");
        }
        for foreign in [
            "",
            "/",
            "//ui",
            "/uix",
            "https://x.example/ui",
            "/ui/\r\nX: y",
            "/ui/\\x",
            "/ui/../get/mail?host=w",
            "/ui/queues/%2e%2E/%2e./get/mail",
            "/ui/.",
            "/ui/..#x",
        ] {
            assert!(!is_dashboard_page(foreign), "{foreign}");
        }
        assert!(
            is_dashboard_page("/ui/jobs?q=a/../b"),
            "a query is not a path"
        );
    }
}
