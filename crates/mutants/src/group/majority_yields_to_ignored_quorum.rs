/// Mistake: a primary component gives way to a node that has gone on alone because of `pc.ignore_quorum`, and drops what it has
/// acknowledged meanwhile.
pub(crate) const MISTAKE: &str = "a majority gives way to the override of a node that ignores the quorum";
