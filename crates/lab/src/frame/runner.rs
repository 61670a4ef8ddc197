//! Runs an experiment's cells one by one. An experiment and the records of an earlier run come in. Each record is on
//! disk as soon as its cell is measured, and the report is written however the run ends. Only one run at a time is
//! active on a machine. A failed cell is tried once more at once, and after that only by a later run.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;
use trireme_testbed::Cluster;
use trireme_testbed::interrupt::{self, Interrupted};
use trireme_testbed::output::line;

use super::busy::{self, Watch};
use super::chart::number;
use super::error::LabError;
use super::experiment::Experiment;
use super::facts::{self, Part};
use super::ground::{Description, Ground};
use super::logs::{self, one_line};
use super::machine::{enough, lock};
use super::markdown::markdown;
use super::notebook::Notebook;
use super::options::FrameOptions;
use super::page::page;
use super::progress::Progress;
use super::record::{Cell, Measured, Record};
use super::report::{Absent, Report};
use crate::work_dir::{clear_preparations, work_dir};

/// Runs all cells that are not measured yet, and writes the report. `plan`: the choices that a later `--resume` reads.
pub fn run<G: Ground>(
    experiment: &dyn Experiment<G>,
    options: &FrameOptions,
    plan: &impl Serialize,
) -> Result<(), LabError> {
    let dir = work_dir().join("lab");
    let (ground, mut absent) = G::find(options, &dir)?;
    let left_out = experiment.left_out().into_iter();
    absent.extend(
        left_out
            .filter(|left| absent.iter().all(|a| a.system != left.system))
            .collect::<Vec<_>>(),
    );
    something_to_measure(experiment, &absent)?;
    interrupt::announce(format!(
        "stopping; the present step may take two minutes more. If you break it off: trireme cluster down --delete --dir {}",
        dir.display()
    ));
    let mut runner = Runner::new(experiment, &ground, dir, options.minutes)?;
    let mut notebook = match (&options.resume, &options.out) {
        (Some(dir), _) => Notebook::open(dir)?,
        (None, Some(dir)) => Notebook::create(dir, experiment.name(), plan)?,
        (None, None) => Notebook::create(&default_out(experiment), experiment.name(), plan)?,
    };
    for Absent { system, reason } in &absent {
        line(&format!("{system} is not measured: {reason}"));
    }
    let has_changed = |part: &Part| !part.goes_on_as(&runner.facts);
    if notebook.parts().last().is_some_and(has_changed) {
        line(
            "the machine or a program is another one than in earlier measurements: the report says so",
        );
    }
    if options.minutes != Some(0) {
        busy::warning()?.as_deref().into_iter().for_each(line);
    }
    let ended = runner.run_all(&absent, &mut notebook);
    let interrupted = interrupt::check().is_err();
    let kept_logs = runner.end(ended.is_err() && !interrupted);
    let written = write_report(experiment, &absent, &notebook);
    let dir = notebook.dir().to_path_buf();
    let result = match ended {
        Ok(()) if runner.failed > 0 => Err(LabError::Failed {
            failed: runner.failed,
            dir,
        }),
        Ok(()) => Ok(()),
        Err(_) if interrupted => {
            line(&format!(
                "interrupted; go on with: trireme bench {} --resume {}",
                experiment.name(),
                dir.display()
            ));
            Err(Interrupted.into())
        }
        Err(error) => Err(LabError::BrokeOff {
            reason: one_line(&error),
            dir,
            logs: kept_logs,
        }),
    };
    match (&result, written) {
        // A full disk may have ended the run, and keep the report from being written, too.
        (Err(_), Err(unwritten)) => line(&format!("no report: {unwritten}")),
        (_, written) => written?,
    }
    result
}

