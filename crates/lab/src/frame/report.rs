//! The texts and tables of a run's report. Both kinds of page render them, so that they show the same.

use std::collections::{BTreeMap, BTreeSet};

use trireme_testbed::interrupt::Interrupted;

use super::claims::Claim;
use super::experiment::{Experiment, Table};
use super::facts::Part;
use super::ground::Ground;
use super::notebook::Notebook;
use super::paces;
use super::record::{Cell, Record};

/// A system that is not measured: it cannot be set up on this machine, or no point of the plan suits it.
#[derive(Debug, Clone)]
pub struct Absent {
    /// Its name.
    pub system: String,
    /// The reason.
    pub reason: String,
}

/// A plot of the report.
pub struct Plot {
    /// Its heading.
    pub title: String,
    /// The file of its own, beside the report.
    pub file: String,
    /// The SVG element.
    pub svg: String,
}

/// The content of a report.
pub struct Report<'a, G: Ground> {
    /// The experiment.
    pub experiment: &'a dyn Experiment<G>,
    /// The results.
    pub notebook: &'a Notebook,
    /// The systems that are not available.
    pub absent: &'a [Absent],
    /// The cells of the whole run.
    pub planned: Vec<Cell>,
}

impl<G: Ground> Report<'_, G> {
    /// The raw data.
    pub fn records(&self) -> &[Record] {
        self.notebook.records()
    }

    /// The claims, judged by the raw data and by what is still missing: a claim about every point is not settled while
    /// one is not measured.
    pub fn claims(&self) -> Vec<Claim> {
        let records = self.records();
        let measured: BTreeSet<&Cell> = records.iter().map(|r| &r.cell).collect();
        let missing = self.planned.iter().filter(|cell| !measured.contains(cell));
        let missing = missing.cloned().map(Record::not_measured);
        let evidence: Vec<Record> = records.iter().cloned().chain(missing).collect();
        self.experiment.claims(&evidence)
    }

    /// The charts, then the experiment's own drawings; a chart without data is left out.
    pub fn plots(&self) -> Vec<Plot> {
        let charts = self.experiment.charts(self.records()).into_iter();
        let charts = charts.filter_map(|chart| Some((chart.svg()?, chart.title)));
        let drawings = self.experiment.drawings(self.records()).into_iter();
        let drawings = drawings.map(|svg| (svg, self.experiment.title()));
        let numbered = charts.chain(drawings).zip(1..);
        numbered
            .map(|((svg, title), number)| Plot {
                title,
                file: format!("plot-{number:02}.svg"),
                svg,
            })
            .collect()
    }

    /// A row for each claim, with the verdicts on both systems.
    pub fn claims_table(&self, claims: &[Claim]) -> Table {
        let claimant = self.experiment.claimant();
        let row = |c: &Claim| vec![c.text.clone(), c.galera.text(), c.trireme.text()];
        Table {
            title: format!("Claims of {claimant}"),
            header: vec![
                format!("claim of {claimant}"),
                "on Galera, here?".to_string(),
                "on Trireme?".to_string(),
            ],
            rows: claims.iter().map(row).collect(),
        }
    }

    /// A table of the systems that are not available; None if all are.
    pub fn absent_table(&self) -> Option<Table> {
        let row = |a: &Absent| vec![a.system.clone(), a.reason.clone()];
        let rows: Vec<Vec<String>> = self.absent.iter().map(row).collect();
        (!rows.is_empty()).then(|| Table {
            title: "Systems that were not measured".to_string(),
            header: vec!["system".to_string(), "why it was not measured".to_string()],
            rows,
        })
    }

    /// The setups that were measured; settings.json has the configuration of each. None if nothing was set up.
    pub fn settings_table(&self) -> Option<Table> {
        let setups = self.notebook.settings().keys();
        let rows: Vec<Vec<String>> = setups.map(|setup| vec![setup.clone()]).collect();
        (!rows.is_empty()).then(|| Table {
            title: "Settings".to_string(),
            header: vec!["setup; settings.json has the configuration of every node".to_string()],
            rows,
        })
    }

    /// The machines and the programs, a column for each part of the run in which one is another than before.
    pub fn facts_table(&self) -> Table {
        let mut parts: Vec<(usize, &Part)> = self.notebook.parts().iter().enumerate().collect();
        parts.dedup_by(|(_, next), (_, part)| part.goes_on_as(&next.facts));
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in parts.iter().flat_map(|(_, part)| &part.facts) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let value = |part: &Part, name: &str| {
            let fact = part.facts.iter().find(|(known, _)| known == name);
            fact.map_or(String::new(), |(_, value)| value.clone())
        };
        let row = |name: &str| {
            let values = parts.iter().map(|(_, part)| value(part, name));
            std::iter::once(name.to_string()).chain(values).collect()
        };
        let begins = parts
            .iter()
            .map(|(number, part)| format!("from part {number}, {}", part.since));
        Table {
            title: "Machine and programs".to_string(),
            header: std::iter::once(String::new()).chain(begins).collect(),
            rows: names.into_iter().map(row).collect(),
        }
    }

    /// The warnings before the figures: data of several builds or paces, and cells that are missing, not counted, or
    /// counted at a later try only.
    pub fn warnings(&self) -> Vec<String> {
        let records = self.records();
        let done: BTreeSet<_> = self.counted().map(|r| &r.cell).collect();
        let mut all = Vec::new();
        all.extend(self.change());
        all.extend(paces::warning(records));
        if done.len() < self.planned.len() {
            all.push(format!(
                "Partial: {} of {} measurements are there.",
                done.len(),
                self.planned.len()
            ));
        }
        let interrupted = Interrupted.to_string();
        let is_told = |r: &&Record| !done.contains(&r.cell) || r.note != interrupted;
        // Of several failed tries of a cell the last one.
        let broken: BTreeMap<&Cell, &str> = records
            .iter()
            .filter(|r| !r.complete)
            .filter(is_told)
            .map(|r| (&r.cell, r.note.as_str()))
            .collect();
        all.extend(broken.iter().map(|(cell, note)| match done.contains(cell) {
            true => format!("Failed, then measured again: {cell} ({note})"),
            false => format!("Not counted: {cell} ({note})"),
        }));
        all
    }

    /// The records that count.
    fn counted(&self) -> impl Iterator<Item = &Record> {
        self.records().iter().filter(|r| r.complete)
    }

    /// The builds of the records that count.
    fn builds(&self) -> Vec<&str> {
        let builds: BTreeSet<&str> = self.counted().map(|r| r.commit.as_str()).collect();
        builds.into_iter().collect()
    }

    /// The warning that the records that count are of several builds, or were made on a machine or with programs that
    /// changed meanwhile. Another build is both, and warned of once.
    fn change(&self) -> Option<String> {
        let builds = self.builds();
        let mut parts = self.counted().filter_map(|r| self.notebook.part_of(r));
        let first = parts.next();
        let has_changed = first.is_some_and(|first| parts.any(|p| !p.goes_on_as(&first.facts)));
        let what = match builds.len() {
            0 | 1 if !has_changed => return None,
            0 | 1 => "The machine or a program on it changed during the run".to_string(),
            n => format!("Of {n} builds ({})", builds.join(", ")),
        };
        Some(format!(
            "{what}: ratios pair cells of one repetition and one part of the run (one start of the program) only, other \
             figures mix all; the table \"Machine and programs\" tells the parts apart, and results.csv names the part, the \
             date and the build of each cell."
        ))
    }

    /// The dates, commits and parts of the measurements.
    pub fn provenance(&self) -> String {
        let dates = || self.counted().map(|r| r.date.as_str());
        let (first, last) = (dates().min().unwrap_or(""), dates().max().unwrap_or(""));
        let commits = self.builds().join(", ");
        let parts: BTreeSet<_> = self.counted().map(|r| r.part).collect();
        let parts = match parts.len() {
            0 | 1 => String::new(),
            n => format!(" in {n} parts (starts of the program); ratios pair cells of one part"),
        };
        format!("Measured from {first} to {last} (UTC), built from {commits}{parts}.")
    }
}
