//! The notes of a node on its log and its database, kept and flushed in `trireme-state.log` (docs/log-format.md).

use trireme_group::{Group, Uuid};
use trireme_log::Durability;
use trireme_mutants::{Mutant, planted};
use trireme_replicator::{Gtid, LastAction, Seqno};

/// The version that is written; every lower version can be read.
const VERSION: u8 = 1;
/// Length of the note without its overrides.
const BYTES: usize = 1 + 1 + 1 + 16 + 16 + 8;
const OVERRIDE_BYTES: usize = 16 + 8;

/// Stands for the id of a boot that cannot be read: the machine may have restarted since any other boot.
pub const UNKNOWN_BOOT: [u8; 16] = [0xff; 16];

/// The notes of one process, which outlive it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The process has ended in an orderly way, with the whole log flushed.
    pub clean: bool,
    /// Acknowledged data that this replica may lack, and has not got back from others yet.
    pub forgotten: Forgotten,
    /// `repl.durability` in force: the guarantee behind this process's acknowledgements.
    pub durability: Durability,
    /// Boot of the machine: in `os` mode, a new boot may have lost entries (rule 4).
    pub boot_id: [u8; 16],
    /// The last total-order action that began to execute here: the database may hold it although its
    /// position is lower (rule 13).
    pub action: LastAction,
    /// Overrides that the database's history includes, each with the last seqno before it (rule 11).
    pub overrides: Vec<(Uuid, Seqno)>,
    /// The database differs from the cluster's state, until an SST replaces it or an operator bootstraps it.
    /// grastate.dat says the same, but an operator may remove that file.
    pub diverged: bool,
    /// Id of the log; nil: it has none, since an earlier version began it.
    pub log: Uuid,
    /// The trial of the server on the entries above its starting position; None: it did not start there with this log.
    pub trial: Option<Trial>,
}

/// The kinds of acknowledged data that a replica may lack (rule 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// Entries may be lost.
    pub entries: bool,
    /// Configurations may be lost, too; only true together with `entries`.
    pub views: bool,
}

impl Forgotten {
    /// Returns the group's view of this replica.
    pub(crate) fn by(group: &Group) -> Forgotten {
        Forgotten {
            entries: group.is_amnesiac(),
            views: group.has_lost_views(),
        }
    }
}

/// A trial: a server starts at a position of its database, and applies the entries above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The database's position at the start.
    pub at: Seqno,
    /// Number of processes in a row that started there, began to apply, and died.
    pub deaths: u8,
    /// This process has begun to apply.
    pub begun: bool,
}

impl Trial {
    /// The number of deaths in a row that is no accident.
    pub const DEATHS_MAX: u8 = 3;

    /// Returns the trial of a process that starts with its database at this position, after a process that left `last`.
    /// A process that died before it began to apply does not count.
    pub fn after(last: &Session, at: Seqno) -> Trial {
        let is_here = |trial: &Trial| trial.at == at || planted(Mutant::DeathsElsewhereCount);
        let before = last.trial.filter(|trial| is_here(trial) && !last.clean);
        let deaths = before.map_or(0, |trial| match trial.begun {
            _ if planted(Mutant::DeathsNotCounted) => 0,
            _ if planted(Mutant::IdleDeathsCount) => trial.deaths.saturating_add(1),
            true => trial.deaths.saturating_add(1),
            false => trial.deaths,
        });
        Trial {
            at,
            deaths,
            begun: false,
        }
    }
}

const CLEAN: u8 = 1;
const AMNESIAC: u8 = 2;
const ACTION_ENDED: u8 = 4;
const ACTION_OF_EARLIER_BOOT: u8 = 8;
const LOG: u8 = 16;
const LOST_VIEWS: u8 = 64;
const DIVERGED: u8 = 128;
const LOG_BYTES: usize = 16;
const TRIAL: u8 = 32;
const TRIAL_BYTES: usize = 8 + 1 + 1;

impl Session {
    /// Returns the session of a process that begins, with nothing in the database's past.
    pub fn new(durability: Durability, boot_id: [u8; 16]) -> Session {
        Session {
            clean: false,
            forgotten: Forgotten::default(),
            durability,
            boot_id,
            action: LastAction::NONE,
            overrides: Vec::new(),
            diverged: false,
            log: Uuid::NIL,
            trial: None,
        }
    }

    fn is_of_boot(&self, boot_id: [u8; 16]) -> bool {
        boot_id != UNKNOWN_BOOT && self.boot_id == boot_id
    }

    /// Returns the action, as seen by a process that runs in this boot of the machine.
    pub fn action_as_of(&self, boot_id: [u8; 16]) -> LastAction {
        LastAction {
            same_boot: self.action.same_boot && self.is_of_boot(boot_id),
            ..self.action
        }
    }

