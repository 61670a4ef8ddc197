//! The choices that every experiment offers to the user.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::LabError;
use super::notebook::Notebook;
use super::shares::Shares;

/// The size of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// Minutes: shows that the experiment works, but measures little.
    Quick,
    /// Hours: scaled to this machine, three repetitions.
    Box,
    /// The article's own parameters.
    Article,
}

impl Preset {
    /// The systems of a plan that names none: `all`, of which a quick pass measures only the first `quick`.
    pub fn systems(self, all: &'static [&'static str], quick: usize) -> &'static [&'static str] {
        match self {
            Self::Quick => &all[..quick],
            Self::Box | Self::Article => all,
        }
    }
}

/// The choices that every experiment offers to the user.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
pub struct FrameOptions {
    /// The systems to compare [default: the experiment's]; NAME=PROVIDER_PATH is one under that wsrep provider.
    #[arg(long, value_delimiter = ',')]
    pub systems: Vec<String>,
    /// Whether the user named no systems: then a system that is not installed is a row of the report, not an error.
    #[arg(skip)]
    #[serde(default)]
    pub systems_by_default: bool,
    /// A pass of minutes over everything; the same as --preset quick.
    #[arg(long, conflicts_with = "preset")]
    pub quick: bool,
    /// The size of the measurement.
    #[arg(long, value_enum, default_value = "box")]
    pub preset: Preset,
    /// Measurements of each system at each point [default: the preset's].
    #[arg(long, alias = "pairs", value_parser = clap::value_parser!(u32).range(1..))]
    pub repetitions: Option<u32>,
    /// Processors for each node, in a control group of its own; the clients have the rest (needs root) [default: no
    /// limit].
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub cpu_per_node: Option<f64>,
    /// The directory of the results [default: trireme-bench-EXPERIMENT-DATE].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Continue the run in this directory, with its own choices.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["systems", "quick", "preset", "repetitions", "cpu_per_node", "out", "provider"])]
    #[serde(skip)]
    pub resume: Option<PathBuf>,
    /// Begin no repetition that would end after this time, except the first one; --resume continues.
    #[arg(long, value_name = "N")]
    #[serde(skip)]
    pub minutes: Option<u64>,
    /// The provider called trireme [default: libtrireme.so beside this program].
    #[arg(long, value_name = "PATH")]
    pub provider: Option<PathBuf>,
}

impl FrameOptions {
    /// The preset in force.
    pub fn preset(&self) -> Preset {
        if self.quick {
            Preset::Quick
        } else {
            self.preset
        }
    }

    /// The measurements of each system at each point.
    pub fn repetitions(&self) -> u32 {
        let preset = if self.preset() == Preset::Quick { 1 } else { 3 };
        self.repetitions.unwrap_or(preset)
    }

