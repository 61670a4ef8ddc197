//! An open pre-vote does not ask an elector that connects, and a back-off is not cut short (rule 2).
//!
//! When links heal after a long loss of the majority, the cluster waits up to 10 s more.

pub(crate) const MISTAKE: &str =
    "an elector that connects is not asked by an open pre-vote, and ends no back-off (rule 2)";
