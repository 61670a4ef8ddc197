//! Makes foreign text safe for a terminal: control characters become visible escapes. Pure.

use std::fmt::Write;

/// Whether a character is harmless: no control character, none that changes the direction of text, none without width.
fn is_plain(c: char) -> bool {
    let steers = matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    !c.is_control() && !steers
}

/// Replaces each character that is not plain by its escape.
pub fn visible(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    for c in text.chars() {
        match is_plain(c) {
            true => visible.push(c),
            false => {
                // Writing to a String cannot fail.
                let _ = write!(visible, "{}", c.escape_default());
            }
        }
    }
    visible
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_of_it() {
        let seen = visible("a\u{1b}[2J\u{202e}b\n\u{9b}<é>");
        assert_eq!(seen, "a\\u{1b}[2J\\u{202e}b\\n\\u{9b}<é>");
    }
}
