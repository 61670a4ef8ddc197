//! Runs of an experiment without servers.

use std::cell::RefCell;
use std::path::Path;

use super::*;
use crate::frame::{Chart, Claim, Description, Table, fixtures};

/// Nothing has to be started.
struct Nowhere;

impl Ground for Nowhere {
    type Setup = ();
    type Running<'a> = ();
    type System<'a> = ();

    fn find(_options: &FrameOptions, _dir: &Path) -> Result<(Self, Vec<Absent>), LabError> {
        Ok((Self, Vec::new()))
    }

    fn start(
        &self,
        _experiment: &dyn Experiment<Self>,
        _cell: &Cell,
        _setup: &(),
    ) -> Result<(), LabError> {
        Ok(())
    }

    fn measure(
        running: &mut (),
        experiment: &dyn Experiment<Self>,
        cell: &Cell,
        measured: &mut Measured,
    ) -> Result<(), LabError> {
        experiment.measure(cell, running, measured)
    }

    fn end(_running: ()) -> Result<(), LabError> {
        Ok(())
    }

    fn describe(&self, cell: &Cell, _setup: &(), _running: &()) -> Description {
        Description {
            setup: cell.system.clone(),
            text: String::new(),
        }
    }
}

/// A third repetition follows from a record of the second.
struct Toy {
    cells: Vec<Cell>,
    outcome: fn(&Cell) -> Result<(), LabError>,
    measured: RefCell<Vec<u32>>,
}

fn cell(repetition: u32) -> Cell {
    Cell {
        system: "toy".to_string(),
        factors: [].into(),
        repetition,
    }
}

impl Experiment<Nowhere> for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn title(&self) -> String {
        String::new()
    }

    fn description(&self) -> Vec<String> {
        Vec::new()
    }

    fn cells(&self) -> Vec<Cell> {
        self.cells.clone()
    }

    fn further_cells(&self, records: &[Record]) -> Vec<Cell> {
        let second = records.iter().filter(|r| r.cell.repetition == 2);
        second.map(|_| cell(3)).collect()
    }

    fn setup(&self, _cell: &Cell) {}

    fn estimate_seconds(&self, _cell: &Cell) -> f64 {
        1.0
    }

    fn needs_mib(&self) -> (u64, u64) {
        (0, 0)
    }

    fn measure(
        &self,
        cell: &Cell,
        _system: &mut (),
        _measured: &mut Measured,
    ) -> Result<(), LabError> {
        self.measured.borrow_mut().push(cell.repetition);
        (self.outcome)(cell)
    }

    fn headline(&self, _cell: &Cell) -> &'static str {
        "x"
    }

    fn charts(&self, _records: &[Record]) -> Vec<Chart> {
        Vec::new()
    }

    fn tables(&self, _records: &[Record]) -> Vec<Table> {
        Vec::new()
    }

    fn claims(&self, _records: &[Record]) -> Vec<Claim> {
        Vec::new()
    }
}

/// Runs the toy; returns whether the run went to its end, how many cells failed, and what was measured in turn.
fn run_toy(
    cells: Vec<Cell>,
    minutes: Option<Duration>,
    outcome: fn(&Cell) -> Result<(), LabError>,
) -> (bool, usize, Vec<u32>) {
    let dir = tempfile::tempdir().unwrap();
    let toy = Toy {
        cells,
        outcome,
        measured: RefCell::default(),
    };
    let mut notebook = Notebook::create(&dir.path().join("out"), "toy", &0).unwrap();
    let mut runner = Runner {
        experiment: &toy,
        ground: &Nowhere,
        facts: Vec::new(),
        running: None,
        tried: BTreeSet::new(),
        failed: 0,
        stop_at: minutes.map(|minutes| Instant::now() + minutes),
        dir: dir.path().join("lab"),
        _lock: tempfile::tempfile().unwrap(),
    };
    let ended = runner.run_all(&[], &mut notebook);
    (ended.is_ok(), runner.failed, toy.measured.take())
}

#[test]
fn a_failed_cell_is_tried_once_also_when_further_cells_follow() {
    let first_fails = |cell: &Cell| match cell.repetition {
        1 => Err(LabError::Rows {
            what: "inserts",
            acknowledged: 2,
            found: 1,
        }),
        _ => Ok(()),
    };
    let ran = run_toy(vec![cell(1), cell(2)], None, first_fails);
    assert_eq!(ran, (true, 1, vec![1, 2, 3]));
}

#[test]
fn a_repetition_that_has_begun_goes_on_when_the_minutes_are_over() {
    const MINUTES: Duration = Duration::from_millis(500);
    let other = Cell {
        system: "other".to_string(),
        ..cell(1)
    };
    let takes_long = |_: &Cell| {
        std::thread::sleep(MINUTES);
        Ok(())
    };
    let cells = vec![cell(1), other, cell(2)];
    let ran = run_toy(cells, Some(MINUTES), takes_long);
    assert_eq!(ran, (true, 0, vec![1, 1]));
}

#[test]
fn an_error_of_the_machine_ends_the_run() {
    let ran = run_toy(vec![cell(1), cell(2)], None, |_| Err(LabError::Client));
    assert_eq!(ran, (false, 0, vec![1]));
}

