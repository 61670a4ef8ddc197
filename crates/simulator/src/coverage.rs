//! Counts the events of a run: a run without events proves nothing.

use std::collections::BTreeMap;
use std::fmt;

macro_rules! counters {
    ($($field:ident: $name:literal,)*) => {
        /// Counts of one run, or of many.
        #[derive(Clone, Debug, Default)]
        pub struct Coverage {
            $(#[doc = $name] pub $field: u64,)*
            /// Faults by kind.
            pub faults: BTreeMap<&'static str, u64>,
            /// For each of [`RARE`]: the number of schedules that reached it.
            pub reached: BTreeMap<&'static str, u64>,
            /// Number of schedules.
            pub schedules: u64,
            /// Number of schedules with a view change under load.
            pub loaded_schedules: u64,
        }

        impl Coverage {
            fn add_numbers(&mut self, run: &Coverage) {
                $(self.$field += run.$field;)*
            }

            fn numbers(&self) -> Vec<String> {
                vec![$(format!("{} {}", $name, self.$field),)*]
            }
        }
    };
}

counters! {
    commits: "own commits",
    conflicts: "conflicts",
    replays: "replays",
    views: "views",
    loaded_views: "views under load",
    leaderships: "leaderships taken",
    handed: "leaderships handed over",
    kept: "leaderships not taken over",
    needless: "leaderships taken needlessly",
    truncations: "truncations",
    installs: "checkpoints installed",
    voided: "voids",
    bulk_payloads: "large write-sets fetched",
    logged: "large write-sets fetched from a log",
    flushes: "flushes apart",
    own_flushes: "flushes by the reactor",
    renewed: "flushes renewed",
    hangs: "reports of a hanging flush",
    handed_for_hang: "leaderships handed over for a hanging flush",
    write_backs: "write-backs",
    pieces: "pieces staged",
    serves: "reads for peers apart",
    staged: "entries staged",
    parts_read: "parts of entries read",
    direct: "records written past the buffer",
    full_buffers: "full buffers written out",
    purged: "segments purged",
    purged_early: "segments purged while faults went on",
    too_wide: "write-sets beyond cert.max_length",
    read_back: "write-sets read back to be applied",
    transfers: "snapshots",
    transfers_broken: "snapshots broken off",
    bypasses: "scripts before an incremental transfer",
    ists: "incremental transfers",
    deaths_within: "deaths within a pump",
    fatals: "aborts by themselves",
    refusals: "refusals",
    cut_off: "left for want of a disk",
    lacked_room: "left because a promise had no room",
    spoiled_pending: "disks spoiled in a pending view",
    cut_off_pending: "left for want of a disk in a pending view",
    not_started: "starts that failed",
    rotten: "damaged logs found",
    expelled: "inconsistencies",
    overridden: "overrides in effect",
    beside: "overrides in effect beside a primary component",
    split_brain_ignored: "overrides by pc.ignore_sb",
    quorum_ignored: "overrides by pc.ignore_quorum",
    without_vote: "views with a voter of weight 0",
    forks: "databases beyond a fork",
    strangers: "strangers met",
    reconnects: "reconnects",
    absences: "members silent for good",
    given_up: "connects given up",
    unmounted: "connects without the volume of the log",
    mounted_late: "volumes of the log mounted after another log",
    resumed: "logs read back",
    stops: "flow-control stops",
    left_out: "members left out of flow control",
    by_itself: "blackouts without an operator",
    reformed: "clusters that went on with the best that was left",
    breaks: "connections broken",
    frames: "frames",
    dropped: "frames dropped",
    duplicates: "frames doubled",
    steps: "server steps",
    lies: "lies",
    unreadable: "lies that nobody can read",
    deceived: "servers that a lie has ended",
}

/// A rare event: its name, and its count in a run.
pub type Rare = (&'static str, fn(&Coverage) -> u64);

/// Events that deployed nodes meet in large clusters or on some disks only. [`crate::scale`] and the profiles make
/// ordinary schedules reach them.
pub const RARE: &[Rare] = &[
    ("flush apart", |c| c.flushes),
    ("flush by the reactor", |c| c.own_flushes),
    ("flush renewed", |c| c.renewed),
    ("write-back", |c| c.write_backs),
    ("payload fetched", |c| c.bulk_payloads),
    ("entry staged", |c| c.staged),
    ("read for a peer apart", |c| c.serves),
    ("entry read in parts", |c| c.parts_read),
    ("payload fetched from a log", |c| c.logged),
    ("record past the buffer", |c| c.direct),
    ("full buffer", |c| c.full_buffers),
    ("purge while faults go on", |c| c.purged_early),
    ("death within a pump", |c| c.deaths_within),
    ("beyond cert.max_length", |c| c.too_wide),
    ("write-set read back", |c| c.read_back),
    ("member silent for good", |c| c.absences),
    ("connect given up", |c| c.given_up),
    ("connect without the log's volume", |c| c.unmounted),
    ("log's volume back after another log", |c| c.mounted_late),
];

impl Coverage {
    /// Counts a fault.
    pub fn fault(&mut self, kind: &'static str) {
        *self.faults.entry(kind).or_default() += 1;
    }

    /// Adds the counters of a process, at its end.
    pub fn process(&mut self, group: trireme_group::Counters) {
        self.truncations += group.truncations;
        self.leaderships += group.leaderships_taken;
        self.handed += group.leaderships_handed;
        self.kept += group.leaderships_kept;
        self.needless += group.leaderships_needless;
        self.installs += group.installs;
        self.voided += group.voided;
        self.bulk_payloads += group.bulk_payloads;
        self.logged += group.logged;
    }

    /// Adds a run's counts.
    pub fn add(&mut self, run: &Coverage) {
        self.add_numbers(run);
        for (kind, count) in &run.faults {
            *self.faults.entry(kind).or_default() += count;
        }
        for (name, count) in RARE {
            *self.reached.entry(name).or_default() += u64::from(count(run) > 0);
        }
        self.schedules += 1;
        self.loaded_schedules += u64::from(run.loaded_views > 0);
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults: Vec<String> = self
            .faults
            .iter()
            .map(|(kind, count)| format!("{kind} {count}"))
            .collect();
        let schedules = self.schedules.max(1);
        let reached = self.reached.iter();
        let reached: Vec<String> = reached
            .map(|(name, count)| format!("{name} {} %", count * 100 / schedules))
            .collect();
        writeln!(f, "came upon: {}", self.numbers().join(", "))?;
        writeln!(f, "faults: {}", faults.join(", "))?;
        write!(f, "reached in schedules: {}", reached.join(", "))
    }
}
