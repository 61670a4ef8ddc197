//! Claims of the articles, and the verdicts on them. Verdicts are computed from the raw data only.

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
