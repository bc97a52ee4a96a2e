//! Commands for what a page does, and text in the syntax of shells, JSON and HTML.

use leptos::prelude::*;

use crate::ui::components::forms::shortcut;
use crate::ui::page_request::PageRequest;

/// Commands to copy, each with what it does.
pub fn commands(id: &'static str, lines: Vec<(&'static str, String)>) -> AnyView {
    let lines = lines.into_iter().enumerate().map(|(i, (what, line))| {
        let line_id = format!("{id}-{i}");
        view! {
            <div class="command">
                <dt>{what}</dt>
                <dd>
                    <code id=line_id.clone() tabindex="0">{line}</code>
                    {match i {
                        0 => shortcut(".", copy(line_id, format!("Copy the command: {what}"))),
                        _ => copy(line_id, format!("Copy the command: {what}")),
                    }}
                </dd>
            </div>
        }
    });
    view! { <dl class="commands">{lines.collect_view()}</dl> }.into_any()
}

/// A button that copies the text of an element. Visible only with JavaScript.
pub fn copy(of: String, about: String) -> AnyView {
    view! { <button type="button" class="button copy" data-copy=of aria-label=about>"Copy"</button> }
        .into_any()
}

/// A text as one word of a shell command.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The content of a `<textarea>`, escaped, because Leptos does not escape it.
pub fn written(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// A text as JSON.
pub fn json(text: &str) -> String {
    let mut json = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if c.is_control() => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

/// An address of the API for curl: names percent-encoded, the whole quoted only where a shell needs it.
pub fn api(request: &PageRequest, path: &str) -> String {
    format!("{}{path}", request.origin)
}

/// A request to an API with a percent-encoded path. `--path-as-is` keeps curl from resolving `..`.
pub fn curl(request: &PageRequest, method: &str, path: &str) -> String {
    let method = match method {
        "GET" => String::new(),
        other => format!(" -X {other}"),
    };
    let dots = path.split('/').any(|part| part == "." || part == "..");
    let as_is = if dots { " --path-as-is" } else { "" };
    format!("curl{method}{as_is} {}", quoted(&api(request, path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_sees_one_word() {
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }

    #[test]
    fn what_stands_in_a_field_does_not_end_it() {
        assert_eq!(written("</textarea>&lt;"), "&lt;/textarea>&amp;lt;");
    }

    #[test]
    fn a_text_as_json_is_read_back() {
        let text = "a \"b\" \\ \n 日本";
        assert_eq!(json(text), r#""a \"b\" \\ \u000a 日本""#);
    }
}
