//! A leader proposes a view whose majority needs a member that is silent (rule 3).
//!
//! If that member never returns, nobody can commit the view or take it back, although the member that left is back.

pub(crate) const MISTAKE: &str = "a leader counts silent members for the majority of the view that it proposes (rule 3)";
