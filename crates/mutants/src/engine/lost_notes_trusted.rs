//! A node whose notes on its database are lost goes on with the database.
//!
//! The notes lie beside the log. If `gcache.dir` is emptied, nothing tells that an override lies in the database's past:
//! entries of another branch stay in it.

pub(crate) const MISTAKE: &str =
    "a database is used although the notes on its overrides are lost with the log's directory";