    /// Returns the session as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(BYTES);
        out.push(VERSION);
        let flags = [
            (self.clean, CLEAN),
            (self.forgotten.entries, AMNESIAC),
            (self.action.ended, ACTION_ENDED),
            (!self.action.same_boot, ACTION_OF_EARLIER_BOOT),
            (!self.log.is_nil(), LOG),
            (self.trial.is_some(), TRIAL),
            (self.forgotten.views, LOST_VIEWS),
            (self.diverged, DIVERGED),
        ];
        let set = flags.iter().filter(|(is_set, _)| *is_set);
        out.push(set.map(|(_, flag)| flag).sum());
        out.push(match self.durability {
            Durability::Memory => 0,
            Durability::Os => 1,
            Durability::Disk => 2,
        });
        out.extend_from_slice(&self.boot_id);
        out.extend_from_slice(&self.action.gtid.uuid.0);
        out.extend_from_slice(&self.action.gtid.seqno.to_le_bytes());
        if !self.log.is_nil() {
            out.extend_from_slice(&self.log.0);
        }
        if let Some(trial) = self.trial {
            out.extend_from_slice(&trial.at.to_le_bytes());
            out.extend_from_slice(&[trial.deaths, trial.begun.into()]);
        }
        for (id, seqno) in &self.overrides {
            out.extend_from_slice(&id.0);
            out.extend_from_slice(&seqno.to_le_bytes());
        }
        out
    }

    /// Returns the session in these bytes; None if they are not a session, or of a newer version.
    pub fn decode(bytes: &[u8]) -> Option<Session> {
        let (fixed, rest) = bytes.split_at_checked(BYTES)?;
        let (head, action) = fixed.split_at(19);
        let [VERSION, flags, durability, boot_id @ ..] = head else {
            return None;
        };
        let (log, rest) = match flags & LOG {
            0 => (Uuid::NIL, rest),
            _ => {
                let (log, rest) = rest.split_at_checked(LOG_BYTES)?;
                (Uuid(log.try_into().ok()?), rest)
            }
        };
        let (trial, overrides) = match flags & TRIAL {
            0 => (None, rest),
            _ => {
                let (bytes, rest) = rest.split_at_checked(TRIAL_BYTES)?;
                (Some(trial(bytes)?), rest)
            }
        };
        let overrides = overrides.chunks(OVERRIDE_BYTES).map(gtid);
        let overrides: Option<Vec<Gtid>> = overrides.collect();
        Some(Session {
            clean: flags & CLEAN != 0,
            forgotten: Forgotten {
                entries: flags & AMNESIAC != 0,
                views: flags & LOST_VIEWS != 0,
            },
            durability: match durability {
                0 => Durability::Memory,
                1 => Durability::Os,
                2 => Durability::Disk,
                _ => return None,
            },
            boot_id: boot_id.try_into().ok()?,
            action: LastAction {
                gtid: gtid(action)?,
                ended: flags & ACTION_ENDED != 0,
                same_boot: flags & ACTION_OF_EARLIER_BOOT == 0,
            },
            overrides: (overrides?.iter()).map(|at| (at.uuid, at.seqno)).collect(),
            diverged: flags & DIVERGED != 0,
            log,
            trial,
        })
    }

    /// Returns true if a process after this one may lack entries that this one acknowledged (rule 4).
    pub fn has_forgotten(&self, boot_id: [u8; 16]) -> bool {
        match self.durability {
            _ if self.clean => false,
            Durability::Memory => true,
            Durability::Os => !self.is_of_boot(boot_id),
            Durability::Disk => false,
        }
    }
}

fn gtid(bytes: &[u8]) -> Option<Gtid> {
    let (uuid, seqno) = bytes.split_at_checked(16)?;
    Some(Gtid {
        uuid: Uuid(uuid.try_into().ok()?),
        seqno: i64::from_le_bytes(seqno.try_into().ok()?),
    })
}

fn trial(bytes: &[u8]) -> Option<Trial> {
    let (at, rest) = bytes.split_at_checked(8)?;
    let [deaths, begun @ (0 | 1)] = rest else {
        return None;
    };
    Some(Trial {
        at: i64::from_le_bytes(at.try_into().ok()?),
        deaths: *deaths,
        begun: *begun == 1,
    })
}

