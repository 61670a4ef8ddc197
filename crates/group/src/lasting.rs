//! The facts that a process hands from one connection to the next, whatever its disk keeps of them.

use std::collections::BTreeSet;

use crate::ids::{Ballot, SubmissionId};

/// Handed from one connection of a process to the next ([`crate::Group::lasting`], [`crate::Recovered`]). It dies with the
/// process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Lasting {
    /// The last promised ballot, be it on disk or not.
    pub(crate) promised: Ballot,
    /// Submissions that clients were told have failed for certain, under names that the view in force may still seat (rule 7).
    pub(crate) withdrawn: BTreeSet<SubmissionId>,
}
