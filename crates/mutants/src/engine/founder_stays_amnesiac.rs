//! A founder that was killed before its notes takes over what the earlier log may have forgotten.
//!
//! It is alone in its log's view and vouches for no view: all wait for an operator.

pub(crate) const MISTAKE: &str =
    "a founder that was killed before its notes counts as one that may have forgotten";
