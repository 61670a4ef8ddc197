//! What can go wrong.

use std::fmt;

use crate::seen::{NodeId, TimeUs};

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing passes from one set of nodes to the other, and back if `both`. Connections break when
    /// it ends if `reset`.
    Cut {
        /// These.
        from: Vec<NodeId>,
        /// Those.
        to: Vec<NodeId>,
        /// And back.
        both: bool,
        /// Connections do not survive it.
        reset: bool,
        /// How long.
        for_us: TimeUs,
    },
    /// A connection breaks; what is on its way is lost.
    Reset {
        /// One end.
        a: NodeId,
        /// The other.
        b: NodeId,
    },
    /// A full queue: what is sent meanwhile is dropped without the connection breaking.
    Overflow {
        /// From here.
        from: NodeId,
        /// To there.
        to: NodeId,
        /// How long.
        for_us: TimeUs,
    },
    /// Frames arrive twice, the second time later.
    Duplicate {
        /// From here.
        from: NodeId,
        /// To there.
        to: NodeId,
        /// How long.
        for_us: TimeUs,
    },
    /// Everything from and to a node takes longer.
    Delay {
        /// The node.
        node: NodeId,
        /// By this much.
        by_us: u64,
        /// How long.
        for_us: TimeUs,
    },
    /// SIGSTOP, SIGCONT.
    Pause {
        /// The node.
        node: NodeId,
        /// How long.
        for_us: TimeUs,
    },
    /// The disk's flushes, and the processor, take many times as long.
    Slow {
        /// The node.
        node: NodeId,
        /// So many times.
        factor: u64,
        /// How long.
        for_us: TimeUs,
    },
    /// Appliers take many times as long: locks, missing indexes, a busy disk under the database.
    SlowAppliers {
        /// The node.
        node: NodeId,
        /// So many times.
        factor: u64,
        /// How long.
        for_us: TimeUs,
    },
    /// kill -9, or the machine loses power, and a new process later.
    Crash {
        /// The node.
        node: NodeId,
        /// Power loss: what was not flushed may be gone.
        power_loss: bool,
        /// When it runs again.
        for_us: TimeUs,
    },
    /// The donor of a state transfer, or its joiner, is killed with -9 at the next transfer that starts.
    CrashInTransfer {
        /// The donor, else the joiner.
        donor: bool,
        /// When it runs again.
        for_us: TimeUs,
    },
    /// A graceful stop, and a new process later.
    Leave {
        /// The node.
        node: NodeId,
        /// When it runs again.
        for_us: TimeUs,
    },
    /// `SET GLOBAL wsrep_cluster_address`: the node leaves and comes back, in the same process.
    Reconnect {
        /// The node.
        node: NodeId,
        /// When it connects again.
        for_us: TimeUs,
    },
    /// `gmcast.isolate`: the node's connections break and none is made.
    Isolate {
        /// The node.
        node: NodeId,
        /// How long.
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
        /// By so much.
        by_us: u64,
    },
    /// `pc.bootstrap` on a node, wherever it stands.
    Override {
        /// The node.
        node: NodeId,
    },
    /// `pc.bootstrap` on a node, by mistake: others may be primary.
    Beside {
        /// The node.
        node: NodeId,
    },
    /// `pc.ignore_sb` or `pc.ignore_quorum` is set on a node, for as long as its connection lasts, at most.
    Ignore {
        /// The node.
        node: NodeId,
        /// `pc.ignore_quorum`.
        quorum: bool,
        /// How long.
        for_us: TimeUs,
    },
    /// An operator empties a data directory and starts the node with `--wsrep-new-cluster`, while the others
    /// go on; sees the mistake, and does it again without.
    Astray {
        /// The node.
        node: NodeId,
        /// When the mistake is seen.
        for_us: TimeUs,
    },
    /// The node's disk takes no more for a while: a write fails in the middle, and the node leaves the cluster.
    FullDisk {
        /// The node.
        node: NodeId,
        /// It takes so many bytes still.
        room_bytes: u64,
        /// When there is room again.
        for_us: TimeUs,
    },
    /// Flushes of the node's log fail for a while, and what they should have flushed is partly gone.
    FlushFails {
        /// The node.
        node: NodeId,
        /// When the disk works again.
        for_us: TimeUs,
    },
    /// The volume of the node's log and promises takes nothing for a while, and is mounted again within one boot of the machine:
    /// what was not flushed is partly gone.
    DeviceFails {
        /// The node.
        node: NodeId,
        /// When it is mounted again.
        for_us: TimeUs,
    },
    /// The node's state file and its promises cannot be written for a while.
    NotesFail {
        /// The node.
        node: NodeId,
        /// Nor can its log be flushed.
        log: bool,
        /// When they can again.
        for_us: TimeUs,
    },
    /// Flushes of the node's log and promises do not end for a while.
    FlushHangs {
        /// The node.
        node: NodeId,
        /// When they end.
        for_us: TimeUs,
    },
    /// About every second read of the node's log fails for a while.
    ReadFails {
        /// The node.
        node: NodeId,
        /// When the disk works again.
        for_us: TimeUs,
    },
    /// kill -9; bits of the log are found flipped by the next process.
    Rot {
        /// The node.
        node: NodeId,
        /// So many.
        bits: u64,
        /// When it runs again.
        for_us: TimeUs,
    },
    /// All processes die at once; an operator then bootstraps the node whose database is furthest.
    Blackout {
        /// The machines lose power.
        power_loss: bool,
        /// When the first one runs again.
        for_us: TimeUs,
    },
    /// The same of all that have a database: arbitrators go on.
    Outage {
        /// The machines lose power.
        power_loss: bool,
        /// When the first one runs again.
        for_us: TimeUs,
    },
}

