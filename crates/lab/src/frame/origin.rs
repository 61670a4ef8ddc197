//! Where a report's data come from, and what is missing of them, as plain text.

use std::collections::BTreeSet;

use super::record::Record;

/// What a reader must know before the figures: data of several builds, and cells that are missing or not counted.
pub fn warnings(records: &[Record], planned: usize) -> Vec<String> {
    let complete = records.iter().filter(|r| r.complete);
    let done: BTreeSet<_> = complete.map(|r| &r.cell).collect();
    let mut all = Vec::new();
    let builds = builds(records);
    if builds.len() > 1 {
        let names = builds.iter().copied().collect::<Vec<_>>().join(", ");
        all.push(format!(
            "Of {} builds ({names}): compare cells of one build only, results.csv names it.",
            builds.len()
        ));
    }
    if done.len() < planned {
        let have = done.len();
        all.push(format!(
            "Partial: {have} of {planned} measurements are there."
        ));
    }
    let broken = records.iter().filter(|r| !r.complete);
    let left = broken.filter(|r| !done.contains(&r.cell));
    all.extend(left.map(|r| format!("Not counted: {} ({})", r.cell, r.note)));
    all
}

/// When, and from which commits, the cells were measured.
pub fn provenance(records: &[Record]) -> String {
    let dates = || records.iter().map(|r| r.date.as_str());
    let (first, last) = (dates().min().unwrap_or(""), dates().max().unwrap_or(""));
    let commits = builds(records).into_iter().collect::<Vec<_>>().join(", ");
    format!("Measured from {first} to {last} (UTC), built from {commits}.")
}

fn builds(records: &[Record]) -> BTreeSet<&str> {
    records.iter().map(|r| r.commit.as_str()).collect()
}
