//! What a member's log lacks is kept only as far as certification remembers, and `gcache.size` reaches (rule 12).
//!
//! A member behind a slow link falls beyond that: it is given a checkpoint and has to be restarted, and if the
//! others are lost but for an arbitrator, what they have acknowledged is lost.

pub(crate) const MISTAKE: &str = "the log drops what a member's log lacks (rule 12)";