fn write_report<G: Ground>(
    experiment: &dyn Experiment<G>,
    absent: &[Absent],
    notebook: &Notebook,
) -> Result<(), LabError> {
    notebook.write_tables()?;
    // What is missing of a system that an earlier start has measured stays open.
    let has_records = |absent: &&Absent| {
        notebook
            .records()
            .iter()
            .any(|r| r.cell.system == absent.system)
    };
    let absent: Vec<Absent> = (absent.iter())
        .filter(|a| !has_records(a))
        .cloned()
        .collect();
    let report = Report {
        experiment,
        notebook,
        absent: &absent,
        planned: known_cells(experiment, &absent, notebook.records()),
    };
    let plots = report.plots();
    for plot in &plots {
        notebook.write(&plot.file, &plot.svg)?;
    }
    notebook.write("report.md", &markdown(&report, &plots))?;
    let report = notebook.write("report.html", &page(&report, &plots))?;
    line(&format!("report: {}", report.display()));
    Ok(())
}

/// The cells that follow from these records, without the cells of absent systems.
fn known_cells<G: Ground>(
    experiment: &dyn Experiment<G>,
    absent: &[Absent],
    records: &[Record],
) -> Vec<Cell> {
    let mut cells = experiment.cells();
    cells.extend(experiment.further_cells(records));
    cells.retain(|cell| absent.iter().all(|absent| absent.system != cell.system));
    cells
}

/// Fails if there is no cell with which the experiment can begin.
fn something_to_measure<G: Ground>(
    experiment: &dyn Experiment<G>,
    absent: &[Absent],
) -> Result<(), LabError> {
    if !known_cells(experiment, absent, &[]).is_empty() {
        return Ok(());
    }
    let reason = |a: &Absent| format!("{}: {}", a.system, a.reason);
    let reasons: Vec<String> = absent.iter().map(reason).collect();
    Err(LabError::NoCells(reasons.join("; ")))
}

/// The default directory of the results.
fn default_out<G: Ground>(experiment: &dyn Experiment<G>) -> PathBuf {
    let date = now();
    format!(
        "trireme-bench-{}-{}",
        experiment.name(),
        date.replace(':', "")
    )
    .into()
}

/// A running system, with the system and setup for which it was started.
struct Running<'a, G: Ground + 'a> {
    running: G::Running<'a>,
    system: String,
    setup: G::Setup,
}

/// After so many failed cells in a row the machine is taken for broken.
const MOST_FAILED: usize = 3;

struct Runner<'a, G: Ground> {
    experiment: &'a dyn Experiment<G>,
    ground: &'a G,
    facts: Vec<(String, String)>,
    running: Option<Running<'a, G>>,
    /// The cells that this run has tried.
    tried: BTreeSet<Cell>,
    /// The number of failed cells after which the run continued.
    failed: usize,
    /// How many of them failed one after the other, up to now.
    failed_in_a_row: usize,
    stop_at: Option<Instant>,
    dir: PathBuf,
    _lock: File,
}

impl<'a, G: Ground> Runner<'a, G> {
    fn new(
        experiment: &'a dyn Experiment<G>,
        ground: &'a G,
        dir: PathBuf,
        minutes: Option<u64>,
    ) -> Result<Self, LabError> {
        let lock = lock()?;
        Cluster::clear(&dir)?;
        clear_preparations()?;
        enough(experiment)?;
        let mut facts = facts::machine();
        for (name, value) in facts::changeable(experiment, ground)? {
            line(&format!("{name}: {value}"));
            facts.push((name, value));
        }
        Ok(Self {
            experiment,
            ground,
            facts,
            running: None,
            tried: BTreeSet::new(),
            failed: 0,
            failed_in_a_row: 0,
            stop_at: minutes.and_then(|minutes| {
                // So many minutes that the clock does not hold them: without an end.
                Instant::now().checked_add(Duration::from_secs(minutes.saturating_mul(60)))
            }),
            dir,
            _lock: lock,
        })
    }

