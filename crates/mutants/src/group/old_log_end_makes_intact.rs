//! An amnesiac member is intact when it reaches the log end of an earlier term's leader (rule 4).
//!
//! All voters are here, and one makes a forced view. A member that has not got that view yet reaches the old end, and
//! is a majority without the view, together with an intact one.

pub(crate) const MISTAKE: &str =
    "a member is intact when it reaches the log end of an earlier term's leader (rule 4)";
