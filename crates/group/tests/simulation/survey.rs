//! What the simulation may do to a group without asking too much of it, and whether it has recovered.

use trireme_group::{Body, ComponentState, Configuration};

use crate::world::World;

impl World {
    /// True if the group keeps its history and can go on without `node`: of the configuration that the others know to be
    /// committed, and of every later one, intact members other than `node` weigh at least half (rule 4).
    pub fn survivable(&self, node: usize) -> bool {
        // A data directory from which nothing is missing counts, whether a process runs on it or not.
        let intact = || {
            let others = self.nodes.iter().enumerate();
            let others = others.filter(move |(index, _)| *index != node);
            others.filter_map(|(_, node)| match (&node.process, &node.kept) {
                (Some(process), _) if process.intact && !process.leaving => {
                    Some((node.replica, process.committed))
                }
                (None, Some(kept)) if !kept.amnesiac => Some((node.replica, kept.log.commit)),
                _ => None,
            })
        };
        let Some(known) = intact().map(|(_, committed)| committed).max() else {
            return false;
        };
        let survives = |configuration: &Configuration| {
            let seats = intact().filter_map(|(replica, _)| configuration.replica(replica));
            let weight: u64 = seats.map(|m| u64::from(m.weight)).sum();
            weight > 0 && weight * 2 >= configuration.total_weight()
        };
        let processes = self.nodes.iter().filter_map(|node| node.process.as_ref());
        let logged = processes
            .flat_map(|p| p.log.above(known))
            .filter_map(|entry| match &entry.body {
                Body::Configuration(configuration) => Some(configuration),
                _ => None,
            });
        self.judge.configurations_from(known).all(survives) && logged.into_iter().all(survives)
    }

    /// Everybody is primary, with a vote, at the same end, and nobody waits for an answer.
    pub fn settled(&self) -> Result<(), String> {
        for node in &self.nodes {
            let Some(process) = &node.process else {
                return Err(format!("{} does not run", node.replica));
            };
            let group = &process.group;
            let configuration = group.configuration();
            let seat = configuration.member(process.incarnation);
            if group.component_state() != ComponentState::Primary || process.leaving {
                return Err(format!("{} is {:?}", process.name, group.component_state()));
            }
            if configuration.members.len() != self.nodes.len() || seat.is_none_or(|m| !m.voter) {
                return Err(format!(
                    "{} is without a vote or a member is missing",
                    process.name
                ));
            }
            if group.commit() != group.end() || group.commit() != self.judge.end() {
                return Err(format!(
                    "{} has committed {} of {}",
                    process.name,
                    group.commit(),
                    self.judge.end()
                ));
            }
            if process.waiting() > 0 || !process.reads.is_empty() {
                let numbers: Vec<_> = process.submissions.iter().take(5).collect();
                return Err(format!(
                    "{} waits: {numbers:?}, reads {:?}",
                    process.name, process.reads
                ));
            }
        }
        Ok(())
    }
}
