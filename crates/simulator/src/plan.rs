//! The plan of a seed: the cluster, its network and disks, the load, and the faults.

use trireme_group::Preference;
use trireme_log::Durability;
use trireme_replicator::{Options, ScriptBeforeIst};

use crate::absence::Absence;
use crate::fault::Fault;
use crate::founding::Founding;
use crate::profile::Profile;
use crate::random::Random;
use crate::scale::Scale;
use crate::seen::{NodeId, TimeUs};
use crate::server::{Flush, ServerPlan, Span};

/// One-way delay of a far node's links, in microseconds.
const FAR_US: u64 = 5_000;
/// Smallest part size for bulk payloads if a node is so far away.
const FAR_PART_BYTES: u32 = 100;
/// The least that a catch-up sends at a time where single frames take this long.
const JITTERY_BYTES: usize = 3_000;
const JITTERY_ENTRIES: u64 = 30;

/// Until an arbitrator has its vote: the shortest `unflushed_ms` that fits the simulated databases.
const VOTES_AFTER_MS: u64 = 1_500;
/// With this much for the start of all nodes, it is what faults come later by.
const STARTS_US: TimeUs = 1_000_000;

/// Everything about a run that is decided before its start.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// The name of its profile.
    pub profile: &'static str,
    /// The nodes.
    pub nodes: Vec<NodePlan>,
    /// One-way delay of each pair's link, by row and column.
    pub delay_us: Vec<Vec<u64>>,
    /// Maximum extra delay of a frame.
    pub jitter_us: u64,
    /// Capacity, in frames, of the queue to a peer that does not read.
    pub queue_frames: usize,
    /// `evs.suspect_timeout`.
    pub suspect_timeout_ms: u64,
    /// `pc.wait_evidence`; 0: never.
    pub wait_evidence_ms: u64,
    /// `repl.durability`.
    pub durability: Durability,
    /// `gcache.recover`: a restarted process goes on with the log of the one before.
    pub recovers: bool,
    /// Nodes keep marks outside the volumes of their logs (`repl.mark_dir`).
    pub marks: bool,
    /// Size of the log tail in memory, in bytes.
    pub tail_bytes: usize,
    /// Size of the window: bytes sent ahead of acknowledgements.
    pub window_bytes: usize,
    /// `gcache.size`.
    pub log_bytes: u64,
    /// Capacity of one segment of the log.
    pub segment_bytes: u64,
    /// `gcs.fc_limit`.
    pub fc_limit: u64,
    /// `repl.fc_desync_after_ms`.
    pub fc_desync_after_ms: u64,
    /// `cert.max_length`.
    pub cert_max_length: u64,
    /// Size of one IST message.
    pub ist_chunk_bytes: usize,
    /// Write-sets above this size are bulk payloads: a majority holds them before they are ordered.
    pub large_bytes: usize,
    /// Size of the parts in which a bulk payload travels.
    pub part_bytes: u32,
    /// From this size on, a bulk payload is written into a file of its own while it arrives.
    pub staged_bytes: u32,
    /// Memory for bulk payloads of other members, besides one of them.
    pub bulk_bytes: u64,
    /// Memory for payloads that wait to be applied.
    pub queue_bytes: usize,
    /// The constants of the nodes, instead of the shipped ones.
    pub scale: Scale,
    /// An operator heeds at once that the cluster refuses a node. False: the node goes on running.
    pub heeds_refusals: bool,
    /// Percentage of crashes that come in the middle of an input.
    pub deaths_within_percent: u64,
    /// Percentage of restarts without the recovered position (a server started directly after a crash).
    pub unrecovered_percent: u64,
    /// `wsrep_sst_donor` of all nodes.
    pub sst_donor: &'static str,
    /// Whether servers want a state-transfer script also before an IST (`repl.ist_script`, `wsrep_gtid_mode`).
    pub script_before_ist: ScriptBeforeIst,
    /// The faults, in the order of their begin.
    pub faults: Vec<(TimeUs, Fault)>,
    /// From this time on there are no faults.
    pub calm_us: TimeUs,
    /// Each link has its own stream of random numbers, and the nodes' events at one moment have a fixed order. Then
    /// the order in which a node sends to different peers changes nothing.
    pub links_apart: bool,
    /// The leader transfers leadership to the member with the fastest commits.
    pub leadership_moves: bool,
    /// Set if no node is told to bootstrap.
    pub founding: Option<Founding>,
    /// The node that must not lead in the end, with the reason.
    pub bad_seat: Option<(NodeId, BadSeat)>,
    /// The lying member, if there is one.
    pub liar: Option<Liar>,
    /// The member that falls silent when the faults are over, if there is one.
    pub absence: Option<Absence>,
}

