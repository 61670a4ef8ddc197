//! Kinds of runs, by name: what may go wrong in them, and how often.

use trireme_log::Durability;

use crate::fault::Fault;
use crate::random::Random;
use crate::seen::TimeUs;

/// Which fault is made up; [`Fault`] has the particulars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Two halves that cannot talk.
    Partition,
    /// One direction only.
    OneWay,
    /// Cut and healed again and again.
    Flapping,
    /// One connection.
    Reset,
    /// A full queue.
    Overflow,
    /// Frames that arrive twice.
    Duplicate,
    /// Slow lines.
    Delay,
    /// SIGSTOP.
    Pause,
    /// A slow machine.
    Slow,
    /// Locks, missing indexes.
    SlowAppliers,
    /// kill -9.
    Crash,
    /// Power loss.
    PowerLoss,
    /// In the middle of a state transfer.
    CrashInTransfer,
    /// A graceful stop.
    Leave,
    /// `SET GLOBAL wsrep_cluster_address`.
    Reconnect,
    /// `gmcast.isolate`.
    Isolate,
    /// `pc.weight`.
    Weight,
    /// A clock that jumps.
    ClockJump,
    /// `pc.bootstrap`.
    Override,
    /// A minority that an operator makes primary, after the others have gone on without it.
    Fork,
    /// `--wsrep-new-cluster` on an empty data directory, by mistake.
    Astray,
    /// Everybody dies.
    Blackout,
    /// Everybody with a database dies.
    Outage,
    /// The log cannot be written.
    FullDisk,
    /// The log cannot be flushed.
    FlushFails,
    /// The log cannot be read.
    ReadFails,
    /// The log is damaged between two processes.
    Rot,
}

/// A kind of run.
#[derive(Debug)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// How many nodes, one of these.
    pub sizes: &'static [usize],
    /// How long faults go on.
    pub lasts_ms: (u64, u64),
    /// How many faults.
    pub faults: (u64, u64),
    /// Which faults, by their weights.
    pub mix: &'static [(usize, Kind)],
    /// Weights of nodes.
    pub weights: &'static [u8],
    /// Clocks gain or lose up to this.
    pub drift_ppm: u64,
    /// Chance that one node is far away.
    pub far_percent: u64,
    /// Chance that a node joins in the middle of the run.
    pub late_percent: u64,
    /// `repl.durability`, one of these.
    pub durability: &'static [Durability],
    /// Of a million write-sets, so many fail to apply on a node only; one of these for each node.
    pub apply_errors_per_million: &'static [u64],
    /// Of the DDL, so much fails on all nodes alike.
    pub ddl_error_percent: u64,
    /// Chance that flushes go on beside everything else, as under the provider.
    pub flushes_apart_percent: u64,
    /// Mean time between two transactions of a client, one of these.
    pub think_us: [u64; 3],
    /// The office begins where it sits badly, and has to leave.
    pub bad_seat: bool,
    /// So many of the nodes, the last ones, have no database.
    pub arbitrators: usize,
    /// Of the transactions of several rows, so many are streamed: sent in fragments.
    pub streaming_percent: u64,
    /// Nobody is told to bootstrap (`pc.bootstrap_expect`).
    pub founds_together: bool,
    /// Many write-sets count as large: a majority fetches them before they are ordered.
    pub parcels: bool,
    /// What waits to be applied is mostly in the log only.
    pub queues_in_log: bool,
}

use Kind::*;

const PLAIN: Profile = Profile {
    name: "plain",
    sizes: &[3, 3, 3, 4, 5],
    lasts_ms: (4_000, 9_000),
    faults: (3, 10),
    mix: &[],
    weights: &[1],
    drift_ppm: 100,
    far_percent: 20,
    late_percent: 10,
    durability: &[
        Durability::Os,
        Durability::Os,
        Durability::Disk,
        Durability::Memory,
    ],
    apply_errors_per_million: &[],
    ddl_error_percent: 10,
    flushes_apart_percent: 0,
    think_us: [10_000, 20_000, 50_000],
    bad_seat: false,
    arbitrators: 0,
    streaming_percent: 0,
    founds_together: false,
    parcels: false,
    queues_in_log: false,
};

