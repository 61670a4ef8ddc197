//! The report of two forced views that follow the same history (rule 11): neither side gives way, and an operator must
//! know.

use std::collections::BTreeMap;

use crate::branches::Branches;
use crate::configuration::Member;
use crate::ids::{Incarnation, Position, ReplicaId, Uuid};
use crate::message::{ComponentState, Status};

impl<'a> Branches<'a> {
    pub(crate) fn describe_split(self) -> String {
        let own = &self.log.committed().overrides;
        // For each branch: the status with the greatest commit point, and the names of its members.
        let mut branches: BTreeMap<Uuid, (&Status, Vec<String>)> = BTreeMap::new();
        let mut fork = own.len().saturating_sub(1);
        for (incarnation, peer) in self.peers.connected() {
            let Some(status) = peer.status.as_ref().filter(|s| self.excludes(s)) else {
                continue;
            };
            let common = common(own, &status.overrides);
            fork = fork.min(common);
            let id = status.overrides[common]; // the two histories exclude each other
            let (furthest, names) = branches.entry(id).or_insert((status, Vec::new()));
            if furthest.commit < status.commit {
                *furthest = status;
            }
            names.push(self.name_of(incarnation, peer.replica));
        }
        let here = own.get(fork).copied().unwrap_or_default();
        let made = (self.forced_views.position_of(here))
            .map_or(String::new(), |at| format!(", made at position {at}"));
        let members = self.log.committed().configuration.members.iter();
        let members: Vec<_> = members.map(name).collect();
        let side_here = side(
            self.component.state(),
            &members,
            self.log.committed().position,
        );
        let sides_there: Vec<_> = (branches.iter())
            .map(|(id, (status, names))| {
                let side = side(status.component_state, names, status.commit);
                format!("there the override {id} ({side})")
            })
            .collect();
        let is_primary = |component_state| component_state == ComponentState::Primary;
        let both = is_primary(self.component.state())
            && (branches.values()).any(|(status, _)| is_primary(status.component_state));
        let what = if both { "split brain: " } else { "" };
        format!(
            "{what}overrides that exclude each other have forked the history {}, and no side gives way by itself: here \
             the override {here}{made} ({side_here}); {}. Each side lacks the writes of the other. Decide which side \
             to keep, send all clients there, and save the rows of the other side that you want to carry over by hand. \
             First stop all nodes of the other side: one that still runs could admit a node without a history. Then on \
             each of them move grastate.dat and the trireme-*.log files away (which gives up that node's commits since \
             the fork), and start it again: it joins by a state snapshot. Do not bootstrap it",
            self.log.committed().history,
            sides_there.join("; "),
        )
    }

    /// True if the sender's log and this one each have a forced view that the other lacks.
    pub(crate) fn excludes(self, status: &Status) -> bool {
        let (own, theirs) = (&self.log.committed().overrides, &status.overrides);
        // A process that is giving way has no branch to defend.
        let stands = !self.component.is_outside() && !self.is_overridden();
        stands
            && status.component_state != ComponentState::Outside
            && status.history == self.log.committed().history
            && common(own, theirs) < own.len().min(theirs.len())
    }

    pub(crate) fn name_of(self, incarnation: Incarnation, replica: ReplicaId) -> String {
        let members = &self.log.committed().configuration;
        let before = self.forced_views.member_before(replica);
        let member = before.or_else(|| members.replica(replica));
        member.map_or_else(|| incarnation.to_string(), name)
    }
}

/// The number of forced views at the begin of both histories that are the same.
pub(crate) fn common(some: &[Uuid], others: &[Uuid]) -> usize {
    let pairs = some.iter().zip(others);
    pairs.take_while(|(one, other)| one == other).count()
}

fn name(member: &Member) -> String {
    format!("{} at {}", member.name, member.address)
}

fn side(component_state: ComponentState, names: &[String], commit: Position) -> String {
    let component_state = match component_state {
        ComponentState::Primary => "primary",
        ComponentState::NonPrimary | ComponentState::Outside => "not primary",
    };
    format!(
        "{}; {component_state}, committed up to position {commit}",
        names.join(", ")
    )
}