/// A member that changes its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Liar {
    /// The node.
    pub node: NodeId,
    /// Percentage of its messages that are lies.
    pub percent: u64,
}

/// The reason why a node is a bad leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadSeat {
    /// It is far away from all others.
    Far,
    /// It becomes slow once it leads and the faults are over.
    Slow,
    /// Its operator forbids it (`repl.leader=never`).
    Unwanted,
}

/// One node.
#[derive(Clone, Debug)]
pub struct NodePlan {
    /// Start time of its first process.
    pub start_us: TimeUs,
    /// `pc.weight`.
    pub weight: u8,
    /// The reading of its clock when the world begins.
    pub clock_offset_us: u64,
    /// How much its clock gains, in us per second.
    pub drift_ppm: i64,
    /// Maximum time to handle an input.
    pub work_us: u64,
    /// Maximum time until a thread wakes up.
    pub wake_us: u64,
    /// Maximum time of a flush.
    pub flush_us: u64,
    /// An arbitrator: its server has no clients and nothing to do.
    pub arbitrator: bool,
    /// The plan of its server.
    pub server: ServerPlan,
    /// `repl.leader`.
    pub preference: Preference,
}

impl Plan {
    /// The plan of a seed.
    pub fn new(profile: &'static Profile, seed: u64) -> Plan {
        let mut plan = Plan::with_plain_connects(profile, seed);
        plan.give_up_connects(profile);
        plan
    }

    /// The same plan without connects that are given up. Plans were so before.
    pub fn with_plain_connects(profile: &'static Profile, seed: u64) -> Plan {
        let mut plan = Plan::with_old_disk_faults(profile, seed);
        plan.vary_disk_faults();
        plan.absence = Absence::of(&plan);
        plan
    }

    /// The same plan with failing notes that strike both files, and with short hangs only. Plans were so before.
    pub fn with_old_disk_faults(profile: &'static Profile, seed: u64) -> Plan {
        let mut plan = Plan::as_shipped(profile, seed);
        plan.scale_down(profile, &mut Random::new(seed, 11));
        let mut random = Random::new(seed, 15);
        plan.script_before_ist = match (random.percent(20), random.percent(60)) {
            (true, _) => ScriptBeforeIst::Always,
            (false, true) => ScriptBeforeIst::IfDonorIsFree,
            (false, false) => ScriptBeforeIst::Never,
        };
        plan
    }

    /// The same plan with the shipped constants, except those that the profile itself scales. Plans were so before
    /// the other constants became settings.
    pub fn as_shipped(profile: &'static Profile, seed: u64) -> Plan {
        let mut random = Random::new(seed, 1);
        let random = &mut random;
        let size = random.pick(profile.sizes);
        let mut nodes: Vec<NodePlan> = (0..size)
            .map(|node| NodePlan::new(profile, node, size, random))
            .collect();
        for node in nodes.iter_mut().rev().take(profile.arbitrators) {
            node.arbitrate();
        }
        let delay_us = delays_us(profile, size, random);
        let after_us = match profile.arbitrators_vote {
            true => STARTS_US + VOTES_AFTER_MS * 1000,
            false => 0,
        };
        let calm_us = random.within(profile.lasts_ms.0..=profile.lasts_ms.1) * 1000;
        let count = random.within(profile.faults.0..=profile.faults.1);
        let mut faults = Vec::new();
        for _ in 0..count {
            profile.add_fault(size, calm_us, random, &mut faults);
        }
        for (at, _) in &mut faults {
            *at += after_us;
        }
        faults.sort_by_key(|(at, _)| *at);
        let mut plan = Plan {
            seed,
            profile: profile.name,
            nodes,
            delay_us,
            jitter_us: random.pick(&[50, 200, 2_000, 20_000]),
            queue_frames: random.pick(&[20, 200, 2_000]),
            suspect_timeout_ms: random.pick(&[1_000, 1_500, 3_000]),
            wait_evidence_ms: 0,
            durability: random.pick(profile.durability),
            tail_bytes: random.pick(&[2_000, 20_000, 16 << 20]),
            window_bytes: random.pick(&[1_000, 50_000, 8 << 20]),
            log_bytes: random.pick(&[20_000, 200_000, 16 << 20]),
            segment_bytes: random.pick(&[4 << 10, 64 << 10]),
            fc_limit: random.pick(&[4, 16, 100]),
            fc_desync_after_ms: Options::default().fc_desync_after_ms,
            cert_max_length: Options::default().cert_max_length,
            ist_chunk_bytes: random.pick(&[500, 10_000, 1 << 20]),
            large_bytes: Options::default().large_bytes,
            part_bytes: 64 << 10,
            queue_bytes: Options::default().queue_bytes,
            staged_bytes: 16 << 20,
            scale: Scale::default(),
            deaths_within_percent: 0,
            bulk_bytes: 2 << 30,
            recovers: Random::new(seed, 5).percent(80),
            marks: true,
            heeds_refusals: true,
            unrecovered_percent: 10,
            sst_donor: "",
            script_before_ist: ScriptBeforeIst::IfDonorIsFree,
            faults,
            calm_us: calm_us + after_us,
            links_apart: true,
            leadership_moves: true,
            founding: None,
            bad_seat: None,
            liar: None,
            absence: None,
        };
        if profile.bulk_payloads {
            let random = &mut Random::new(seed, 7);
            plan.large_bytes = random.pick(&[100, 150, 250]);
            plan.part_bytes = random.pick(&[5, 20, 100]);
            plan.staged_bytes = random.pick(&[0, 200, 1 << 20]);
            plan.bulk_bytes = random.pick(&[300, 1_000, 2 << 30]);
        }
        if profile.bad_seat {
            plan.seat_badly(&mut Random::new(seed, 6));
        }
        if profile.founds_together {
            plan.found_together(profile, &mut Random::new(seed, 8));
        }
        if profile.liar {
            let random = &mut Random::new(seed, 13);
            // Node 0 founds the cluster and leads it for a while.
            let node = random.pick(&[0, 0, 1, 2]);
            let percent = random.pick(&[1, 5, 20, 60]);
            plan.liar = Some(Liar { node, percent });
        }
        if profile.queues_in_log {
            plan.queue_bytes = Random::new(seed, 9).pick(&[0, 150, 600, 3_000]);
        }
        plan
    }

