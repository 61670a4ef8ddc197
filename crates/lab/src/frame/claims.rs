//! Claims of the articles, and verdicts on them computed from the raw data.

/// Whether a claim was reproduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Yes.
    Holds,
    /// No.
    Fails,
    /// The repetitions differ too much to tell.
    Open,
    /// There are no data.
    NotMeasured,
}

/// The answer for one system, with the data behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether.
    pub state: State,
    /// Why.
    pub evidence: String,
}

impl Verdict {
    /// The answer in words.
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

/// A claim and what was found here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The article's claim.
    pub text: String,
    /// On Galera, here.
    pub galera: Verdict,
    /// On Trireme.
    pub trireme: Verdict,
}

impl Claim {
    /// A claim on each system by itself.
    pub fn of(text: &str, verdict: impl Fn(&'static str) -> Verdict) -> Self {
        Self {
            text: text.to_string(),
            galera: verdict("galera"),
            trireme: verdict("trireme"),
        }
    }
}
