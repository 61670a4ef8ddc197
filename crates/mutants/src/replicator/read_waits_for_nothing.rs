//! A current read waits for a position that holds no entry yet (rule 17).
//!
//! If no client writes any more, the read ends only with the server's timeout.

pub(crate) const MISTAKE: &str =
    "a current read waits for a position that nothing has been ordered at (rule 17)";