impl Fault {
    /// One word, for counting.
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
            Fault::NotesFail { .. } => "failing notes",
            Fault::FlushHangs { .. } => "hanging flushes",
            Fault::ReadFails { .. } => "failing reads",
            Fault::Rot { .. } => "flipped bits",
            Fault::Blackout { .. } => "blackout",
            Fault::Outage { .. } => "outage",
        }
    }

    /// How long it lasts; 0 if it has no end of its own.
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
        let names = |nodes: &[NodeId]| {
            let names: Vec<String> = nodes.iter().map(|n| format!("n{}", n + 1)).collect();
            names.join(",")
        };
        let ms = |us: &u64| us / 1000;
        write!(f, "{}", self.kind())?;
        match self {
            Fault::Cut {
                from,
                to,
                both,
                reset,
                for_us,
            } => {
                let arrow = if *both { "<->" } else { "->" };
                let reset = if *reset { ", connections break" } else { "" };
                let (from, to) = (names(from), names(to));
                write!(f, " {from} {arrow} {to} for {} ms{reset}", ms(for_us))
            }
            Fault::Reset { a, b } => write!(f, " n{} - n{}", a + 1, b + 1),
            Fault::Overflow { from, to, for_us } | Fault::Duplicate { from, to, for_us } => {
                write!(f, " n{} -> n{} for {} ms", from + 1, to + 1, ms(for_us))
            }
            Fault::Delay {
                node,
                by_us,
                for_us,
            } => write!(
                f,
                " n{} by {} ms for {} ms",
                node + 1,
                ms(by_us),
                ms(for_us)
            ),
            Fault::Slow {
                node,
                factor,
                for_us,
            }
            | Fault::SlowAppliers {
                node,
                factor,
                for_us,
            } => write!(f, " n{} {factor} times for {} ms", node + 1, ms(for_us)),
            Fault::Pause { node, for_us }
            | Fault::Isolate { node, for_us }
            | Fault::FlushFails { node, for_us }
            | Fault::DeviceFails { node, for_us }
            | Fault::FlushHangs { node, for_us }
            | Fault::ReadFails { node, for_us }
            | Fault::Astray { node, for_us } => {
                write!(f, " n{} for {} ms", node + 1, ms(for_us))
            }
            Fault::Crash { node, for_us, .. }
            | Fault::Leave { node, for_us }
            | Fault::Reconnect { node, for_us } => {
                write!(f, " n{}, back after {} ms", node + 1, ms(for_us))
            }
            Fault::NotesFail { node, log, for_us } => {
                let log = if *log { ", with its log," } else { "" };
                write!(f, " n{}{log} for {} ms", node + 1, ms(for_us))
            }
            Fault::FullDisk {
                node,
                room_bytes,
                for_us,
            } => write!(
                f,
                " n{} after {room_bytes} bytes, for {} ms",
                node + 1,
                ms(for_us)
            ),
            Fault::Rot { node, bits, for_us } => {
                write!(f, " ({bits}) n{}, back after {} ms", node + 1, ms(for_us))
            }
            Fault::CrashInTransfer { donor, for_us } => {
                let who = if *donor { "donor" } else { "joiner" };
                write!(f, " of the next {who}, back after {} ms", ms(for_us))
            }
            Fault::Weight { node, weight } => write!(f, " n{} to {weight}", node + 1),
            Fault::ClockJump { node, by_us } => write!(f, " n{} by {} ms", node + 1, ms(by_us)),
            Fault::Override { node } | Fault::Beside { node } => write!(f, " on n{}", node + 1),
            Fault::Ignore { node, for_us, .. } => {
                write!(f, " on n{} for {} ms", node + 1, ms(for_us))
            }
            Fault::Blackout { power_loss, for_us } | Fault::Outage { power_loss, for_us } => {
                let how = if *power_loss { "power loss" } else { "kill -9" };
                write!(f, " by {how}, back after {} ms", ms(for_us))
            }
        }
    }
}