const NETWORK: &[(usize, Kind)] = &[
    (4, Partition),
    (4, OneWay),
    (2, Flapping),
    (3, Reset),
    (1, Overflow),
    (1, Duplicate),
    (1, Delay),
    (1, Isolate),
];

const EVERYTHING: &[(usize, Kind)] = &[
    (4, Partition),
    (3, OneWay),
    (1, Flapping),
    (3, Reset),
    (2, Overflow),
    (1, Duplicate),
    (2, Delay),
    (3, Pause),
    (2, Slow),
    (4, Crash),
    (2, PowerLoss),
    (2, CrashInTransfer),
    (3, Leave),
    (1, Isolate),
    (2, Weight),
    (1, ClockJump),
];

/// All of them.
pub const ALL: &[Profile] = &[
    Profile {
        name: "calm",
        faults: (0, 3),
        mix: &[(2, Reset), (1, Delay), (1, Weight), (1, Leave)],
        ..PLAIN
    },
    Profile {
        name: "partitions",
        mix: NETWORK,
        ..PLAIN
    },
    Profile {
        name: "crashes",
        mix: &[
            (6, Crash),
            (3, PowerLoss),
            (2, CrashInTransfer),
            (1, Reset),
            (1, Partition),
        ],
        ..PLAIN
    },
    Profile {
        name: "churn",
        sizes: &[2, 3, 4, 5, 6],
        mix: &[
            (6, Leave),
            (3, CrashInTransfer),
            (2, Crash),
            (2, Weight),
            (1, Partition),
            (1, Pause),
        ],
        late_percent: 50,
        ..PLAIN
    },
    Profile {
        name: "slow",
        mix: &[
            (4, Slow),
            (4, Pause),
            (3, Delay),
            (2, Overflow),
            (1, Crash),
            (1, Reset),
        ],
        far_percent: 60,
        ..PLAIN
    },
    Profile {
        name: "clocks",
        mix: &[
            (5, ClockJump),
            (2, Pause),
            (2, Partition),
            (1, Crash),
            (1, Reset),
        ],
        drift_ppm: 20_000,
        ..PLAIN
    },
    Profile {
        name: "weights",
        sizes: &[2, 3, 4, 5],
        mix: &[
            (5, Weight),
            (3, Partition),
            (2, OneWay),
            (2, Crash),
            (2, Leave),
        ],
        weights: &[1, 1, 2, 3],
        ..PLAIN
    },
    Profile {
        name: "overrides",
        sizes: &[2, 3, 3, 4, 5],
        mix: &[
            (3, Override),
            (4, Partition),
            (1, Crash),
            (1, Leave),
            (1, Reset),
        ],
        ..PLAIN
    },
    Profile {
        name: "blackouts",
        faults: (2, 6),
        mix: &[(3, Blackout), (2, Partition), (2, Crash), (1, Leave)],
        ..PLAIN
    },
    Profile {
        name: "mixed",
        sizes: &[1, 2, 3, 3, 4, 5],
        faults: (3, 14),
        mix: EVERYTHING,
        weights: &[1, 1, 1, 2],
        drift_ppm: 1_000,
        late_percent: 20,
        ..PLAIN
    },
    Profile {
        name: "two",
        sizes: &[2],
        mix: EVERYTHING,
        ..PLAIN
    },
    Profile {
        name: "large",
        sizes: &[6, 7],
        faults: (3, 14),
        mix: EVERYTHING,
        ..PLAIN
    },
    Profile {
        name: "reconnects",
        mix: &[
            (6, Reconnect),
            (2, Partition),
            (1, Crash),
            (1, Leave),
            (1, CrashInTransfer),
            (1, Pause),
            (1, Reset),
        ],
        ..PLAIN
    },
    Profile {
        name: "errors",
        mix: &[
            (2, Crash),
            (2, Partition),
            (2, Reset),
            (1, Leave),
            (1, Reconnect),
            (1, Pause),
            (1, CrashInTransfer),
        ],
        apply_errors_per_million: &[0, 500, 3_000],
        ddl_error_percent: 30,
        far_percent: 0,
        ..PLAIN
    },
    Profile {
        name: "forks",
        sizes: &[2, 3, 3, 4, 5],
        lasts_ms: (6_000, 11_000),
        faults: (2, 4),
        mix: &[(7, Fork), (2, Astray), (1, Crash), (1, Leave), (1, Reset)],
        ..PLAIN
    },
    Profile {
        name: "office",
        sizes: &[3, 3, 4, 5],
        faults: (0, 6),
        mix: &[
            (3, Slow),
            (3, Delay),
            (2, Pause),
            (1, OneWay),
            (1, Overflow),
            (1, Crash),
            (1, Leave),
            (1, Reset),
        ],
        far_percent: 0,
        bad_seat: true,
        ..PLAIN
    },
    Profile {
        name: "laggards",
        mix: &[
            (6, SlowAppliers),
            (2, Slow),
            (3, Pause),
            (1, Delay),
            (1, Crash),
            (1, Reset),
        ],
        faults: (4, 12),
        far_percent: 0,
        think_us: [3_000, 5_000, 20_000],
        ..PLAIN
    },
    Profile {
        name: "arbitrators",
        sizes: &[3, 3, 3, 4],
        arbitrators: 1,
        mix: &[
            (5, Crash),
            (2, PowerLoss),
            (2, CrashInTransfer),
            (3, Partition),
            (1, OneWay),
            (1, Reset),
            (1, Overflow),
            (1, Pause),
            (2, Leave),
            (1, Reconnect),
            (1, Isolate),
            (1, Weight),
            (1, Blackout),
            (2, Outage),
        ],
        ddl_error_percent: 30,
        ..PLAIN
    },
    Profile {
        name: "disks",
        mix: &[
            (4, FullDisk),
            (4, FlushFails),
            (2, ReadFails),
            (4, Rot),
            (3, PowerLoss),
            (1, Crash),
            (2, Partition),
            (1, CrashInTransfer),
            (1, Leave),
            (1, Reconnect),
        ],
        durability: &[
            Durability::Os,
            Durability::Disk,
            Durability::Disk,
            Durability::Memory,
        ],
        flushes_apart_percent: 75,
        ..PLAIN
    },
    Profile {
        name: "streaming",
        sizes: &[2, 3, 3, 4],
        mix: &[
            (3, Partition),
            (2, OneWay),
            (1, Flapping),
            (2, Isolate),
            (3, Crash),
            (1, PowerLoss),
            (2, Leave),
            (3, Reconnect),
            (2, Pause),
            (1, CrashInTransfer),
            (1, Blackout),
        ],
        streaming_percent: 50,
        ..PLAIN
    },
    Profile {
        name: "founding",
        sizes: &[2, 3, 3, 4, 4, 5],
        faults: (0, 4),
        mix: &[
            (6, Crash),
            (2, PowerLoss),
            (5, Partition),
            (3, OneWay),
            (1, Flapping),
            (3, Reset),
            (1, Overflow),
            (1, Duplicate),
            (2, Delay),
            (2, Pause),
            (2, Leave),
            (1, CrashInTransfer),
            (1, Blackout),
        ],
        durability: &[Durability::Os, Durability::Disk],
        flushes_apart_percent: 50,
        founds_together: true,
        ..PLAIN
    },
    Profile {
        name: "parcels",
        sizes: &[2, 3, 3, 4, 5],
        faults: (3, 14),
        mix: EVERYTHING,
        parcels: true,
        ..PLAIN
    },
    Profile {
        name: "queues",
        sizes: &[2, 3, 3, 4, 5],
        mix: &[
            (6, SlowAppliers),
            (3, Partition),
            (1, OneWay),
            (1, Reset),
            (2, Pause),
            (3, Crash),
            (2, PowerLoss),
            (2, CrashInTransfer),
            (2, Leave),
            (2, Reconnect),
            (1, FullDisk),
            (1, FlushFails),
            (1, Fork),
        ],
        think_us: [3_000, 10_000, 20_000],
        queues_in_log: true,
        ..PLAIN
    },
];

