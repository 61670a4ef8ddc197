//! Only restarted processes say whom they wait for (rule 18).
//!
//! A member that has survived, and has no majority, is the one on which an operator can end the wait: a disk may be lost for
//! good while a view is proposed in which it counts. Nobody says so there.

pub(crate) const MISTAKE: &str =
    "a survivor without a majority does not say who is missing, nor how to go on without them (rule 18)";
