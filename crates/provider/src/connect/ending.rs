//! disconnect(): leaves the cluster, gives the server its final view, and ends the threads.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use trireme_node::LEAVE_TIMEOUT;
use trireme_replicator::Event;

use super::POLL;
use crate::core::Core;
use crate::node::Node;

/// Time for the server's threads to take the final view.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// disconnect(): leaves the cluster, gives the server its final view, and closes everything.
pub fn disconnect(node: &Node) {
    if !node.peek(Core::is_connected) {
        return;
    }
    node.with(|core| core.node(Event::Disconnect));
    let asked = Instant::now();
    let mut forced = false;
    while !node.peek(|core| core.progress.closed) {
        if !forced && asked.elapsed() >= LEAVE_TIMEOUT {
            forced = true;
            node.logger
                .info("the leave request timed out; disconnecting without confirmation");
            node.with(|core| core.node(Event::Left));
        }
        let nobody = node.appliers.load(Ordering::SeqCst) == 0;
        if forced && nobody || asked.elapsed() >= CLOSE_TIMEOUT {
            break;
        }
        std::thread::sleep(POLL);
    }
    let until = Instant::now() + CLOSE_TIMEOUT;
    while node.appliers.load(Ordering::SeqCst) > 0 && Instant::now() < until {
        node.with(|_| ());
        std::thread::sleep(POLL);
    }
    close_or_cut_off(node);
}

/// Closes the connection, unless appliers are still busy in the server. The replicator then needs its clock until the
/// final view: the node is cut off, and its reactor ends by itself after that view. The next connect() or free() closes
/// the rest.
fn close_or_cut_off(node: &Node) {
    let appliers = node.appliers.load(Ordering::SeqCst);
    if appliers == 0 || node.peek(|core| core.progress.closed) {
        return close(node);
    }
    node.logger.info(format!(
        "{appliers} of the server's appliers have not ended: this node is cut off from its cluster, and gives the server the \
         final view when they have"
    ));
    node.with(|core| {
        if let Some(line) = &mut core.line {
            line.mesh.abandon();
        }
    });
}

/// Stops the threads, then drops the connection.
pub fn close(node: &Node) {
    let reactor = node
        .reactor
        .lock()
        .unwrap_or_else(|e| e.into_inner())
        .take();
    drop(reactor);
    let ended = node.with(|core| {
        core.engine.drop_link();
        let mut line = core.line.take();
        if let Some(line) = &mut line {
            line.mesh.close();
        }
        (core.disk.take(), line)
    });
    // Drop all without the lock: see `Running`; the mesh waits a second for an allowlist that hangs.
    drop(ended);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reactor::tests::{connected, wait_until_closed};

    /// Otherwise nothing would try again what the replicator puts off, and the server's stop would hang.
    #[test]
    fn a_node_keeps_its_clock_while_the_server_applies() {
        let dir = tempfile::tempdir().unwrap();
        let (node, reactor, address) = connected(dir.path());
        *node.reactor.lock().unwrap() = Some(reactor);
        let has_clock = || node.reactor.lock().unwrap().is_some();
        node.enter();
        close_or_cut_off(&node);
        assert!(has_clock() && node.peek(Core::is_connected));
        wait_until_closed(address);
        node.with(|core| core.progress.closed = true);
        node.exit();
        disconnect(&node);
        assert!(!has_clock() && !node.peek(Core::is_connected));
    }
}
