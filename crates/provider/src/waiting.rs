//! Where threads of the server wait for the node's answers.

use trireme_replicator::Answer;

/// Tickets and who waits for them: kept in the core, filled by it, claimed by [`crate::node::Node`].
pub type Waiting = trireme_handover::Waiting<Answer>;
