//! CSV (RFC 4180) that spreadsheets can open safely.

/// A line with these cells.
pub fn line(cells: &[&str]) -> String {
    let cells: Vec<String> = cells.iter().copied().map(cell).collect();
    format!("{}\r\n", cells.join(","))
}

/// A cell. A number is written as it is. Text that a spreadsheet would interpret as a formula gets an apostrophe before
/// it, also after separators: some spreadsheets split cells at them, even between quotes.
fn cell(text: &str) -> String {
    if text.parse::<f64>().is_ok_and(f64::is_finite) {
        return text.to_owned();
    }
    let mut cell = String::from("\"");
    let (mut is_start, mut is_quoted) = (true, false);
    for sign in text.chars() {
        if is_start && (FORMULA.contains(&sign) || matches!(sign, '\t' | '\r')) {
            cell.push('\'');
            is_quoted = true;
        }
        // Between separators, a quote begins a cell.
        is_start = matches!(sign, ',' | ';' | '\t' | '\r' | '\n') || is_start && sign == '"';
        is_quoted |= matches!(sign, ',' | '"' | '\r' | '\n');
        if sign == '"' {
            cell.push('"');
        }
        cell.push(sign);
    }
    if !is_quoted {
        return text.to_owned();
    }
    cell.push('"');
    cell
}

/// The signs with which formulas begin, also as full-width characters.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_with_separators_are_quoted_and_formulas_are_escaped() {
        assert_eq!(
            line(&["a", "b,\"c\"", "=1+1", ""]),
            "a,\"b,\"\"c\"\"\",\"'=1+1\",\r\n"
        );
        for (text, written) in [
            ("\t=1", "\"'\t'=1\""),
            ("a;=1+1;b", "\"a;'=1+1;b\""),
            ("x;\"=1+1;y", "\"x;\"\"'=1+1;y\""),
            ("x\n=2+2", "\"x\n'=2+2\""),
            ("a,@b\t-c", "\"a,'@b\t'-c\""),
            ("＝1", "\"'＝1\""),
            ("a-b", "a-b"),
            ("a;b", "a;b"),
            ("1.5", "1.5"),
            ("-3", "-3"),
            ("-inf", "\"'-inf\""),
        ] {
            assert_eq!(line(&[text]), format!("{written}\r\n"));
        }
    }
}
