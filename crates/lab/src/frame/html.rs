//! Text as HTML.

use super::experiment::Table;

/// Escapes a text, so that no part of it is markup.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(c),
        }
    }
    out
}

/// A table whose cells are text. `class` gives the class of a cell, by row and column.
pub fn table(table: &Table, class: impl Fn(usize, usize) -> &'static str) -> String {
    let mut out = String::from("<table><thead><tr>");
    for name in &table.header {
        out += &format!("<th>{}</th>", escape(name));
    }
    out += "</tr></thead><tbody>\n";
    for (r, row) in table.rows.iter().enumerate() {
        out += "<tr>";
        for (c, cell) in row.iter().enumerate() {
            out += &format!("<td class=\"{}\">{}</td>", class(r, c), escape(cell));
        }
        out += "</tr>\n";
    }
    out + "</tbody></table>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_cells_is_text() {
        let of_one = Table {
            title: String::new(),
            header: vec!["a".to_string()],
            rows: vec![vec!["<b> & \"c\"".to_string()]],
        };
        let html = table(&of_one, |_, _| "x");
        assert!(html.contains("<td class=\"x\">&lt;b&gt; &amp; &quot;c&quot;</td>"));
    }
}
