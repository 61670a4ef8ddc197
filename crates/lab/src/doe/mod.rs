//! Design of experiments: few runs at chosen points, a quadratic surface through them, and its maximum.
//!
//! Pure code. Factors with their ranges come in, and later the values measured at the points of the design. Out go the
//! points to measure, effects, a fitted surface with its test for lack of fit, and the maximum within the ranges.
//! Points are in coded units: -1 and 1 are the ends of a factor's range. The methods are those of Montgomery, "Design
//! and Analysis of Experiments": fractional factorials, face-centred central composites, least squares.

mod designs;
mod factor;
mod fit;
mod maximum;
mod screening;
mod surface;
mod term;

#[cfg(test)]
mod rates;
#[cfg(test)]
mod testing;

pub use designs::{MAX_FACTORS, aliases, centre, corners, stars};
pub use factor::{Factor, FactorError, Scale};
pub use fit::{Estimate, Fit, FitError, LackOfFit, percent};
pub use maximum::{Maximum, Place};
pub use screening::{Effect, MAX_CURVED, Screening};
pub use surface::{Quadratic, Stationary, StationaryKind};
pub use term::{Term, quadratic};
