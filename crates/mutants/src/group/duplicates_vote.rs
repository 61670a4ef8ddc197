//! A duplicate replica votes and stands for election although the member with the same replica id lives.
//!
//! The copied data directory lacks entries that the replica acknowledged after the copy. With the duplicate's
//! promise, a candidate has a majority and leads without a committed entry. Planted where its messages are dropped,
//! and where the duplicate itself stays silent.

pub(crate) const MISTAKE: &str =
    "of two processes on one data directory the one that has no seat votes in elections (rule 14)";
