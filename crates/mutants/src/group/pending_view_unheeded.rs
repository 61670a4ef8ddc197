//! A leader counts itself as primary by the committed view alone (rules 3 and 10).
//!
//! It has proposed another, of which no majority is there any more: nothing is ordered, nobody is told, and an operator's
//! `pc.bootstrap` has no effect in what calls itself primary.

pub(crate) const MISTAKE: &str =
    "a leader stays primary although no majority is there of the view that it has proposed (rules 3, 10)";