    /// Scales constants down, so that each schedule reaches cases that deployed nodes reach in large clusters only.
    fn scale_down(&mut self, profile: &Profile, random: &mut Random) {
        self.scale = Scale::drawn(random);
        if profile.arbitrators_vote {
            self.scale.replicator.unflushed_ms = VOTES_AFTER_MS;
        }
        // A stream of its own, so that the other draws stay as they were.
        let shipped = self.scale.engine.control_queue_bytes;
        self.scale.engine.control_queue_bytes =
            Random::new(self.seed, 16).pick(&[300, 3_000, shipped]);
        self.deaths_within_percent = Random::new(self.seed, 12).pick(&[0, 50, 100]);
        self.cert_max_length = random.pick(&[20, 100, self.cert_max_length]);
        let (large, queues) = (random.percent(40), random.percent(30));
        // Payloads have 100 to 170 bytes, a few have more.
        let large_bytes = random.pick(&[80, 120, 150]);
        let part_bytes = random.pick(&[30, 60, 200]);
        let staged_bytes = random.pick(&[0, 120, 150]);
        let bulk_bytes = random.pick(&[1_000, 10_000, self.bulk_bytes]);
        let queue_bytes = random.pick(&[600, 3_000, 20_000]);
        if large && !profile.bulk_payloads {
            (self.large_bytes, self.part_bytes) = (large_bytes, part_bytes);
            (self.staged_bytes, self.bulk_bytes) = (staged_bytes, bulk_bytes);
        }
        if queues && !profile.queues_in_log {
            self.queue_bytes = queue_bytes;
        }
        if self.jitter_us >= FAR_US {
            self.widen_catch_up();
        }
        if self.delay_us.iter().flatten().any(|us| *us >= FAR_US) {
            // A round trip would let so little through that the far node falls behind for ever (seed 291,
            // leadership).
            self.scale.group = Scale::default().group;
            match profile.bulk_payloads {
                // The far node requests parts ahead of many payloads at a time, but at most 256 of its requests wait.
                // Further ones come a second later (seed 3100020525).
                true => self.part_bytes = self.part_bytes.max(FAR_PART_BYTES),
                false => self.large_bytes = Options::default().large_bytes,
            }
        }
    }

    /// On lines like this a round trip would bring one entry, and a member that catches up would fall behind a single busy
    /// writer for ever (seed 928, laggards).
    fn widen_catch_up(&mut self) {
        let group = &mut self.scale.group;
        group.append_bytes = group.append_bytes.max(JITTERY_BYTES);
        group.log_slice_bytes = group.log_slice_bytes.max(JITTERY_BYTES);
        group.append_entries = group.append_entries.max(JITTERY_ENTRIES);
    }

