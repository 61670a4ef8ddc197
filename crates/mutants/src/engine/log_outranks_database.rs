//! A bootstrapped node continues its log although its database is ahead of the log (rule 5).
//!
//! Write-sets that only databases hold are dropped, and their seqnos get other content.

pub(crate) const MISTAKE: &str =
    "a node that is bootstrapped goes on with its log although its database is ahead of it (rule 5)";
