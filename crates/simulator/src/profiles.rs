//! All profiles: named kinds of runs.

use trireme_log::Durability;

use crate::fault_kind::Kind::{self, *};
use crate::profile::Profile;

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
    think_us: [10_000, 20_000, 50_000],
    bad_seat: false,
    arbitrators: 0,
    arbitrators_vote: false,
    streaming_percent: 0,
    founds_together: false,
    gives_up_percent: 8,
    bulk_payloads: false,
    queues_in_log: false,
    liar: false,
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
    (1, DeviceFails),
    (1, NotesFail),
    (2, CrashInTransfer),
    (3, Leave),
    (1, Isolate),
    (2, Weight),
    (1, ClockJump),
];

const BESIDE_ARBITRATORS: &[(usize, Kind)] = &[
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
];

/// All profiles that take turns.
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
        gives_up_percent: 50,
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
        name: "leadership",
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
        mix: BESIDE_ARBITRATORS,
        ddl_error_percent: 30,
        ..PLAIN
    },
    Profile {
        name: "voting-arbitrators",
        sizes: &[3, 3, 3, 4],
        arbitrators: 1,
        arbitrators_vote: true,
        mix: BESIDE_ARBITRATORS,
        ddl_error_percent: 30,
        ..PLAIN
    },
    Profile {
        name: "disks",
        gives_up_percent: 40,
        mix: &[
            (4, FullDisk),
            (4, FlushFails),
            (4, DeviceFails),
            (3, NotesFail),
            (2, FlushHangs),
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
        founds_together: true,
        ..PLAIN
    },
    Profile {
        name: "bulk-payloads",
        sizes: &[2, 3, 3, 4, 5],
        faults: (3, 14),
        mix: EVERYTHING,
        bulk_payloads: true,
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
            (1, DeviceFails),
            (1, Fork),
        ],
        think_us: [3_000, 10_000, 20_000],
        queues_in_log: true,
        ..PLAIN
    },
    Profile {
        name: "mistakes",
        sizes: &[2, 3, 3, 4, 5],
        lasts_ms: (6_000, 11_000),
        faults: (2, 5),
        mix: &[
            (3, Beside),
            (3, IgnoreSplitBrain),
            (2, IgnoreQuorum),
            (2, WeightZero),
            (1, Weight),
            (2, Partition),
            (1, OneWay),
            (1, Crash),
            (1, PowerLoss),
            (1, CrashInTransfer),
            (1, Pause),
            (1, Leave),
            (1, Reconnect),
            (1, Reset),
        ],
        ..PLAIN
    },
];

/// One member lies. The profile takes no turn, so that a seed alone still names the same schedule.
pub const LIARS: &Profile = &Profile {
    name: "liars",
    sizes: &[3, 3, 4, 5],
    mix: EVERYTHING,
    bulk_payloads: true,
    liar: true,
    ..PLAIN
};

/// The group above all: light load, and much change of membership. It takes no turn, for the same reason.
pub const GROUP: &Profile = &Profile {
    name: "group",
    sizes: &[1, 2, 2, 3, 3, 3, 3, 4, 4, 5, 5, 5, 6, 7],
    lasts_ms: (4_000, 12_000),
    faults: (0, 14),
    mix: &[
        (18, Partition),
        (12, OneWay),
        (10, Reset),
        (15, Pause),
        (25, Crash),
        (4, PowerLoss),
        (8, Leave),
        (8, Overflow),
        (4, Weight),
        (3, Blackout),
    ],
    far_percent: 25,
    late_percent: 25,
    think_us: [50_000, 200_000, 1_000_000],
    ..PLAIN
};

/// The profile with this name.
pub fn named(name: &str) -> Option<&'static Profile> {
    all().find(|profile| profile.name == name)
}

/// The profiles that take turns, and the others.
pub fn all() -> impl Iterator<Item = &'static Profile> {
    ALL.iter().chain([LIARS, GROUP])
}

/// The profile that this seed takes, if all take turns.
pub fn by_turn(seed: u64) -> &'static Profile {
    &ALL[(seed % ALL.len() as u64) as usize]
}