    /// Makes node 0 the first leader, on a place that is bad or becomes bad.
    fn seat_badly(&mut self, random: &mut Random) {
        let why = random.pick(&[BadSeat::Far, BadSeat::Far, BadSeat::Slow, BadSeat::Unwanted]);
        self.bad_seat = Some((0, why));
        let first_load = self.nodes[0].server.load.clone();
        for (index, node) in self.nodes.iter_mut().enumerate() {
            // Node 0 has one client only: more local writes would make up for its bad place.
            node.server.load.think_us = first_load.think_us;
            node.server.load.clients = if index == 0 { 1 } else { first_load.clients };
            node.server.admin.every_us = None;
        }
        match why {
            BadSeat::Far => {
                let detour_us = random.within(30_000..=100_000);
                for other in 1..self.nodes.len() {
                    self.delay_us[0][other] += detour_us;
                    self.delay_us[other][0] += detour_us;
                }
            }
            BadSeat::Slow => {}
            BadSeat::Unwanted => self.nodes[0].preference = Preference::Never,
        }
    }
}

impl NodePlan {
    /// Turns the node into an arbitrator.
    pub fn arbitrate(&mut self) {
        self.arbitrator = true;
        self.server.load.clients = 0;
        self.server.admin.every_us = None;
        self.server.apply_errors_per_million = 0;
    }

    fn new(profile: &Profile, node: NodeId, size: usize, random: &mut Random) -> NodePlan {
        let late = random.percent(profile.late_percent);
        let start_us = match node {
            0 => 0,
            _ if late => random.within(0..=profile.lasts_ms.1 * 700),
            _ => random.within(0..=300_000),
        };
        let drift = profile.drift_ppm;
        NodePlan {
            start_us,
            weight: random.pick(profile.weights),
            clock_offset_us: random.within(0..=100_000_000_000),
            drift_ppm: random.within(0..=2 * drift) as i64 - drift as i64,
            work_us: random.pick(&[10, 50, 200]),
            wake_us: random.pick(&[10, 50, 500]),
            flush_us: random.pick(&[200, 2_000, 10_000]),
            arbitrator: false,
            server: server(profile, size, random),
            preference: Preference::Auto,
        }
    }
}

fn server(profile: &Profile, size: usize, random: &mut Random) -> ServerPlan {
    let mut plan = ServerPlan {
        appliers: random.pick(&[1, 2, 3, 4, 8]),
        flush: random.pick(&[Flush::EachCommit, Flush::WriteEachCommit, Flush::EachSecond]),
        retry_autocommit: random.percent(80),
        ..ServerPlan::default()
    };
    // About the same load for every size.
    let think_us = random.pick(&profile.think_us) * size as u64 / 3;
    plan.load.think_us = Span(think_us / 4, think_us * 2);
    plan.load.clients = random.pick(&[1, 2, 3, 4]);
    plan.load.keys = random.pick(&[20, 60, 300]);
    plan.load.hot_percent = random.pick(&[0, 15, 50]);
    plan.load.ddl_per_mille = random.pick(&[0, 2, 20]);
    plan.speed.start_us = Span(5_000, 100_000);
    plan.speed.transfer_us = Span(5_000, random.pick(&[50_000, 500_000, 3_000_000]));
    plan.load.ddl_error_percent = profile.ddl_error_percent;
    if !profile.apply_errors_per_million.is_empty() {
        plan.apply_errors_per_million = random.pick(profile.apply_errors_per_million);
    }
    plan.load.streaming_percent = profile.streaming_percent;
    if profile.streaming_percent > 0 {
        plan.load.writes_max = 6;
        // Two transactions on two nodes may wait for each other: only this timeout ends the wait.
        plan.speed.lock_wait_us = 1_000_000;
        // The server has special rules for DDL beside unfinished transactions; the simulator does not model them.
        plan.load.ddl_per_mille = 0;
    }
    if random.percent(30) {
        plan.admin.every_us = Some(Span(100_000, 3_000_000));
    }
    plan
}

/// The delays of the links from each node to each other one. One node may be far from all others.
fn delays_us(profile: &Profile, size: usize, random: &mut Random) -> Vec<Vec<TimeUs>> {
    let far = random
        .percent(profile.far_percent)
        .then(|| random.below(size));
    let mut delay_us = |a: NodeId, b: NodeId| {
        let detour_us = match far == Some(a) || far == Some(b) {
            true => random.within(5_000..=50_000),
            false => 0,
        };
        detour_us + random.within(50..=500)
    };
    (0..size)
        .map(|a| (0..size).map(|b| delay_us(a, b)).collect())
        .collect()
}
