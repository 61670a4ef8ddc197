//! A leader counts itself as primary by the committed view alone (rules 3, 10).
//!
//! It has proposed another view, and no majority of that view is there. Nothing is ordered, clients hear nothing, and
//! an operator's `pc.bootstrap` has no effect in a component that calls itself primary.

pub(crate) const MISTAKE: &str =
    "a leader stays primary although no majority is there of the view that it has proposed (rules 3, 10)";
