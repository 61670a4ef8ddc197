//! Waits within connect() for the node's first view. In: the progress of the node. Out: that it is admitted, or may wait on
//! without the caller, or the reason why not.

use std::time::{Duration, Instant};

use trireme_node::{Deadline, setup};

use super::{ConnectError, LIVING_TIMEOUT, POLL, Request};
use crate::core::Core;
use crate::node::Node;
use crate::server_flags;

/// Waits for a primary component that exists now.
pub(super) fn wait_for_living(node: &Node, request: &Request) -> Result<(), ConnectError> {
    let mut deadline = Deadline::within(LIVING_TIMEOUT);
    while !is_admitted(node, request, true)? {
        if let Some(reason) = node.peek(|core| core.progress.refused.clone()) {
            return Err(ConnectError::Refused(reason));
        }
        if is_over(node, &mut deadline, Instant::now()) {
            return Err(no_primary(request, LIVING_TIMEOUT.as_millis() as u64));
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// Waits for the node's first view. `has_consent`: an operator allows that another cluster's data replace this node's.
///
/// A server that runs waits here until `pc.wait_prim_timeout`, with `pc.wait_prim=no` too. It is given nothing to do
/// before its first view, and a MariaDB server that was given nothing neither stops nor disconnects (measured: SIGTERM
/// during an outage had no effect).
pub(super) fn wait(node: &Node, request: &Request, has_consent: bool) -> Result<(), ConnectError> {
    let timeout_ms = request.options.duration_ms("pc.wait_prim_timeout");
    // A server that began without a cluster address has had no view, and runs all the same.
    let is_running = node.server.runs() || server_flags::is_started();
    let wait = is_running || request.options.bool("pc.wait_prim");
    let mut deadline = Deadline::within(Duration::from_millis(timeout_ms));
    loop {
        let admitted = is_admitted(node, request, has_consent)?;
        let refused = node.peek(|core| core.progress.refused.clone());
        let may_wait_on = !is_running && refused.is_none();
        // Only while no peer is reached, this node may still take another cluster's data.
        if has_consent && wait && may_wait_on && !admitted && node.peek(Core::is_alone) {
            std::thread::sleep(POLL);
            continue;
        }
        // A node that was in a view before waits for that view without limit: no operator has to bootstrap (rule 18).
        // The same holds for a node that founds a cluster when all founders are there.
        let waits_on = may_wait_on && node.peek(Core::waits_for_others);
        if admitted || waits_on {
            return Ok(());
        }
        if let Some(reason) = refused {
            return Err(ConnectError::Refused(reason));
        }
        if !wait {
            return Ok(());
        }
        if is_over(node, &mut deadline, Instant::now()) {
            return Err(no_primary(request, timeout_ms));
        }
        std::thread::sleep(POLL);
    }
}

/// Returns true if a component has admitted this node. Err: no component will, or nobody waits for it any more.
fn is_admitted(node: &Node, request: &Request, has_consent: bool) -> Result<bool, ConnectError> {
    // A server that has not started is ended by the reactor.
    let stops = server_flags::is_started() && server_flags::stops();
    if stops || !node.peek(Core::is_connected) {
        return Err(ConnectError::Stopped);
    }
    let (admitted, failed) =
        node.peek(|core| (core.progress.admitted, core.progress.failed.clone()));
    if let Some(text) = failed {
        return Err(ConnectError::Failed(text));
    }
    let addresses = setup::peer_addresses(&request.cluster, &request.options);
    let stranger = node.peek(|core| core.only_stranger(&addresses));
    match stranger.filter(|_| has_consent && !admitted) {
        Some(stranger) => Err(ConnectError::Stranger(stranger)),
        None => Ok(admitted),
    }
}

/// Returns true if the wait is over. While a primary component lists this node, the wait goes on: the component still
/// sends the state of the order, however long that takes.
fn is_over(node: &Node, deadline: &mut Deadline, now: Instant) -> bool {
    let (committed, is_listed) = node.peek(|core| (core.committed(), core.is_in_primary()));
    deadline.is_over(now, committed, is_listed)
}

fn no_primary(request: &Request, timeout_ms: u64) -> ConnectError {
    let peers = request.cluster.peers.iter().map(ToString::to_string);
    let peers = peers.collect::<Vec<_>>().join(", ");
    ConnectError::NoPrimary { timeout_ms, peers }
}

#[cfg(test)]
mod tests {
    use trireme_engine::Start;
    use trireme_group::Uuid;
    use trireme_node::now_ms;

    use super::*;
    use crate::border::tests::new_node;

    /// Its own log was replaced, for example, and the state of the order comes over a thin link.
    #[test]
    fn a_node_that_a_component_lists_waits_for_the_state_of_the_order() {
        let dir = tempfile::tempdir().unwrap();
        let node = new_node(dir.path());
        let options = node.options.lock().unwrap().clone();
        let votes = setup::open_votes(&options).unwrap();
        let me = setup::this_member(&options, &votes).unwrap();
        let start = Start {
            bootstrap: Some(Uuid([7; 16])),
            ..setup::start(&options, &votes, me)
        };
        node.with(|core| core.engine.connect(now_ms(), start))
            .unwrap();
        let (mut deadline, began) = (Deadline::within(LIVING_TIMEOUT), Instant::now());
        let mut ends =
            |after_s| is_over(&node, &mut deadline, began + Duration::from_secs(after_s));
        assert!(!ends(4) && !ends(60));
        node.with(|core| core.engine.drop_link());
        assert!(!ends(62) && ends(63));
    }
}
