//! The label of a record: a short text derived from its state, by which records are indexed and counted.

use super::{Hint, first_text_of};

/// Maximum length of a label, in bytes. A state with a longer one has no label, because labels are indexed.
const LABEL_BYTES_MAX: usize = 200;

/// The label of a record without a state.
pub const NO_STATE: &str = "null";

/// The label of a state (JSON text without whitespace): for an array, a bracket and its first element
/// ([`first_text_of`]), if that is a text; for a scalar, the state itself; none for an object.
pub fn label(state: Option<&str>) -> Option<String> {
    let state = state.unwrap_or(NO_STATE);
    let label = match state.as_bytes().first()? {
        b'[' => bracketed(&first_text_of(Some(state))?),
        b'{' => return None,
        _ => state.to_owned(),
    };
    (label.len() <= LABEL_BYTES_MAX).then_some(label)
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
        let long = "x".repeat(300);
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
        ] {
            assert_eq!(label(state).as_deref(), expected, "{state:?}");
        }
    }
}
