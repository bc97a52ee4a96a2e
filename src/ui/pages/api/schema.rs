//! Schemas of OpenAPI as short texts, in the notation of TypeScript.

use serde_json::Value;

/// Values within more objects than this are shown as `…`.
const DEPTH_MAX: usize = 8;

static NULL: Value = Value::Null;

/// The value of a key; null if there is none.
pub fn at<'a>(value: &'a Value, key: &str) -> &'a Value {
    value.get(key).unwrap_or(&NULL)
}

/// A schema as text. References are shown by name.
pub fn text(schema: &Value) -> String {
    nested(schema, 0)
}

fn nested(schema: &Value, depth: usize) -> String {
    if depth > DEPTH_MAX {
        return "…".to_owned();
    }
    if let Some(reference) = at(schema, "$ref").as_str() {
        return reference.rsplit('/').next().unwrap_or_default().to_owned();
    }
    for (key, separator) in [("anyOf", " | "), ("oneOf", " | "), ("allOf", " & ")] {
        if let Some(all) = at(schema, key).as_array() {
            let texts = all.iter().map(|one| nested(one, depth));
            return texts.collect::<Vec<_>>().join(separator);
        }
    }
    if let Some(values) = at(schema, "enum").as_array() {
        let values = values.iter().map(Value::to_string);
        return values.collect::<Vec<_>>().join(" | ");
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    match at(schema, "type") {
        Value::String(kind) => of_type(kind, schema, depth),
        Value::Array(kinds) => {
            let kinds = kinds.iter().filter_map(Value::as_str);
            let texts = kinds.map(|kind| of_type(kind, schema, depth));
            texts.collect::<Vec<_>>().join(" | ")
        }
        _ if schema.get("properties").is_some() => object(schema, depth),
        _ => "any".to_owned(),
    }
}

fn of_type(kind: &str, schema: &Value, depth: usize) -> String {
    match kind {
        "array" => {
            let items = match schema.get("items") {
                Some(items) => nested(items, depth),
                None => "any".to_owned(),
            };
            match items.contains(" | ") && !items.starts_with('{') {
                true => format!("({items})[]"),
                false => format!("{items}[]"),
            }
        }
        "object" => object(schema, depth),
        "null" => "null".to_owned(),
        scalar => format!("{scalar}{}", limits(schema)),
    }
}

/// The limits of a number, and the default of any scalar.
fn limits(schema: &Value) -> String {
    let limits = [
        ("minimum", "≥ "),
        ("exclusiveMinimum", "> "),
        ("maximum", "≤ "),
        ("default", "default "),
    ];
    let mut texts = Vec::new();
    for (key, word) in limits {
        if let Some(value) = schema.get(key) {
            texts.push(format!("{word}{value}"));
        }
    }
    match texts.is_empty() {
        true => String::new(),
        false => format!(" ({})", texts.join(", ")),
    }
}

fn object(schema: &Value, depth: usize) -> String {
    let indent = "  ".repeat(depth + 1);
    let required: Vec<&str> = at(schema, "required")
        .as_array()
        .map(|all| all.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let mut lines = Vec::new();
    for (name, property) in at(schema, "properties").as_object().into_iter().flatten() {
        let mark = if required.contains(&name.as_str()) {
            ""
        } else {
            "?"
        };
        let kind = nested(property, depth + 1);
        let about = match at(property, "description").as_str() {
            Some(about) => format!("  // {about}"),
            None => String::new(),
        };
        lines.push(format!("{indent}{name}{mark}: {kind}{about}"));
    }
    if let Some(values) = schema
        .get("additionalProperties")
        .filter(|its| its.is_object())
    {
        let kind = nested(values, depth + 1);
        lines.push(format!("{indent}[name: string]: {kind}"));
    }
    match lines.is_empty() {
        true => "object".to_owned(),
        false => format!("{{\n{}\n{}}}", lines.join("\n"), "  ".repeat(depth)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_are_short_texts() {
        for (schema, expected) in [
            (json!({}), "any"),
            (json!(true), "any"),
            (json!({"type": "string"}), "string"),
            (json!({"type": ["string", "null"]}), "string | null"),
            (json!({"type": "number", "minimum": 0}), "number (≥ 0)"),
            (
                json!({"type": "integer", "minimum": 1, "maximum": 9, "default": 3}),
                "integer (≥ 1, ≤ 9, default 3)",
            ),
            (json!({"enum": ["a", 1]}), "\"a\" | 1"),
            (json!({"const": "ok"}), "\"ok\""),
            (json!({"$ref": "#/components/schemas/Job"}), "Job"),
            (
                json!({"anyOf": [{"$ref": "#/x/Job"}, {"type": "null"}]}),
                "Job | null",
            ),
            (
                json!({"type": "array", "items": {"type": ["string", "null"]}}),
                "(string | null)[]",
            ),
            (json!({"type": "array"}), "any[]"),
            (json!({"type": "object"}), "object"),
            (
                json!({"type": "object", "required": ["a"], "properties": {
                    "a": {"type": "string", "description": "A name."},
                    "b": {"type": "object", "properties": {"c": {}}}
                }}),
                "{\n  a: string  // A name.\n  b?: {\n    c?: any\n  }\n}",
            ),
            (
                json!({"type": "object", "additionalProperties": {"type": "integer"}}),
                "{\n  [name: string]: integer\n}",
            ),
        ] {
            assert_eq!(text(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn deep_schemas_are_cut() {
        let mut schema = json!({"type": "string"});
        for _ in 0..100 {
            schema = json!({"type": "object", "properties": {"a": schema}});
        }
        assert!(text(&schema).contains('…'));
    }
}
