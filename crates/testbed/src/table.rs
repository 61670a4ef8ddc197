//! Plain text tables with aligned columns.

/// Lays out `rows` under `header`. A column is aligned to the right if each of its cells starts with a digit or is `-`.
pub fn render(header: &[&str], rows: &[Vec<String>]) -> String {
    let columns = header.len();
    let cell = |row: &[String], i: usize| row.get(i).cloned().unwrap_or_default();
    let numeric: Vec<bool> = (0..columns)
        .map(|i| {
            rows.iter().all(|row| {
                let cell = cell(row, i);
                cell == "-"
                    || cell.starts_with(|c: char| c.is_ascii_digit() || c == '+' || c == '-')
            })
        })
        .collect();
    let width: Vec<usize> = (0..columns)
        .map(|i| {
            let cells = rows.iter().map(|row| cell(row, i).chars().count());
            cells.chain([header[i].chars().count()]).max().unwrap_or(0)
        })
        .collect();

    let mut out = String::new();
    let mut line = |cells: Vec<String>| {
        let mut text = String::new();
        for (i, cell) in cells.iter().enumerate() {
            let w = width[i];
            text += &if numeric[i] {
                format!("{cell:>w$}")
            } else {
                format!("{cell:<w$}")
            };
            text += "  ";
        }
        out.push_str(text.trim_end());
        out.push('\n');
    };
    line(header.iter().map(|h| h.to_string()).collect());
    for row in rows {
        line((0..columns).map(|i| cell(row, i)).collect());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_right_and_words_left() {
        let rows = vec![
            vec!["node1".to_string(), "7".to_string()],
            vec!["n".to_string(), "123".to_string()],
        ];
        assert_eq!(
            render(&["node", "tps"], &rows),
            "node   tps\nnode1    7\nn      123\n"
        );
    }
}
