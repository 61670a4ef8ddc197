//! Cleans and bounds texts of other nodes where they go out: to this node's log, and to its server.

/// Maximum length of a line: the server's log buffer is not made for more.
pub const LINE_BYTES_MAX: usize = 8 * 1024;

/// Returns the text as one line. A peer chooses its name, its addresses and the statements that it replicates. A line
/// end in them must not look like a line of this node, and an escape sequence must not reach a terminal. A text above
/// `bytes_max` is cut at a character.
pub fn one_line(text: &str, bytes_max: usize) -> String {
    const CUT: &str = "...";
    let mut line = String::with_capacity(text.len().min(bytes_max));
    for c in text.chars().map(shown) {
        if line.len() + c.len_utf8() > bytes_max {
            while line.len() + CUT.len() > bytes_max && line.pop().is_some() {}
            line.push_str(CUT);
            break;
        }
        line.push(c);
    }
    line
}

/// Returns the character that stands for `c` in a log.
fn shown(c: char) -> char {
    match c {
        '\n' | '\r' | '\t' | '\u{85}' | '\u{2028}' | '\u{2029}' => ' ',
        c if c.is_control() => '?',
        // These change the direction of the text behind them, or are invisible.
        '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}' => '?',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hostile_text_is_one_plain_line() {
        for (hostile, plain) in [
            ("a\0b", "a?b"),
            (
                "n1\n2026-11-23 [ERROR] all is lost",
                "n1 2026-11-23 [ERROR] all is lost",
            ),
            ("n1\r\n", "n1  "),
            ("\x1b[2J\x1b]0;title\x07", "?[2J?]0;title?"),
            ("a\u{85}b\u{2028}c\u{2029}d", "a b c d"),
            ("abc\u{202e}txt.exe", "abc?txt.exe"),
            ("Grüße, 世界", "Grüße, 世界"),
        ] {
            assert_eq!(one_line(hostile, LINE_BYTES_MAX), plain);
        }
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        assert_eq!(one_line("abcdef", 6), "abcdef");
        assert_eq!(one_line("abcdefg", 6), "abc...");
        assert_eq!(one_line("ääää", 7), "ää...");
        assert_eq!(one_line("ääää", 8), "ääää");
    }

    proptest! {
        #[test]
        fn any_text_is_a_line(text in any::<String>(), bytes_max in 3_usize..100) {
            let line = one_line(&text, bytes_max);
            prop_assert!(line.len() <= bytes_max && !line.chars().any(char::is_control));
        }
    }
}
