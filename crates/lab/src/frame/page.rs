//! The report: one HTML file that needs no network.

use super::claims::State;
use super::experiment::Experiment;
use super::ground::Ground;
use super::html::{escape, table};
use super::notebook::Notebook;
use super::origin::{provenance, warnings};
use super::record::Record;
use super::shares;

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:1500px;margin:2em auto;padding:0 1em;color:#222}\
h1{font-size:1.6em}h2{font-size:1.25em;margin-top:2em;border-bottom:1px solid #ddd}\
table{border-collapse:collapse;margin:.8em 0}th,td{border:1px solid #ddd;padding:.25em .6em;text-align:left}\
th{background:#f4f4f4}td.n{text-align:right;font-variant-numeric:tabular-nums}\
td.yes{background:#d9f0dd}td.no{background:#f7d9d9}td.open{background:#fbf0d0}\
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(470px,1fr));gap:8px}.charts svg{width:100%;height:auto;border:1px solid #eee}\
.warn{background:#fbf0d0;border:1px solid #e0c060;padding:.6em 1em}pre{background:#f7f7f7;padding:.8em;overflow:auto;font-size:12px}";

/// Files of raw data beside the report.
const FILES: &str = "Beside this file: results.csv (a line per cell), seconds.csv (a line per cell and second), results.json \
                     (both), records.jsonl (in order of time), report.md (the tables and verdicts, for documentation).";

/// A system that cannot be set up on this machine as it is.
pub struct Absent {
    /// Its name.
    pub system: String,
    /// Why.
    pub reason: String,
}

/// The report of what the notebook holds; `planned` is the number of cells of the whole run.
pub fn page<G: Ground>(
    experiment: &dyn Experiment<G>,
    notebook: &Notebook,
    facts: &[(String, String)],
    absent: &[Absent],
    planned: usize,
) -> String {
    let records = notebook.records();
    let title = escape(&experiment.title());
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n"
    );
    out += &warning(records, planned);
    for paragraph in experiment.description() {
        out += &format!("<p>{}</p>\n", escape(&paragraph));
    }
    out += "<h2>Results</h2>\n<div class=\"charts\">\n";
    for chart in experiment.charts(records) {
        out += &chart.svg().unwrap_or_default();
    }
    out.extend(experiment.drawings(records));
    out += "</div>\n";
    for t in experiment.tables(records) {
        out += &format!("<h3>{}</h3>\n", escape(&t.title));
        let header: Vec<&str> = t.header.iter().map(String::as_str).collect();
        out += &table(
            &header,
            &t.rows,
            |_, column| if column == 0 { "" } else { "n" },
        );
    }
    out += &cpu_shares(records);
    out += &not_measured(absent);
    out += &format!("<p>{FILES}</p>\n<h2>Machine and programs</h2>\n");
    let rows: Vec<Vec<String>> = facts
        .iter()
        .map(|(name, value)| vec![name.clone(), value.clone()])
        .collect();
    out += &table(&["", ""], &rows, |_, _| "");
    out += &format!("<p>{}</p>\n", escape(&provenance(records)));
    out += "<h2>Settings</h2>\n<p>The configuration of every node, as its server read it; later lines win.</p>\n";
    for (name, text) in notebook.settings() {
        out += &format!(
            "<details><summary>{}</summary><pre>{}</pre></details>\n",
            escape(name),
            escape(text)
        );
    }
    out += &format!("<h2>Claims of {}</h2>\n", experiment.claimant());
    out += &claims(experiment, records);
    out + "</body></html>\n"
}

fn warning(records: &[Record], planned: usize) -> String {
    let all = warnings(records, planned).into_iter();
    all.map(|text| format!("<p class=\"warn\">{}</p>\n", escape(&text)))
        .collect()
}

/// Each cell's shares of the processors, folded away, if there were any.
fn cpu_shares(records: &[Record]) -> String {
    let Some(t) = shares::table(records) else {
        return String::new();
    };
    let header: Vec<&str> = t.header.iter().map(String::as_str).collect();
    let throttled = records.iter().filter(|r| shares::throttled(r)).count();
    let class = |_, column| if column == 0 { "" } else { "n" };
    format!(
        "<h3>{}</h3>\n<details><summary>A node was throttled in {throttled} of {} cells (warm-up and checks included).</summary>{}</details>\n",
        escape(&t.title),
        t.rows.len(),
        table(&header, &t.rows, class)
    )
}

/// A row for each system that is not here.
fn not_measured(absent: &[Absent]) -> String {
    if absent.is_empty() {
        return String::new();
    }
    let row = |a: &Absent| vec![a.system.clone(), a.reason.clone()];
    let rows: Vec<Vec<String>> = absent.iter().map(row).collect();
    let header = ["system", "why it was not measured"];
    "<h3>Systems that are not here</h3>\n".to_string() + &table(&header, &rows, |_, _| "")
}

fn claims<G: Ground>(experiment: &dyn Experiment<G>, records: &[Record]) -> String {
    let all = experiment.claims(records);
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|c| vec![c.text.clone(), c.galera.text(), c.trireme.text()])
        .collect();
    let claim = format!("claim of {}", experiment.claimant());
    let header = [claim.as_str(), "on Galera, here?", "on Trireme?"];
    table(&header, &rows, |row, column| {
        let verdict = match column {
            1 => &all[row].galera,
            2 => &all[row].trireme,
            _ => return "",
        };
        match verdict.state {
            State::Holds => "yes",
            State::Fails => "no",
            State::Open | State::NotMeasured => "open",
        }
    })
}
