//! Entries that the log keeps because a member's log lacks them (rule 12), and the report of that to the operator.

use std::collections::BTreeMap;

use trireme_group::{Group, Incarnation, Position, Term};
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
    pub(crate) fn among(unreported: &[(Incarnation, Position)], words: &Words) -> Option<Laggard> {
        let lacks = |(member, from): &(Incarnation, Position)| Laggard {
            member: *member,
            lacks_from: match planted(Mutant::PauseFillsAllLogs) {
                true => *from,
                false => (*from).max(words.of(*member) + 1),
            },
        };
        unreported.iter().map(lacks).min_by_key(|l| l.lacks_from)
    }
}

/// Time after which a member's word that its log holds everything up to a position is believed.
const BELIEVED_AFTER_MS: u64 = 10_000;

/// The members' words that their logs hold everything up to a position, as they were 10 to 20 s ago. A log that was
/// replaced in place begins at the position of the first such word: it may lack the entries below. Its owner pulls these
/// within seconds, and from then on the pull keeps them.
#[derive(Debug, Default)]
pub(crate) struct Words {
    believed: BTreeMap<Incarnation, Position>,
    noted: BTreeMap<Incarnation, Position>,
    noted_ms: u64,
    /// The term of these words. In another term the same positions may have other entries.
    term: Term,
}

impl Words {
    /// Takes in the words of these members. `held_by`: a member's present word, in this term.
    pub(crate) fn hear(
        &mut self,
        now_ms: u64,
        term: Term,
        unreported: &[(Incarnation, Position)],
        held_by: impl Fn(Incarnation) -> Position,
    ) {
        if term != self.term {
            *self = Words {
                noted_ms: now_ms,
                term,
                ..Words::default()
            };
        }
        if now_ms < self.noted_ms + BELIEVED_AFTER_MS {
            return;
        }
        let words = unreported.iter().map(|(id, _)| (*id, held_by(*id)));
        self.believed = std::mem::replace(&mut self.noted, words.collect());
        self.noted_ms = now_ms;
    }

    /// Returns the position up to which this member's log holds everything; 0: nothing is known.
    fn of(&self, member: Incarnation) -> Position {
        self.believed.get(&member).copied().unwrap_or_default()
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
        let words = Words::default();
        let laggard = Laggard::among(&[(member(1), 30), (member(2), 20)], &words);
        let expected = Laggard {
            member: member(2),
            lacks_from: 20,
        };
        assert_eq!(laggard, Some(expected));
        assert_eq!(Laggard::among(&[], &words), None);
    }

    fn member(number: u8) -> Incarnation {
        Incarnation(trireme_group::Uuid([number; 16]))
    }

    /// The log of a member was replaced in place: it has still to pull what lies below.
    #[test]
    fn a_member_that_says_that_it_holds_everything_is_believed_later() {
        let unreported = [(member(1), 30)];
        let mut words = Words::default();
        let mut lacks_from = |now_ms: u64, held: Position| {
            words.hear(now_ms, Term::default(), &unreported, |_| held);
            Laggard::among(&unreported, &words).map(|l| l.lacks_from)
        };
        for now_ms in (50_000..100_000).step_by(500) {
            lacks_from(now_ms, 40);
        }
        assert_eq!(lacks_from(100_000, 40), Some(41));
        for now_ms in (100_500..110_500).step_by(500) {
            let lacks_from = lacks_from(now_ms, 90);
            assert_eq!(lacks_from, Some(41), "it pulls at {now_ms}");
        }
        for now_ms in (110_500..=121_000).step_by(500) {
            lacks_from(now_ms, 90);
        }
        assert_eq!(lacks_from(121_500, 90), Some(91));
        let another = Term {
            number: 1,
            ..Term::default()
        };
        words.hear(200_000, another, &unreported, |_| 90);
        assert_eq!(words.of(member(1)), 0, "it may be of another branch");
    }
}
