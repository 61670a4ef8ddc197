//! A process on a copied data directory votes, and stands, for the replica although the one that is seated lives.
//!
//! What the replica acknowledged after the copy was made is not in the copy's log: with its promise a candidate has a
//! majority, and leadership, without a committed entry. Planted where its messages are dropped, and where it keeps quiet
//! by itself.

pub(crate) const MISTAKE: &str =
    "of two processes on one data directory the one that has no seat votes in elections (rule 14)";
