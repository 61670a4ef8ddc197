//! Helpers for the tests of several experiments.

use clap::{ArgMatches, Args, Command};

use super::record::{Cell, Measured, Record};

/// Parses these arguments of a command.
pub fn parse<A: Args>(arguments: &[&str]) -> Result<A, clap::Error> {
    let command = A::augment_args(Command::new("x"));
    let matches: ArgMatches = command.try_get_matches_from(["x"].iter().chain(arguments))?;
    A::from_arg_matches(&matches)
}

/// Makes the cell of a system at a point.
pub fn cell<L: ToString>(
    system: &str,
    factors: impl IntoIterator<Item = (&'static str, L)>,
    repetition: u32,
) -> Cell {
    let factors = factors.into_iter();
    Cell {
        system: system.to_string(),
        factors: factors
            .map(|(factor, level)| (factor.to_string(), level.to_string()))
            .collect(),
        repetition,
    }
}

/// Makes a complete record with these figures, and without seconds.
pub fn record<N: Into<String>>(cell: Cell, figures: impl IntoIterator<Item = (N, f64)>) -> Record {
    let figures = figures.into_iter();
    Record {
        cell,
        complete: true,
        note: String::new(),
        date: String::new(),
        commit: String::new(),
        part: None,
        measured: Measured {
            figures: figures.map(|(name, value)| (name.into(), value)).collect(),
            per_second: Vec::new(),
        },
    }
}
