//! The result of a check: outcome, text and remedy.

use serde::Serialize;

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// All is well.
    Ok,
    /// The check could not be made; the text says why.
    Unknown,
    /// It works today, but costs something or will do harm one day.
    Warning,
    /// It does harm now, or will at the next failure.
    Failed,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) outcome: Outcome,
    pub(crate) text: String,
    pub(crate) remedy: String,
}

impl Finding {
    pub(crate) fn ok(text: impl Into<String>) -> Self {
        Self::new(Outcome::Ok, text, "")
    }

    pub(crate) fn unknown(why: impl Into<String>) -> Self {
        Self::new(Outcome::Unknown, why, "")
    }

    pub(crate) fn warning(text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Outcome::Warning, text, remedy)
    }

    pub(crate) fn failed(text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Outcome::Failed, text, remedy)
    }

    /// The same finding, with this remedy.
    pub(crate) fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: remedy.into(),
            ..self
        }
    }

    fn new(outcome: Outcome, text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            outcome,
            text: text.into(),
            remedy: remedy.into(),
        }
    }
}
