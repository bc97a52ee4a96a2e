//! Shell commands for what a page shows and does, and escaping for shells, JSON and HTML.

use leptos::prelude::*;

use crate::ui::components::forms::shortcut;
use crate::ui::page_request::PageRequest;

/// Commands to copy, each with a description.
pub fn commands(id: &'static str, lines: Vec<(&'static str, String)>) -> AnyView {
    let lines = lines.into_iter().enumerate().map(|(i, (what, line))| {
        let line_id = format!("{id}-{i}");
        view! {
            <div>
                <dt class="mb-1 text-sm text-muted">{what}</dt>
                <dd class="flex items-start gap-2">
                    <code id=line_id.clone() class="min-w-0 flex-1 rounded-md bg-page px-2.5 py-1.5 whitespace-pre-wrap" tabindex="0">{line}</code>
                    {match i {
                        0 => shortcut(".", copy(line_id, format!("Copy the command: {what}"))),
                        _ => copy(line_id, format!("Copy the command: {what}")),
                    }}
                </dd>
            </div>
        }
    });
    view! { <dl class="flex flex-col gap-3">{lines.collect_view()}</dl> }.into_any()
}

/// Calls of the API with curl, each with a description, behind a heading that opens them.
pub fn curl_commands(lines: Vec<(&'static str, String)>) -> AnyView {
    view! {
        <details>
            <summary>"API call (curl)"</summary>
            {commands("curl", lines)}
        </details>
    }
    .into_any()
}

/// A button that copies the text of an element. Visible only with JavaScript.
pub fn copy(target_id: String, label: String) -> AnyView {
    view! { <button type="button" class="btn unscripted:hidden" data-copy=target_id aria-label=label>"Copy"</button> }
        .into_any()
}

/// Quotes a text as one word of a shell command.
pub fn shell_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Escapes the content of a `<textarea>` or a `<title>`, because Leptos does not.
pub fn escape_textarea(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// A text as a JSON string.
pub fn json_string(text: &str) -> String {
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

/// A URL of the API for curl, not yet quoted for the shell. Names in `path` are percent-encoded.
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
    format!("curl{method}{as_is} {}", shell_quote(&api(request, path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_is_one_shell_word() {
        assert_eq!(shell_quote("a b"), "'a b'");
        assert_eq!(shell_quote("it's"), r"'it'\''s'");
    }

    #[test]
    fn textarea_content_is_escaped() {
        assert_eq!(escape_textarea("</textarea>&lt;"), "&lt;/textarea>&amp;lt;");
    }

    #[test]
    fn text_as_json_can_be_parsed_again() {
        let text = "a \"b\" \\ \n 日本";
        assert_eq!(json_string(text), r#""a \"b\" \\ \u000a 日本""#);
    }
}
