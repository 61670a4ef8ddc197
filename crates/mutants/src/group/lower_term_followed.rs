//! A member follows a leader whose term is below its promise (rule 1).
//!
//! A member that has promised a term must not follow any lower term: else the old leader and the new one both find a
//! majority.

pub(crate) const MISTAKE: &str =
    "a leader of a term below the promised one is followed (rule 1)";
