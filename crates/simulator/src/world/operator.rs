//! The operator: reads the logs' advice, follows it, and decides where the cluster cannot.

use trireme_group::{ComponentState, Configuration, Uuid, is_unvouched_override, override_yields};
use trireme_log::MemoryDisk;
use trireme_replicator::Gtid;

use super::losses::knows_all;
use super::{Happening, World};
use crate::fault::Fault;
use crate::machine::{Ignored, Left, Machine, Process};
use crate::seen::{NodeId, TimeUs};

/// Time after which the operator looks again whether the network is repaired.
const LOOKS_AGAIN_US: TimeUs = 50_000;

impl World {
    /// True if a sensible operator would make this node primary: it has a database, knows all earlier forced views,
    /// and no node is primary. Two branches refuse each other for good (rule 11).
    pub(super) fn operator_would(&self, node: NodeId) -> bool {
        let process = self.machines[node].process.as_deref();
        self.may_override(node) && process.is_some_and(|process| process.voter)
    }

    /// True if an operator might do so by mistake while others are primary. Two forced views that do not know each
    /// other refuse each other for good: `overrides_meet` tests that case.
    pub(super) fn operator_might(&self, node: NodeId) -> bool {
        let process = self.machines[node].process.as_deref();
        !self.may_be_ignored()
            && self.knows_overrides(node)
            && process.is_some_and(|process| process.voter)
    }

    /// True if no node is primary and this one may be made so; it need not be a voter.
    fn may_override(&self, node: NodeId) -> bool {
        let process = |node: NodeId| self.machines[node].process.as_deref();
        let primary =
            |node| process(node).is_some_and(|p| p.component_state == ComponentState::Primary);
        let history = |node| process(node).map(|p| p.progress.history);
        let mut nodes = 0..self.machines.len();
        let anywhere = nodes.any(|other| primary(other) && history(other) == history(node));
        self.knows_overrides(node) && !anywhere && !self.may_be_ignored()
    }

    /// True if the node has a database and knows all earlier forced views.
    fn knows_overrides(&self, node: NodeId) -> bool {
        let process = |node: NodeId| self.machines[node].process.as_deref();
        let nodes = || 0..self.machines.len();
        let knows = |node: NodeId, id: &Uuid| {
            process(node).is_some_and(|process| process.engine.replicator.overrides().contains(id))
        };
        // A requested override may still happen while its process lives.
        let lives = |(on, start, id): &(NodeId, u64, Uuid)| {
            process(*on).is_some_and(|process| process.start == *start)
                || nodes().any(|node| knows(node, id))
        };
        let mut earlier = self.overrides.iter().filter(|asked| lives(asked));
        let knows_all = earlier.all(|(_, _, id)| knows(node, id));
        let knows_all = knows_all && self.in_effect.iter().all(|id| knows(node, id));
        // A node that awaits a snapshot would take the others' databases away, and has none (seed 3600001040).
        let has_database =
            !self.plan.nodes[node].arbitrator && !self.database_of(node).uuid.is_nil();
        has_database && knows_all
    }

    /// The option that an operator has set by mistake. At most one node has one at a time.
    fn ignored(&self) -> Option<Ignored> {
        self.machines.iter().find_map(|machine| machine.ignores)
    }

    /// True if such an option may still make a forced view (seed 34769 of `mistakes`).
    fn may_be_ignored(&self) -> bool {
        let lasts = |machine: &Machine| self.now_us < machine.ignored_until_us;
        self.ignored().is_some() || self.machines.iter().any(lasts)
    }

    /// Counts a forced view that takes effect, by the operator's mistake that made it, if it was one.
    pub(super) fn count_override(&mut self, node: NodeId, configuration: &Configuration, id: Uuid) {
        let processes = || self.machines.iter().filter_map(|m| m.process.as_deref());
        let history = |process: &Process| process.progress.history;
        let own = self.machines[node].process.as_deref().map(history);
        let is_beside = |process: &Process| {
            process.component_state == ComponentState::Primary
                && Some(history(process)) == own
                && configuration.member(process.incarnation).is_none()
        };
        let beside = processes().any(is_beside);
        self.coverage.beside += u64::from(beside);
        if !override_yields(&id) || is_unvouched_override(&id) {
            return;
        }
        match self.ignored() {
            Some(Ignored::SplitBrain) => self.coverage.split_brain_ignored += 1,
            Some(Ignored::Quorum) => self.coverage.quorum_ignored += 1,
            None => {}
        }
    }

    /// The position with which the node would start now.
    fn database_of(&self, node: NodeId) -> Gtid {
        let machine = &self.machines[node];
        let database = machine.datadir.as_ref().map(|datadir| datadir.position());
        let known = machine.saved.reopened();
        known.starting_position(database, &machine.disk)
    }

