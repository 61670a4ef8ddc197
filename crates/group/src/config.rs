//! The options of a group core, and their defaults.

use trireme_mutants::{Mutant, planted};

use crate::configuration::Member;
use crate::message::{Preference, Proof};
use crate::thresholds::Thresholds;

/// The options of a group core.
#[derive(Clone, Debug, Hash)]
pub struct Config {
    /// This member; `weight` and `voter` are ignored.
    pub me: Member,
    /// Heartbeat period.
    pub heartbeat_ms: u64,
    /// Silence of the leader after which another member may become leader, if leaders were not silent for longer before
    /// (rule 2, `election_timer`). Also bounds what else rests on having heard a member just now: a leader's majority,
    /// the members here for a new view, a successor.
    pub leader_timeout_ms: u64,
    /// Silence after which a member without a majority becomes non-primary (`evs.suspect_timeout`, rule 10).
    pub suspect_timeout_ms: u64,
    /// Further silence before the leader removes a member: a member that is cut off stops being primary first, and does
    /// not serve while a view without it is in force. It covers two heartbeats, one by which the member may have heard
    /// the leader later, and one until the member's next tick.
    pub removal_margin_ms: u64,
    /// `pc.ignore_sb`: half of the votes may go on alone.
    pub ignore_split_brain: bool,
    /// `pc.ignore_quorum`: any component may go on.
    pub ignore_quorum: bool,
    /// `pc.wait_evidence`: after this time a majority goes on without the missing voters, although these may hold
    /// entries that the majority has forgotten; 0: never.
    pub wait_evidence_ms: u64,
    /// The evidence that this process has in seqnos, as its next promise carries it.
    pub proof: Proof,
    /// True if an executed [`crate::Action::Append`] is as durable as `repl.durability` demands (modes memory and os).
    pub append_is_durable: bool,
    /// Committed entries are dropped from memory beyond this size.
    pub tail_bytes: usize,
    /// Bytes sent ahead of a member's acknowledgements while it catches up.
    pub window_bytes: usize,
    /// A payload beyond this size is a bulk payload: it is disseminated before it is submitted
    /// ([`crate::Group::spread`]).
    pub large_bytes: usize,
    /// Size of the parts in which members fetch a bulk payload, at most 1 MiB.
    pub part_bytes: u32,
    /// From this size on a bulk payload is written to the log in pieces, ahead of its entry ([`crate::Action::Stage`]),
    /// in a file of its own.
    pub staged_bytes: u32,
    /// Greatest number of bytes of others' unsubmitted bulk payloads in memory; one payload may exceed it.
    pub bulk_bytes: u64,
    /// `repl.leader`.
    pub preference: Preference,
    /// True while this member may become leader: it is synced.
    pub able: bool,
    /// The server holds this node still, and entries wait: as a leader it would not learn that others have joined, and give
    /// nobody a vote.
    pub held: bool,
    /// True while its disk does not answer: another member should lead.
    pub stuck: bool,
    /// True if this member measures round trips and silences, and transfers leadership by them.
    pub measures: bool,
    /// `pc.bootstrap_expect`, if this node has no history at all: the number of nodes that found the cluster together.
    /// 0: this node does not take part.
    pub expect: u32,
    /// Sizes at which the core changes its method.
    pub thresholds: Thresholds,
}

impl Config {
    /// The defaults for a member.
    pub fn new(me: Member) -> Config {
        Config {
            me,
            heartbeat_ms: 100,
            leader_timeout_ms: 400,
            suspect_timeout_ms: 5_000,
            removal_margin_ms: 300,
            ignore_split_brain: false,
            ignore_quorum: false,
            wait_evidence_ms: 0,
            proof: Proof::default(),
            append_is_durable: true,
            tail_bytes: 16 << 20,
            window_bytes: 8 << 20,
            large_bytes: 1 << 20,
            part_bytes: 64 << 10,
            staged_bytes: 16 << 20,
            bulk_bytes: 2 << 30,
            preference: Preference::Auto,
            able: true,
            held: false,
            stuck: false,
            measures: true,
            expect: 0,
            thresholds: Thresholds::default(),
        }
    }

    /// True if members fetch a payload of this size, instead of getting it from the leader's catch-up.
    pub(crate) fn is_large(&self, bytes: usize) -> bool {
        bytes > self.large_bytes
    }

    /// Silence after which the leader removes a member.
    pub(crate) fn removal_timeout_ms(&self) -> u64 {
        match planted(Mutant::RemovedAtOnce) {
            true => self.suspect_timeout_ms,
            false => self.suspect_timeout_ms + self.removal_margin_ms,
        }
    }
}
