//! Claims of the articles, and the verdicts on them. Verdicts are computed from the raw data only.

use super::record::{Record, several_builds};

/// Whether a claim was reproduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The data show the claim.
    Holds,
    /// The data contradict the claim.
    Fails,
    /// The repetitions differ too much to tell.
    Open,
    /// There are no data.
    NotMeasured,
}

/// The verdict for one system, with the data behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the claim was reproduced.
    pub state: State,
    /// The evidence.
    pub evidence: String,
}

impl Verdict {
    /// Leaves the verdict open if the records behind it, whose figures it mixes, are of several builds.
    pub fn of_one_build<'a>(self, records: impl IntoIterator<Item = &'a Record>) -> Self {
        match (several_builds(records), self.state) {
            (None, _) | (_, State::NotMeasured) => self,
            (Some(builds), _) => Self {
                state: State::Open,
                evidence: format!("{}; mixes {builds}", self.evidence),
            },
        }
    }

    /// The verdict in words.
    pub fn text(&self) -> String {
        let word = match self.state {
            State::Holds => "yes",
            State::Fails => "no",
            State::Open => "not settled",
            State::NotMeasured => "not measured",
        };
        format!("{word}: {}", self.evidence)
    }
}

/// A claim, with the verdicts on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The article's claim.
    pub text: String,
    /// The verdict on Galera on this machine.
    pub galera: Verdict,
    /// The verdict on Trireme.
    pub trireme: Verdict,
}

impl Claim {
    /// Judges a claim on each system by itself.
    pub fn of(text: &str, verdict: impl Fn(&'static str) -> Verdict) -> Self {
        Self {
            text: text.to_string(),
            galera: verdict("galera"),
            trireme: verdict("trireme"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::fixtures;

    #[test]
    fn a_verdict_that_mixes_builds_is_open_and_names_them() {
        let record = |build: &str, complete| Record {
            commit: build.to_string(),
            complete,
            ..fixtures::record(fixtures::cell("a", [("c", 1)], 1), [("x", 1.0)])
        };
        let verdict = Verdict {
            state: State::Fails,
            evidence: "e".to_string(),
        };
        let of_one = [
            record("new", true),
            record("new", true),
            record("old", false),
        ];
        assert_eq!(verdict.clone().of_one_build(&of_one), verdict);
        let mixed = verdict.of_one_build(&[record("new", true), record("old", true)]);
        assert_eq!(mixed.state, State::Open);
        assert_eq!(mixed.evidence, "e; mixes cells of builds new, old");
    }
}
