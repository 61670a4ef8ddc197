//! A joiner takes the entries of an IST from a member that must still yield to the joiner's branch.
//!
//! Above the override, that member's log has other entries at the same seqnos: the joiner's database gets these.

pub(crate) const MISTAKE: &str = "a joiner takes the entries of an IST from a member on a branch without its overrides";
