//! What a seed stands for: the cluster, its network and disks, the load, and the faults.

use trireme_group::TimeMs;

use crate::random::Random;

/// Everything about a run that is decided before it starts.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub nodes: Vec<NodePlan>,
    /// One-way delay of each pair's link, by row and column.
    pub delay_ms: Vec<Vec<TimeMs>>,
    pub jitter_ms: TimeMs,
    pub suspect_timeout_ms: TimeMs,
    pub append_is_durable: bool,
    pub disk_ms: TimeMs,
    pub tail_bytes: usize,
    pub window_bytes: usize,
    /// Entries that a log keeps for others.
    pub retention: usize,
    /// Time from a member's first view to its "joined".
    pub joining_ms: TimeMs,
    /// Chance that a process that starts again finds the log of the one before.
    pub kept_percent: u64,
    /// Chance that what was not flushed is gone then, where nothing waits for the disk.
    pub power_loss_percent: u64,
    pub faults: Vec<(TimeMs, Fault)>,
    /// From here on everything works.
    pub calm_at: TimeMs,
}

#[derive(Clone, Debug)]
pub struct NodePlan {
    pub start_at: TimeMs,
    /// Mean time between bursts of submissions.
    pub think_ms: TimeMs,
    pub burst: u64,
    pub large_payloads: bool,
}

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing passes from one set of nodes to the other, and back if `both`. Connections break now or when it heals, or
    /// not at all.
    Cut {
        from: Vec<usize>,
        to: Vec<usize>,
        both: bool,
        reset: bool,
        for_ms: TimeMs,
    },
    /// A connection breaks.
    Reset { a: usize, b: usize },
    /// SIGSTOP, SIGCONT.
    Pause { node: usize, for_ms: TimeMs },
    /// kill -9, and a new process later.
    Crash { node: usize, for_ms: TimeMs },
    /// kill -9 for all.
    Blackout { for_ms: TimeMs },
    /// A graceful leave, and a new process later.
    Leave { node: usize, for_ms: TimeMs },
    /// A queue overflows: what is sent meanwhile is dropped, without the connection breaking.
    Overflow {
        from: usize,
        to: usize,
        for_ms: TimeMs,
    },
    /// `pc.weight`.
    Weight { node: usize, weight: u8 },
}

impl Plan {
    pub fn new(seed: u64) -> Plan {
        let mut random = Random::new(seed, 1);
        let size = random.pick(&[1, 2, 2, 3, 3, 3, 3, 4, 4, 5, 5, 5, 6, 7]);
        let nodes = (0..size)
            .map(|index| NodePlan::new(index, &mut random))
            .collect();
        let far = random.percent(25).then(|| random.below(size));
        let mut delay = |a, b| {
            let is_far = far == Some(a) || far == Some(b);
            let detour = if is_far { random.within(20..=60) } else { 0 };
            detour + random.within(0..=3)
        };
        let delay_ms = (0..size)
            .map(|a| (0..size).map(|b| delay(a, b)).collect())
            .collect();
        let calm_at = random.within(4_000..=12_000);
        let count = random.within(0..=14);
        let mut faults: Vec<(TimeMs, Fault)> = (0..count)
            .map(|_| {
                (
                    random.within(500..=calm_at - 200),
                    Fault::new(size, &mut random),
                )
            })
            .collect();
        faults.sort_by_key(|(at, _)| *at);
        let mut keeping = Random::new(seed, 4);
        let kept_percent = keeping.pick(&[0, 50, 100, 100]);
        if kept_percent == 100 && keeping.percent(50) {
            let at = keeping.within(1_000..=calm_at - 200);
            let for_ms = keeping.within(20..=2_000);
            faults.push((at, Fault::Blackout { for_ms }));
        }
        Plan {
            kept_percent,
            power_loss_percent: keeping.pick(&[0, 0, 50]),
            seed,
            nodes,
            delay_ms,
            jitter_ms: random.pick(&[0, 2, 5, 30]),
            suspect_timeout_ms: random.pick(&[1_500, 3_000, 5_000]),
            append_is_durable: random.percent(50),
            disk_ms: random.pick(&[0, 2, 10, 40]),
            tail_bytes: random.pick(&[2_000, 20_000, 16 << 20]),
            window_bytes: random.pick(&[1_000, 50_000, 8 << 20]),
            retention: random.pick(&[50, 500, usize::MAX]),
            joining_ms: random.pick(&[0, 100, 1_500]),
            faults,
            calm_at,
        }
    }
}

impl Plan {
    /// Near nodes, fast disks, an even load, and these faults: for scenarios with a known outcome.
    pub fn directed(size: usize, calm_at: TimeMs, faults: Vec<(TimeMs, Fault)>) -> Plan {
        let node = NodePlan {
            start_at: 0,
            think_ms: 10,
            burst: 1,
            large_payloads: false,
        };
        Plan {
            seed: 1,
            nodes: vec![node; size],
            delay_ms: vec![vec![1; size]; size],
            jitter_ms: 0,
            suspect_timeout_ms: 5_000,
            append_is_durable: true,
            disk_ms: 2,
            tail_bytes: 16 << 20,
            window_bytes: 8 << 20,
            retention: usize::MAX,
            joining_ms: 100,
            kept_percent: 0,
            power_loss_percent: 0,
            faults,
            calm_at,
        }
    }
}

impl NodePlan {
    fn new(index: usize, random: &mut Random) -> NodePlan {
        NodePlan {
            start_at: match random.within(0..=3) {
                _ if index == 0 => 0,
                0 => random.within(0..=8_000),
                _ => random.within(0..=1_000),
            },
            think_ms: random.pick(&[20, 50, 200, 1_000]),
            burst: random.pick(&[1, 1, 3, 10]),
            large_payloads: random.percent(20),
        }
    }
}

impl Fault {
    fn new(size: usize, random: &mut Random) -> Fault {
        let node = random.below(size);
        let other = random.below(size);
        let duration = |random: &mut Random| match random.within(0..=3) {
            0 => random.within(20..=300),
            1 | 2 => random.within(300..=2_000),
            _ => random.within(2_000..=7_000),
        };
        let for_ms = duration(random);
        match random.within(0..=99) {
            0..=29 => {
                let inside: Vec<bool> =
                    (0..size).map(|n| n == node || random.percent(35)).collect();
                let (from, to) = (0..size).partition(|n| inside[*n]);
                Fault::Cut {
                    from,
                    to,
                    both: random.percent(60),
                    reset: random.percent(50),
                    for_ms,
                }
            }
            30..=39 => Fault::Reset { a: node, b: other },
            40..=54 => Fault::Pause { node, for_ms },
            55..=79 => Fault::Crash { node, for_ms },
            80..=87 => Fault::Leave { node, for_ms },
            88..=95 => Fault::Overflow {
                from: node,
                to: other,
                for_ms: for_ms.min(1_000),
            },
            _ => Fault::Weight {
                node,
                weight: random.within(1..=3) as u8,
            },
        }
    }
}
