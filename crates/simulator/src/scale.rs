//! Scaled-down constants of the nodes: a schedule moves some hundred KiB, and must cross limits that deployed nodes
//! cross with GiB.

use trireme_engine as engine;
use trireme_group as group;
use trireme_log as log;
use trireme_replicator as replicator;

use crate::random::Random;

/// The constants of all nodes of a plan, instead of the shipped ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scale {
    /// The constants of the engine.
    pub engine: engine::Thresholds,
    /// The constants of the group.
    pub group: group::Thresholds,
    /// The constants of the log.
    pub log: log::Thresholds,
    /// The constants of the replicator.
    pub replicator: replicator::Thresholds,
}

impl Scale {
    /// Random constants: each one is small, smaller, or as shipped.
    pub fn drawn(random: &mut Random) -> Scale {
        let shipped = Scale::default();
        Scale {
            engine: engine::Thresholds {
                large_read_bytes: random.pick(&[100, 150, shipped.engine.large_read_bytes]),
                write_back_bytes: random.pick(&[500, 20_000, shipped.engine.write_back_bytes]),
                stage_flush_bytes: random.pick(&[50, 500, shipped.engine.stage_flush_bytes]),
                read_back_bytes: random.pick(&[300, 3_000, shipped.engine.read_back_bytes]),
                slice_bytes: random.pick(&[1_000, 10_000, shipped.engine.slice_bytes]),
                recovery_bytes: random.pick(&[1_000, 20_000, shipped.engine.recovery_bytes]),
                control_queue_bytes: shipped.engine.control_queue_bytes,
                excess_bytes: random.pick(&[5_000, 50_000, shipped.engine.excess_bytes]),
                checkpoint_bytes_max: shipped.engine.checkpoint_bytes_max,
            },
            group: group::Thresholds {
                append_bytes: random.pick(&[300, 3_000, shipped.group.append_bytes]),
                append_entries: random.pick(&[3, 30, shipped.group.append_entries]),
                log_slice_bytes: random.pick(&[300, 3_000, shipped.group.log_slice_bytes]),
                logged_bytes: random.pick(&[300, 3_000, shipped.group.logged_bytes]),
                given_bytes: random.pick(&[300, 3_000, shipped.group.given_bytes]),
                read_left_bytes: random.pick(&[300, 3_000, shipped.group.read_left_bytes]),
                pending_bytes: random.pick(&[2_000, 20_000, shipped.group.pending_bytes]),
                // These must fit a correct leader's window, which has a fixed size: else members drop what they need.
                incoming_bytes: shipped.group.incoming_bytes,
                incoming_records: shipped.group.incoming_records,
            },
            log: log::Thresholds {
                direct_bytes: random.pick(&[200, 400, shipped.log.direct_bytes]),
                buffer_bytes: random.pick(&[300, 3_000, shipped.log.buffer_bytes]),
                ahead_bytes: random.pick(&[300, 3_000, shipped.log.ahead_bytes]),
                open_files: random.pick(&[1, 4, shipped.log.open_files]),
            },
            replicator: replicator::Thresholds {
                // The simulated databases flush their commits within a second.
                unflushed_ms: random.pick(&[1_500, 3_000, shipped.replicator.unflushed_ms]),
                report_write_sets: random.pick(&[5, 30, shipped.replicator.report_write_sets]),
                report_ms: random.pick(&[300, shipped.replicator.report_ms]),
                read_back_bytes: random.pick(&[300, 3_000, shipped.replicator.read_back_bytes]),
                slice_bytes: random.pick(&[1_000, 10_000, shipped.replicator.slice_bytes]),
                chunk_bytes: random.pick(&[300, 3_000, shipped.replicator.chunk_bytes]),
                pulled_entries: random.pick(&[3, 30, shipped.replicator.pulled_entries]),
            },
        }
    }
}
