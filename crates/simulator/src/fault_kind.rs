//! Kinds of faults, and how a random fault of each kind is made.

use crate::fault::{Fault, Notes};
use crate::random::Random;
use crate::seen::TimeUs;

/// The kind of a fault; [`Fault`] has the details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Two parts that cannot talk.
    Partition,
    /// A cut in one direction only.
    OneWay,
    /// A cut that comes and goes.
    Flapping,
    /// One connection breaks.
    Reset,
    /// A full queue.
    Overflow,
    /// Frames that arrive twice.
    Duplicate,
    /// Slow links.
    Delay,
    /// SIGSTOP.
    Pause,
    /// A slow machine.
    Slow,
    /// Slow appliers: locks, missing indexes.
    SlowAppliers,
    /// kill -9.
    Crash,
    /// Power loss.
    PowerLoss,
    /// kill -9 in the middle of a state transfer.
    CrashInTransfer,
    /// A graceful stop.
    Leave,
    /// `SET GLOBAL wsrep_cluster_address`.
    Reconnect,
    /// `gmcast.isolate`.
    Isolate,
    /// `pc.weight`.
    Weight,
    /// `pc.weight=0`: the node stays a member without a vote.
    WeightZero,
    /// A clock that jumps.
    ClockJump,
    /// `pc.bootstrap`.
    Override,
    /// `pc.bootstrap` in a part that is cut off, while the rest goes on.
    Beside,
    /// `pc.ignore_sb` on a node that is then cut off.
    IgnoreSplitBrain,
    /// `pc.ignore_quorum` on a node that is then cut off.
    IgnoreQuorum,
    /// An operator makes a minority primary after the others have gone on without it.
    Fork,
    /// `--wsrep-new-cluster` on an empty data directory, by mistake.
    Astray,
    /// All processes die.
    Blackout,
    /// All processes with a database die.
    Outage,
    /// The log cannot be written.
    FullDisk,
    /// The log cannot be flushed.
    FlushFails,
    /// The volume fails all writes and loses unflushed ones.
    DeviceFails,
    /// State file, promises, or both cannot be written.
    NotesFail,
    /// Flushes hang.
    FlushHangs,
    /// The log cannot be read.
    ReadFails,
    /// The log is damaged between two processes.
    Rot,
}

use Kind::*;

impl Kind {
    /// Makes a random fault of this kind.
    pub(crate) fn fault(self, size: usize, random: &mut Random) -> Fault {
        let node = random.below(size);
        let other = (node + 1 + random.below(size.max(2) - 1)) % size;
        let for_us = 1000
            * match random.within(0..=3) {
                0 => random.within(20..=300),
                1 | 2 => random.within(300..=2_000),
                _ => random.within(2_000..=5_000),
            };
        match self {
            Partition | OneWay | Flapping | Reset | Overflow | Duplicate => {
                self.link_fault(size, (node, other), for_us, random)
            }
            Delay => Fault::Delay {
                node,
                by_us: random.pick(&[2_000, 20_000, 200_000]),
                for_us,
            },
            Pause => Fault::Pause { node, for_us },
            Slow => Fault::Slow {
                node,
                factor: random.pick(&[5, 20, 100]),
                for_us,
            },
            SlowAppliers => Fault::SlowAppliers {
                node,
                factor: random.pick(&[50, 500, 10_000]),
                for_us,
            },
            Crash | PowerLoss => Fault::Crash {
                node,
                power_loss: self == PowerLoss,
                for_us,
            },
            CrashInTransfer => Fault::CrashInTransfer {
                donor: random.percent(50),
                for_us,
            },
            Leave => Fault::Leave { node, for_us },
            Reconnect => Fault::Reconnect { node, for_us },
            Isolate => Fault::Isolate { node, for_us },
            Weight => Fault::Weight {
                node,
                weight: random.within(1..=3) as u8,
            },
            WeightZero => Fault::Weight { node, weight: 0 },
            ClockJump => Fault::ClockJump {
                node,
                by_us: random.pick(&[500_000, 5_000_000, 60_000_000, 3_600_000_000]),
            },
            Override | Fork => Fault::Override { node },
            Beside => Fault::Beside { node },
            IgnoreSplitBrain | IgnoreQuorum => Fault::Ignore {
                node,
                quorum: self == IgnoreQuorum,
                for_us,
            },
            Astray => Fault::Astray {
                node,
                for_us: random.within(300_000..=2_000_000),
            },
            FullDisk | FlushFails | DeviceFails | NotesFail | FlushHangs | ReadFails | Rot => {
                self.disk_fault(node, for_us, random)
            }
            Blackout => Fault::Blackout {
                power_loss: random.percent(50),
                for_us,
            },
            Outage => Fault::Outage {
                power_loss: random.percent(50),
                for_us,
            },
        }
    }

