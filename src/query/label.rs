//! The label of a record: a short text derived from its state, by which records are indexed and counted.

use serde_json::value::RawValue;

use super::{Hint, first_text_of};

/// Maximum length of a label, in bytes. A state with a longer one has no label, because labels are indexed.
const LABEL_BYTES_MAX: usize = 200;

/// Maximum length of the text of an element with a label: each byte of the label can be an escape such as `\u0041`.
const ELEMENT_BYTES_MAX: usize = 6 * LABEL_BYTES_MAX + "[\"\"".len();

/// The label of a record without a state.
pub const NO_STATE: &str = "null";

/// The label of a state (JSON text without whitespace): for an array, a bracket and its first element
/// ([`first_text_of`]), if that is a text; for a scalar, the state itself; none for an object.
pub fn label(state: Option<&str>) -> Option<String> {
    let state = state.unwrap_or(NO_STATE);
    let label = match state.as_bytes().first()? {
        b'[' => bracketed(&first_text_of(Some(&only_first(state)?))?),
        b'{' => return None,
        _ => state.to_owned(),
    };
    (label.len() <= LABEL_BYTES_MAX).then_some(label)
}

/// An array with only the first element of this one; `None` if the element is longer than that of any label. Does not
/// read the rest of the state, which can have megabytes.
fn only_first(state: &str) -> Option<String> {
    let beginning = state.get(1..state.floor_char_boundary(ELEMENT_BYTES_MAX))?;
    let mut elements = serde_json::Deserializer::from_str(beginning).into_iter::<&RawValue>();
    let first = elements.next()?.ok()?;
    Some(format!("[{}]", first.get()))
}

/// The label of all records that meet the hint, if they have the same one.
pub fn label_of(hint: &Hint) -> Option<String> {
    let label = match &hint.first_text {
        _ if hint.no_state => NO_STATE.to_owned(),
        Some(first) => bracketed(first),
        None => return None,
    };
    (label.len() <= LABEL_BYTES_MAX).then_some(label)
}

fn bracketed(first: &str) -> String {
    format!("[{}", serde_json::Value::from(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_labeled_by_what_it_begins_with() {
        let (long, long_list) = ("x".repeat(300), "1,".repeat(10_000));
        let escaped = r"\u0041".repeat(197);
        for (state, expected) in [
            (None, Some("null")),
            (Some(r#"["CREATED"]"#), Some(r#"["CREATED""#)),
            (
                Some(r#"["CRE\u0041TED",{"a":[1]},2]"#),
                Some(r#"["CREATED""#),
            ),
            (Some(r#"["say \"hi\""]"#), Some(r#"["say \"hi\"""#)),
            (Some(r#""done""#), Some(r#""done""#)),
            (Some("5"), Some("5")),
            (Some("true"), Some("true")),
            (Some("[]"), None),
            (Some("[1,2]"), None),
            (Some("[null]"), None),
            // The first element as `json_extract` returns it.
            (Some(r#"[["CREATED"]]"#), Some(r#"["[\"CREATED\"]""#)),
            (Some(r#"{"tag":"CREATED"}"#), None),
            (Some(&format!("\"{long}\"")), None),
            (Some(&format!("[\"{long}\"]")), None),
            (
                Some(&format!(r#"["CREATED",[{long_list}1]]"#)),
                Some(r#"["CREATED""#),
            ),
            (
                Some(&format!(r#"["{escaped}"]"#)),
                Some(&format!("[\"{}\"", "A".repeat(197))),
            ),
            (Some(&format!(r#"["\u0041{escaped}"]"#)), None),
            (
                Some(&format!(r#"["{}",1]"#, "ü".repeat(98))),
                Some(&format!("[\"{}\"", "ü".repeat(98))),
            ),
        ] {
            assert_eq!(label(state).as_deref(), expected, "{state:?}");
        }
    }
}
