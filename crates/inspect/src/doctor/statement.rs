//! Tells whether a statement is DDL, which holds up all commits while it runs in total order. Pure.

/// Whether a statement, as PROCESSLIST shows it, is such DDL that may take long.
pub(super) fn is_ddl(statement: &str) -> bool {
    let text = without_leading_comments(statement).to_uppercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    let words = match words[..] {
        ["SET", "STATEMENT", ..] => {
            let begin = words.iter().position(|word| *word == "FOR");
            &words[begin.map_or(words.len(), |at| at + 1)..]
        }
        _ => &words[..],
    };
    match *words {
        ["ALTER" | "OPTIMIZE" | "RENAME" | "TRUNCATE", ..] => true,
        ["ANALYZE" | "REPAIR", "TABLE" | "TABLES", ..] => true,
        [
            "DROP",
            "TABLE" | "TABLES" | "INDEX" | "DATABASE" | "SCHEMA",
            ..,
        ] => true,
        ["CREATE", "OR", "REPLACE", "TABLE", ..] => true,
        ["CREATE", ref rest @ ..] => {
            let kinds = ["OR", "REPLACE", "UNIQUE", "FULLTEXT", "SPATIAL"];
            let made = rest.iter().find(|word| !kinds.contains(word));
            made == Some(&"INDEX")
        }
        _ => false,
    }
}

/// Skips the comments before a statement. The text of an executable comment (`/*!40000 ... */`) is the statement.
fn without_leading_comments(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        let is_line = text.starts_with('#')
            || text
                .strip_prefix("--")
                .is_some_and(|rest| rest.starts_with(char::is_whitespace));
        let executable = text
            .strip_prefix("/*!")
            .or_else(|| text.strip_prefix("/*M!"));
        if let Some(rest) = executable {
            text = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        } else if let Some(rest) = text.strip_prefix("/*") {
            text = rest.split_once("*/").map_or("", |(_, rest)| rest);
        } else if is_line {
            text = text.split_once('\n').map_or("", |(_, rest)| rest);
        } else {
            return text;
        }
    }
}
