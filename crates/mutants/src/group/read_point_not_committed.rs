//! A reader is told of a position that is not committed (rule 17).
//!
//! A majority's log ends may lie in a suffix that is in few logs. If the next leader does not have it, the order may not get
//! as far again for long: the read waits until its timeout, although everything that it has to see is there.

pub(crate) const MISTAKE: &str = "a reader is told of a position that is not committed (rule 17)";
