//! The faults that a plan can hold.

use std::fmt;

use crate::given_up::Attempt;
use crate::seen::{NodeId, TimeUs};

/// The files beside the log that fail. State file and promises may lie on two volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notes {
    /// Both, as on one volume.
    Both,
    /// `trireme-state.log` alone.
    StateFile,
    /// The promises alone.
    Promises,
    /// The promises alone, for want of room: nothing that was written before is at risk.
    PromisesLackRoom,
}

/// A fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing passes from one set of nodes to the other; with `both` nothing passes back either. With `reset`,
    /// connections break when the cut ends.
    Cut {
        /// The nodes that cannot send.
        from: Vec<NodeId>,
        /// The nodes that cannot receive.
        to: Vec<NodeId>,
        /// The cut is in both directions.
        both: bool,
        /// Connections break when the cut ends.
        reset: bool,
        /// The duration.
        for_us: TimeUs,
    },
    /// A connection breaks; frames under way are lost.
    Reset {
        /// One end.
        a: NodeId,
        /// The other.
        b: NodeId,
    },
    /// A full queue: frames sent meanwhile are dropped, but the connection stays.
    Overflow {
        /// The sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
        /// The duration.
        for_us: TimeUs,
    },
    /// Frames arrive twice, the second time later.
    Duplicate {
        /// The sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
        /// The duration.
        for_us: TimeUs,
    },
    /// All frames from and to a node take longer.
    Delay {
        /// The node.
        node: NodeId,
        /// The extra delay.
        by_us: u64,
        /// The duration.
        for_us: TimeUs,
    },
    /// SIGSTOP, then SIGCONT.
    Pause {
        /// The node.
        node: NodeId,
        /// The duration.
        for_us: TimeUs,
    },
    /// Flushes and the processor take many times as long.
    Slow {
        /// The node.
        node: NodeId,
        /// The factor.
        factor: u64,
        /// The duration.
        for_us: TimeUs,
    },
    /// Appliers take many times as long: locks, missing indexes, a busy disk under the database.
    SlowAppliers {
        /// The node.
        node: NodeId,
        /// The factor.
        factor: u64,
        /// The duration.
        for_us: TimeUs,
    },
    /// kill -9, or a power loss; a new process starts later.
    Crash {
        /// The node.
        node: NodeId,
        /// The machine loses power: unflushed writes may be lost.
        power_loss: bool,
        /// Time until a process runs again.
        for_us: TimeUs,
    },
    /// kill -9 of the donor or the joiner of the next state transfer that starts.
    CrashInTransfer {
        /// Kill the donor, else the joiner.
        donor: bool,
        /// Time until a process runs again.
        for_us: TimeUs,
    },
    /// A graceful stop; a new process starts later.
    Leave {
        /// The node.
        node: NodeId,
        /// Time until a process runs again.
        for_us: TimeUs,
    },
    /// `SET GLOBAL wsrep_cluster_address`: the node leaves and comes back, in the same process.
    Reconnect {
        /// The node.
        node: NodeId,
        /// Time until it connects again.
        for_us: TimeUs,
    },
    /// The node's next connects are given up, unless a primary component takes it in before.
    GiveUp {
        /// The node.
        node: NodeId,
        /// The connects.
        attempts: Vec<Attempt>,
    },
    /// `gmcast.isolate`: the node's connections break, and it makes no new ones.
    Isolate {
        /// The node.
        node: NodeId,
        /// The duration.
        for_us: TimeUs,
    },
    /// `pc.weight`.
    Weight {
        /// The node.
        node: NodeId,
        /// Its new weight.
        weight: u8,
    },
    /// The node's clock jumps ahead (the machine slept, or was migrated).
    ClockJump {
        /// The node.
        node: NodeId,
        /// The length of the jump.
        by_us: u64,
    },
    /// `pc.bootstrap` on a node, whatever its component state.
    Override {
        /// The node.
        node: NodeId,
    },
    /// `pc.bootstrap` on a node, by mistake: others may be primary.
    Beside {
        /// The node.
        node: NodeId,
    },
    /// `pc.ignore_sb` or `pc.ignore_quorum` is set on a node, at most as long as its connection lasts.
    Ignore {
        /// The node.
        node: NodeId,
        /// `pc.ignore_quorum`, else `pc.ignore_sb`.
        quorum: bool,
        /// The duration.
        for_us: TimeUs,
    },
    /// An operator empties a data directory and starts the node with `--wsrep-new-cluster`, while the others go on.
    /// Later the operator sees the mistake and starts it without.
    Astray {
        /// The node.
        node: NodeId,
        /// Time until the operator sees the mistake.
        for_us: TimeUs,
    },
    /// The node's disk is full for a while: a write fails in the middle, and the node leaves the cluster.
    FullDisk {
        /// The node.
        node: NodeId,
        /// Number of bytes that still fit.
        room_bytes: u64,
        /// Time until there is room again.
        for_us: TimeUs,
    },
    /// Flushes of the node's log fail for a while, and a part of the unflushed writes is lost.
    FlushFails {
        /// The node.
        node: NodeId,
        /// Time until the disk works again.
        for_us: TimeUs,
    },
    /// The volume of the node's log and promises fails all writes for a while. Then it is mounted again within one
    /// boot of the machine, with a part of the unflushed writes lost.
    DeviceFails {
        /// The node.
        node: NodeId,
        /// Time until the volume is mounted again.
        for_us: TimeUs,
    },
    /// The node's state file, its promises, or both cannot be written for a while.
    NotesFail {
        /// The node.
        node: NodeId,
        /// The files.
        notes: Notes,
        /// Flushes of the log fail, too.
        log: bool,
        /// Time until the files can be written again.
        for_us: TimeUs,
    },
    /// Flushes of the node's log and promises hang for a while.
    FlushHangs {
        /// The node.
        node: NodeId,
        /// Time until the flushes end.
        for_us: TimeUs,
    },
    /// About every second read of the node's log fails for a while.
    ReadFails {
        /// The node.
        node: NodeId,
        /// Time until the disk works again.
        for_us: TimeUs,
    },
    /// kill -9; the next process finds flipped bits in the log.
    Rot {
        /// The node.
        node: NodeId,
        /// Number of flipped bits.
        bits: u64,
        /// Time until a process runs again.
        for_us: TimeUs,
    },
    /// All processes die at once; an operator then bootstraps the node with the most advanced database.
    Blackout {
        /// The machines lose power.
        power_loss: bool,
        /// Time until the first process runs again.
        for_us: TimeUs,
    },
    /// A blackout of all nodes with a database; arbitrators go on.
    Outage {
        /// The machines lose power.
        power_loss: bool,
        /// Time until the first process runs again.
        for_us: TimeUs,
    },
}

