//! The pace of the repetitions. One on a slower machine, or beside another load, is told apart: its ratios count, its
//! absolute figures do not compare.

use std::collections::BTreeMap;

use super::record::Record;
use crate::stats::geometric_mean;

/// Repetitions whose paces differ more than this did not run under the same conditions.
const UNEVEN: f64 = 1.5;

/// A warning if the repetitions of the same cells ran at different paces.
pub fn warning(records: &[Record]) -> Option<String> {
    let paces = paces(records);
    let order = |a: &&(u32, f64), b: &&(u32, f64)| a.1.total_cmp(&b.1);
    let (slow, fast) = (paces.iter().min_by(order)?, paces.iter().max_by(order)?);
    (fast.1 > slow.1 * UNEVEN).then(|| {
        format!(
            "Repetition {} ran {:.1} times as fast as repetition {} (another machine, or another load beside it): absolute \
             figures and their brackets mix both; ratios are taken within a repetition.",
            fast.0,
            fast.1 / slow.1,
            slow.0
        )
    })
}

/// A system and the levels of the factors.
type Point<'a> = (&'a str, &'a BTreeMap<String, String>);

/// For each repetition, its commits per second relative to those of the first one, over all cells that both have.
fn paces(records: &[Record]) -> Vec<(u32, f64)> {
    let mut rates = BTreeMap::<u32, BTreeMap<Point, f64>>::new();
    for record in records.iter().filter(|r| r.complete) {
        let seconds = &record.measured.per_second;
        let rate = seconds.iter().sum::<u64>() as f64 / seconds.len().max(1) as f64;
        if rate == 0.0 {
            continue; // it has no seconds: a load of tables, say
        }
        let (cell, point) = (&record.cell, (&*record.cell.system, &record.cell.factors));
        (rates.entry(cell.repetition).or_default()).insert(point, rate);
    }
    let Some((_, first)) = rates.first_key_value() else {
        return Vec::new();
    };
    let pace = |(repetition, all): (&u32, &BTreeMap<Point, f64>)| {
        let ratio = |(point, rate): (_, &f64)| Some(rate / first.get(point)?);
        let ratios: Vec<f64> = all.iter().filter_map(ratio).collect();
        Some((*repetition, geometric_mean(&ratios)?))
    };
    rates.iter().filter_map(pace).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::record::{Cell, Measured};

    fn record(repetition: u32, clients: u32, rate: u64) -> Record {
        Record {
            cell: Cell {
                system: "trireme".to_owned(),
                factors: BTreeMap::from([("clients".to_owned(), clients.to_string())]),
                repetition,
            },
            complete: true,
            note: String::new(),
            date: String::new(),
            commit: String::new(),
            part: None,
            measured: Measured {
                figures: BTreeMap::new(),
                per_second: vec![rate; 3],
            },
        }
    }

    #[test]
    fn a_repetition_on_a_slower_machine_is_told() {
        let even = [record(1, 1, 100), record(1, 8, 700), record(2, 1, 80)];
        assert_eq!(warning(&even), None);
        let mut uneven = even.to_vec();
        uneven.extend([record(3, 1, 40), record(3, 8, 280)]);
        let text = warning(&uneven).expect("2.5 times as slow");
        assert!(
            text.starts_with("Repetition 1 ran 2.5 times as fast as repetition 3"),
            "{text}"
        );
    }

    #[test]
    fn nothing_measured_is_not_uneven() {
        assert_eq!(warning(&[]), None);
        assert_eq!(warning(&[record(1, 1, 0), record(2, 1, 5)]), None);
        // Cells without seconds hide nothing about the others.
        let mut uneven = vec![record(1, 1, 40), record(2, 1, 100)];
        uneven.extend([record(1, 8, 0), record(2, 8, 0)]);
        assert!(warning(&uneven).is_some());
    }
}
