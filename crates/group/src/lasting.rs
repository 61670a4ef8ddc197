//! The facts that a process hands from one connection to the next, even if they are not on its disk.

use std::collections::BTreeSet;

use crate::ids::{SubmissionId, Term};

/// The facts that one connection of a process hands to the next ([`crate::Group::lasting`], [`crate::Recovered`]). They
/// die with the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Lasting {
    /// The promised term, on disk or not.
    pub(crate) promised: Term,
    /// Submissions whose clients were told of a certain failure, under incarnations that the view in force may still
    /// list (rule 7).
    pub(crate) withdrawn: BTreeSet<SubmissionId>,
}
