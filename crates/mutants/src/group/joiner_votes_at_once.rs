//! A joiner votes from its first view on (rule 3).
//!
//! A cluster of one or two stops committing when its joiner dies in the state transfer. Also, a joiner without a log
//! counts where the rules need a log.

pub(crate) const MISTAKE: &str = "a joiner votes from its first view on (rule 3)";
