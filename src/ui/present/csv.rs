//! CSV (RFC 4180) that spreadsheets can open safely.

/// A line with these cells.
pub fn line(cells: &[&str]) -> String {
    let cells: Vec<String> = cells.iter().copied().map(cell).collect();
    format!("{}\r\n", cells.join(","))
}

/// A cell. Text that a spreadsheet would interpret as a formula gets a leading apostrophe.
fn cell(text: &str) -> String {
    let mark = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        "'"
    } else {
        ""
    };
    if mark.is_empty() && !text.contains([',', '"', '\r', '\n']) {
        return text.to_owned();
    }
    format!("\"{mark}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_with_separators_are_quoted_and_formulas_are_escaped() {
        assert_eq!(
            line(&["a", "b,\"c\"", "=1+1", ""]),
            "a,\"b,\"\"c\"\"\",\"'=1+1\",\r\n"
        );
    }
}
