//! The observations of a directed schedule on its stage.

use trireme_group::{Body, ComponentState, Configuration, Entry, Group, Position};
use trireme_replicator::{Code, LocalState, Seqno};

use super::Stage;
use crate::machine::Process;
use crate::seen::{ClientTrx, NodeId};

impl Stage<'_> {
    /// The process of a node, if one runs.
    pub fn process(&self, node: NodeId) -> Option<&Process> {
        self.world.machines[node].process.as_deref()
    }

    /// True if the node's clients must wait for a slower member.
    pub fn clients_wait(&self, node: NodeId) -> bool {
        let process = self.process(node);
        process.is_some_and(|process| process.engine.status().flow_control_active)
    }

    /// The group of a node.
    pub fn group(&self, node: NodeId) -> Option<&Group> {
        Some(&self.process(node)?.engine.link()?.group)
    }

    /// True if the node believes that it is leader.
    pub fn is_leading(&self, node: NodeId) -> bool {
        self.group(node).is_some_and(Group::is_leader)
    }

    /// The number of the term that the node has promised.
    pub fn term(&self, node: NodeId) -> u64 {
        self.group(node).map_or(0, |group| group.term().number)
    }

    /// True if the node has promised a term of the other node, whether that one leads or not.
    pub fn has_promised(&self, node: NodeId, other: NodeId) -> bool {
        let term = self.group(node).map(Group::term);
        term.is_some_and(|term| term.replica == self.world.machines[other].replica)
    }

    /// The end of the node's log.
    pub fn end(&self, node: NodeId) -> Position {
        self.group(node).map_or(0, Group::end)
    }

    /// The node's commit point.
    pub fn commit(&self, node: NodeId) -> Position {
        self.group(node).map_or(0, Group::commit)
    }

    /// The node's component state.
    pub fn component_state(&self, node: NodeId) -> ComponentState {
        self.group(node)
            .map_or(ComponentState::Outside, Group::component_state)
    }

    /// The number of the node's committed view.
    pub fn view(&self, node: NodeId) -> u64 {
        self.group(node)
            .map_or(0, |group| group.configuration().number)
    }

    /// Number of members in the node's committed view.
    pub fn members(&self, node: NodeId) -> usize {
        self.group(node)
            .map_or(0, |group| group.configuration().members.len())
    }

    /// Number of views that have passed commit order on the node.
    pub fn views_shown(&self, node: NodeId) -> u64 {
        self.nodes[node].views
    }

    /// True if the node's present process is in its committed view, with a vote.
    pub fn has_vote(&self, node: NodeId) -> bool {
        let seat = self.process(node).and_then(|process| {
            let group = &process.engine.link()?.group;
            group.configuration().member(process.incarnation)
        });
        seat.is_some_and(|member| member.weight > 0)
    }

    /// The node's state, as in wsrep_local_state_comment.
    pub fn state(&self, node: NodeId) -> Option<LocalState> {
        let process = self.process(node)?;
        let link = process.engine.link()?;
        Some(process.engine.replicator.status(&link.storage).local_state)
    }

    /// True if the node is synced and has a vote.
    pub fn serves(&self, node: NodeId) -> bool {
        self.state(node) == Some(LocalState::Synced) && self.has_vote(node)
    }

    /// True if all these nodes are synced and have a vote.
    pub fn serve(&self, nodes: &[NodeId]) -> bool {
        nodes.iter().all(|node| self.serves(*node))
    }

    /// The position of the first entry in the node's log for which this holds.
    pub fn find(&self, node: NodeId, holds: impl Fn(&Entry) -> bool) -> Option<Position> {
        let found = self.nodes[node].log.values().find(|entry| holds(entry));
        found.map(|entry| entry.position)
    }

    /// The position of the first view in the node's log for which this holds.
    pub fn find_view(
        &self,
        node: NodeId,
        holds: impl Fn(&Configuration) -> bool,
    ) -> Option<Position> {
        self.find(
            node,
            |entry| matches!(&entry.body, Body::Configuration(view) if holds(view)),
        )
    }

    /// Number of entries in the node's log for which this holds.
    pub fn count(&self, node: NodeId, is_like: impl Fn(&Entry) -> bool) -> usize {
        let entries = self.nodes[node].log.values();
        entries.filter(|entry| is_like(entry)).count()
    }

    /// The position of a requested transaction in the node's log.
    pub fn holds(&self, node: NodeId, trx: ClientTrx) -> Option<Position> {
        let from_end = 8 + 16 * self.rows.get(&trx)?;
        self.find(node, |entry| match &entry.body {
            Body::Submission { payload, .. } => {
                let at = payload.len().checked_sub(from_end);
                at.is_some_and(|at| payload[at..].starts_with(&trx.to_le_bytes()))
            }
            _ => false,
        })
    }

    /// True if the node knows the transaction as committed.
    pub fn has_committed(&self, node: NodeId, trx: ClientTrx) -> bool {
        self.holds(node, trx)
            .is_some_and(|at| at <= self.commit(node))
    }

    /// The position of the node's database; -1: it is unknown, or the node does not run.
    pub fn position(&self, node: NodeId) -> Seqno {
        self.process(node)
            .map_or(-1, |process| process.server.position().1)
    }

    /// The digest of the rows in the node's database; None: the node does not run.
    pub fn digest(&self, node: NodeId) -> Option<u64> {
        Some(self.process(node)?.server.digest())
    }

    /// True if the transaction is in the node's database.
    pub fn has_applied(&self, node: NodeId, trx: ClientTrx) -> bool {
        self.nodes[node].applied.contains(&trx)
    }

    /// The answer that the transaction's client got.
    pub fn told(&self, trx: ClientTrx) -> Option<Code> {
        self.ended.get(&trx).copied()
    }

    /// True if the transaction's client was told that it has committed.
    pub fn acknowledged(&self, trx: ClientTrx) -> bool {
        self.told(trx) == Some(Code::Ok)
    }
}