impl Fault {
    /// The name of the kind, for counting.
    pub fn kind(&self) -> &'static str {
        match self {
            Fault::Cut { both: true, .. } => "partition",
            Fault::Cut { .. } => "one-way cut",
            Fault::Reset { .. } => "reset",
            Fault::Overflow { .. } => "overflow",
            Fault::Duplicate { .. } => "duplication",
            Fault::Delay { .. } => "delay",
            Fault::Pause { .. } => "pause",
            Fault::Slow { .. } => "slow",
            Fault::SlowAppliers { .. } => "slow appliers",
            Fault::Crash {
                power_loss: true, ..
            } => "power loss",
            Fault::Crash { .. } => "crash",
            Fault::CrashInTransfer { .. } => "crash in transfer",
            Fault::Leave { .. } => "leave",
            Fault::Reconnect { .. } => "reconnect",
            Fault::GiveUp { .. } => "given-up connects",
            Fault::Isolate { .. } => "isolate",
            Fault::Weight { .. } => "weight",
            Fault::ClockJump { .. } => "clock jump",
            Fault::Override { .. } => "override",
            Fault::Beside { .. } => "override by mistake",
            Fault::Ignore { quorum: false, .. } => "pc.ignore_sb",
            Fault::Ignore { quorum: true, .. } => "pc.ignore_quorum",
            Fault::Astray { .. } => "astray",
            Fault::FullDisk { .. } => "full disk",
            Fault::FlushFails { .. } => "failing flushes",
            Fault::DeviceFails { .. } => "failing device",
            Fault::NotesFail { notes, .. } => match notes {
                Notes::Both => "failing notes",
                Notes::StateFile => "failing state file",
                Notes::Promises => "failing promises",
                Notes::PromisesLackRoom => "no room for promises",
            },
            Fault::FlushHangs { .. } => "hanging flushes",
            Fault::ReadFails { .. } => "failing reads",
            Fault::Rot { .. } => "flipped bits",
            Fault::Blackout { .. } => "blackout",
            Fault::Outage { .. } => "outage",
        }
    }

    /// The duration of the fault; 0 if it has no end of its own.
    pub fn lasts_us(&self) -> TimeUs {
        match *self {
            Fault::Cut { for_us, .. }
            | Fault::Overflow { for_us, .. }
            | Fault::Duplicate { for_us, .. }
            | Fault::Delay { for_us, .. }
            | Fault::Slow { for_us, .. }
            | Fault::SlowAppliers { for_us, .. }
            | Fault::Astray { for_us, .. }
            | Fault::FullDisk { for_us, .. }
            | Fault::FlushFails { for_us, .. }
            | Fault::DeviceFails { for_us, .. }
            | Fault::NotesFail { for_us, .. }
            | Fault::FlushHangs { for_us, .. }
            | Fault::ReadFails { for_us, .. }
            | Fault::Ignore { for_us, .. }
            | Fault::Isolate { for_us, .. } => for_us,
            _ => 0,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lasts_ms = ms(self.lasts_us());
        write!(f, "{}", self.kind())?;
        match self {
            Fault::Cut {
                from,
                to,
                both,
                reset,
                for_us,
            } => {
                let (from, to) = (names(from), names(to));
                let arrow = if *both { "<->" } else { "->" };
                let reset = if *reset { ", connections break" } else { "" };
                write!(f, " {from} {arrow} {to} for {} ms{reset}", ms(*for_us))
            }
            Fault::Reset { a, b } => write!(f, " n{} - n{}", a + 1, b + 1),
            Fault::Overflow { from, to, for_us } | Fault::Duplicate { from, to, for_us } => {
                write!(f, " n{} -> n{} for {} ms", from + 1, to + 1, ms(*for_us))
            }
            Fault::Delay { node, by_us, .. } => {
                write!(f, " n{} by {} ms for {lasts_ms} ms", node + 1, ms(*by_us))
            }
            Fault::Slow { node, factor, .. } | Fault::SlowAppliers { node, factor, .. } => {
                write!(f, " n{} {factor} times for {lasts_ms} ms", node + 1)
            }
            Fault::Pause { node, for_us }
            | Fault::Isolate { node, for_us }
            | Fault::FlushFails { node, for_us }
            | Fault::DeviceFails { node, for_us }
            | Fault::FlushHangs { node, for_us }
            | Fault::ReadFails { node, for_us }
            | Fault::Astray { node, for_us } => {
                write!(f, " n{} for {} ms", node + 1, ms(*for_us))
            }
            Fault::Crash { node, for_us, .. }
            | Fault::Leave { node, for_us }
            | Fault::Reconnect { node, for_us } => {
                write!(f, " n{}, back after {} ms", node + 1, ms(*for_us))
            }
            Fault::GiveUp { node, attempts } => {
                let at = attempts.iter().position(|attempt| attempt.unmounted);
                let without = at.map(|at| format!(", no. {} without its log", at + 1));
                let (count, without) = (attempts.len(), without.unwrap_or_default());
                write!(f, " n{}, up to {count}{without}", node + 1)
            }
            Fault::NotesFail { node, log, .. } => {
                let log = if *log { ", with its log," } else { "" };
                write!(f, " n{}{log} for {lasts_ms} ms", node + 1)
            }
            Fault::FullDisk {
                node,
                room_bytes,
                for_us,
            } => write!(
                f,
                " n{} after {room_bytes} bytes, for {} ms",
                node + 1,
                ms(*for_us)
            ),
            Fault::Rot { node, bits, for_us } => {
                write!(f, " ({bits}) n{}, back after {} ms", node + 1, ms(*for_us))
            }
            Fault::CrashInTransfer { donor, for_us } => {
                let who = if *donor { "donor" } else { "joiner" };
                write!(f, " of the next {who}, back after {} ms", ms(*for_us))
            }
            Fault::Weight { node, weight } => write!(f, " n{} to {weight}", node + 1),
            Fault::ClockJump { node, by_us } => write!(f, " n{} by {} ms", node + 1, ms(*by_us)),
            Fault::Override { node } | Fault::Beside { node } => write!(f, " on n{}", node + 1),
            Fault::Ignore { node, for_us, .. } => {
                write!(f, " on n{} for {} ms", node + 1, ms(*for_us))
            }
            Fault::Blackout { power_loss, for_us } | Fault::Outage { power_loss, for_us } => {
                let how = if *power_loss { "power loss" } else { "kill -9" };
                write!(f, " by {how}, back after {} ms", ms(*for_us))
            }
        }
    }
}

fn names(nodes: &[NodeId]) -> String {
    let names: Vec<String> = nodes.iter().map(|n| format!("n{}", n + 1)).collect();
    names.join(",")
}

fn ms(us: TimeUs) -> TimeUs {
    us / 1000
}
