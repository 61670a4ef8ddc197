//! The bounds of one exploration: how often each kind of action may happen.

use trireme_group::TimeMs;

use crate::network::NODES;
use crate::process::{Process, Settings};

/// Time that passes at a process in one step. It is enough to miss the leader and stand for election, to give up an
/// attempt, to ask again for a log, and for a heartbeat. Two steps without a message are enough to suspect a member
/// ([`Bound::settings`]).
pub const WAIT_MS: TimeMs = 600;
/// The period of heartbeats. It is longer than in production, so that [`WAIT_MS`] is at most two periods and a
/// process that waits has not overslept (rule 2).
pub const BEAT_MS: TimeMs = 300;

/// How often each kind of action may happen. The nodes are 0, 1, 2; node 0 is the first leader.
#[derive(Clone, Debug)]
pub struct Bound {
    /// For `--only`.
    pub name: &'static str,
    /// One line for the reader: the scenario.
    pub about: &'static str,
    /// The settings that all processes share.
    pub settings: Settings,
    /// Number of commits by clients, per node.
    pub submissions: [u8; NODES],
    /// Number of steps of [`WAIT_MS`], per node.
    pub waits: [u8; NODES],
    /// Number of further steps of [`BEAT_MS`], per node.
    pub beats: [u8; NODES],
    /// True for each node that may crash.
    pub crashes: [bool; NODES],
    /// Number of restarts of crashed processes. A restart loses the log.
    pub restarts: u8,
    /// The connections that may break.
    pub breaks: &'static [(usize, usize)],
    /// Number of breaks of connections, in total.
    pub breaks_total: u8,
    /// Number of terms after the first. Without this limit, two candidates can outbid each other for ever.
    pub terms: u64,
}

/// How often each kind of action has happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Spent {
    pub submissions: [u8; NODES],
    pub waits: [u8; NODES],
    pub beats: [u8; NODES],
    pub crashes: u8,
    pub restarts: u8,
    pub breaks: u8,
}

/// The number of the formed group's term.
const FIRST_TERM: u64 = 1;

impl Bound {
    /// True if the process is within the bound.
    pub fn includes(&self, process: &Process) -> bool {
        process.group.term().number <= FIRST_TERM + self.terms
    }
}

const QUIET: Bound = Bound {
    name: "",
    about: "",
    settings: Settings {
        suspect_timeout_ms: 1_100,
        slow_disk: false,
        batched: true,
    },
    submissions: [0; NODES],
    waits: [0; NODES],
    beats: [0; NODES],
    crashes: [false; NODES],
    restarts: 0,
    breaks: &[],
    breaks_total: 0,
    terms: 3,
};

/// Explored by the tests.
pub const SMALL: &[Bound] = &[
    Bound {
        name: "takeover",
        about: "members take leadership from a leader that is alive",
        submissions: [1, 0, 0],
        waits: [0, 1, 1],
        terms: 1,
        ..QUIET
    },
    Bound {
        name: "leader crash",
        about: "the leader crashes",
        submissions: [1, 1, 0],
        waits: [0, 1, 0],
        crashes: [true, false, false],
        ..QUIET
    },
    Bound {
        name: "leader restart",
        about: "the leader crashes and comes back without its log",
        waits: [0, 1, 0],
        crashes: [true, false, false],
        restarts: 1,
        terms: 1,
        ..QUIET
    },
    Bound {
        name: "member restart",
        about: "a member crashes and comes back without its log",
        crashes: [false, false, true],
        restarts: 1,
        ..QUIET
    },
];

/// Explored by `make model`.
pub const LARGE: &[Bound] = &[
    Bound {
        name: "two takeovers",
        about: "two commits, two changes of leadership",
        submissions: [1, 1, 0],
        waits: [0, 1, 1],
        terms: 2,
        ..QUIET
    },
    Bound {
        name: "three takeovers",
        about: "one commit, three changes of leadership",
        submissions: [1, 0, 0],
        waits: [0, 1, 1],
        terms: 3,
        ..QUIET
    },
    Bound {
        name: "message by message",
        about: "what was sent at once arrives one by one",
        settings: Settings {
            batched: false,
            ..QUIET.settings
        },
        submissions: [1, 0, 0],
        waits: [0, 1, 1],
        terms: 2,
        ..QUIET
    },
    Bound {
        name: "leader crash",
        about: "the leader crashes, both others seek leadership",
        submissions: [1, 1, 0],
        waits: [0, 1, 1],
        crashes: [true, false, false],
        terms: 1,
        ..QUIET
    },
    Bound {
        name: "leader restart",
        about: "the leader crashes and comes back without its log",
        submissions: [1, 0, 0],
        waits: [0, 1, 0],
        crashes: [true, false, false],
        restarts: 1,
        terms: 2,
        ..QUIET
    },
    Bound {
        name: "member restart",
        about: "a member comes back without its log while another takes leadership",
        submissions: [1, 0, 0],
        waits: [0, 1, 0],
        crashes: [false, false, true],
        restarts: 1,
        terms: 1,
        ..QUIET
    },
    Bound {
        name: "slow disk",
        about: "promises take time to be on disk, a member comes back without its log and perhaps its promise",
        settings: Settings {
            slow_disk: true,
            ..QUIET.settings
        },
        waits: [0, 1, 0],
        crashes: [false, false, true],
        restarts: 1,
        terms: 2,
        ..QUIET
    },
    Bound {
        name: "partition",
        about: "the leader loses both connections and gets them back",
        submissions: [1, 0, 0],
        waits: [0, 1, 0],
        breaks: &[(0, 1), (0, 2)],
        breaks_total: 2,
        terms: 1,
        ..QUIET
    },
    Bound {
        name: "broken link",
        about: "the leader and a member lose one another and connect again",
        submissions: [1, 0, 0],
        waits: [0, 1, 1],
        breaks: &[(0, 1)],
        breaks_total: 1,
        terms: 2,
        ..QUIET
    },
    Bound {
        name: "removal",
        about: "long silence: members are removed, the leader declares itself non-primary, all come back",
        waits: [2, 1, 1],
        breaks: &[(0, 2)],
        breaks_total: 1,
        terms: 1,
        ..QUIET
    },
];
