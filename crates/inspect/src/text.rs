//! Text for a terminal: foreign values become harmless, and lines have at most 80 columns. Pure.

use trireme_agent::visible;

/// The columns of a report.
pub const COLUMNS: usize = 80;
/// The longest foreign value that a report shows, in characters.
pub const MAX_VALUE_CHARS: usize = 200;
/// The longest sentence, in characters.
const MAX_SENTENCE_CHARS: usize = 1000;

/// Makes a foreign value harmless: characters that control a terminal become escapes, and a long value is cut.
pub fn shown(value: &str) -> String {
    clipped(value, MAX_VALUE_CHARS)
}

/// The same as [`shown`], in at most `max_chars` characters.
pub fn clipped(value: &str, max_chars: usize) -> String {
    // An escape is longer than its character, so no more characters than these are needed.
    let start: String = value.chars().take(max_chars + 1).collect();
    let text = visible(&start);
    if text.chars().count() <= max_chars {
        return text;
    }
    let mut cut: String = text.chars().take(max_chars.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Makes a sentence with foreign values harmless, word by word, so that the blanks stay.
pub fn shown_words(text: &str) -> String {
    let words: String = text.chars().take(MAX_SENTENCE_CHARS).collect();
    words.split(' ').map(shown).collect::<Vec<_>>().join(" ")
}

/// Limits the length of a foreign value for JSON, which escapes it.
pub fn bounded(value: &str) -> String {
    value.chars().take(MAX_VALUE_CHARS).collect()
}

/// A time span, in its largest unit.
pub fn age(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h", s / 3600.0),
        s => format!("{:.0} d", s / 86_400.0),
    }
}

/// A time of the Unix clock, as UTC.
pub fn utc(unix_ms: u64) -> String {
    // The format has no text for years after 9999.
    let seconds = (unix_ms / 1000).min(253_402_300_799);
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    humantime::format_rfc3339_seconds(time).to_string()
}

/// Breaks `text` at blanks into lines of at most [`COLUMNS`]; all but the first begin with `indent` blanks.
pub fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = String::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let mut rest = word;
        let used = line.chars().count();
        if used > indent && used + 1 + word.chars().count() > COLUMNS {
            lines.push_str(line.trim_end());
            lines.push('\n');
            line = " ".repeat(indent);
        } else if used > 0 && !line.ends_with(' ') {
            line.push(' ');
        }
        // A word that is longer than a line is cut.
        while line.chars().count() + rest.chars().count() > COLUMNS {
            let room = COLUMNS - line.chars().count();
            let at = rest
                .char_indices()
                .nth(room)
                .map_or(rest.len(), |(at, _)| at);
            line.push_str(&rest[..at]);
            rest = &rest[at..];
            lines.push_str(line.trim_end());
            lines.push('\n');
            line = " ".repeat(indent);
        }
        line.push_str(rest);
        if word.is_empty() {
            line.push(' ');
        }
    }
    lines.push_str(line.trim_end());
    lines.push('\n');
    lines
}

/// A table with a header. Columns are as wide as their widest cell; the last one gets the rest of [`COLUMNS`]. Columns
/// in `right` are aligned to the right.
pub fn table(header: &[&str], right: &[&str], rows: &[Vec<String>]) -> String {
    let cell = |row: &[String], i: usize| row.get(i).cloned().unwrap_or_default();
    let mut left = COLUMNS;
    let mut widths = Vec::new();
    for (i, name) in header.iter().enumerate() {
        let cells = rows.iter().map(|row| cell(row, i).chars().count());
        let widest = cells.chain([name.chars().count()]).max().unwrap_or(0);
        let width = widest.min(left);
        left = left.saturating_sub(width + 2);
        widths.push(width);
    }
    let mut out = String::new();
    let head = header
        .iter()
        .map(|name| (*name).to_owned())
        .collect::<Vec<_>>();
    for row in std::iter::once(&head).chain(rows) {
        let mut line = String::new();
        for (i, width) in widths.iter().enumerate() {
            let text = clipped(&cell(row, i), *width);
            let width = *width;
            line += &match right.contains(&header[i]) {
                true => format!("{text:>width$}  "),
                false => format!("{text:<width$}  "),
            };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_no_foreign_value() {
        assert_eq!(shown("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
        assert_eq!(shown("x\u{202e}y\u{9b}"), "x\\u{202e}y\\u{9b}");
        assert_eq!(shown("Zürich"), "Zürich");
    }

    #[test]
    fn what_is_too_long_is_cut() {
        assert_eq!(clipped("abcdef", 4), "abc…");
        assert_eq!(clipped("abcd", 4), "abcd");
        let flood = "\u{1b}".repeat(1_000_000);
        assert_eq!(shown(&flood).chars().count(), MAX_VALUE_CHARS);
    }

    #[test]
    fn times_are_for_people() {
        assert_eq!(
            [1.0, 119.0, 600.0, 7300.0, 1e6].map(age),
            ["1 s", "119 s", "10 min", "2 h", "12 d"]
        );
        assert_eq!(utc(1_764_066_000_123), "2025-11-25T10:20:00Z");
        assert_eq!(utc(u64::MAX), "9999-12-31T23:59:59Z");
        assert_eq!(shown_words("a\u{1b} b"), "a\\u{1b} b");
    }

    #[test]
    fn lines_have_eighty_columns() {
        let text = format!("{} {} end", "word ".repeat(30), "x".repeat(200));
        let wrapped = wrapped(&text, 4);
        assert!(
            wrapped.lines().all(|line| line.chars().count() <= COLUMNS),
            "{wrapped}"
        );
        assert!(
            wrapped.lines().skip(1).all(|line| line.starts_with("    ")),
            "{wrapped}"
        );
        let joined: String = wrapped.split_whitespace().collect();
        let expected: String = text.split_whitespace().collect();
        assert_eq!(joined, expected);
    }

    #[test]
    fn a_table_never_gets_wider() {
        let rows = vec![vec!["n".repeat(30), "1".to_owned(), "a".repeat(90)]];
        let text = table(&["node", "lag", "address"], &["lag"], &rows);
        assert!(
            text.lines().all(|line| line.chars().count() <= COLUMNS),
            "{text}"
        );
        assert_eq!(
            table(&["a", "b"], &["b"], &[vec!["x".into(), "7".into()]]),
            "a  b\nx  7\n"
        );
    }
}
