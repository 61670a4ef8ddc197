//! A joiner takes the control state of a member that has still to yield to the branch that the joiner is on.
//!
//! The state knows an override that this branch does not have: members differ in what they hold of one position.

pub(crate) const MISTAKE: &str = "a joiner takes a control state that knows an override which its log does not have";
