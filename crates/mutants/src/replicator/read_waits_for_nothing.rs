//! A current read waits for a position that nothing has been ordered at (rule 17).
//!
//! Where nobody writes any more it ends with the server's timeout only.

pub(crate) const MISTAKE: &str =
    "a current read waits for a position that nothing has been ordered at (rule 17)";
