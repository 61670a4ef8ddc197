//! A candidate passes over the log that it has deferred to, also when another candidate has cut the attempt after that
//! short (rule 4).
//!
//! Two such candidates stand in turns and pass over the only log that can lead: the cluster has no leader for ever.

pub(crate) const MISTAKE: &str =
    "a candidate whose attempt was cut short still passes over the log that it deferred to (rule 4)";
