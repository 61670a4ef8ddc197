//! Estimates the time that is left in a run.

use std::time::Instant;

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
}

impl<'a, G: Ground> Progress<'a, G> {
    /// Begins with all these cells left.
    pub fn new<'c>(
        experiment: &'a dyn Experiment<G>,
        cells: impl Iterator<Item = &'c Cell>,
    ) -> Self {
        let mut progress = Self {
            experiment,
            left: 0.0,
            done: 0.0,
            began: Instant::now(),
        };
        progress.left = cells.map(|cell| progress.estimate(cell)).sum();
        progress
    }

    fn estimate(&self, cell: &Cell) -> f64 {
        self.experiment.estimate_seconds(cell) + START_SECONDS
    }

    /// Counts a cell as done.
    pub fn done(&mut self, cell: &Cell) {
        let estimate = self.estimate(cell);
        self.done += estimate;
        self.left -= estimate;
    }

    /// The time for the remaining cells, as text.
    pub fn left(&self) -> String {
        let per_second = self.began.elapsed().as_secs_f64() / self.done.max(1.0);
        let seconds = (self.left * per_second).max(0.0) as u64;
        match seconds {
            0..=99 => format!("{seconds} s"),
            100..=5999 => format!("{} min", seconds.div_ceil(60)),
            _ => format!("{:.1} h", seconds as f64 / 3600.0),
        }
    }
}
