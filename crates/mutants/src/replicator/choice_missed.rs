//! A node that lives through the choice of another database, cut off, goes on with its own (rule 13).

pub(crate) const MISTAKE: &str =
    "a node in use goes on when the cluster has gone on with an in-doubt database (rule 13)";
