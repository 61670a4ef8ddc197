//! What the trials gave: a CSV line per figure, and a table of medians per part.

use crate::stats::median;
use trireme_testbed::table;

/// How the figures of several trials become one cell of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Summary {
    /// The median.
    Median,
    /// The greatest.
    Max,
    /// In how many of all trials the figure is 1, not 0.
    Count,
}

/// What a figure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measure {
    /// Its name with the unit, the column's header.
    pub name: &'static str,
    /// Shown digits behind the point.
    pub digits: usize,
    /// How trials are summed up.
    pub summary: Summary,
}

impl Measure {
    /// A measure whose median is shown.
    pub const fn median(name: &'static str, digits: usize) -> Self {
        Self {
            name,
            digits,
            summary: Summary::Median,
        }
    }

    /// A measure whose greatest figure is shown.
    pub const fn max(name: &'static str, digits: usize) -> Self {
        Self {
            name,
            digits,
            summary: Summary::Max,
        }
    }

    /// A condition that a trial meets or not.
    pub const fn count(name: &'static str) -> Self {
        Self {
            name,
            digits: 0,
            summary: Summary::Count,
        }
    }

    fn cell(&self, figures: &[f64]) -> String {
        let digits = self.digits;
        let one = match self.summary {
            Summary::Median => median(figures),
            Summary::Max => figures.iter().copied().reduce(f64::max),
            Summary::Count => {
                let met = figures.iter().filter(|figure| **figure > 0.0).count();
                return format!("{met}/{}", figures.len());
            }
        };
        one.map_or("-".to_string(), |figure| format!("{figure:.digits$}"))
    }
}

/// A figure of one trial.
pub type Figure = (Measure, f64);

/// What one trial of one case gave.
#[derive(Debug, Clone)]
pub struct Record {
    /// The part of the experiment.
    pub part: &'static str,
    /// What was done, such as the fault.
    pub case: String,
    /// The system's name.
    pub system: String,
    /// The trial's number, from 1.
    pub trial: usize,
    /// The figures; none for a trial that failed.
    pub figures: Vec<Figure>,
}

/// The first line of the CSV file.
pub const CSV_HEADER: &str = "part,case,system,trial,measure,value";

impl Record {
    /// The lines of the CSV file, one per figure.
    pub fn csv(&self) -> String {
        let head = format!(
            "{},{},{},{}",
            self.part,
            csv_field(&self.case),
            csv_field(&self.system),
            self.trial
        );
        if self.figures.is_empty() {
            return format!("{head},failed,1\n");
        }
        let lines = self.figures.iter();
        lines
            .map(|(measure, value)| format!("{head},{},{value:.3}\n", csv_field(measure.name)))
            .collect()
    }

    /// One line for a reader who watches.
    pub fn line(&self) -> String {
        let figures = self.figures.iter().map(|(measure, value)| {
            let digits = measure.digits;
            match measure.summary {
                Summary::Count if *value > 0.0 => format!("{}: yes", measure.name),
                Summary::Count => format!("{}: no", measure.name),
                _ => format!("{} {value:.digits$}", measure.name),
            }
        });
        format!(
            "{}, {}, trial {}, {}: {}",
            self.part,
            self.case,
            self.trial,
            self.system,
            figures.collect::<Vec<_>>().join(", ")
        )
    }
}

/// A table per part: a row per case and system, in order of appearance.
pub fn tables(records: &[Record]) -> String {
    let mut text = String::new();
    for part in distinct(records.iter().map(|record| record.part)) {
        let of_part: Vec<&Record> = records.iter().filter(|r| r.part == part).collect();
        text += &format!("\n{part}\n{}", table_of(&of_part));
    }
    text
}

fn table_of(records: &[&Record]) -> String {
    let figures = |record: &&Record| record.figures.clone();
    let measures = distinct(records.iter().flat_map(figures).map(|(measure, _)| measure));
    let rows = distinct(records.iter().map(|r| (r.case.as_str(), r.system.as_str())));
    let rows = rows.into_iter().map(|(case, system)| {
        let of_row = records
            .iter()
            .filter(|r| r.case == case && r.system == system);
        let of_row: Vec<&&Record> = of_row.collect();
        let good = of_row
            .iter()
            .filter(|record| !record.figures.is_empty())
            .count();
        let mut cells = vec![case.to_string(), system.to_string()];
        cells.push(if good == of_row.len() {
            good.to_string()
        } else {
            format!("{good} of {}", of_row.len())
        });
        for measure in &measures {
            let values: Vec<f64> = of_row
                .iter()
                .flat_map(|record| &record.figures)
                .filter(|(own, _)| own == measure)
                .map(|(_, value)| *value)
                .collect();
            cells.push(if values.is_empty() {
                "-".to_string()
            } else {
                measure.cell(&values)
            });
        }
        cells
    });
    let header = ["case", "system", "trials"];
    let names = measures.iter().map(|measure| measure.name);
    let header: Vec<&str> = header.into_iter().chain(names).collect();
    table::render(&header, &rows.collect::<Vec<_>>())
}

/// The values in order of their first appearance.
fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

/// A field as CSV wants it.
fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: Measure = Measure::median("gap ms", 0);
    const WORST: Measure = Measure::max("worst ms", 0);
    const SHORT: Measure = Measure::count("short");

    fn record(system: &str, trial: usize, figures: &[Figure]) -> Record {
        Record {
            part: "failover",
            case: "kill, sequencer".to_string(),
            system: system.to_string(),
            trial,
            figures: figures.to_vec(),
        }
    }

    #[test]
    fn trials_are_summed_up_by_measure() {
        let records = [
            record("a", 1, &[(GAP, 10.0), (WORST, 10.0), (SHORT, 1.0)]),
            record("b", 1, &[(GAP, 70.0)]),
            record("a", 2, &[(GAP, 30.0), (WORST, 30.0), (SHORT, 0.0)]),
            record("b", 2, &[]),
        ];
        let text = tables(&records);
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| {
                line.split("  ")
                    .map(str::trim)
                    .filter(|c| !c.is_empty())
                    .collect()
            })
            .collect();
        assert_eq!(lines[1], ["failover"]);
        assert_eq!(lines[3], ["kill, sequencer", "a", "2", "20", "30", "1/2"]);
        assert_eq!(lines[4], ["kill, sequencer", "b", "1 of 2", "70", "-", "-"]);
    }

    #[test]
    fn csv_lines_have_the_columns_of_the_header() {
        let text = record("a", 3, &[(GAP, 10.0), (SHORT, 0.0)]).csv();
        assert_eq!(
            text,
            "failover,\"kill, sequencer\",a,3,gap ms,10.000\nfailover,\"kill, sequencer\",a,3,short,0.000\n"
        );
        assert!(record("a", 3, &[]).csv().ends_with(",a,3,failed,1\n"));
        assert_eq!(csv_field("\"x\""), "\"\"\"x\"\"\"");
        assert_eq!(CSV_HEADER.split(',').count(), 6);
    }

    #[test]
    fn nothing_measured_gives_no_table() {
        assert_eq!(tables(&[]), "");
    }
}
