/// Mistake: a leader orders the write-sets of a member that has promised a higher term, and has seen commits which the
/// leader lacks. If a forced view commits them, they are certified against other write-sets than those that they saw.
pub(crate) const MISTAKE: &str = "a leader of an old term orders what a member submits that has gone on without it";
