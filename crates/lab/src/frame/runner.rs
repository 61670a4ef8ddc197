//! Runs an experiment's cells one by one, and reports on what there is, however the run ends.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{FlockOperation, flock, statvfs};
use serde::Serialize;
use serde::de::DeserializeOwned;
use trireme_testbed::cluster::make_private_dir;
use trireme_testbed::interrupt::{self, Interrupted};
use trireme_testbed::output::line;
use trireme_testbed::systems::{self, Deployed, System, SystemError};
use trireme_testbed::{Cluster, Settings};

use super::error::LabError;
use super::experiment::{Experiment, Setup};
use super::facts;
use super::notebook::Notebook;
use super::options::FrameOptions;
use super::page::{Absent, page};
use super::progress::Progress;
use super::record::{Cell, Measured, Record};
use super::shares::{InForce, Shares};
use crate::work_dir::work_dir;

/// The choices of the run of an experiment in `dir`.
pub fn plan_of<P: DeserializeOwned>(dir: &Path, experiment: &str) -> Result<P, LabError> {
    Notebook::plan(dir, experiment)
}

/// Runs all cells that have not been measured yet, and writes the report. `plan` is what a later `--resume` needs to know.
pub fn run(
    experiment: &dyn Experiment,
    options: &FrameOptions,
    plan: &impl Serialize,
) -> Result<(), LabError> {
    let Found { systems, absent } = find(options)?;
    let mut runner = Runner::new(experiment, &systems, options)?;
    let mut notebook = match (&options.resume, &options.out) {
        (Some(dir), _) => Notebook::open(dir)?,
        (None, Some(dir)) => Notebook::create(dir, experiment.name(), plan)?,
        (None, None) => Notebook::create(&default_out(experiment), experiment.name(), plan)?,
    };
    for Absent { system, reason } in &absent {
        line(&format!("{system} is not measured: {reason}"));
    }
    let ended = runner.run_all(&absent, &mut notebook);
    let interrupted = interrupt::check().is_err();
    let kept_logs = runner.end(ended.is_err() && !interrupted);
    notebook.write_tables()?;
    let planned = known_cells(experiment, &absent, &notebook).len();
    let report = page(experiment, &notebook, &runner.facts, &absent, planned);
    let report = notebook.write("report.html", &report)?;
    line(&format!("report: {}", report.display()));
    let dir = notebook.dir().to_path_buf();
    match ended {
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
    }
}

/// The systems that were asked for.
struct Found {
    /// Those at hand.
    systems: Vec<Box<dyn System>>,
    /// Those that are not set up here.
    absent: Vec<Absent>,
}

