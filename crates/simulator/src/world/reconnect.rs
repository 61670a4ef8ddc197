//! disconnect() and connect() within one process (`SET GLOBAL wsrep_cluster_address`). The server, its database and
//! its threads go on; the node comes back with a new incarnation (server-contract-callbacks.md#reconnect).

use std::mem::take;

use super::{Happening, World};
use crate::seen::{NodeId, Seen};

impl World {
    /// Lets the process leave; it comes back by itself at `back_us` of its machine. A server that still starts, as for
    /// the time of a state transfer's script, takes no client that could tell it so.
    pub(crate) fn leave_and_return(&mut self, node: NodeId) {
        let Some(process) = &mut self.machines[node].process else {
            return;
        };
        if process.leaving_us.is_none() && process.server.is_running() {
            process.returns = true;
            self.leave(node);
        }
    }

    /// Ends the connection; the process lives on.
    pub(crate) fn go_without(&mut self, node: NodeId) {
        self.count_process(node);
        self.leaves_log(node);
        self.machines[node].left.intact &= self.plan.recovers;
        let now = self.now_us;
        let Some(process) = &mut self.machines[node].process else {
            return;
        };
        process.engine.drop_link();
        process.loses_connection();
        let start = process.start;
        self.tell(|| format!("n{} has disconnected", node + 1));
        self.watch.see(now, node, Seen::Disconnected);
        self.close_links(node);
        self.mount(node);
        let back_us = self.machines[node].back_us.max(now + 1_000);
        let latest_us = self.plan.calm_us.max(now + 1_000);
        let back_us = back_us.min(latest_us);
        self.queue.push(back_us, Happening::Reconnect(node, start));
    }

    /// Calls connect() again.
    pub(crate) fn reconnect(&mut self, node: NodeId, start: u64) {
        let machine = &mut self.machines[node];
        if machine.running(start).is_none() {
            return;
        }
        self.coverage.reconnects += 1;
        let Some(mut process) = self.machines[node].process.take() else {
            return;
        };
        process.server.reconnecting();
        self.connect_process(node, process, false);
    }

    /// True once, when the process has left and may go on without a connection: none of its threads is in the middle
    /// of a call that the provider has begun.
    pub(crate) fn has_left_to_return(&mut self, node: NodeId) -> bool {
        let process = self.machines[node].process.as_mut();
        process.is_some_and(|p| p.returns && p.server.is_done() && take(&mut p.returns))
    }
}
