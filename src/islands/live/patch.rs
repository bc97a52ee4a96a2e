//! Applies a delta between two renderings of a page (`ui/http/delta.rs`).

/// The ID of the new rendering, and the page. `None` if the delta does not fit `base`.
pub fn applied<'d>(delta: &'d str, base: &str) -> Option<(&'d str, String)> {
    let (id, mut rest) = delta.split_once('\n')?;
    let mut page = String::new();
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n')?;
        rest = after;
        if let Some(length) = line.strip_prefix('+') {
            let (text, after) = rest.split_at_checked(length.parse().ok()?)?;
            page.push_str(text);
            rest = after;
        } else {
            let (from, length) = line.strip_prefix('=')?.split_once(' ')?;
            let from: usize = from.parse().ok()?;
            let end = from.checked_add(length.parse().ok()?)?;
            page.push_str(base.get(from..end)?);
        }
    }
    Some((id, page))
}
