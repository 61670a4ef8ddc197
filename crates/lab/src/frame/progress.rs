//! Estimates the time that cells take, and the time that is left in a run.

use std::time::{Duration, Instant};

use super::experiment::Experiment;
use super::ground::Ground;
use super::record::Cell;

/// The assumed time for the start of a cell's system, in seconds: a guess.
const START_SECONDS: f64 = 8.0;

/// The work done and left, in the experiment's estimates; the real times of the cells correct them.
pub struct Progress<'a, G: Ground> {
    experiment: &'a dyn Experiment<G>,
    left: f64,
    done: f64,
    began: Instant,
    /// Whether cells may follow that are not known yet.
    goes_on: bool,
}

impl<'a, G: Ground> Progress<'a, G> {
    /// Begins with no cells.
    pub fn new(experiment: &'a dyn Experiment<G>) -> Self {
        Self {
            experiment,
            left: 0.0,
            done: 0.0,
            began: Instant::now(),
            goes_on: false,
        }
    }

    /// From now on these cells are left. `goes_on`: others may follow from them.
    pub fn set_left<'c>(&mut self, cells: impl Iterator<Item = &'c Cell>, goes_on: bool) {
        self.left = self.estimates(cells);
        self.goes_on = goes_on;
    }

    fn estimates<'c>(&self, cells: impl Iterator<Item = &'c Cell>) -> f64 {
        let estimate = |cell| self.experiment.estimate_seconds(cell) + START_SECONDS;
        cells.map(estimate).sum()
    }

    /// Counts a cell as done.
    pub fn done(&mut self, cell: &Cell) {
        let estimate = self.estimates(std::iter::once(cell));
        self.done += estimate;
        self.left -= estimate;
    }

    /// The time that these cells are expected to take.
    pub fn expected<'c>(&self, cells: impl Iterator<Item = &'c Cell>) -> Duration {
        Duration::from_secs_f64(self.estimates(cells) * self.pace())
    }

    /// The real time for each second of the estimates.
    fn pace(&self) -> f64 {
        match self.done > 0.0 {
            true => self.began.elapsed().as_secs_f64() / self.done,
            false => 1.0,
        }
    }

    /// The time for the remaining cells, as text.
    pub fn left(&self) -> String {
        let seconds = (self.left * self.pace()).max(0.0) as u64;
        let time = match seconds {
            0..=99 => format!("{seconds} s"),
            100..=5999 => format!("{} min", seconds.div_ceil(60)),
            _ => format!("{:.1} h", seconds as f64 / 3600.0),
        };
        match self.goes_on {
            true => format!("{time} left for the known measurements"),
            false => format!("{time} left"),
        }
    }
}
