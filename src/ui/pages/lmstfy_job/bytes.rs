//! The body of an lmstfy job, which can contain any bytes: as text, JSON, hex or base64. The address selects the format
//! (`?as=hex`).

use std::fmt::Write;

use leptos::prelude::*;

use crate::ui::components::payload::{json, plain, pre};
use crate::ui::components::styles::PAYLOAD;
use crate::ui::page_request::PageRequest;
use crate::ui::pages::lmstfy_job::model::LmstfyJobView;
use crate::ui::urls;

/// Maximum number of bytes in the hex dump.
const HEX_BYTES: usize = 16 << 10;

/// Bytes on a line of a hex dump.
const HEX_LINE: usize = 16;

/// Maximum number of base64 characters, and characters per line.
const BASE64_CHARS: usize = 64 << 10;

const BASE64_LINE: usize = 76;

/// The formats of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Json,
    Text,
    Hex,
    Base64,
}

impl Format {
    fn as_str(self) -> &'static str {
        match self {
            Format::Json => "json",
            Format::Text => "text",
            Format::Hex => "hex",
            Format::Base64 => "base64",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Format::Json => "JSON",
            Format::Text => "Text",
            Format::Hex => "Hex",
            Format::Base64 => "Base64",
        }
    }
}

/// The formats that suit the bytes, best first.
fn formats(bytes: &[u8], is_json: bool) -> Vec<Format> {
    let mut formats = vec![Format::Hex, Format::Base64];
    if let Ok(text) = str::from_utf8(bytes) {
        // Bytes with control characters are probably binary.
        let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        let at = usize::from(text.contains(odd));
        formats.insert(at, Format::Text);
    }
    if is_json {
        formats.insert(0, Format::Json);
    }
    formats
}

/// A link to a format.
const FORMAT_LINK: &str = "min-h-6 rounded-md border border-line px-2 py-px text-sm aria-[current]:border-accent \
    aria-[current]:bg-hover aria-[current]:font-semibold";

/// A dump keeps its lines.
const HEX: &str =
    "max-h-105 overflow-auto rounded-md bg-page px-3 py-2.5 text-2xs leading-4.5 whitespace-pre";

/// The body, and links to its formats.
pub fn body(job: &LmstfyJobView, request: &PageRequest) -> AnyView {
    let bytes = &job.bytes;
    if bytes.is_empty() {
        return view! { <p class="text-muted wrap-anywhere">"The payload is empty."</p> }
            .into_any();
    }
    let formats = formats(bytes, job.is_json);
    let wanted = request.param("as").unwrap_or_default();
    let wanted = formats.iter().find(|format| format.as_str() == wanted);
    let Some(format) = wanted.or(formats.first()).copied() else {
        return ().into_any();
    };
    let text = str::from_utf8(bytes).unwrap_or_default();
    let shown = match format {
        Format::Json => json(text, DOWNLOAD, request),
        Format::Text => plain(&visible(text), DOWNLOAD, request),
        Format::Hex => {
            let some = bytes.get(..HEX_BYTES).unwrap_or(bytes);
            pre(HEX, dump(some).into_any(), part(some, bytes))
        }
        Format::Base64 => base64(&job.base64),
    };
    let row = &job.row;
    let mut order = [Format::Json, Format::Text, Format::Hex, Format::Base64].to_vec();
    order.retain(|format| formats.contains(format));
    let links = order.into_iter().map(|other| {
        let address = format!(
            "{}?as={}",
            urls::job(&row.queue_ref, &row.id),
            other.as_str()
        );
        view! { <a class=FORMAT_LINK href=address aria-current=(other == format).then_some("true")>{other.word()}</a> }
    });
    view! {
        <nav class="mb-2 flex flex-wrap gap-1" aria-label="Show the payload as">{links.collect_view()}</nav>
        {shown}
    }
    .into_any()
}

/// The note that says where to find the rest of a long payload.
const DOWNLOAD: &str = "Download the payload to see all of it.";

fn part(shown: &[u8], all: &[u8]) -> Option<String> {
    (shown.len() < all.len()).then(|| {
        format!(
            "Showing the first {} of {} bytes. {DOWNLOAD}",
            shown.len(),
            all.len()
        )
    })
}

/// The text with control characters replaced by visible symbols.
fn visible(text: &str) -> String {
    let picture = |c: char| match c {
        '\n' | '\r' | '\t' => c,
        '\u{7f}' => '␡',
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(c),
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.chars().map(picture).collect()
}

/// A hex dump: offset, bytes and ASCII characters, 16 bytes per line.
fn dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (number, line) in bytes.chunks(HEX_LINE).enumerate() {
        // Writing to a string cannot fail.
        write!(text, "{:08x} ", number * HEX_LINE).ok();
        for at in 0..HEX_LINE {
            if at == HEX_LINE / 2 {
                text.push(' ');
            }
            match line.get(at) {
                Some(byte) => write!(text, " {byte:02x}").ok(),
                None => write!(text, "   ").ok(),
            };
        }
        text.push_str("  ");
        let shown = |byte: &u8| match byte {
            b' '..=b'~' => char::from(*byte),
            _ => '·',
        };
        text.extend(line.iter().map(shown));
        text.push('\n');
    }
    text
}

fn base64(text: &str) -> AnyView {
    let cut = text.floor_char_boundary(BASE64_CHARS.min(text.len()));
    let mut lines = String::new();
    for (at, c) in text.chars().take(cut).enumerate() {
        if at > 0 && at % BASE64_LINE == 0 {
            lines.push('\n');
        }
        lines.push(c);
    }
    let part = (cut < text.len()).then(|| {
        format!(
            "Showing the first {cut} of {} characters. {DOWNLOAD}",
            text.len()
        )
    });
    pre(PAYLOAD, lines.into_any(), part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_in_suitable_formats() {
        use Format::{Base64, Hex, Json, Text};
        assert_eq!(formats(b"{}", true), [Json, Text, Hex, Base64]);
        assert_eq!(formats("über\r\n".as_bytes(), false), [Text, Hex, Base64]);
        assert_eq!(formats(b"a\0b", false), [Hex, Text, Base64]);
        assert_eq!(formats(&[0xff, 0xfe], false), [Hex, Base64]);
    }

    #[test]
    fn a_dump_has_offsets_bytes_and_characters() {
        assert_eq!(
            dump(b"0123456789abcdef\n\xff z"),
            "00000000  30 31 32 33 34 35 36 37  38 39 61 62 63 64 65 66  0123456789abcdef\n\
             00000010  0a ff 20 7a                                       ·· z\n"
        );
    }

    #[test]
    fn control_characters_are_visible() {
        assert_eq!(visible("a\0\u{1b}[1m\tb\u{7f}\u{85}"), "a␀␛[1m\tb␡\u{fffd}");
    }
}
