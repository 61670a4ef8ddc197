//! Entries that the log keeps because a member's log lacks them (rule 12), and the report of that to the operator.

use trireme_group::{Group, Incarnation, Position};
use trireme_mutants::{Mutant, planted};

/// The member whose log lacks most entries.
#[derive(Debug, PartialEq)]
pub(crate) struct Laggard {
    member: Incarnation,
    /// The lowest position that its log may lack.
    pub lacks_from: Position,
}

impl Laggard {
    /// Returns the member that lacks most. `unreported`: as in [`trireme_replicator::LogAction::Pin`]. A member needs
    /// no entry from us that its own log holds, even if it applies slowly or is paused.
    pub(crate) fn among(unreported: &[(Incarnation, Position)], group: &Group) -> Option<Laggard> {
        let lacks = |(member, from): &(Incarnation, Position)| Laggard {
            member: *member,
            lacks_from: match planted(Mutant::PauseFillsAllLogs) {
                true => *from,
                false => (*from).max(group.held_by(*member) + 1),
            },
        };
        unreported.iter().map(lacks).min_by_key(|l| l.lacks_from)
    }
}

/// The size of the log beyond `gcache.size` at the last report to the operator.
#[derive(Debug, Default)]
pub(crate) struct Told {
    excess_bytes: u64,
}

impl Told {
    /// Notes that the log exceeds `gcache.size` by `excess_bytes`, because of this member. Returns the report, if one
    /// is due: not below `unsaid_bytes`, and then each time when the excess has doubled.
    pub(crate) fn grows(
        &mut self,
        excess_bytes: u64,
        unsaid_bytes: u64,
        laggard: &Laggard,
        group: &Group,
    ) -> Option<String> {
        if excess_bytes < unsaid_bytes.max(2 * self.excess_bytes) {
            if excess_bytes < unsaid_bytes {
                self.excess_bytes = 0;
            }
            return None;
        }
        self.excess_bytes = excess_bytes;
        let configuration = &group.checkpoint().configuration;
        let name = configuration.member(laggard.member).map_or("", |m| &m.name);
        Some(format!(
            "the write-set log is {} MiB larger than gcache.size: it keeps the write-sets that {} ({name}) has not \
             received, and grows until that node has received them or has left the cluster; check the network to that \
             node, and the free space on this disk",
            excess_bytes >> 20,
            laggard.member,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trireme_group::{Config, Member, Recovered};

    #[test]
    fn a_log_that_grows_is_told_of_now_and_then() {
        let group = Group::new(Config::new(Member::default()), Recovered::default(), 0);
        let laggard = Laggard {
            member: Incarnation::default(),
            lacks_from: 7,
        };
        let mut told = Told::default();
        let mut is_told = |mib: u64| {
            let told = told.grows(mib << 20, 64 << 20, &laggard, &group);
            told.is_some()
        };
        let sizes = [1, 63, 64, 100, 127, 128, 200, 300, 10, 63, 64];
        let expected = [2, 5, 7, 10];
        let said: Vec<usize> = (0..sizes.len()).filter(|at| is_told(sizes[*at])).collect();
        assert_eq!(said, expected);
    }

    #[test]
    fn who_is_not_heard_lacks_what_it_has_not_reported() {
        let group = Group::new(Config::new(Member::default()), Recovered::default(), 0);
        let member = |n| Incarnation(trireme_group::Uuid([n; 16]));
        let laggard = Laggard::among(&[(member(1), 30), (member(2), 20)], &group);
        let expected = Laggard {
            member: member(2),
            lacks_from: 20,
        };
        assert_eq!(laggard, Some(expected));
        assert_eq!(Laggard::among(&[], &group), None);
    }
}
