//! A joiner takes the control state of a member that must still yield to the joiner's branch.
//!
//! The state knows a forced view that this branch does not have: members differ in their state at one position.

pub(crate) const MISTAKE: &str = "a joiner takes a control state that knows an override which its log does not have";