/// Finds the systems. One that only has to be installed is an error, which names the remedy.
fn find(options: &FrameOptions) -> Result<Found, LabError> {
    let mut systems = Vec::new();
    let mut absent = Vec::new();
    let mut first = None;
    for name in &options.systems {
        match systems::find(name, options.provider.as_deref()) {
            Ok(system) => systems.push(system),
            Err(error) if error.leaves_a_row() => {
                absent.push(Absent {
                    system: name.clone(),
                    reason: error.to_string(),
                });
                first.get_or_insert(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    match first {
        Some(first) if systems.is_empty() => Err(first.into()),
        _ => Ok(Found { systems, absent }),
    }
}

/// The cells that are known by now, but those of systems that are not to be had.
fn known_cells(experiment: &dyn Experiment, absent: &[Absent], notebook: &Notebook) -> Vec<Cell> {
    let mut cells = experiment.cells();
    cells.extend(experiment.further_cells(notebook.records()));
    cells.retain(|cell| absent.iter().all(|absent| absent.system != cell.system));
    cells
}

/// Where results go when nothing is said.
fn default_out(experiment: &dyn Experiment) -> PathBuf {
    let date = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    format!(
        "trireme-bench-{}-{}",
        experiment.name(),
        date.replace(':', "")
    )
    .into()
}

/// Servers that run, and what they were started for.
struct Running<'a> {
    deployed: Deployed<'a>,
    setup: Setup,
    in_force: Option<InForce>,
}

impl Running<'_> {
    /// Measures a cell, and notes how often the groups of processes had to wait meanwhile.
    fn measure(
        &mut self,
        experiment: &dyn Experiment,
        cell: &Cell,
        measured: &mut Measured,
    ) -> Result<(), LabError> {
        let waited = |running: &Self| {
            let in_force = running.in_force.as_ref();
            in_force.map(|in_force| in_force.throttling(&running.deployed))
        };
        let before = waited(self);
        let result = experiment.measure(cell, &mut self.deployed, measured);
        if let (Some(in_force), Some(before)) = (&self.in_force, before) {
            in_force.note(&self.deployed, &before, measured);
        }
        result
    }
}

struct Runner<'a> {
    experiment: &'a dyn Experiment,
    systems: &'a [Box<dyn System>],
    facts: Vec<(String, String)>,
    shares: Option<Shares>,
    running: Option<Running<'a>>,
    stop_at: Option<Instant>,
    dir: PathBuf,
    _lock: File,
}

impl<'a> Runner<'a> {
    fn new(
        experiment: &'a dyn Experiment,
        systems: &'a [Box<dyn System>],
        options: &FrameOptions,
    ) -> Result<Self, LabError> {
        let lock = lock()?;
        let dir = work_dir().join("lab");
        Cluster::clear(&dir)?;
        enough(experiment)?;
        let shares = options.cpu_per_node.map(Shares::new);
        let mut facts = facts::machine();
        if let Some(shares) = &shares {
            shares.check()?;
            line(&shares.line());
            facts.push(("processor time of a node".to_string(), shares.text()));
        }
        Ok(Self {
            experiment,
            systems,
            facts,
            shares,
            running: None,
            stop_at: options
                .minutes
                .map(|minutes| Instant::now() + Duration::from_secs(60 * minutes)),
            dir,
            _lock: lock,
        })
    }

    /// Runs all cells, those included that follow from the records of others.
    fn run_all(&mut self, absent: &[Absent], notebook: &mut Notebook) -> Result<(), LabError> {
        let mut known = 0;
        loop {
            let cells = known_cells(self.experiment, absent, notebook);
            if cells.iter().all(|cell| notebook.has(cell)) {
                return Ok(());
            }
            if known > 0 {
                let further = cells.len() - known;
                line(&format!("{further} further measurements follow from these"));
            }
            known = cells.len();
            if !self.run_cells(&cells, notebook)? {
                return Ok(());
            }
        }
    }

    /// Runs the cells that have not been measured yet; false if the minutes are over before.
    fn run_cells(&mut self, cells: &[Cell], notebook: &mut Notebook) -> Result<bool, LabError> {
        let mut progress = Progress::new(self.experiment, cells, notebook);
        for (i, cell) in cells.iter().enumerate() {
            if notebook.has(cell) {
                continue;
            }
            interrupt::check()?;
            if self.stop_at.is_some_and(|end| Instant::now() > end) {
                line("the minutes are over; --resume goes on");
                return Ok(false);
            }
            let setup = self.experiment.setup(cell);
            let mut measured = Measured::default();
            let result = self.prepare(cell, &setup, notebook).and_then(|()| {
                match &mut self.running {
                    Some(running) => running.measure(self.experiment, cell, &mut measured),
                    // `prepare` has succeeded, so there is one.
                    None => Err(LabError::Client),
                }
            });
            let headline = self.experiment.headline(cell);
            let shown = measured.figures.get(headline).copied().unwrap_or(0.0);
            notebook.keep(Record {
                cell: cell.clone(),
                complete: result.is_ok(),
                note: result.as_ref().err().map(one_line).unwrap_or_default(),
                date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
                commit: facts::COMMIT.to_string(),
                measured,
            })?;
            result?;
            progress.done(cell);
            line(&format!(
                "[{}/{}] {cell}: {shown:.0} {headline}; {} left",
                i + 1,
                cells.len(),
                progress.left()
            ));
        }
        Ok(true)
    }

    /// Has the servers of a cell running.
    fn prepare(
        &mut self,
        cell: &Cell,
        setup: &Setup,
        notebook: &mut Notebook,
    ) -> Result<(), LabError> {
        if let Some(running) = &self.running {
            if running.deployed.system().name() == cell.system && running.setup == *setup {
                return Ok(());
            }
        }
        if let Some(Running {
            deployed, in_force, ..
        }) = self.running.take()
        {
            drop(in_force);
            deployed.end()?;
        }
        let system = self.systems.iter().find(|s| s.name() == cell.system);
        let system =
            system.ok_or_else(|| LabError::System(SystemError::Unknown(cell.system.clone())))?;
        let mut settings = Settings::new(&self.dir, setup.nodes, None);
        settings.template = Some(self.experiment.template(cell, system.server())?);
        settings.mariadbd_args = setup.arguments.clone();
        self.experiment.configure(cell, &mut settings);
        let mut deployed = Deployed::start(system.as_ref(), setup.durability, settings)?;
        let name = format!("{}, {:?} durability", cell.system, setup.durability).to_lowercase();
        if !notebook.settings().contains_key(&name) {
            let shares = self.shares.map(|shares| shares.line() + "\n");
            let text = format!(
                "{}\n{}\n{}\n{}",
                facts::versions(&deployed),
                system.about(),
                shares.unwrap_or_default(),
                deployed.settings_text()
            );
            line(&format!(
                "{name}: {}; {}\n  {}",
                facts::versions(&deployed),
                system.about(),
                setup.arguments.join(" ")
            ));
            notebook.note_settings(name, text)?;
        }
        let in_force = match self.shares {
            Some(shares) => Some(InForce::begin(shares, &mut deployed)?),
            None => None,
        };
        self.running = Some(Running {
            deployed,
            setup: setup.clone(),
            in_force,
        });
        Ok(())
    }

    /// Ends the servers and removes their data; after a failure their logs stay, and this says where.
    fn end(&mut self, failed: bool) -> String {
        // Dropping it kills the servers.
        drop(self.running.take());
        if failed && self.dir.exists() {
            return format!("; logs: {}/node*/error.log", self.dir.display());
        }
        // What cannot be cleared now is cleared by the next run.
        let _ = Cluster::clear(&self.dir);
        String::new()
    }
}

/// Only one measurement at a time on this machine.
fn lock() -> Result<File, LabError> {
    make_private_dir(&work_dir())?;
    let path = work_dir().join("lab.lock");
    let file = File::create(&path).map_err(LabError::io(&path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(LabError::Busy(path)),
        Err(error) => Err(LabError::io(&path)(error.into())),
    }
}

/// Fails before anything starts if memory or disk will not do.
fn enough(experiment: &dyn Experiment) -> Result<(), LabError> {
    let (memory, disk) = experiment.needs_mib();
    let too_little = |what: String, needed_mib, free_mib, remedy| LabError::TooLittle {
        what,
        needed_mib,
        free_mib,
        remedy,
    };
    let free = facts::free_memory_mib();
    if free < memory {
        let remedy = "end other programs, or take a smaller --preset";
        return Err(too_little("memory".to_string(), memory, free, remedy));
    }
    let dir = work_dir();
    let stat = statvfs(&dir).map_err(|error| LabError::io(&dir)(error.into()))?;
    let free = (stat.f_bavail * stat.f_frsize) >> 20;
    if free < disk {
        let what = format!("disk at {}", dir.display());
        let remedy = "make room, or set TMPDIR to another directory";
        return Err(too_little(what, disk, free, remedy));
    }
    Ok(())
}

fn one_line(error: &LabError) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().to_string()
}
