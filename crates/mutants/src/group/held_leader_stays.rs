//! A leader that its server holds still keeps leadership (rule 2).
//!
//! It does not hear that others have joined, and gives them no votes: the next death may cost the majority.

pub(crate) const MISTAKE: &str =
    "a leader keeps leadership while its server holds it still (rule 2)";
