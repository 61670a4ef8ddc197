//! The losses that the cluster survives: the logs that are left must have enough votes.

use trireme_group::{Configuration, Position, Uuid};
use trireme_log::Durability;
use trireme_replicator::{LocalState, NoHistory};

use super::World;
use crate::machine::{Machine, Process};
use crate::seen::NodeId;

/// True if these forced views are in the past of the process's branch.
pub(super) fn is_past(overrides: &[Uuid], process: &Process) -> bool {
    let known = (process.engine.link()).map(|link| &link.group.checkpoint().overrides);
    known.is_some_and(|known| knows_all(known, overrides))
}

pub(super) fn knows_all(known: &[Uuid], overrides: &[Uuid]) -> bool {
    overrides.iter().all(|id| known.contains(id))
}

/// The votes of these machines.
pub(super) fn weight_of<'a>(
    configuration: &Configuration,
    machines: impl Iterator<Item = &'a Machine>,
) -> u64 {
    let seats = machines.filter_map(|machine| configuration.replica(machine.replica));
    seats.map(|member| u64::from(member.weight)).sum()
}

impl World {
    /// True if the group can lose this node's process, with its log, and still go on: in every configuration that may
    /// be in force, the intact members have enough votes.
    pub(crate) fn survivable(&self, node: NodeId) -> bool {
        self.others_weigh(node, |weight, total| weight * 2 >= total)
            && self.outvoting_survives(node)
    }

    /// False if the node's component goes on beside a forced view, and cannot lose this node. What is left of it would have
    /// to choose between the two (an automatic view gives way: seed 118371 of `mistakes`), or would make a forced view of
    /// its own, by itself, that excludes the other.
    fn outvoting_survives(&self, node: NodeId) -> bool {
        let link = |node: NodeId| self.machines[node].process.as_deref()?.engine.link();
        let Some(own) = link(node).map(|link| link.group.checkpoint()) else {
            return true;
        };
        if knows_all(&own.overrides, &self.in_effect) {
            return true;
        }
        let others = (0..self.machines.len()).filter(|other| *other != node);
        let stay = others.filter(|other| {
            let is_intact = (self.machines[*other].process.as_deref()).is_some_and(|p| p.intact);
            let is_here =
                link(*other).is_some_and(|link| link.group.checkpoint().overrides == own.overrides);
            is_intact && is_here && !self.machines[*other].will_forget()
        });
        let stay: Vec<&Machine> = stay.map(|other| &self.machines[other]).collect();
        let told = self.with_told_weights(&own.configuration);
        [&own.configuration, &told].into_iter().all(|c| {
            let weight = weight_of(c, stay.iter().copied());
            weight * 2 >= c.total_weight()
        })
    }

    /// The same if the node's disk is lost: the node comes back as another replica.
    pub(crate) fn survivable_for_good(&self, node: NodeId) -> bool {
        self.others_weigh(node, |weight, total| weight * 2 > total)
    }

    pub(crate) fn others_weigh(&self, node: NodeId, enough: impl Fn(u64, u64) -> bool) -> bool {
        let machines = || {
            let machines = self.machines.iter().enumerate();
            machines.filter(move |(index, _)| *index != node && !self.is_astray(*index))
        };
        let lasts = |process: &Process| {
            let status = process.engine.replicator.status(&NoHistory);
            // The joiner's process ends with its donor's process, and loses its log in memory.
            let is_at_risk = self.plan.durability == Durability::Memory
                && status.local_state == LocalState::Joiner;
            status.local_state != LocalState::Inconsistent && !is_at_risk
        };
        let intact = |process: &&Process| {
            let stays = process.leaving_us.is_none() && !process.server.has_failed();
            // Entries of a branch without a forced view are lost.
            let is_here = is_past(&self.in_effect, process);
            process.intact && stays && is_here && lasts(process)
        };
        let commit = |process: &Process| process.engine.link().map_or(0, |l| l.group.commit());
        // An intact data directory counts whether or not a process runs on it.
        let intact = || {
            machines().filter_map(|(_, machine)| match machine.process.as_deref() {
                Some(process) if process.engine.link().is_some() => {
                    intact(&process).then(|| (machine, commit(process)))
                }
                _ => {
                    let is_here = knows_all(&machine.left.overrides, &self.in_effect);
                    let left = (machine, machine.left.commit);
                    (machine.left.intact && is_here).then_some(left)
                }
            })
        };
        let Some(known) = intact().map(|(_, commit)| commit).max() else {
            return false;
        };
        let survives = |configuration: &Configuration| {
            let stay = intact().map(|(machine, _)| machine);
            let weight = weight_of(configuration, stay.filter(|m| !m.will_forget()));
            weight > 0 && enough(weight, configuration.total_weight())
        };
        let survives_soon = |c: &Configuration| survives(c) && survives(&self.with_told_weights(c));
        self.in_force(node, known).all(survives_soon)
    }

    /// The configuration with the weights that its nodes were told: the next one may have them (seed 3600064710), those of
    /// learners, too.
    fn with_told_weights(&self, configuration: &Configuration) -> Configuration {
        let mut told = configuration.clone();
        for member in &mut told.members {
            let machine = self.machines.iter().find(|m| m.replica == member.replica);
            member.weight = machine.map_or(member.weight, |machine| machine.weight);
        }
        told
    }

    /// True if, in a configuration that may be in force, the existing replicas are no majority: a replica was lost
    /// for good before the others could remove it.
    pub(crate) fn lost_for_good(&self) -> bool {
        let processes = self.machines.iter().filter_map(|m| m.process.as_deref());
        let commits = processes.filter_map(|p| Some(p.engine.link()?.group.commit()));
        let exists = |replica| self.machines.iter().any(|m| m.replica == replica);
        let stays = |configuration: &Configuration| {
            let stays = configuration.members.iter().filter(|m| exists(m.replica));
            configuration.is_majority(stays.map(|m| u64::from(m.weight)).sum())
        };
        !self
            .in_force(NodeId::MAX, commits.max().unwrap_or(0))
            .all(stays)
    }

    /// The configuration in force at this position, and all later ones that were delivered or that are in logs of
    /// processes. Logs of astray nodes do not count, except the log of `node`.
    fn in_force(&self, node: NodeId, known: Position) -> impl Iterator<Item = &Configuration> {
        let from = self.delivered.partition_point(|(at, _)| *at <= known);
        let delivered = self.delivered[from.saturating_sub(1)..].iter();
        let machines = self.machines.iter().enumerate();
        let counts = machines.filter(move |(index, _)| *index == node || !self.is_astray(*index));
        let logged = counts
            .filter_map(|(_, machine)| machine.process.as_deref())
            .flat_map(|process| &process.configurations)
            .filter(move |(at, _)| *at > known);
        delivered
            .chain(logged)
            .map(|(_, configuration)| configuration)
    }
}
