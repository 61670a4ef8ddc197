//! A leader that hears no majority goes on to say that it leads (rule 2).
//!
//! A follower that hears both the leader and a majority without the leader obeys for ever, and elects nobody.

pub(crate) const MISTAKE: &str = "a leader that hears no majority goes on to say that it leads (rule 2)";
