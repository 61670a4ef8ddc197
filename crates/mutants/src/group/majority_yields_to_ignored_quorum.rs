/// Mistake: a primary component yields to a node that has gone on alone because of `pc.ignore_quorum`, and drops its
/// own acknowledged commits.
pub(crate) const MISTAKE: &str = "a majority gives way to the override of a node that ignores the quorum";
