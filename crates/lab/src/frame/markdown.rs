//! Writes the report as a page of documentation: its plots, tables and verdicts in Markdown. The plots are files beside it.

use super::experiment::Table;
use super::ground::Ground;
use super::report::{Plot, Report};
use super::shares;

/// The report in Markdown, with links to these plots.
pub fn markdown<G: Ground>(report: &Report<G>, plots: &[Plot]) -> String {
    let (experiment, records) = (report.experiment, report.records());
    let mut out = format!("# {}\n\n", escape(&experiment.title()));
    for warning in report.warnings() {
        out += &format!("> {}\n\n", escape(&warning));
    }
    for paragraph in experiment.description() {
        out += &format!("{}\n\n", escape(&paragraph));
    }
    out += &section(&report.claims_table(&report.claims()));
    out.extend(plots.iter().map(picture));
    let tables = (experiment.tables(records).into_iter())
        .chain(shares::table(records))
        .chain(report.absent_table())
        .chain([report.facts_table()])
        .chain(report.settings_table());
    out.extend(tables.map(|table| section(&table)));
    out + &report.provenance() + "\n"
}

fn picture(plot: &Plot) -> String {
    format!("![{}]({})\n\n", escape(&plot.title), plot.file)
}

fn section(table: &Table) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| escape(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    // The first column has names, the others have figures, aligned to the right.
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

/// Puts a text on one line, and escapes it so that no part of it is markup.
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
    fn a_plot_is_a_link_to_its_file() {
        let plot = Plot {
            title: "tx/s [all]".to_string(),
            file: "plot-01.svg".to_string(),
            svg: String::new(),
        };
        assert_eq!(picture(&plot), "![tx/s \\[all\\]](plot-01.svg)\n\n");
    }

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
