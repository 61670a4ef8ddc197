//! The settings of a plan's nodes, as the parts of a node take them.

use trireme_group::{Config, Member};
use trireme_log::LogConfig;
use trireme_replicator::Options;

use crate::plan::Plan;
use crate::seen::NodeId;

impl Plan {
    /// The replicator's settings.
    pub fn replicator_options(&self) -> Options {
        Options {
            fc_limit: self.fc_limit,
            fc_desync_after_ms: self.fc_desync_after_ms,
            cert_max_length: self.cert_max_length,
            ist_chunk_bytes: self.ist_chunk_bytes,
            // Each part takes a round trip: a few parts for an entry are enough.
            ist_part_bytes: self.part_bytes.max(100),
            large_bytes: self.large_bytes,
            queue_bytes: self.queue_bytes,
            thresholds: self.scale.replicator,
            sst_donor: self.sst_donor.to_owned(),
            suspect_timeout_ms: self.suspect_timeout_ms,
            script_before_ist: self.script_before_ist,
            ..Options::default()
        }
    }

    /// The group's settings on this node.
    pub fn group_config(&self, node: NodeId, me: Member) -> Config {
        Config {
            suspect_timeout_ms: self.suspect_timeout_ms,
            wait_evidence_ms: self.wait_evidence_ms,
            tail_bytes: self.tail_bytes,
            window_bytes: self.window_bytes,
            large_bytes: self.large_bytes,
            part_bytes: self.part_bytes,
            staged_bytes: self.staged_bytes,
            bulk_bytes: self.bulk_bytes,
            thresholds: self.scale.group,
            preference: self.nodes[node].preference,
            measures: self.leadership_moves,
            ..Config::new(me)
        }
    }

    /// The log's settings.
    pub fn log_config(&self) -> LogConfig {
        LogConfig {
            segment_bytes: self.segment_bytes,
            thresholds: self.scale.log,
            ..LogConfig::new("".into(), self.log_bytes, [0; 16], self.durability)
        }
    }
}