/// Returns the id of a log after the process that takes it up next.
pub(crate) fn next_log_id(id: Uuid) -> Uuid {
    // The first half names the replica, the second half is random in the id of a new log.
    Uuid(u128::from_be_bytes(id.0).wrapping_add(1).to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Session {
        Session {
            clean: true,
            forgotten: Forgotten {
                entries: true,
                views: false,
            },
            durability: Durability::Disk,
            boot_id: [7; 16],
            action: LastAction {
                gtid: Gtid {
                    uuid: Uuid([9; 16]),
                    seqno: 0x0102_0304,
                },
                ended: false,
                same_boot: false,
            },
            overrides: vec![(Uuid([5; 16]), 6), (Uuid([4; 16]), 0x0908)],
            diverged: false,
            log: Uuid::NIL,
            trial: None,
        }
    }

    #[test]
    fn the_bytes_are_as_documented() {
        let golden = [
            &[1, 1 + 2 + 8, 2][..],
            &[7; 16],
            &[9; 16],
            &[4, 3, 2, 1, 0, 0, 0, 0],
            &[5; 16],
            &[6, 0, 0, 0, 0, 0, 0, 0],
            &[4; 16],
            &[8, 9, 0, 0, 0, 0, 0, 0],
        ]
        .concat();
        assert_eq!(sample().encode(), golden);
        assert_eq!(Session::decode(&golden), Some(sample()));
        let without = Session {
            overrides: Vec::new(),
            ..sample()
        };
        assert_eq!(Session::decode(&golden[..BYTES]), Some(without));
        let named = Session {
            log: Uuid([3; 16]),
            ..sample()
        };
        let mut golden = [&golden[..BYTES], &[3; 16], &golden[BYTES..]].concat();
        golden[1] += 16;
        assert_eq!(named.encode(), golden);
        assert_eq!(Session::decode(&golden), Some(named.clone()));
        let tried = Session {
            trial: Some(Trial {
                at: 0x0706,
                deaths: 2,
                begun: true,
            }),
            ..named
        };
        let trial = [6, 7, 0, 0, 0, 0, 0, 0, 2, 1];
        let (head, overrides) = golden.split_at(BYTES + 16);
        let mut golden = [head, &trial, overrides].concat();
        golden[1] += 32;
        assert_eq!(tried.encode(), golden);
        assert_eq!(Session::decode(&golden), Some(tried));
        golden[BYTES + 16 + 9] = 2;
        assert_eq!(Session::decode(&golden), None, "neither begun nor not");
    }

    #[test]
    fn only_who_died_after_it_had_begun_at_the_same_position_counts() {
        let left = |at, deaths, begun, clean| Session {
            clean,
            trial: Some(Trial { at, deaths, begun }),
            ..sample()
        };
        let deaths = |last: Session| Trial::after(&last, 7).deaths;
        assert_eq!(deaths(left(7, 0, true, false)), 1);
        assert_eq!(deaths(left(7, 2, true, false)), 3);
        assert_eq!(deaths(left(7, 255, true, false)), 255);
        assert_eq!(deaths(left(7, 2, false, false)), 2, "it had not begun");
        assert_eq!(deaths(left(7, 2, true, true)), 0, "it ended by itself");
        assert_eq!(deaths(left(6, 2, true, false)), 0, "it got further");
        assert_eq!(deaths(sample()), 0, "an older version's note");
        assert!(!Trial::after(&left(7, 0, true, false), 7).begun);
    }

    #[test]
    fn that_configurations_may_be_missing_is_a_flag() {
        let lost = Session {
            forgotten: Forgotten {
                entries: true,
                views: true,
            },
            ..sample()
        };
        assert_eq!(lost.encode()[1], sample().encode()[1] + 64);
        assert_eq!(Session::decode(&lost.encode()), Some(lost));
    }

    #[test]
    fn that_the_database_has_diverged_is_a_flag() {
        let diverged = Session {
            diverged: true,
            ..sample()
        };
        assert_eq!(diverged.encode()[1], sample().encode()[1] + 128);
        assert_eq!(Session::decode(&diverged.encode()), Some(diverged));
    }

    #[test]
    fn an_action_is_of_an_earlier_boot_for_ever() {
        let noted = Session {
            action: LastAction {
                ended: true,
                same_boot: true,
                ..sample().action
            },
            ..sample()
        };
        assert_eq!(Session::decode(&noted.encode()), Some(noted.clone()));
        assert!(noted.action_as_of([7; 16]).same_boot);
        let later = noted.action_as_of([8; 16]);
        assert_eq!((later.ended, later.same_boot), (true, false));
        // Saved by the process that came next, in that boot.
        let saved = Session {
            action: later,
            boot_id: [8; 16],
            ..sample()
        };
        assert!(!saved.action_as_of([8; 16]).same_boot);
        let unknown = Session {
            boot_id: UNKNOWN_BOOT,
            ..sample()
        };
        assert!(!unknown.action_as_of(UNKNOWN_BOOT).same_boot);
    }

    #[test]
    fn other_bytes_are_no_note() {
        let golden = sample().encode();
        for (at, byte) in [(0, 2), (2, 3)] {
            let mut bytes = golden.clone();
            bytes[at] = byte;
            assert_eq!(Session::decode(&bytes), None, "byte {at}");
        }
        assert_eq!(Session::decode(&golden[1..]), None);
        assert_eq!(Session::decode(&[golden, vec![0]].concat()), None);
    }

    #[test]
    fn each_mode_forgets_what_it_does_not_promise_to_keep() {
        let forgets = |durability, clean, boot| {
            let session = Session {
                clean,
                durability,
                ..sample()
            };
            session.has_forgotten([boot; 16])
        };
        let (same, other) = (7, 8);
        assert!(forgets(Durability::Memory, false, same));
        assert!(!forgets(Durability::Memory, true, other));
        assert!(!forgets(Durability::Os, false, same));
        assert!(forgets(Durability::Os, false, other));
        assert!(!forgets(Durability::Os, true, other));
        let of_unknown_boot = Session {
            clean: false,
            durability: Durability::Os,
            boot_id: UNKNOWN_BOOT,
            ..sample()
        };
        assert!(of_unknown_boot.has_forgotten(UNKNOWN_BOOT));
        assert!(!forgets(Durability::Disk, false, other));
    }
}