    /// Fails, with the remedy, if `nodes` nodes with their shares of the processors leave too little to the clients.
    pub fn check_nodes(&self, nodes: usize) -> Result<(), LabError> {
        match self.cpu_per_node {
            Some(per_node) => Shares::new(per_node).of_clients(nodes).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Makes the paths of libraries absolute: a run may continue from another directory.
    pub fn make_absolute(&mut self) {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or(path.to_path_buf());
        self.provider = self.provider.as_deref().map(absolute);
        for system in &mut self.systems {
            if let Some((name, path)) = system.split_once('=') {
                *system = format!("{name}={}", absolute(Path::new(path)).display());
            }
        }
    }

    /// Fills in the article's systems if the user chose none.
    pub fn default_systems(&mut self, systems: &[&str]) {
        if self.systems.is_empty() {
            self.systems_by_default = true;
            self.systems = systems.iter().map(|name| name.to_string()).collect();
        }
    }
}

/// The choices of a run of `experiment`: the user's, or with --resume those of the continued run. `frame` returns the
/// part that every experiment has. If the user chose no systems, `systems` are measured.
pub fn choices<P: Clone + DeserializeOwned>(
    chosen: &P,
    experiment: &str,
    systems: &[&str],
    frame: impl Fn(&mut P) -> &mut FrameOptions,
) -> Result<P, LabError> {
    let mut plan = chosen.clone();
    frame(&mut plan).make_absolute();
    let FrameOptions {
        resume, minutes, ..
    } = frame(&mut plan).clone();
    if let Some(dir) = &resume {
        plan = Notebook::plan(dir, experiment)?;
        let earlier = frame(&mut plan);
        (earlier.resume, earlier.minutes) = (resume, minutes);
    }
    frame(&mut plan).default_systems(systems);
    Ok(plan)
}

/// Parses a share of the processors. The kernel gives at least 1 ms of a period of 5 ms.
fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.2..=64.0).contains(&share) => Ok(share),
        _ => Err("give a number of processors, at least 0.2".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::fixtures;

    fn parse(arguments: &[&str]) -> Result<FrameOptions, clap::Error> {
        fixtures::parse(arguments)
    }

    #[test]
    fn shares_are_numbers_that_the_kernel_takes() {
        let parse = |share: &str| parse(&["--cpu-per-node", share]);
        assert_eq!(parse("0.25").unwrap().cpu_per_node, Some(0.25));
        for bad in ["0.1", "NaN", "half", "inf"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn too_many_nodes_are_refused_before_anything_starts() {
        let shared = parse(&["--cpu-per-node", "0.25"]).unwrap();
        assert!(shared.check_nodes(100_000).is_err());
        assert!(parse(&[]).unwrap().check_nodes(100_000).is_ok());
    }

    #[test]
    fn a_run_that_goes_on_takes_no_other_choices() {
        assert!(parse(&["--resume", "d", "--minutes", "5"]).is_ok());
        for other in [["--provider", "p"], ["--systems", "s"], ["--out", "o"]] {
            assert!(parse(&[&["--resume", "d"][..], &other].concat()).is_err());
        }
    }

    #[test]
    fn a_plan_of_earlier_has_no_shares() {
        let options = parse(&["--pairs", "5"]).unwrap();
        assert_eq!(options.repetitions(), 5);
        let mut text = serde_json::to_value(options).unwrap();
        text.as_object_mut().unwrap().remove("cpu_per_node");
        let again: FrameOptions = serde_json::from_value(text).unwrap();
        assert_eq!(again.cpu_per_node, None);
    }

    #[test]
    fn a_run_that_goes_on_has_the_choices_that_it_began_with() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let options = |arguments: &[&str]| parse(arguments).unwrap();
        let begun = options(&["--systems", "a", "--repetitions", "7"]);
        Notebook::create(&out, "toy", &begun).unwrap();
        let path = out.to_str().unwrap();
        let chosen = options(&["--resume", path, "--minutes", "5"]);
        let choices = |chosen: &FrameOptions, name| choices(chosen, name, &["b"], |plan| plan);
        let goes_on = choices(&chosen, "toy").unwrap();
        assert_eq!(
            (goes_on.systems, goes_on.repetitions),
            (vec!["a".to_string()], Some(7))
        );
        assert_eq!(
            (goes_on.resume, goes_on.minutes),
            (Some(out.clone()), Some(5))
        );
        assert!(choices(&chosen, "another").is_err());
        let new = choices(&options(&[]), "toy").unwrap();
        assert_eq!(
            (new.systems, new.systems_by_default),
            (vec!["b".to_string()], true)
        );
    }

    #[test]
    fn libraries_of_a_plan_are_absolute() {
        let arguments = ["--systems", "galera,old=x/lib.so", "--provider", "y/lib.so"];
        let options = parse(&arguments).unwrap();
        let chosen = choices(&options, "toy", &[], |plan| plan).unwrap();
        let here = std::env::current_dir().unwrap();
        assert_eq!(chosen.provider, Some(here.join("y/lib.so")));
        let old = format!("old={}/x/lib.so", here.display());
        assert_eq!(chosen.systems, ["galera".to_string(), old]);
    }
}
