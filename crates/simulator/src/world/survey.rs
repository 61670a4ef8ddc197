//! Looks over the whole world: limits that must hold, and signs that all is well.

use trireme_group::{ComponentState, Configuration, Member, PAYLOAD_MAX, Position};
use trireme_replicator::{Gtid, LocalState, NoHistory};

use super::World;
use super::losses::{is_past, knows_all};
use crate::seen::{NodeId, Seen, TimeUs};

/// If the last acknowledgement is not older than this, there is load.
const LOAD_US: TimeUs = 500_000;

/// Maximum size of a write-set of the simulated servers.
const MAX_PAYLOAD: usize = 2_000;

impl World {
    /// Handles a configuration that was delivered on a node.
    pub(crate) fn view_delivered(
        &mut self,
        node: NodeId,
        position: Position,
        configuration: Configuration,
    ) {
        let Some(process) = &mut self.machines[node].process else {
            return;
        };
        let seat = configuration.member(process.incarnation);
        process.voter = seat.is_some_and(|member| member.voter);
        process.intact |= process.voter;
        let is_here = is_past(&self.in_effect, process);
        if self.is_astray(node) {
            return;
        }
        if let Some(id) = configuration
            .override_id
            .filter(|id| !self.in_effect.contains(id))
        {
            // The configurations of the abandoned branch, and the nodes on it, no longer count.
            self.count_override(node, &configuration, id);
            self.in_effect.push(id);
            self.delivered.retain(|(at, _)| *at < position);
        } else if !is_here {
            return;
        }
        let last = self.delivered.last();
        if last.is_none_or(|(_, last)| last.number < configuration.number) {
            self.coverage.views += 1;
            self.coverage.overridden += u64::from(configuration.override_id.is_some());
            let loaded = self.now_us < self.watch.acknowledged_us + LOAD_US;
            self.coverage.loaded_views += u64::from(self.formed && loaded);
        }
        if last.is_none_or(|(at, _)| *at < position) {
            let is_without_vote = |m: &Member| m.voter && m.weight == 0;
            let without_vote = configuration.members.iter().any(is_without_vote);
            self.coverage.without_vote += u64::from(without_vote);
            self.delivered.push((position, configuration));
        }
    }

    /// True if a process runs there that has a database for others.
    pub(crate) fn has_state(&self, node: NodeId) -> bool {
        let process = self.machines[node].process.as_ref();
        process.is_some_and(|process| {
            let status = process.engine.replicator.status(&NoHistory);
            let state = status.local_state;
            let has_database = !self.plan.nodes[node].arbitrator;
            let has = [LocalState::Donor, LocalState::Joined, LocalState::Synced].contains(&state);
            has_database && has && process.leaving_us.is_none() && !process.server.has_failed()
        })
    }

    /// The same for another node.
    pub(crate) fn others_have_state(&self, node: NodeId) -> bool {
        (0..self.machines.len()).any(|other| other != node && self.has_state(other))
    }

    /// True if the database of a stopped node can be used, on the branch in force. It may be in doubt: then it is
    /// used only if no node has a better one (rule 13).
    pub(crate) fn is_clear(&self, node: NodeId) -> bool {
        let machine = &self.machines[node];
        let Some(datadir) = &machine.datadir else {
            return false;
        };
        let saved = machine.saved.reopened();
        let local = saved.starting_position(Some(datadir.position()), &machine.disk);
        let is_here = knows_all(&machine.left.overrides, &self.in_effect);
        local.seqno >= 0 && is_here
    }

    /// Checks that all nodes are members with a vote. Err: a node that is not.
    pub fn united(&self) -> Result<(), String> {
        for node in 0..self.machines.len() {
            if self.voter(node)?.members.len() != self.machines.len() {
                return Err(format!("for n{} a member is missing", node + 1));
            }
        }
        Ok(())
    }

    /// Checks that the node is a member with a vote. Returns its view. Err: it is not.
    pub(super) fn voter(&self, node: NodeId) -> Result<&Configuration, String> {
        let name = format!("n{}", node + 1);
        let process = self.machines[node].process.as_ref();
        let process = process.ok_or_else(|| format!("{name} does not run"))?;
        let link = process.engine.link();
        let link = link.ok_or_else(|| format!("{name} is not connected"))?;
        let component_state = link.group.component_state();
        if component_state != ComponentState::Primary || process.leaving_us.is_some() {
            return Err(format!("{name} is {component_state:?}"));
        }
        let configuration = link.group.configuration();
        match configuration.member(process.incarnation) {
            Some(member) if member.voter => Ok(configuration),
            _ => Err(format!("{name} is without a vote")),
        }
    }

