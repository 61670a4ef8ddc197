//! A joiner whose database may hold a total-order action above its position does not say so in the order (rule 13).
//!
//! If all nodes died within one action, each waits for ever for a node with a database.

pub(crate) const MISTAKE: &str =
    "members whose databases are all in doubt do not tell each other (rule 13)";
