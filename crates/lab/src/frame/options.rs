//! What the user chooses about any experiment.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// Minutes: shows that it works, measures little.
    Quick,
    /// Hours: scaled to this machine, three repetitions.
    Box,
    /// The article's own parameters.
    Article,
}

/// What the user chooses about any experiment.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
pub struct FrameOptions {
    /// What to compare.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "plain,semisync,galera,trireme"
    )]
    pub systems: Vec<String>,
    /// Servers of each system that replicates [default: the article's].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub nodes: Option<u16>,
    /// A pass of minutes over everything; the same as --preset quick.
    #[arg(long, conflicts_with = "preset")]
    pub quick: bool,
    /// How much is measured.
    #[arg(long, value_enum, default_value = "box")]
    pub preset: Preset,
    /// Measurements of each system at each point [default: the preset's].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub repetitions: Option<u32>,
    /// Where results go [default: trireme-bench-EXPERIMENT-DATE].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with the run in this directory, with its own choices.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["systems", "nodes", "quick", "preset", "repetitions", "out"])]
    #[serde(skip)]
    pub resume: Option<PathBuf>,
    /// End after this time; --resume goes on.
    #[arg(long, value_name = "N")]
    #[serde(skip)]
    pub minutes: Option<u64>,
    /// The provider called trireme [default: libtrireme.so beside this program].
    #[arg(long, value_name = "PATH")]
    pub provider: Option<PathBuf>,
}

impl FrameOptions {
    /// The preset that was chosen.
    pub fn preset(&self) -> Preset {
        if self.quick {
            Preset::Quick
        } else {
            self.preset
        }
    }
}