    /// The state of a node that is neither synced nor, as an arbitrator, joined.
    fn unsynced(&self, node: NodeId) -> Option<&'static str> {
        let process = self.machines[node].process.as_ref()?;
        let link = process.engine.link()?;
        let status = process.engine.replicator.status(&link.storage);
        let has_joined =
            self.plan.nodes[node].arbitrator && status.local_state == LocalState::Joined;
        let is_synced = status.local_state == LocalState::Synced;
        (!is_synced && !has_joined).then_some(status.local_state_comment)
    }

    /// Checks that all nodes are synced members with a vote. Err: a node that is not.
    pub fn settled(&self) -> Result<(), String> {
        self.united()?;
        let nodes = 0..self.machines.len();
        match nodes.filter_map(|n| Some((n, self.unsynced(n)?))).next() {
            Some((node, state)) => Err(format!("n{} is {state}", node + 1)),
            None => Ok(()),
        }
    }

    /// Checks that all nodes are members with a vote that are synced now, or were synced since the first call: an
    /// administrator may desync a node for a while. Err: a node that is not.
    pub fn recovered(&mut self) -> Result<(), String> {
        self.united()?;
        self.synced_since(|_| true)
    }

    /// Lets [`World::synced_since`] begin anew.
    pub fn forget_synced(&mut self) {
        for machine in &mut self.machines {
            machine.was_synced = false;
        }
    }

    /// Checks that these nodes are synced now, or were since the first call. Err: a node that is not.
    pub(super) fn synced_since(&mut self, of: impl Fn(NodeId) -> bool) -> Result<(), String> {
        for node in (0..self.machines.len()).filter(|node| of(*node)) {
            match self.unsynced(node) {
                None => self.machines[node].was_synced = true,
                Some(state) if !self.machines[node].was_synced => {
                    return Err(format!("n{} is {state}", node + 1));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn position(&self, node: NodeId) -> Option<Gtid> {
        let process = self.machines[node].process.as_ref()?;
        Some(process.engine.replicator.last_committed())
    }

    /// Number of entries and seqnos that lagging nodes still need, in their logs and databases, of all nodes
    /// together.
    pub fn behind(&self) -> u64 {
        let far = |node: NodeId| {
            let process = self.machines[node].process.as_ref()?;
            let log = process.engine.link().map_or(0, |link| link.group.commit());
            let applied = self.position(node)?.seqno;
            Some([log, u64::try_from(applied).unwrap_or_default()])
        };
        let all: Vec<_> = (0..self.machines.len()).filter_map(far).collect();
        let behind = |at: usize| {
            let furthest = all.iter().map(|far| far[at]).max().unwrap_or_default();
            all.iter().map(|far| furthest - far[at]).sum::<u64>()
        };
        behind(0) + behind(1)
    }

    /// Checks that all nodes have applied everything and nothing waits. Err: the node or the wait.
    pub fn quiet(&self) -> Result<(), String> {
        self.settled()?;
        for (node, machine) in self.machines.iter().enumerate() {
            let Some(process) = &machine.process else {
                continue;
            };
            if let Some(what) = process.server.waiting().first() {
                return Err(format!("on n{}: {what}", node + 1));
            }
            let link = process.engine.link();
            let (commit, end) = link.map_or((0, 0), |l| (l.group.commit(), l.group.end()));
            if commit != end {
                return Err(format!("n{} has committed {commit} of {end}", node + 1));
            }
            let applied = self.position(node).map(|gtid| gtid.seqno);
            if applied != process.engine.replicator.last_seqno() {
                return Err(format!("n{} has applied {applied:?} only", node + 1));
            }
            if self.position(node) != self.position(0) {
                let [here, there] = [self.position(node), self.position(0)]
                    .map(|gtid| gtid.map_or("nowhere".to_owned(), |gtid| gtid.to_string()));
                return Err(format!("n{} is at {here}, n1 at {there}", node + 1));
            }
        }
        Ok(())
    }
}

impl World {
    /// Looks now and then: has the cluster formed, and does any size exceed its limit?
    pub fn look(&mut self) {
        self.formed = self.formed || self.settled().is_ok();
        for node in 0..self.machines.len() {
            let Some(process) = &self.machines[node].process else {
                continue;
            };
            let Some(link) = process.engine.link() else {
                continue;
            };
            let status = process.engine.replicator.status(&link.storage);
            let nodes = self.machines.len() as u64;
            // A liar names any lengths.
            let largest = match self.plan.liar {
                Some(_) => u64::from(PAYLOAD_MAX),
                None => MAX_PAYLOAD as u64,
            };
            let sizes = [
                ("apply queue", status.local_recv_queue.now, 20_000),
                (
                    "keys in the certification index",
                    status.cert_index_size,
                    50_000,
                ),
                ("open transactions", status.open_transactions, 200),
                (
                    "uncommitted entries",
                    link.group.end() - link.group.commit(),
                    5_000,
                ),
                (
                    "bytes that wait to be applied",
                    process.engine.replicator.payload_bytes() as u64,
                    (self.plan.queue_bytes + self.plan.ist_chunk_bytes.max(MAX_PAYLOAD)) as u64,
                ),
                (
                    "bytes of others' large payloads",
                    link.group.bulk_payloads_len(),
                    // Besides the limit: the next submission of each origin, and one payload of the first origin.
                    self.plan.bulk_bytes + (nodes + 1) * largest,
                ),
            ];
            for (name, value, limit) in sizes {
                self.watch
                    .see(self.now_us, node, Seen::Size { name, value, limit });
            }
            if self.plan.liar.is_none() {
                self.look_at_flow(node, &status);
                self.look_at_hang(node);
            }
            self.count_log(node);
        }
    }

    /// Ends all faults.
    pub fn calm_down(&mut self) {
        self.tell(|| "CALM: nothing goes wrong from here on".to_owned());
        self.calm = true;
        self.transfer_fault = None;
        for machine in &mut self.machines {
            machine.aside = None; // from here on no log is lost any more
            if let Some(process) = &mut machine.process {
                process.server.calm();
            }
        }
        self.agree_on_the_list();
    }

    /// Lets the clients of these nodes begin no new transactions for now.
    pub fn silence(&mut self, nodes: &[NodeId]) {
        for node in nodes {
            if let Some(process) = &mut self.machines[*node].process {
                process.server.set_busy(false);
            }
        }
    }

    /// Lets clients begin new transactions from now on, or no more.
    pub fn set_busy(&mut self, busy: bool) {
        self.tell(|| {
            format!(
                "CLIENTS begin {}",
                if busy { "again" } else { "nothing more" }
            )
        });
        self.busy = busy;
        for node in 0..self.machines.len() {
            if let Some(process) = &mut self.machines[node].process {
                process.server.set_busy(busy);
                self.settle(node);
            }
        }
    }

    /// Prints all waits into the story.
    pub fn tell_waiting(&mut self) {
        for node in 0..self.machines.len() {
            let Some(process) = &self.machines[node].process else {
                continue;
            };
            let server = process.server.waiting().join("; ");
            let link = process.engine.link();
            let state = link.map(|link| {
                let status = process.engine.replicator.status(&link.storage);
                let (commit, end) = (link.group.commit(), link.group.end());
                let (state, desyncs) = (status.local_state_comment, status.desync_count);
                let queue = status.local_recv_queue.now;
                let at = process.engine.replicator.last_committed();
                format!(
                    "{state}, {desyncs} desyncs, has committed {commit} of {end}, applied {at}, {queue} wait to be applied"
                )
            });
            let state = state.unwrap_or_default();
            self.tell(|| format!("n{} is {state}; waiting: {server}", node + 1));
        }
    }

    /// Each node's process, by its first start, with the number of commits that its clients know as acknowledged; each
    /// process counts from 0.
    pub fn acknowledged(&self) -> Vec<(u64, u64)> {
        let of = |machine: &crate::machine::Machine| {
            let process = machine.process.as_ref();
            process.map_or((0, 0), |p| (p.first_start, p.server.acknowledged()))
        };
        self.machines.iter().map(of).collect()
    }

    /// Adds the counters of all running processes.
    pub fn count(&mut self) {
        for node in 0..self.machines.len() {
            self.count_process(node);
        }
    }

    /// Adds the counters of a process.
    pub(crate) fn count_process(&mut self, node: NodeId) {
        self.count_log(node);
        let Some(process) = &self.machines[node].process else {
            return;
        };
        let Some(link) = process.engine.link() else {
            return;
        };
        self.coverage.too_wide += process.engine.replicator.too_wide_count();
        self.coverage.process(link.group.counters());
        self.coverage.ists += process.progress.ists;
        self.coverage.forks += process.progress.forks;
        self.coverage.hangs += process.progress.hangs;
        self.coverage.handed_for_hang += process.progress.handed_for_hang;
        let status = process.engine.replicator.status(&link.storage);
        self.coverage.commits += status.local_commits;
        self.coverage.conflicts += status.local_cert_failures;
        self.coverage.replays += status.local_replays;
        self.coverage.stops += status.flow_control_sent;
        self.coverage.read_back += process.engine.replicator.read_back_count();
    }

    /// Adds the new counts of a node's log.
    pub(crate) fn count_log(&mut self, node: NodeId) {
        let Some(process) = &mut self.machines[node].process else {
            return;
        };
        let Some(link) = process.engine.link() else {
            return;
        };
        let now = link.storage.counters();
        let before = std::mem::replace(&mut process.counted, now);
        let coverage = &mut self.coverage;
        coverage.parts_read += now.parts_read - before.parts_read;
        coverage.staged += now.log.staged - before.log.staged;
        coverage.direct += now.log.direct - before.log.direct;
        coverage.full_buffers += now.log.full_buffers - before.log.full_buffers;
        let purged = now.log.dropped - before.log.dropped;
        coverage.purged += purged;
        coverage.purged_early += if self.calm { 0 } else { purged };
    }
}