    /// Runs all cells, including those that follow from the records of others.
    fn run_all(&mut self, absent: &[Absent], notebook: &mut Notebook) -> Result<(), LabError> {
        let mut progress = Progress::new(self.experiment);
        loop {
            let cells = known_cells(self.experiment, absent, notebook.records());
            let open = || cells.iter().filter(|cell| self.is_open(cell, notebook));
            if open().count() == 0 {
                return Ok(());
            }
            if !self.tried.is_empty() {
                line(&format!(
                    "{} further measurements follow from these",
                    open().count()
                ));
            }
            progress.set_left(open(), self.experiment.goes_on(notebook.records()));
            if !self.run_cells(&cells, &mut progress, notebook)? {
                return Ok(());
            }
        }
    }

    /// Whether this run still has to measure the cell.
    fn is_open(&self, cell: &Cell, notebook: &Notebook) -> bool {
        !notebook.has(cell) && !self.tried.contains(cell)
    }

    /// Runs the open cells; returns false if the time is over before the end.
    fn run_cells(
        &mut self,
        cells: &[Cell],
        progress: &mut Progress<G>,
        notebook: &mut Notebook,
    ) -> Result<bool, LabError> {
        let mut repetition = None;
        for (i, cell) in cells.iter().enumerate() {
            if !self.is_open(cell, notebook) {
                continue;
            }
            interrupt::check()?;
            // A repetition that has begun goes on: ratios compare only what one start of the program has measured.
            if repetition.replace(cell.repetition) != Some(cell.repetition) {
                let same = |next: &&Cell| next.repetition == cell.repetition;
                let own = cells[i..].iter().take_while(same);
                let own = own.filter(|next| self.is_open(next, notebook));
                if self.is_too_late_for(progress.expected(own)) {
                    line(
                        "the minutes are over, or too few for the next repetition; --resume goes on",
                    );
                    return Ok(false);
                }
            }
            self.tried.insert(cell.clone());
            let mut outcome = self.try_cell(cell, notebook)?;
            if let Err(failure) = &outcome {
                // Now, because a cell of a later start has no ratio to the rest of its repetition.
                line(&format!("{cell}: {failure}; once more"));
                outcome = self.try_cell(cell, notebook)?;
            }
            let text = match outcome {
                Ok(headline) => {
                    self.failed_in_a_row = 0;
                    headline
                }
                Err(failure) => {
                    self.count_failed(&failure)?;
                    failure
                }
            };
            progress.done(cell);
            line(&format!(
                "[{}/{}] {cell}: {text}; {}",
                i + 1,
                cells.len(),
                progress.left()
            ));
        }
        Ok(true)
    }

    /// Whether the user's minutes are over, or end before what takes so long. The first repetition of a start begins even
    /// if it takes longer: else a slice shorter than a repetition would measure nothing.
    fn is_too_late_for(&self, repetition: Duration) -> bool {
        let needed = match self.tried.is_empty() {
            true => Duration::ZERO,
            false => repetition,
        };
        self.stop_at
            .is_some_and(|end| Instant::now() + needed > end)
    }

    /// Tries a cell. Returns its headline or its failure; an error that does not concern only this cell ends the run.
    fn try_cell(
        &mut self,
        cell: &Cell,
        notebook: &mut Notebook,
    ) -> Result<Result<String, String>, LabError> {
        match self.run_cell(cell, notebook) {
            Err(error) if self.ends_run(&error) => Err(error),
            Err(error) => Ok(Err(format!(
                "failed: {}{}",
                one_line(&error),
                self.clear_up()?
            ))),
            Ok(headline) => Ok(Ok(headline)),
        }
    }

    /// Counts a failed cell. Fails if too many failed in a row.
    fn count_failed(&mut self, failure: &str) -> Result<(), LabError> {
        self.failed += 1;
        self.failed_in_a_row += 1;
        match self.failed_in_a_row < MOST_FAILED {
            true => Ok(()),
            false => Err(LabError::ManyFailed {
                cells: self.failed_in_a_row,
                last: failure.to_string(),
            }),
        }
    }