    /// Draws a fault of links.
    fn link_fault(
        self,
        size: usize,
        (from, to): (usize, usize),
        for_us: TimeUs,
        random: &mut Random,
    ) -> Fault {
        match self {
            Flapping => {
                let both = random.percent(50);
                let for_us = random.within(10_000..=400_000);
                cut(size, from, both, for_us, random)
            }
            Reset => Fault::Reset { a: from, b: to },
            Overflow => Fault::Overflow {
                from,
                to,
                for_us: for_us.min(1_000_000),
            },
            Duplicate => Fault::Duplicate { from, to, for_us },
            _ => cut(size, from, self == Partition, for_us, random),
        }
    }

    /// Draws a fault of the disk.
    fn disk_fault(self, node: usize, for_us: TimeUs, random: &mut Random) -> Fault {
        match self {
            FullDisk => Fault::FullDisk {
                node,
                room_bytes: random.pick(&[0, 100, 1_000, 10_000]),
                for_us,
            },
            FlushFails => Fault::FlushFails { node, for_us },
            DeviceFails => Fault::DeviceFails { node, for_us },
            NotesFail => Fault::NotesFail {
                node,
                notes: Notes::Both,
                log: random.percent(50),
                for_us,
            },
            FlushHangs => Fault::FlushHangs { node, for_us },
            ReadFails => Fault::ReadFails { node, for_us },
            _ => Fault::Rot {
                node,
                bits: random.pick(&[1, 1, 3]),
                for_us,
            },
        }
    }
}

fn cut(size: usize, node: usize, both: bool, for_us: TimeUs, random: &mut Random) -> Fault {
    let inside: Vec<bool> = (0..size).map(|n| n == node || random.percent(35)).collect();
    let (from, to) = (0..size).partition(|n| inside[*n]);
    Fault::Cut {
        from,
        to,
        both,
        reset: random.percent(50),
        for_us,
    }
}

/// Cuts off a part that holds the mistaken node, for long enough that the mistake has an effect.
pub(crate) fn mistake(
    mistake: Fault,
    size: usize,
    calm_us: TimeUs,
    random: &mut Random,
    faults: &mut Vec<(TimeUs, Fault)>,
) {
    let (Fault::Beside { node } | Fault::Ignore { node, .. }) = mistake else {
        return;
    };
    let cut_us = random.within(2_500_000..=5_000_000);
    let begin = random.within(500_000..=(calm_us - 200_000).max(cut_us + 500_000) - cut_us);
    faults.push((begin, cut(size, node, true, cut_us, random)));
    match mistake {
        Fault::Ignore { quorum, .. } => {
            let for_us = cut_us;
            let ignore = Fault::Ignore {
                node,
                quorum,
                for_us,
            };
            faults.push((begin, ignore));
        }
        // Several attempts: the override takes effect once the node is non-primary, and only then.
        beside => {
            for _ in 0..3 {
                let at = begin + random.within(cut_us / 3..=cut_us);
                faults.push((at, beside.clone()));
            }
        }
    }
}

/// Cuts off a minority; the others go on, then lose each other. An operator makes a node of the minority primary,
/// maybe after some of the others have connected to it.
pub(crate) fn fork(
    size: usize,
    calm_us: TimeUs,
    random: &mut Random,
    faults: &mut Vec<(TimeUs, Fault)>,
) {
    let nodes = random.shuffled(size);
    let few = random.within(1..=(size as u64).div_ceil(2).max(2) - 1) as usize;
    let (minority, majority) = nodes.split_at(few.min(size - 1));
    let alone_us = random.within(100_000..=1_500_000);
    let lost_us = random.within(2_500_000..=5_000_000);
    let whole_us = alone_us + lost_us;
    let begin = random.within(500_000..=(calm_us - 200_000).max(whole_us + 500_000) - whole_us);
    let cut = |from: &[usize], to: &[usize], for_us, reset| Fault::Cut {
        from: from.to_vec(),
        to: to.to_vec(),
        both: true,
        reset,
        for_us,
    };
    let reset = random.percent(50);
    faults.push((begin, cut(minority, majority, whole_us, reset)));
    let lost = begin + alone_us;
    // Either all of them, or just enough that no part has a majority.
    faults.push((lost, cut(majority, majority, lost_us, random.percent(50))));
    let node = random.pick(minority);
    for _ in 0..4 {
        // Several attempts: the override takes effect once no node is primary, and only then.
        let at = lost + random.within(lost_us / 3..=lost_us);
        faults.push((at, Fault::Override { node }));
    }
}
