//! The frame: everything that all experiments need.
//!
//! An [`Experiment`] names its cells (a system at a point, once per repetition) in the order in which they run, and
//! measures one at a time. The frame starts and ends the systems ([`Servers`], or another [`Ground`]) and shows the
//! time left. It stores each cell's raw data at once, continues where an earlier run ended, and writes CSV, JSON and
//! one HTML report.

mod busy;
mod chart;
mod claims;
mod compare;
mod disk;
mod error;
mod experiment;
mod facts;
mod faster;
#[cfg(test)]
pub(crate) mod fixtures;
mod ground;
mod html;
mod logs;
mod machine;
mod markdown;
mod notebook;
mod options;
mod paces;
mod page;
mod progress;
mod record;
mod report;
mod runner;
mod servers;
mod shares;
mod shown;

pub use chart::{Axis, Chart, Point, Series, number};
pub use claims::{Claim, State, Verdict};
pub use compare::{By, Comparison, Side, Wanted, judge, paired_ratios, ratios};
pub use error::LabError;
pub use experiment::{Experiment, Table};
pub use facts::{libraries, library, versions};
pub use faster::faster_everywhere;
pub use ground::{Description, Ground};
pub use options::{FrameOptions, Preset, choices};
pub use record::{
    Cell, Measured, NOT_MEASURED, Record, measured_points, planned_points, several_builds, values,
};
pub use report::Absent;
pub use runner::run;
pub use servers::{Found, Servers, Setup, find_systems, sort_out};
pub use shown::{BRACKETS, Place, beside_galera, shown, shown_ratio};
