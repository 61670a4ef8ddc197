//! The place where threads of the server wait for the node's answers.

use trireme_replicator::Answer;

/// Tickets with their waiting threads: kept in the core, filled by the core, claimed by [`crate::node::Node`].
pub type Waiting = trireme_handover::Waiting<Answer>;
