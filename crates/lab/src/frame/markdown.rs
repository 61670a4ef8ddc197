//! The report as a page of documentation: its tables and verdicts in Markdown, without the plots.

use super::experiment::{Experiment, Table};
use super::ground::Ground;
use super::notebook::Notebook;
use super::origin::{provenance, warnings};
use super::page::Absent;

/// The page of what the notebook holds; `planned` is the number of cells of the whole run.
pub fn markdown<G: Ground>(
    experiment: &dyn Experiment<G>,
    notebook: &Notebook,
    facts: &[(String, String)],
    absent: &[Absent],
    planned: usize,
) -> String {
    let records = notebook.records();
    let mut out = format!("# {}\n\n", escape(&experiment.title()));
    for warning in warnings(records, planned) {
        out += &format!("> {}\n\n", escape(&warning));
    }
    for paragraph in experiment.description() {
        out += &format!("{}\n\n", escape(&paragraph));
    }
    let claimant = experiment.claimant();
    let verdicts = experiment.claims(records).into_iter();
    let verdicts = verdicts.map(|c| vec![c.text, c.galera.text(), c.trireme.text()]);
    out += &section(&Table {
        title: format!("Claims of {claimant}"),
        header: vec![
            format!("claim of {claimant}"),
            "on Galera, here?".to_string(),
            "on Trireme?".to_string(),
        ],
        rows: verdicts.collect(),
    });
    for table in experiment.tables(records) {
        out += &section(&table);
    }
    if !absent.is_empty() {
        let rows = absent
            .iter()
            .map(|a| vec![a.system.clone(), a.reason.clone()]);
        out += &section(&Table {
            title: "Systems that are not here".to_string(),
            header: vec!["system".to_string(), "why it was not measured".to_string()],
            rows: rows.collect(),
        });
    }
    let facts = facts
        .iter()
        .map(|(name, value)| vec![name.clone(), value.clone()]);
    out += &section(&Table {
        title: "Machine and programs".to_string(),
        header: vec![String::new(), String::new()],
        rows: facts.collect(),
    });
    out + &provenance(records) + "\n"
}

fn section(table: &Table) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| escape(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    // Figures stand to the right of their names.
    let rule: Vec<&str> = (0..table.header.len())
        .map(|column| if column == 0 { "---" } else { "---:" })
        .collect();
    let mut out = format!("## {}\n\n", escape(&table.title));
    out += &line(&table.header);
    out += &format!("| {} |\n", rule.join(" | "));
    for row in &table.rows {
        out += &line(row);
    }
    out + "\n"
}

/// Text on one line in which nothing is markup.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => out.push(' '),
            '|' | '<' | '>' | '*' | '_' | '`' | '\\' | '[' | ']' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_cells_is_text_and_a_cell_stays_on_its_line() {
        let table = Table {
            title: "a_b".to_string(),
            header: vec!["system".to_string(), "1/s".to_string()],
            rows: vec![vec!["<b>|c".to_string(), "1 [2,\n3]".to_string()]],
        };
        let expected =
            "## a\\_b\n\n| system | 1/s |\n| --- | ---: |\n| \\<b\\>\\|c | 1 \\[2, 3\\] |\n\n";
        assert_eq!(section(&table), expected);
    }
}
