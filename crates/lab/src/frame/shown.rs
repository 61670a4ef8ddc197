//! The figures and ratios of the reports' tables: formatted in the same way by all experiments.

use std::collections::BTreeMap;

use super::compare::paired_ratios;
use super::experiment::Table;
use super::record::{Cell, Record};
use crate::stats::{geometric_mean, geometric_mean_interval, median, range};

/// The sentence of each report about its brackets.
pub const BRACKETS: &str = "Figures are medians of the repetitions, with the least and the greatest in brackets and as error \
     bars; ratios are geometric means over the repetitions, and differences means, with their 95 % intervals in brackets; \
     without brackets there was one run.";

/// Formats a figure for a table: the median of the repetitions, with the least and the greatest.
pub fn shown(values: &[f64], digits: usize) -> String {
    bracketed(median(values), range(values), digits)
}

/// Formats ratios by repetition for a table: their geometric mean with its 95 % interval, as verdicts have it. A ratio
/// of 0 has no such mean.
pub fn shown_ratio(ratios: &BTreeMap<u32, f64>) -> String {
    let all: Vec<f64> = ratios.values().copied().collect();
    let (mean, interval) = geometric_mean_interval(&all).unzip();
    bracketed(mean, interval.flatten(), 2)
}

fn bracketed(value: Option<f64>, brackets: Option<(f64, f64)>, digits: usize) -> String {
    match (value, brackets) {
        (None, _) => "-".to_string(),
        (Some(value), None) => format!("{value:.digits$}"),
        (Some(value), Some((low, high))) => {
            format!("{value:.digits$} [{low:.digits$}, {high:.digits$}]")
        }
    }
}

/// A point of the table [`beside_galera`].
pub struct Place<'a> {
    /// The levels in its first columns.
    pub levels: Vec<String>,
    /// Whether a cell is at this point.
    pub has: Box<dyn Fn(&Cell) -> bool + 'a>,
}

/// Makes the table "Trireme / Galera": a row for each point that both have, a column for each figure with its heading,
/// and the geometric mean over all points. Only repetitions that have all points count there. A figure that is 0 at a point
/// (deadlocks on a single node) has no ratio there: its mean is over the other points, and the row says so.
pub fn beside_galera(
    records: &[Record],
    heads: &[&str],
    places: &[Place],
    figures: &[(&str, &str)],
) -> Table {
    let measured: Vec<(&Place, Vec<BTreeMap<u32, f64>>)> = places
        .iter()
        .map(|place| {
            let ratios = figures.iter().map(|(figure, _)| {
                paired_ratios(records, ("trireme", "galera"), figure, &place.has)
            });
            (place, ratios.collect::<Vec<_>>())
        })
        .filter(|(_, ratios)| ratios.first().is_some_and(|first| !first.is_empty()))
        .collect();
    let mut rows: Vec<Vec<String>> = measured
        .iter()
        .map(|(place, ratios)| {
            let ratios = ratios.iter().map(shown_ratio);
            place.levels.iter().cloned().chain(ratios).collect()
        })
        .collect();
    if rows.len() > 1 {
        let means: Vec<String> = (0..figures.len())
            .map(|i| {
                let counted = measured
                    .iter()
                    .filter(|(_, all)| is_positive(&all[i], &all[0]));
                let column: Vec<_> = counted.map(|(_, all)| &all[i]).collect();
                let mean = shown_ratio(&over_points(&column));
                match column.len() {
                    0 => mean,
                    n if n == measured.len() => mean,
                    n => format!("{mean} ({n} points)"),
                }
            })
            .collect();
        let mut row = vec![String::new(); heads.len()];
        row[0] = match means.iter().any(|mean| mean.ends_with(" points)")) {
            true => "geometric mean (with a number: of the points where both have more than 0)",
            false => "geometric mean",
        }
        .to_string();
        row.extend(means);
        rows.push(row);
    }
    let headings = figures.iter().map(|(_, heading)| *heading);
    Table {
        title: "Trireme / Galera".to_string(),
        header: heads
            .iter()
            .copied()
            .chain(headings)
            .map(String::from)
            .collect(),
        rows,
    }
}

