//! The time that is left.

use std::time::Instant;

use super::experiment::Experiment;
use super::ground::Ground;
use super::record::Cell;

/// Time for the system of a cell to start, until it is known: a guess.
const START_SECONDS: f64 = 8.0;

/// What is done and what is left, by the experiment's estimates corrected by the time that cells have taken.
pub struct Progress<'a, G: Ground> {
    experiment: &'a dyn Experiment<G>,
    left: f64,
    done: f64,
    began: Instant,
}

impl<'a, G: Ground> Progress<'a, G> {
    /// Nothing is done yet of these cells.
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

    /// A cell is done.
    pub fn done(&mut self, cell: &Cell) {
        let estimate = self.estimate(cell);
        self.done += estimate;
        self.left -= estimate;
    }

    /// The time for the others, as text.
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
