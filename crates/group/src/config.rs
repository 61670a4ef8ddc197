//! What the core is told, and its defaults.

use crate::configuration::Member;
use crate::message::{Proof, Wish};
use crate::thresholds::Thresholds;

/// What a group core is told once.
#[derive(Clone, Debug, Hash)]
pub struct Config {
    /// This member; `weight` and `voter` are ignored.
    pub me: Member,
    /// Heartbeat period.
    pub heartbeat_ms: u64,
    /// Silence of the leader after which its leadership may be taken (rule 2).
    pub leader_timeout_ms: u64,
    /// Silence after which a member is removed, and without a majority non-primary declared
    /// (`evs.suspect_timeout`, rule 10).
    pub suspect_timeout_ms: u64,
    /// `pc.ignore_sb`: half of the votes may go on alone.
    pub ignore_split_brain: bool,
    /// `pc.ignore_quorum`: any component may go on.
    pub ignore_quorum: bool,
    /// `pc.wait_evidence`: after so long a majority goes on without the voters that are missing, although they may have what it
    /// has forgotten; 0: never.
    pub wait_evidence_ms: u64,
    /// What this process can prove now.
    pub proof: Proof,
    /// True if an [`crate::Action::Append`] carried out is as durable as promised (modes memory and os).
    pub append_is_durable: bool,
    /// Committed entries are dropped from memory beyond this size.
    pub tail_bytes: usize,
    /// Bytes sent ahead of a member's acknowledgements while it catches up.
    pub window_bytes: usize,
    /// A submission beyond this size is to be spread before it is submitted ([`crate::Group::spread`]).
    pub large_bytes: usize,
    /// Such a one is fetched in parts of this size, at most 1 MiB.
    pub part_bytes: u32,
    /// From this size on it is given to the log in pieces, ahead of its entry ([`crate::Action::Stage`]): in a
    /// file of its own.
    pub staged_bytes: u32,
    /// What others have not submitted yet takes so much memory at most, but for one payload.
    pub parcels_bytes: u64,
    /// `repl.sequencer`.
    pub wish: Wish,
    /// True while this member may be given leadership: it is synced.
    pub able: bool,
    /// True while its disk does not answer: another member is to have leadership.
    pub stuck: bool,
    /// True if round trips and silences are measured, and leadership moves by them.
    pub measures: bool,
    /// `pc.bootstrap_expect`, if this node has no history at all: so many nodes found a cluster together;
    /// 0: it does not take part.
    pub expect: u32,
    /// Sizes at which the core goes about things otherwise.
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
            parcels_bytes: 2 << 30,
            wish: Wish::Auto,
            able: true,
            stuck: false,
            measures: true,
            expect: 0,
            thresholds: Thresholds::default(),
        }
    }

    /// A payload of so many bytes is fetched, not fed.
    pub(crate) fn is_large(&self, bytes: usize) -> bool {
        bytes > self.large_bytes
    }
}
