//! A leader tells its log end before its log has the forced view with which its term begins (rule 4).
//!
//! An amnesiac member that reaches this end is intact, and lacks the forced view.

pub(crate) const MISTAKE: &str =
    "a leader tells its log end before its log has its term's forced view (rule 4)";