    /// Removes the remains of a failed cell, which are useless for the next one. Keeps the logs, and returns their
    /// place.
    fn clear_up(&mut self) -> Result<String, LabError> {
        // The drop ends the system.
        drop(self.running.take());
        let kept = logs::keep(&self.dir);
        Cluster::clear(&self.dir)?;
        Ok(kept.map_or(String::new(), |kept| format!("; logs: {}", kept.display())))
    }

    /// Measures a cell and stores its data, even if they are incomplete. Returns its headline.
    fn run_cell(&mut self, cell: &Cell, notebook: &mut Notebook) -> Result<String, LabError> {
        let part = notebook.part(now(), &self.facts)?;
        let setup = self.experiment.setup(cell);
        let mut measured = Measured::default();
        let result = self.prepare(cell, &setup, notebook).and_then(|()| {
            match &mut self.running {
                Some(system) => {
                    let watch = Watch::begin();
                    let running = &mut system.running;
                    let result = G::measure(running, self.experiment, cell, &mut measured);
                    watch.note(&mut measured);
                    result
                }
                // This does not happen: `prepare` has succeeded, so a system is running.
                None => Err(LabError::Client),
            }
        });
        let headline = self.experiment.headline(cell);
        let shown = measured.figures.get(headline).copied().unwrap_or(0.0);
        let kept = notebook.keep(Record {
            cell: cell.clone(),
            complete: result.is_ok(),
            note: result.as_ref().err().map(one_line).unwrap_or_default(),
            date: now(),
            commit: facts::COMMIT.to_string(),
            part: Some(part),
            measured,
        });
        if let (Err(_), Err(failed)) = (&kept, &result) {
            // A full disk is the reason of both, maybe.
            line(&format!("{cell} failed: {}", one_line(failed)));
        }
        kept?;
        result.map(|()| format!("{} {headline}", number(shown)))
    }

    /// After an interruption every further cell would fail, too.
    fn ends_run(&self, error: &LabError) -> bool {
        interrupt::check().is_err() || self.experiment.ends_run(error)
    }

    /// Makes sure that the system of a cell is running.
    fn prepare(
        &mut self,
        cell: &Cell,
        setup: &G::Setup,
        notebook: &mut Notebook,
    ) -> Result<(), LabError> {
        if let Some(running) = &self.running {
            if running.system == cell.system && running.setup == *setup {
                return Ok(());
            }
        }
        if let Some(earlier) = self.running.take() {
            G::end(earlier.running)?;
        }
        self.check_facts()?;
        let running = self.ground.start(self.experiment, cell, setup)?;
        let Description { setup: name, text } = self.ground.describe(cell, setup, &running);
        if let Some(name) = notebook.note_settings(&name, text)? {
            line(&name);
        }
        self.running = Some(Running {
            running,
            system: cell.system.clone(),
            setup: setup.clone(),
        });
        Ok(())
    }

    /// Fails if a program or library has changed since the begin of the run: a build may replace it meanwhile.
    fn check_facts(&self) -> Result<(), LabError> {
        let facts = facts::changeable(self.experiment, self.ground)?;
        let changed = facts.into_iter().find(|fact| !self.facts.contains(fact));
        changed.map_or(Ok(()), |(fact, now)| Err(LabError::Changed { fact, now }))
    }

    /// Ends the running system and removes its data. After a failure the logs stay, and their place is returned.
    fn end(&mut self, failed: bool) -> String {
        // The drop ends the system.
        drop(self.running.take());
        if failed && self.dir.exists() {
            return format!("; logs: {}/node*/error.log", self.dir.display());
        }
        // If this fails, the next run clears the directory.
        let _ = Cluster::clear(&self.dir);
        String::new()
    }
}

fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

#[cfg(test)]
mod tests;
