//! The term of a forced view starts with its term start, and the view follows (rule 11).
//!
//! A disk that fills, a loss of power or a lost connection may part the two. The log that holds the term start alone is
//! then the best one of an ordinary election, although its term needed no majority.

pub(crate) const MISTAKE: &str = "the term of a forced view starts before its view is in the log (rule 11)";
