//! A node that has gone on alone gives way to the last word of a peer that is silent since (rule 11).
//!
//! That peer was primary without this node's forced view. Meanwhile it has lost its majority, or even follows this
//! forced view. The node orders nothing, or drops out of its view and comes back in another for nothing.

pub(crate) const MISTAKE: &str = "a silent peer's last word outvotes a node that has gone on alone (rule 11)";