/// The profile with this name.
pub fn named(name: &str) -> Option<&'static Profile> {
    ALL.iter().find(|profile| profile.name == name)
}

/// The profile whose turn it is, if all take turns.
pub fn by_turn(seed: u64) -> &'static Profile {
    &ALL[(seed % ALL.len() as u64) as usize]
}

impl Profile {
    /// Its sizes, for a person: "3, 4".
    pub fn sizes_text(&self) -> String {
        let sizes: std::collections::BTreeSet<_> = self.sizes.iter().collect();
        let sizes: Vec<String> = sizes.iter().map(|size| size.to_string()).collect();
        sizes.join(", ")
    }

    /// Makes up a fault, or a few that belong together.
    pub fn add_fault(
        &self,
        size: usize,
        calm_us: TimeUs,
        random: &mut Random,
        faults: &mut Vec<(TimeUs, Fault)>,
    ) {
        let total: usize = self.mix.iter().map(|(weight, _)| weight).sum();
        let mut left = random.below(total.max(1));
        let drawn = self.mix.iter().find(|(weight, _)| {
            let found = left < *weight;
            left = left.saturating_sub(*weight);
            found
        });
        let Some((_, kind)) = drawn else {
            return;
        };
        let mut at = random.within(500_000..=calm_us - 200_000);
        let first = kind.fault(size, random);
        if *kind == Override {
            // Nobody has a majority; then the operator helps.
            let for_us = random.within(2_500_000..=6_000_000);
            let all: Vec<_> = (0..size).collect();
            let shattered = Fault::Cut {
                from: all.clone(),
                to: all,
                both: false,
                reset: random.percent(50),
                for_us,
            };
            at = at.min(calm_us.saturating_sub(for_us)).max(1);
            faults.push((at, shattered));
            faults.push((at + random.within(1_500_000..=for_us), first));
        } else if *kind == Fork {
            fork(size, calm_us, random, faults);
        } else if *kind == Flapping {
            for _ in 0..random.within(2..=8) {
                let period_us = first.lasts_us() + random.within(10_000..=500_000);
                faults.push((at, first.clone()));
                at = (at + period_us).min(calm_us - 1);
            }
        } else {
            faults.push((at, first));
        }
    }
}