#[test]
fn a_run_that_goes_on_has_the_choices_that_it_began_with() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let options = |arguments: &[&str]| -> FrameOptions { fixtures::parse(arguments).unwrap() };
    let begun = options(&["--systems", "a", "--repetitions", "7"]);
    Notebook::create(&out, "toy", &begun).unwrap();
    let path = out.to_str().unwrap();
    let chosen = options(&["--resume", path, "--minutes", "5"]);
    let choices = |chosen: &FrameOptions, name| choices(chosen, name, &["b"], |plan| plan);
    let goes_on = choices(&chosen, "toy").unwrap();
    assert_eq!(
        (goes_on.systems, goes_on.repetitions),
        (vec!["a".to_string()], Some(7))
    );
    assert_eq!(
        (goes_on.resume, goes_on.minutes),
        (Some(out.clone()), Some(5))
    );
    assert!(choices(&chosen, "another").is_err());
    let new = choices(&options(&[]), "toy").unwrap();
    assert_eq!(
        (new.systems, new.systems_by_default),
        (vec!["b".to_string()], true)
    );
}

/// Calls `check` with a report on these records, each of a part of its own: repetition, build, date, and whether they
/// are complete.
fn of_report<T>(
    records: &[(u32, &str, &str, bool)],
    check: impl FnOnce(&Report<Nowhere>) -> T,
) -> T {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let mut notebook = Notebook::create(&out, "toy", &0).unwrap();
    for &(repetition, build, date, complete) in records {
        notebook = Notebook::open(&out).unwrap();
        let facts = [("trireme built from".to_string(), build.to_string())];
        let part = notebook.part(date.to_string(), &facts).unwrap();
        let figures: [(&str, f64); 0] = [];
        let record = Record {
            complete,
            commit: build.to_string(),
            date: date.to_string(),
            part: Some(part),
            ..fixtures::record(cell(repetition), figures)
        };
        notebook.keep(record).unwrap();
    }
    let toy = Toy {
        cells: vec![cell(1), cell(2)],
        outcome: |_| Err(LabError::Client),
        measured: RefCell::default(),
    };
    check(&Report {
        experiment: &toy,
        notebook: &notebook,
        absent: &[],
        planned: Vec::new(),
    })
}

fn warnings(records: &[(u32, &str, &str, bool)]) -> Vec<String> {
    of_report(records, |report| report.warnings())
}

#[test]
fn parts_of_one_build_share_a_column_and_are_told() {
    let records = [
        (1, "old", "1", true),
        (2, "old", "2", true),
        (3, "new", "3", true),
    ];
    let header = |report: &Report<Nowhere>| report.facts_table().header;
    let expected = ["", "from part 0, 1", "from part 2, 3"];
    assert_eq!(of_report(&records, header), expected);
    let provenance = of_report(&records[..2], |report| report.provenance());
    assert!(provenance.contains(" in 2 parts "), "{provenance}");
    assert!(warnings(&records[..2]).is_empty());
}

#[test]
fn another_build_is_one_warning() {
    let all = warnings(&[(1, "old", "1", true), (2, "new", "2", true)]);
    assert_eq!(all.len(), 1, "{all:?}");
    assert!(all[0].starts_with("Of 2 builds (new, old)"), "{all:?}");
}

#[test]
fn a_failed_record_that_was_made_again_is_of_no_build() {
    let again = [
        (1, "new", "1", true),
        (2, "old", "2", false),
        (2, "new", "3", true),
    ];
    assert!(warnings(&again).is_empty());
    let failed_first = [(1, "old", "1", false), (1, "new", "2", true)];
    assert!(warnings(&failed_first).is_empty());
}

#[test]
fn the_cause_in_a_servers_log_is_part_of_the_note() {
    let log =
        "node1: the server ended; the end of /x:\n  1 [ERROR] port is used\n  2 [ERROR] Aborting\n";
    let expected = "node1: the server ended; the end of /x: 1 [ERROR] port is used";
    assert_eq!(one_line(&log), expected);
    assert_eq!(one_line(&"end of /x:\n  a\n  b"), "end of /x: b");
    assert_eq!(one_line(&"no such file"), "no such file");
}

#[test]
fn a_run_without_cells_is_an_error_that_says_why() {
    let toy = Toy {
        cells: vec![cell(1), cell(2)],
        outcome: |_| Err(LabError::Client),
        measured: RefCell::default(),
    };
    assert!(something_to_measure(&toy, &[]).is_ok());
    let absent = Absent {
        system: "toy".to_string(),
        reason: "broken".to_string(),
    };
    let error = something_to_measure(&toy, &[absent]).unwrap_err();
    assert!(error.to_string().contains("(toy: broken)"), "{error}");
}

#[test]
fn libraries_of_a_plan_are_absolute() {
    let arguments = ["--systems", "galera,old=x/lib.so", "--provider", "y/lib.so"];
    let options: FrameOptions = fixtures::parse(&arguments).unwrap();
    let chosen = choices(&options, "toy", &[], |plan| plan).unwrap();
    let here = std::env::current_dir().unwrap();
    assert_eq!(chosen.provider, Some(here.join("y/lib.so")));
    let old = format!("old={}/x/lib.so", here.display());
    assert_eq!(chosen.systems, ["galera".to_string(), old]);
}
