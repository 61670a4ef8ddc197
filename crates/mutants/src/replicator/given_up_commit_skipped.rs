//! The origin of a streaming transaction that it has given up skips the fragment that commits it, and goes on.
//!
//! It had withdrawn the fragment, and its client was told of a certain failure. An operator's override elsewhere
//! commits the fragment all the same. No rollback fragment undoes that at the others.

pub(crate) const MISTAKE: &str =
    "an own stream that was given up, and is committed after all, is a dummy on its origin (rule 7)";