impl Kind {
    fn fault(self, size: usize, random: &mut Random) -> Fault {
        let node = random.below(size);
        let other = (node + 1 + random.below(size.max(2) - 1)) % size;
        let for_us = 1000
            * match random.within(0..=3) {
                0 => random.within(20..=300),
                1 | 2 => random.within(300..=2_000),
                _ => random.within(2_000..=5_000),
            };
        match self {
            Partition | OneWay => cut(size, node, self == Partition, for_us, random),
            Flapping => {
                let both = random.percent(50);
                let for_us = random.within(10_000..=400_000);
                cut(size, node, both, for_us, random)
            }
            Reset => Fault::Reset { a: node, b: other },
            Overflow => Fault::Overflow {
                from: node,
                to: other,
                for_us: for_us.min(1_000_000),
            },
            Duplicate => Fault::Duplicate {
                from: node,
                to: other,
                for_us,
            },
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
            ClockJump => Fault::ClockJump {
                node,
                by_us: random.pick(&[500_000, 5_000_000, 60_000_000, 3_600_000_000]),
            },
            Override | Fork => Fault::Override { node },
            Astray => Fault::Astray {
                node,
                for_us: random.within(300_000..=2_000_000),
            },
            FullDisk => Fault::FullDisk {
                node,
                room_bytes: random.pick(&[0, 100, 1_000, 10_000]),
                for_us,
            },
            FlushFails => Fault::FlushFails { node, for_us },
            ReadFails => Fault::ReadFails { node, for_us },
            Rot => Fault::Rot {
                node,
                bits: random.pick(&[1, 1, 3]),
                for_us,
            },
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

/// A minority is cut off; the others go on, then lose each other. An operator makes a node of the
/// minority primary, maybe after the others have found their way into it.
fn fork(size: usize, calm_us: TimeUs, random: &mut Random, faults: &mut Vec<(TimeUs, Fault)>) {
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
    // All of them, or just so that none has a majority.
    faults.push((lost, cut(majority, majority, lost_us, random.percent(50))));
    let node = random.pick(minority);
    for _ in 0..4 {
        // As soon as nobody is primary any more, and only then.
        let at = lost + random.within(lost_us / 3..=lost_us);
        faults.push((at, Fault::Override { node }));
    }
}
