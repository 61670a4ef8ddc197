//! Only restarted processes report the members for which they wait (rule 18).
//!
//! A surviving member without a majority is the one on which an operator can end the wait: a disk may be lost for
//! good while a view with that member is pending. The surviving member reports nothing.

pub(crate) const MISTAKE: &str =
    "a survivor without a majority does not say who is missing, nor how to go on without them (rule 18)";
