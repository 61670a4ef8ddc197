//! A server that connects anew sees no view before the fragments that it has missed.
//!
//! It has not recovered its streaming appliers: the fragments find no transaction.

pub(crate) const MISTAKE: &str = "a server that connects anew is shown no view before what it has missed";
