//! Runs of an experiment without servers.

use std::cell::RefCell;
use std::path::Path;

use super::*;
use crate::frame::{Chart, Claim, Description, Table, fixtures};

/// Nothing has to be started.
struct Nowhere {
    library: std::cell::Cell<&'static str>,
    /// The library after the first start: another one if it is rebuilt meanwhile.
    next: &'static str,
}

impl Nowhere {
    fn new(library: &'static str, next: &'static str) -> Self {
        Self {
            library: library.into(),
            next,
        }
    }
}

impl Ground for Nowhere {
    type Setup = ();
    type Running<'a> = ();
    type System<'a> = ();

    fn find(_options: &FrameOptions, _dir: &Path) -> Result<(Self, Vec<Absent>), LabError> {
        Ok((Self::new("", ""), Vec::new()))
    }

    fn facts(&self) -> Result<Vec<(String, String)>, LabError> {
        Ok(vec![(
            "library".to_string(),
            self.library.get().to_string(),
        )])
    }

    fn start(
        &self,
        _experiment: &dyn Experiment<Self>,
        _cell: &Cell,
        _setup: &(),
    ) -> Result<(), LabError> {
        self.library.set(self.next);
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

    fn facts(&self) -> Vec<(String, String)> {
        vec![("tool".to_string(), "1.0".to_string())]
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

/// What a run of the toy leaves.
struct Ran {
    ended: Result<(), LabError>,
    failed: usize,
    /// The repetitions that were measured, in turn.
    measured: Vec<u32>,
    records: Vec<Record>,
}

impl Ran {
    /// Whether the run went to its end, how many cells failed, and what was measured in turn.
    fn summary(&self) -> (bool, usize, &[u32]) {
        (self.ended.is_ok(), self.failed, &self.measured)
    }
}

fn run_toy(
    cells: Vec<Cell>,
    minutes: Option<Duration>,
    outcome: fn(&Cell) -> Result<(), LabError>,
) -> Ran {
    run_toy_on(&Nowhere::new("old", "old"), cells, minutes, outcome)
}

fn run_toy_on(
    ground: &Nowhere,
    cells: Vec<Cell>,
    minutes: Option<Duration>,
    outcome: fn(&Cell) -> Result<(), LabError>,
) -> Ran {
    let dir = tempfile::tempdir().unwrap();
    let toy = Toy {
        cells,
        outcome,
        measured: RefCell::default(),
    };
    let mut notebook = Notebook::create(&dir.path().join("out"), "toy", &0).unwrap();
    let mut runner = Runner {
        experiment: &toy,
        ground,
        facts: facts::changeable(&toy, ground).unwrap(),
        running: None,
        tried: BTreeSet::new(),
        failed: 0,
        failed_in_a_row: 0,
        stop_at: minutes.map(|minutes| Instant::now() + minutes),
        dir: dir.path().join("lab"),
        _lock: tempfile::tempfile().unwrap(),
    };
    let ended = runner.run_all(&[], &mut notebook);
    let failed = runner.failed;
    Ran {
        ended,
        failed,
        measured: toy.measured.take(),
        records: notebook.records().to_vec(),
    }
}

fn fail(_: &Cell) -> Result<(), LabError> {
    Err(LabError::Rows {
        what: "inserts",
        acknowledged: 2,
        found: 1,
    })
}

#[test]
fn a_failed_cell_is_tried_once_more_also_when_further_cells_follow() {
    let first_fails = |cell: &Cell| match cell.repetition {
        1 => fail(cell),
        _ => Ok(()),
    };
    let ran = run_toy(vec![cell(1), cell(2)], None, first_fails);
    assert_eq!(ran.summary(), (true, 1, &[1, 1, 2, 3][..]));
    // Both tries are of the same part of the run.
    let first: Vec<_> = ran.records[..2]
        .iter()
        .map(|r| (r.complete, r.part))
        .collect();
    assert_eq!(first, [(false, Some(0)); 2]);
}

#[test]
fn a_cell_that_succeeds_at_the_second_try_has_not_failed() {
    thread_local!(static TRIES: std::cell::Cell<u32> = const { std::cell::Cell::new(0) });
    let second_succeeds = |cell: &Cell| match TRIES.replace(TRIES.get() + 1) {
        0 => fail(cell),
        _ => Ok(()),
    };
    let ran = run_toy(vec![cell(1)], None, second_succeeds);
    assert_eq!(ran.summary(), (true, 0, &[1, 1][..]));
    let complete: Vec<bool> = ran.records.iter().map(|r| r.complete).collect();
    assert_eq!(complete, [false, true]);
}

#[test]
fn three_failed_cells_in_a_row_end_the_run() {
    let cells = || (4..=9).map(cell).collect();
    let ran = run_toy(cells(), None, fail);
    assert_eq!(ran.summary(), (false, 3, &[4, 4, 5, 5, 6, 6][..]));
    let text = ran.ended.unwrap_err().to_string();
    assert!(text.starts_with("3 measurements in a row failed"), "{text}");
    assert!(text.contains("2 inserts were acknowledged") && !text.contains('\n'));
    let every_third_succeeds = |cell: &Cell| match cell.repetition % 3 {
        0 => Ok(()),
        _ => fail(cell),
    };
    let ran = run_toy(cells(), None, every_third_succeeds);
    assert_eq!(
        ran.summary(),
        (true, 4, &[4, 4, 5, 5, 6, 7, 7, 8, 8, 9][..])
    );
}

#[test]
fn a_library_that_is_rebuilt_ends_the_run_before_it_is_used() {
    let other = Cell {
        system: "other".to_string(),
        ..cell(4)
    };
    let cells = vec![cell(4), other];
    let ground = Nowhere::new("old", "new");
    let ran = run_toy_on(&ground, cells.clone(), None, |_| Ok(()));
    assert_eq!(ran.summary(), (false, 0, &[4][..]));
    let text = ran.ended.unwrap_err().to_string();
    assert!(text.starts_with("library changed during the run, it is now: new"));
    assert!(text.contains("--resume") && !text.contains('\n'), "{text}");
    assert!(run_toy(cells, None, |_| Ok(())).ended.is_ok());
}

#[test]
fn libraries_and_tools_are_facts_that_may_change() {
    let toy = Toy {
        cells: Vec::new(),
        outcome: |_| Ok(()),
        measured: RefCell::default(),
    };
    let facts = facts::changeable(&toy, &Nowhere::new("old", "old")).unwrap();
    let names: Vec<&str> = facts.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["library", "tool"]);
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
    assert_eq!(ran.summary(), (true, 0, &[1, 1][..]));
}

#[test]
fn a_repetition_that_cannot_end_in_time_does_not_begin_unless_it_is_the_first() {
    let cells = || {
        let other = Cell {
            system: "other".to_string(),
            ..cell(5)
        };
        vec![cell(4), cell(5), other]
    };
    let takes_long = |_: &Cell| {
        std::thread::sleep(Duration::from_millis(400));
        Ok(())
    };
    // The second repetition takes 800 ms.
    let ran = run_toy(cells(), Some(Duration::from_millis(900)), takes_long);
    assert_eq!(ran.summary(), (true, 0, &[4][..]));
    // By the estimates alone, the second repetition takes 18 s.
    let ran = run_toy(cells(), Some(Duration::from_secs(10)), |_| Ok(()));
    assert_eq!(ran.summary(), (true, 0, &[4, 5, 5][..]));
}

#[test]
fn an_error_of_the_machine_ends_the_run() {
    let ran = run_toy(vec![cell(1), cell(2)], None, |_| Err(LabError::Client));
    assert_eq!(ran.summary(), (false, 0, &[1][..]));
}

#[test]
fn each_record_has_its_wall_time_and_the_steal() {
    let ran = run_toy(vec![cell(4)], None, |_| {
        std::thread::sleep(Duration::from_millis(20));
        Ok(())
    });
    let figures = &ran.records[0].measured.figures;
    assert!(figures["wall_s"] >= 0.02, "{figures:?}");
    assert!((0.0..=100.0).contains(&figures["machine_steal_percent"]));
}

#[test]
fn the_time_left_says_what_it_does_not_know() {
    let toy = Toy {
        cells: Vec::new(),
        outcome: |_| Ok(()),
        measured: RefCell::default(),
    };
    let mut progress = Progress::<Nowhere>::new(&toy);
    let cells = [cell(1), cell(2)];
    progress.set_left(cells.iter(), true);
    assert_eq!(progress.left(), "18 s left for the known measurements");
    progress.set_left(cells.iter(), false);
    assert_eq!(progress.left(), "18 s left");
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
    let told = "Failed, then measured again: toy, repetition 2 ()";
    assert_eq!(warnings(&again), [told]);
    let failed_first = [(2, "old", "1", false), (2, "new", "2", true)];
    assert_eq!(warnings(&failed_first), [told]);
}

#[test]
fn a_cell_that_failed_twice_is_told_once() {
    let twice = [(1, "new", "1", false), (1, "new", "2", false)];
    let told = "Not counted: toy, repetition 1 ()";
    assert_eq!(warnings(&twice), [told]);
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
