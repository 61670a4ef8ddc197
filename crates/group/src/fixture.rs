//! For the tests of the parts: the shared state that every part may read, for a member of a small group.

use crate::config::Config;
use crate::configuration::{Configuration, Member};
use crate::context::Context;
use crate::ids::{Incarnation, ReplicaId, Uuid};
use crate::known::{Known, known};
use crate::log::Log;
use crate::peers::Peers;

/// The state that [`Known`] borrows.
pub(crate) struct Fixture {
    pub context: Context,
    pub log: Log,
    pub peers: Peers,
}

impl Fixture {
    /// Member 1 of a history with this many founding members; no peer is connected.
    pub(crate) fn of(members: u8) -> Fixture {
        let mut log = Log::default();
        let configuration = Configuration {
            members: (1..=members).map(member).collect(),
            ..Configuration::default()
        };
        log.found(Uuid([9; 16]), Vec::new(), configuration);
        Fixture {
            context: Context::new(Config::new(member(1)), 0),
            log,
            peers: Peers::default(),
        }
    }

    pub(crate) fn known(&self) -> Known<'_> {
        known!(self)
    }
}

/// A member with a vote, whose ids are made of this number.
pub(crate) fn member(n: u8) -> Member {
    Member {
        replica: ReplicaId(Uuid([n; 16])),
        incarnation: Incarnation(Uuid([n; 16])),
        weight: 1,
        ..Member::default()
    }
}
