//! `trireme doctor`: the faults of a cluster, present and coming, each with its remedy.
//!
//! [`collect`] asks the nodes and examines this machine. The [`checks`] judge the collected facts, and are pure.

mod checks;
mod collect;
mod facts;
mod finding;
mod host;
mod outages;
mod sst;
mod statement;
#[cfg(test)]
mod tests;

use serde::Serialize;
use trireme_agent::Login;

use crate::refusal::Refusal;
use crate::text;
use facts::Facts;
pub use finding::Outcome;

/// The report of `trireme doctor`; `--json` prints it as it is. Within a version, fields are only added.
#[derive(Debug, Serialize)]
pub struct DoctorReport {
    version: u32,
    checks: Vec<Check>,
}

/// One check and its result.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    result: Outcome,
    text: String,
    remedy: String,
}

impl DoctorReport {
    /// Examines the cluster of the server that `login` names.
    pub fn examine(login: &Login) -> Result<Self, Refusal> {
        Ok(Self::of(&collect::collect(login)?))
    }

    fn of(facts: &Facts) -> Self {
        let checks = checks::CHECKS.iter().map(|(name, run)| {
            let finding = run(facts);
            Check {
                name,
                result: finding.outcome,
                text: finding.text,
                remedy: finding.remedy,
            }
        });
        Self {
            version: 1,
            checks: checks.collect(),
        }
    }

    /// Whether a check has failed.
    pub fn has_failed(&self) -> bool {
        self.checks
            .iter()
            .any(|check| check.result == Outcome::Failed)
    }

    /// The report as text for a terminal: first the failed checks, then the warnings, then the unknown ones. Passed
    /// checks are counted, or listed if `all`.
    pub fn text(&self, all: bool) -> String {
        let mut out = String::new();
        let of = |outcome| {
            self.checks
                .iter()
                .filter(move |check| check.result == outcome)
        };
        for (outcome, word) in [
            (Outcome::Failed, "FAILED"),
            (Outcome::Warning, "warning"),
            (Outcome::Unknown, "unknown"),
        ] {
            for check in of(outcome) {
                out += &text::wrapped(
                    &format!("{word} {}: {}", check.name, text::shown_words(&check.text)),
                    8,
                );
                if !check.remedy.is_empty() {
                    out += &text::wrapped(&format!("        -> {}", check.remedy), 11);
                }
            }
        }
        if all {
            for check in of(Outcome::Ok) {
                out += &text::wrapped(
                    &format!("ok      {}: {}", check.name, text::shown_words(&check.text)),
                    8,
                );
            }
        }
        let count = |outcome| of(outcome).count();
        out += &format!(
            "{} checks: {} failed, {} warnings, {} unknown, {} ok{}\n",
            self.checks.len(),
            count(Outcome::Failed),
            count(Outcome::Warning),
            count(Outcome::Unknown),
            count(Outcome::Ok),
            if all { "" } else { " (all of them: --all)" },
        );
        out
    }
}
