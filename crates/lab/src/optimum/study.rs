//! Evaluates the records of one system: effects, surface, maximum, confirmation. Pure.
//!
//! All of it is of the logarithm of the throughput: a factor multiplies the throughput, and runs scatter in proportion to
//! it. Reports convert the estimates back ([`Estimate::exp`], [`Estimate::percent`]).

use super::design::{Design, Run};
use crate::doe::{Estimate, Fit, LackOfFit, Maximum, Quadratic, Screening, quadratic};
use crate::frame::{Record, values};

/// The figure to maximise.
pub const THROUGHPUT: &str = "tps";

/// The verdict of the runs at the predicted maximum on the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// Their mean is within the predicted interval.
    Confirmed,
    /// Their mean is outside the predicted interval.
    ModelFailed,
    /// There is no interval, or some runs are missing.
    Open,
}

impl Confirmation {
    /// The verdict, in the report's words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::ModelFailed => "model failed",
            Self::Open => "not yet",
        }
    }
}

/// The fitted surface of a system, and the results from it. Heights are logarithms of transactions/s.
#[derive(Debug, Clone)]
pub struct Surface {
    /// The fit to the runs of screening and surface.
    pub fit: Fit,
    /// The test for lack of fit.
    pub lack: Option<LackOfFit>,
    /// The highest point of the surface.
    pub maximum: Maximum,
    /// The expected mean of the runs there.
    pub predicted: Estimate,
    /// The results of these runs.
    pub confirming: Vec<f64>,
    /// Whether these runs confirm the model.
    pub confirmation: Confirmation,
    complete: bool,
}

impl Surface {
    /// The surface as a polynomial.
    pub fn quadratic(&self) -> Quadratic {
        let factors = self.maximum.levels.len();
        Quadratic::new(factors, self.fit.terms(), self.fit.coefficients())
    }

    /// The geometric mean of the confirming runs, in transactions/s.
    pub fn confirmed_mean(&self) -> Option<f64> {
        mean(&self.confirming).map(f64::exp)
    }

    /// Whether all confirming runs have been measured.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// The objection from the surface's misses; None if they do not exceed the differences between runs at the same
    /// point.
    pub fn misfit(&self) -> Option<&'static str> {
        let lacks = self.lack.is_some_and(|lack| lack.is_significant());
        lacks.then_some("the surface shows a lack of fit")
    }

    /// The reason not to believe the surface; None if there is no objection.
    pub fn doubt(&self) -> Option<&'static str> {
        match self.confirmation {
            Confirmation::ModelFailed => {
                Some("model failed: the confirming runs are outside of its interval")
            }
            _ => self.misfit(),
        }
    }
}

/// The results of one system.
pub struct Study {
    screening: Option<Screening>,
    surface: Option<Surface>,
    runs: usize,
}

impl Study {
    /// Evaluates the records of a system as far as they go. A phase counts only if all its runs have been measured.
    pub fn of(design: &Design, system: &str, records: &[Record]) -> Self {
        let screening_runs = design.screening();
        let mut study = Self {
            screening: None,
            surface: None,
            runs: records
                .iter()
                .filter(|r| r.complete && r.cell.system == system)
                .count(),
        };
        let measured = |runs: &[Run]| measured(design, system, runs, records);
        let Some((points, tps)) = complete(measured(&screening_runs), &screening_runs) else {
            return study;
        };
        // This cannot fail, here and below: the designs determine all coefficients.
        study.screening = Screening::of(design.factors.len(), points.clone(), tps.clone()).ok();
        let Some(curved) = study.curved() else {
            return study;
        };
        let surface_runs = design.surface(&curved);
        let Some(further) = complete(measured(&surface_runs), &surface_runs) else {
            return study;
        };
        let terms = quadratic(design.factors.len(), &curved);
        let (points, tps) = ([points, further.0].concat(), [tps, further.1].concat());
        if let Ok(fit) = Fit::of(terms, points, tps) {
            let maximum = Maximum::of(&fit, &design.factors);
            let (_, confirming) = measured(&design.confirmation(&maximum.levels));
            study.surface = Some(surface(design, fit, maximum, confirming));
        }
        study
    }

    /// The screening; None until it is over.
    pub fn screening(&self) -> Option<&Screening> {
        self.screening.as_ref()
    }

    /// The factors in which the surface is curved; None until the screening is over.
    pub fn curved(&self) -> Option<Vec<usize>> {
        self.screening.as_ref().map(Screening::curved)
    }

    /// The surface; None until its runs are over.
    pub fn surface(&self) -> Option<&Surface> {
        self.surface.as_ref()
    }

    /// The number of complete runs in all phases.
    pub fn runs(&self) -> usize {
        self.runs
    }
}

fn surface(design: &Design, fit: Fit, maximum: Maximum, confirming: Vec<f64>) -> Surface {
    let predicted = fit.prediction(&maximum.point, design.confirmations);
    let all = confirming.len() == design.confirmations as usize;
    let confirmation = match (predicted.interval, mean(&confirming)) {
        (Some(_), Some(mean)) if all && predicted.excludes(mean) => Confirmation::ModelFailed,
        (Some(_), Some(_)) if all => Confirmation::Confirmed,
        _ => Confirmation::Open,
    };
    Surface {
        lack: fit.lack_of_fit(),
        fit,
        maximum,
        predicted,
        confirming,
        confirmation,
        complete: all,
    }
}

/// None without values.
fn mean(values: &[f64]) -> Option<f64> {
    let n = values.len();
    (n > 0).then(|| values.iter().sum::<f64>() / n as f64)
}

/// The coded points of the measured runs, and the logarithms of their throughputs. A run without a transaction has none,
/// and counts as not measured.
fn measured(
    design: &Design,
    system: &str,
    runs: &[Run],
    records: &[Record],
) -> (Vec<Vec<f64>>, Vec<f64>) {
    let pairs = runs.iter().filter_map(|run| {
        let cell = design.cell(system, run);
        let found = values(records, system, THROUGHPUT, |known| *known == cell);
        let tps = found.into_iter().find(|tps| *tps > 0.0)?;
        Some((design.coded(&run.levels), tps.ln()))
    });
    pairs.unzip()
}

fn complete(
    measured: (Vec<Vec<f64>>, Vec<f64>),
    runs: &[Run],
) -> Option<(Vec<Vec<f64>>, Vec<f64>)> {
    (measured.1.len() == runs.len()).then_some(measured)
}
