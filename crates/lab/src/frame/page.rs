//! Writes the report as one HTML file that needs no network.

use super::claims::{Claim, State};
use super::ground::Ground;
use super::html::{escape, table};
use super::record::Record;
use super::report::{Plot, Report};
use super::shares;

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:1500px;margin:2em auto;padding:0 1em;color:#222}\
h1{font-size:1.6em}h2{font-size:1.25em;margin-top:2em;border-bottom:1px solid #ddd}\
table{border-collapse:collapse;margin:.8em 0}th,td{border:1px solid #ddd;padding:.25em .6em;text-align:left}\
th{background:#f4f4f4}td.n{text-align:right;font-variant-numeric:tabular-nums}\
td.yes{background:#d9f0dd}td.no{background:#f7d9d9}td.open{background:#fbf0d0}\
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(470px,1fr));gap:8px}.charts svg{width:100%;height:auto;border:1px solid #eee}\
.warn{background:#fbf0d0;border:1px solid #e0c060;padding:.6em 1em}pre{background:#f7f7f7;padding:.8em;overflow:auto;font-size:12px}";

/// Names the files of raw data beside the report.
const FILES: &str = "Beside this file: results.csv (a line per cell), seconds.csv (a line per cell and second), results.json \
                     (both), records.jsonl (in order of time), report.md (for documentation), plot-*.svg (its plots).";

/// The report in HTML, with these plots in it.
pub fn page<G: Ground>(report: &Report<G>, plots: &[Plot]) -> String {
    let (experiment, records) = (report.experiment, report.records());
    let title = escape(&experiment.title());
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n"
    );
    for warning in report.warnings() {
        out += &format!("<p class=\"warn\">{}</p>\n", escape(&warning));
    }
    for paragraph in experiment.description() {
        out += &format!("<p>{}</p>\n", escape(&paragraph));
    }
    out += "<h2>Results</h2>\n<div class=\"charts\">\n";
    out.extend(plots.iter().map(|plot| plot.svg.as_str()));
    out += "</div>\n";
    for t in experiment.tables(records) {
        out += &format!("<h3>{}</h3>\n{}", escape(&t.title), table(&t, of_figures));
    }
    out += &cpu_shares(records);
    if let Some(t) = report.absent_table() {
        out += &format!("<h3>{}</h3>\n{}", escape(&t.title), table(&t, |_, _| ""));
    }
    let facts = report.facts_table();
    out += &format!(
        "<p>{FILES}</p>\n<h2>{}</h2>\n{}<p>{}</p>\n",
        escape(&facts.title),
        table(&facts, |_, _| ""),
        escape(&report.provenance())
    );
    out += "<h2>Settings</h2>\n<p>The configuration of every node, as its server read it; later lines win.</p>\n";
    for (name, text) in report.notebook.settings() {
        out += &format!(
            "<details><summary>{}</summary><pre>{}</pre></details>\n",
            escape(name),
            escape(text)
        );
    }
    out + &claims(report) + "</body></html>\n"
}

/// The class of a cell: all columns but the first have figures, aligned to the right.
fn of_figures(_row: usize, column: usize) -> &'static str {
    if column == 0 { "" } else { "n" }
}

/// The shares of the processors in each cell, folded away; empty if there were none.
fn cpu_shares(records: &[Record]) -> String {
    let Some(t) = shares::table(records) else {
        return String::new();
    };
    let throttled = records.iter().filter(|r| shares::throttled(r)).count();
    format!(
        "<h3>{}</h3>\n<details><summary>A node was throttled in {throttled} of {} cells (warm-up and checks included).</summary>{}</details>\n",
        escape(&t.title),
        t.rows.len(),
        table(&t, of_figures)
    )
}

/// The table of verdicts, coloured.
fn claims<G: Ground>(report: &Report<G>) -> String {
    let all = report.claims();
    let t = report.claims_table(&all);
    let class = |row: usize, column| {
        let claim: &Claim = &all[row];
        let verdict = match column {
            1 => &claim.galera,
            2 => &claim.trireme,
            _ => return "",
        };
        match verdict.state {
            State::Holds => "yes",
            State::Fails => "no",
            State::Open | State::NotMeasured => "open",
        }
    };
    format!("<h2>{}</h2>\n{}", escape(&t.title), table(&t, class))
}