/// Whether the ratios of a figure are there and above 0 in all repetitions that the point has.
fn is_positive(ratios: &BTreeMap<u32, f64>, repetitions: &BTreeMap<u32, f64>) -> bool {
    repetitions
        .keys()
        .all(|n| ratios.get(n).is_some_and(|ratio| *ratio > 0.0))
}

/// The geometric mean over all points, by repetition.
fn over_points(points: &[&BTreeMap<u32, f64>]) -> BTreeMap<u32, f64> {
    let repetitions = points.first().into_iter().flat_map(|point| point.keys());
    let mean = |n: &u32| {
        let all: Option<Vec<f64>> = points.iter().map(|point| point.get(n).copied()).collect();
        Some((*n, geometric_mean(&all?)?))
    };
    repetitions.filter_map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::fixtures;

    #[test]
    fn a_figure_is_shown_with_its_least_and_greatest() {
        // The interval of the mean would be [-13161, 46259].
        assert_eq!(shown(&[2719.0, 22582.0, 24346.0], 0), "22582 [2719, 24346]");
        assert_eq!(shown(&[1.25], 1), "1.2");
        assert_eq!(shown(&[], 1), "-");
    }

    #[test]
    fn a_ratio_is_shown_as_in_verdicts() {
        let ratios = |all: &[f64]| (1..).zip(all.iter().copied()).collect();
        // Mean of the logarithms 0, standard error ln(2) / sqrt(3), t(0.975, 2) = 4.303.
        assert_eq!(shown_ratio(&ratios(&[0.5, 1.0, 2.0])), "1.00 [0.18, 5.59]");
        assert_eq!(shown_ratio(&ratios(&[0.5])), "0.50");
        assert_eq!(shown_ratio(&ratios(&[0.0, 1.0])), "-");
    }

    #[test]
    fn only_repetitions_with_all_points_are_in_the_mean_over_points() {
        let record = |system: &str, level: u64, repetition: u32, value: f64| {
            let cell = fixtures::cell(system, [("c", level)], repetition);
            fixtures::record(cell, [("x", value)])
        };
        let mut records = Vec::new();
        for (level, repetition, ratio) in [(1, 1, 2.0), (8, 1, 8.0), (8, 2, 100.0)] {
            records.push(record("trireme", level, repetition, ratio));
            records.push(record("galera", level, repetition, 1.0));
        }
        let places = [1, 8, 64].map(|level| Place {
            levels: vec![level.to_string()],
            has: Box::new(move |cell| cell.number("c") == level),
        });
        let table = beside_galera(&records, &["c"], &places, &[("x", "X")]);
        assert_eq!(table.header, ["c", "X"]);
        assert_eq!(table.rows[0], ["1", "2.00"]);
        assert!(table.rows[1][1].starts_with("28.28 ["));
        assert_eq!(table.rows[2], ["geometric mean", "4.00"]);
    }

    #[test]
    fn a_figure_that_is_0_at_a_point_has_its_mean_over_the_others() {
        let record = |system: &str, level: u64, deadlocks: f64| {
            let cell = fixtures::cell(system, [("c", level)], 1);
            fixtures::record(cell, [("x", 3.0), ("deadlocks", deadlocks)])
        };
        let records = [
            record("trireme", 1, 0.0),
            record("galera", 1, 0.0),
            record("trireme", 2, 4.0),
            record("galera", 2, 2.0),
            record("trireme", 3, 8.0),
            record("galera", 3, 1.0),
            record("trireme", 4, 0.0),
            record("galera", 4, 1.0),
        ];
        let places = [1, 2, 3, 4].map(|level| Place {
            levels: vec![level.to_string()],
            has: Box::new(move |cell| cell.number("c") == level),
        });
        let figures = [("x", "X"), ("deadlocks", "deadlocks")];
        let table = beside_galera(&records, &["c"], &places, &figures);
        let [name, x, deadlocks] = &table.rows[4][..] else {
            panic!("{:?}", table.rows);
        };
        assert!(
            name.ends_with("of the points where both have more than 0)"),
            "{name}"
        );
        assert_eq!(
            (x.as_str(), deadlocks.as_str()),
            ("1.00", "4.00 (2 points)")
        );
        let table = beside_galera(&records[..2], &["c"], &places[..1], &figures);
        assert_eq!(table.rows[0], ["1", "1.00", "-"]);
    }
}
