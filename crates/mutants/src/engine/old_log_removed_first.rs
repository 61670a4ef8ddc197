//! A node that founds its history anew on its database removes its old log before the new one holds a checkpoint (rule 5).
//!
//! If the process dies in between, no log vouches for the database, and the nodes wait for an operator.

pub(crate) const MISTAKE: &str =
    "a founder's old log is removed before the new one has its first checkpoint (rule 5)";
