//! The reason for which a node waits, for the state-and-event file. Group and replicator know the reasons; this module
//! gives them the words of docs/state-and-event-file.md.

use trireme_group::{ComponentState, Group, Member};
use trireme_node::now_ms;
use trireme_node::state_file::{Peer, Wait};
use trireme_replicator::NodeWait;

use crate::core::Core;
use crate::node::Node;

/// Returns the wait; None: the node waits for nothing, or is not connected.
pub fn wait_of(node: &Node, core: &Core) -> Option<Wait> {
    if node.server.is_asked() {
        let text = "asking the server for its database's position (--wsrep-recover): after a crash InnoDB recovers first";
        return Some(wait("database-position", text));
    }
    let link = core.engine.link()?;
    let progress = &core.progress;
    if core.engine.replicator.is_leaving() {
        return None;
    }
    if let Some(text) = &progress.failed {
        return Some(wait("failed", text));
    }
    if let Some(reason) = progress.refused.as_ref().filter(|_| !progress.admitted) {
        return Some(wait("refused", reason));
    }
    if core.engine.flush_hangs(now_ms()) {
        let text = "a flush of the write-set log does not end: its disk does not answer; check the disk and the kernel's messages";
        return Some(wait("disk", text));
    }
    of_group(core, &link.group).or_else(|| {
        let waits = core.engine.replicator.waits_for();
        waits.map(|waits| of_node(core, waits))
    })
}

fn wait(reason: &str, text: impl Into<String>) -> Wait {
    Wait {
        reason: reason.to_owned(),
        text: text.into(),
        ..Wait::default()
    }
}

fn of_group(core: &Core, group: &Group) -> Option<Wait> {
    if let Some(missing) = group.missing() {
        let peers = |members: &[Member]| members.iter().map(peer).collect();
        return Some(Wait {
            here: peers(&missing.here),
            missing: peers(&missing.missing),
            ..wait("majority", missing.text)
        });
    }
    if let Some((text, addresses)) = group.founding_waits_for() {
        return Some(Wait {
            missing: addresses.iter().map(|address| at(address)).collect(),
            ..wait("founders", text)
        });
    }
    match group.component_state() {
        ComponentState::Primary => None,
        ComponentState::NonPrimary => Some(wait(
            "majority",
            "a majority is here, and elects a leader: it takes a second or two",
        )),
        ComponentState::Outside => {
            let listed = core.line.as_ref().map(|line| line.mesh.listed());
            let missing = listed.map(|(_, missing)| missing).unwrap_or_default();
            let text = match missing.is_empty() {
                true => "all addresses of wsrep_cluster_address answer, and none of them is in a primary component (yet)".to_owned(),
                false => format!(
                    "looking for a primary component of '{}'; nobody answers at {}: start these nodes, or check the network; the first node \
                     of a new cluster is started with galera_new_cluster",
                    core.cluster.name,
                    missing.join(", ")
                ),
            };
            Some(Wait {
                missing: missing.iter().map(|address| at(address)).collect(),
                ..wait("component", text)
            })
        }
    }
}

fn of_node(core: &Core, waits: NodeWait) -> Wait {
    let how_far = || match core.engine.replicator.progress() {
        Some(progress) => format!(": {progress}"),
        None => String::new(),
    };
    match waits {
        NodeWait::Admission => wait(
            "admission",
            "taking over the state of the order from another member",
        ),
        NodeWait::Donor => wait(
            "donor",
            "needs the database of another node, and no donor was found yet: a node that is Synced has to be there (wsrep_sst_donor, \
             if it is set, names one)",
        ),
        NodeWait::StateTransfer { donor } => Wait {
            text: format!(
                "receiving a full snapshot (SST) from {}; the server's error log has the script's lines",
                donor.as_deref().unwrap_or("its donor")
            ),
            donor,
            ..wait("state-transfer", "")
        },
        NodeWait::Script { donor: None } => wait(
            "script",
            "the script of the state transfer runs before the missing write-sets come; it needs a donor that is Synced \
             (wsrep_sst_donor, if it is set, names one)",
        ),
        NodeWait::Script { donor } => Wait {
            text: format!(
                "the script of the state transfer runs before the missing write-sets come, with {} as donor; the server's error \
                 log has the script's lines",
                donor.as_deref().unwrap_or_default()
            ),
            donor,
            ..wait("script", "")
        },
        NodeWait::IncrementalTransfer => wait(
            "incremental-transfer",
            format!(
                "receiving and applying the write-sets that it missed{}",
                how_far()
            ),
        ),
        NodeWait::CatchUp => wait(
            "catch-up",
            format!("applying what was ordered meanwhile{}", how_far()),
        ),
    }
}

fn peer(member: &Member) -> Peer {
    Peer {
        name: member.name.clone(),
        address: member.address.clone(),
    }
}

fn at(address: &str) -> Peer {
    Peer {
        name: String::new(),
        address: address.to_owned(),
    }
}