    /// Acts as an operator who follows the logs' advice. More replicas are amnesiac, or lost for good, than the group
    /// can bear (rule 4): processes ended by themselves, or a disk was lost while its node was in a pending view.
    pub(crate) fn operator_helps(&mut self) {
        for node in 0..self.machines.len() {
            let process = self.machines[node].process.as_deref();
            let waits = process.is_some_and(|process| {
                process.progress.excluded && process.component_state == ComponentState::NonPrimary
            });
            // It goes on with its own state; if it has none, the others go on.
            let given_up = self.all_give_way() && !self.operator_would(node);
            if waits && (given_up || self.is_served_without(node)) {
                self.tell(|| format!("OPERATOR lets n{} join the others", node + 1));
                self.follows_advice(node);
                self.crash(node, false);
            }
        }
        let enough = self.others_weigh(NodeId::MAX, |weight, total| weight * 2 >= total);
        if enough && !self.lost_for_good() && !self.all_give_way() {
            return;
        }
        let advised = |machine: &Machine| {
            let process = machine.process.as_deref()?;
            let waits = process.component_state == ComponentState::NonPrimary;
            process.progress.advised.filter(|_| waits)?.checked_sub(1)
        };
        let advised = self.machines.iter().filter_map(advised);
        // A node that comes back, and was alone in its view, has no vote; its log names it all the same (seed
        // 16095675).
        let takes = |node: &NodeId| {
            let process = self.machines[*node].process.as_deref();
            let is_one = |p: &Process| p.voter || p.progress.advised == Some(node + 1);
            self.may_override(*node) && process.is_some_and(is_one)
        };
        let node = advised.clone().find(takes);
        if let Some(node) = node {
            self.strike(&Fault::Override { node });
        }
    }

    /// True if no node is primary, and all yield to a forced view whose own majority is gone.
    fn all_give_way(&self) -> bool {
        let mut processes = self.machines.iter().filter_map(|m| m.process.as_deref());
        let excluded = processes.clone().any(|process| process.progress.excluded);
        excluded && processes.all(|process| process.component_state == ComponentState::NonPrimary)
    }

    /// True if a component is primary whose members all live: an arbitrator has gone on.
    fn goes_on(&self) -> bool {
        let processes = || self.machines.iter().filter_map(|m| m.process.as_deref());
        let lives = |name| processes().any(|process| process.incarnation == name);
        let is_whole = |process: &Process| {
            let link = process.engine.link();
            let view = link.map(|link| link.group.configuration());
            view.is_some_and(|view| view.members.iter().all(|m| lives(m.incarnation)))
        };
        processes().any(|p| p.component_state == ComponentState::Primary && is_whole(p))
    }

    /// True if the others may go on by themselves beside this node: it has no vote among them, and they cannot hear it.
    /// The operator repairs the network first; two forced views would exclude each other (seed 6100040093 of
    /// `voting-arbitrators`).
    fn others_may_reform(&self, node: NodeId) -> bool {
        let last = self.delivered.last();
        let seat = last.and_then(|(_, view)| view.replica(self.machines[node].replica));
        seat.is_none_or(|member| member.weight == 0) && self.is_cut_off(node)
    }

    /// Acts as the operator after a blackout: bootstraps the node with the most advanced database, unless a component
    /// goes on (seed 700012294).
    pub(crate) fn bootstrap(&mut self) {
        let best = self.best_to_bootstrap();
        if best.is_some_and(|node| self.others_may_reform(node)) {
            let at = self.now_us + LOOKS_AGAIN_US;
            self.queue.push(at, Happening::Bootstrap);
            return;
        }
        self.dark = false;
        if let Some(node) = best.filter(|_| !self.goes_on()) {
            if self.furthest(node) < (true, 0) {
                // No database can be used: a new cluster begins, and all old logs are moved away, also those of
                // arbitrators.
                for other in 0..self.machines.len() {
                    self.machines[other].back_us = self.now_us;
                    self.crash(other, false);
                }
                for machine in &mut self.machines {
                    machine.disk = MemoryDisk::default();
                    machine.left = Left::default();
                }
            }
            self.machines[node].bootstrap = true;
            self.start(node);
        }
        for node in 0..self.machines.len() {
            let at = self.now_us + self.random.within(1_000..=2_000_000);
            self.queue.push(at, Happening::Start(node));
        }
    }

    /// The node that an operator chooses: it has the most advanced database. A node that does not know all forced views
    /// would make one that excludes the last (seed 700016437).
    fn best_to_bootstrap(&self) -> Option<NodeId> {
        let knows = |node: NodeId| {
            let known = &self.machines[node].left.overrides;
            self.furthest(node).0 && knows_all(known, &self.in_effect)
        };
        let nodes = (0..self.machines.len()).rev();
        nodes.max_by_key(|node| (knows(*node), self.furthest(*node)))
    }

    /// True if the node has a database, and that database's seqno.
    fn furthest(&self, node: NodeId) -> (bool, i64) {
        let known = self.database_of(node);
        (!known.uuid.is_nil(), known.seqno)
    }
}
