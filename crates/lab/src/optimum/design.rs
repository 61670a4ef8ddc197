//! The runs of the experiment, phase by phase. Pure: the next runs follow from the choices and the records.

use super::study::Study;
use crate::doe::{Factor, centre, corners, stars};
use crate::frame::{Cell, Record};

/// The factor with the phase of a cell.
pub const PHASE: &str = "phase";

/// The phase of a run: its purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Runs at the corners and the centre find the factors that matter.
    Screening,
    /// Further points for these factors.
    Surface,
    /// Runs at the maximum that the surface predicts.
    Confirmation,
}

impl Phase {
    /// The level of the factor `phase`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Screening => "1 screening",
            Self::Surface => "2 surface",
            Self::Confirmation => "3 confirmation",
        }
    }
}

/// One measurement of a system.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The phase.
    pub phase: Phase,
    /// The levels of the factors, in their order.
    pub levels: Vec<f64>,
    /// The number of the run among the runs of its phase at these levels, from 1.
    pub repetition: u32,
}

/// The variation of the factors.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    /// The factors.
    pub factors: Vec<Factor>,
    /// The systems that take turns.
    pub systems: Vec<String>,
    /// The runs at each corner, and at each point of the surface's phase.
    pub repetitions: u32,
    /// The runs at the centre in the screening.
    pub screening_centres: u32,
    /// The further runs at the centre in the surface's phase.
    pub surface_centres: u32,
    /// The runs at the predicted maximum.
    pub confirmations: u32,
    /// The seed for the random order of the runs.
    pub seed: u64,
}

impl Design {
    /// The runs of the screening, in random order.
    pub fn screening(&self) -> Vec<Run> {
        let points = corners(self.factors.len());
        self.shuffled(Phase::Screening, &points, self.screening_centres)
    }

    /// The runs of a surface that is curved in these factors, in random order.
    pub fn surface(&self, curved: &[usize]) -> Vec<Run> {
        let points = stars(self.factors.len(), curved);
        self.shuffled(Phase::Surface, &points, self.surface_centres)
    }

    /// The runs at the predicted maximum.
    pub fn confirmation(&self, levels: &[f64]) -> Vec<Run> {
        let runs = (1..=self.confirmations).map(|repetition| Run {
            phase: Phase::Confirmation,
            levels: levels.to_vec(),
            repetition,
        });
        runs.collect()
    }

    fn shuffled(&self, phase: Phase, points: &[Vec<f64>], centres: u32) -> Vec<Run> {
        let run = |point: &[f64], repetition: u32| Run {
            phase,
            levels: self.levels(point),
            repetition,
        };
        let mut runs: Vec<Run> = points
            .iter()
            .flat_map(|point| (1..=self.repetitions).map(|n| run(point, n)))
            .collect();
        let middle = centre(self.factors.len());
        runs.extend((1..=centres).map(|n| run(&middle, n)));
        let mut random = fastrand::Rng::with_seed(self.seed ^ ((phase as u64) << 32));
        random.shuffle(&mut runs);
        runs
    }

    /// The levels nearest to a coded point.
    fn levels(&self, point: &[f64]) -> Vec<f64> {
        let pairs = self.factors.iter().zip(point);
        pairs.map(|(factor, coded)| factor.level(*coded)).collect()
    }

    /// Converts levels to coded units.
    pub fn coded(&self, levels: &[f64]) -> Vec<f64> {
        let pairs = self.factors.iter().zip(levels);
        pairs.map(|(factor, level)| factor.coded(*level)).collect()
    }

    /// The factors' names.
    pub fn names(&self) -> Vec<&str> {
        self.factors.iter().map(Factor::name).collect()
    }

    /// The cell of a run of a system.
    pub fn cell(&self, system: &str, run: &Run) -> Cell {
        let levels = self.factors.iter().zip(&run.levels);
        let levels = levels.map(|(factor, level)| (factor.name().to_string(), level.to_string()));
        let phase = (PHASE.to_string(), run.phase.name().to_string());
        Cell {
            system: system.to_string(),
            factors: levels.chain([phase]).collect(),
            repetition: run.repetition,
        }
    }

    /// The cells of the screening. The systems take turns at each run.
    pub fn first_cells(&self) -> Vec<Cell> {
        let runs = self.screening();
        self.in_turns(self.systems.iter().map(|_| runs.clone()).collect())
    }

    /// The cells that follow from the records so far. Only a system's own records decide about its further runs.
    pub fn further_cells(&self, records: &[Record]) -> Vec<Cell> {
        let studies: Vec<Study> = self
            .systems
            .iter()
            .map(|system| Study::of(self, system, records))
            .collect();
        let surface = studies.iter().map(|study| match study.curved() {
            Some(curved) => self.surface(&curved),
            None => Vec::new(),
        });
        let confirmation = studies.iter().map(|study| match study.surface() {
            Some(surface) => self.confirmation(&surface.maximum.levels),
            None => Vec::new(),
        });
        let mut cells = self.in_turns(surface.collect());
        cells.extend(self.in_turns(confirmation.collect()));
        cells
    }

    /// Whether more cells may follow: some system has no surface yet.
    pub fn goes_on(&self, records: &[Record]) -> bool {
        let mut systems = self.systems.iter();
        systems.any(|system| Study::of(self, system, records).surface().is_none())
    }

    /// Lists one run of each system after the other.
    fn in_turns(&self, runs: Vec<Vec<Run>>) -> Vec<Cell> {
        let longest = runs.iter().map(Vec::len).max().unwrap_or(0);
        let mut cells = Vec::new();
        for n in 0..longest {
            for (system, runs) in self.systems.iter().zip(&runs) {
                cells.extend(runs.get(n).map(|run| self.cell(system, run)));
            }
        }
        cells
    }

    /// The number of points of a full grid.
    pub fn grid(&self) -> usize {
        self.factors.iter().map(|f| f.grid().len()).product()
    }
}
