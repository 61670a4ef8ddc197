//! Makes the content of the state-and-event file from a node's state.

use trireme_engine::Link;
use trireme_group::{ComponentState, Member, Uuid, is_unvouched_override};
use trireme_log::Durability;
use trireme_node::state_file::{
    CONFLICTS_MAX, CatchUp, Cluster, Conflicts, FlowControl, ForcedView, Leader, LogSizes,
    MemberLine, NodeNames, Process, State, StateFile, Wait,
};
use trireme_node::{commit_times, unix_ms};
use trireme_replicator::Status;

use crate::core::Core;
use crate::node::Node;
use crate::wait::wait_of;

/// Takes copies of the state, and remembers since when the node waits.
#[derive(Default)]
pub struct StateOfNode {
    wait: Option<Wait>,
}

impl StateOfNode {
    /// Returns the state now.
    pub fn take(&mut self, node: &Node) -> StateFile {
        let now = unix_ms();
        let (segment, weight, log_dir) = {
            let options = node.options.lock().unwrap_or_else(|e| e.into_inner());
            let byte = |key| options.int(key).clamp(0, 255) as u8;
            let log_dir = log_dir(options.str("gcache.dir"), options.str("base_dir"));
            (byte("gmcast.segment"), byte("pc.weight"), log_dir)
        };
        // Percentiles are computed from copies, without the lock.
        let (mut file, of_commits) =
            node.peek(|core| (state_of(node, core), core.commit_clock.timer().clone()));
        file.commit_us = commit_times(&[&of_commits, &node.times.stages()]);
        file.written_at_unix_ms = now;
        (file.node.segment, file.node.weight) = (segment, weight);
        file.node.log_dir = Some(log_dir);
        file.events = node.logger.events();
        file.conflicts.recent = node.conflicts(CONFLICTS_MAX);
        if let Some(wait) = &mut file.waits_for {
            let before = self.wait.as_ref();
            let same = before.filter(|before| before.reason == wait.reason);
            wait.since_unix_ms = same.map_or(now, |before| before.since_unix_ms);
        }
        self.wait = file.waits_for.clone();
        file
    }
}

/// Returns the log's directory for a reader in another working directory. The usual place is told relative to the file,
/// so that it holds in another mount of the volume, too.
fn log_dir(gcache_dir: &str, base_dir: &str) -> String {
    let whole = |dir: &str| std::path::absolute(dir).unwrap_or_else(|_| dir.into());
    match (whole(gcache_dir), whole(base_dir)) {
        (log, base) if log == base => ".".to_owned(),
        (log, _) => log.to_string_lossy().into_owned(),
    }
}

fn state_of(node: &Node, core: &Core) -> StateFile {
    let status = core.engine.status();
    let link = core.engine.link();
    let members = link.map_or(&[][..], |link| &link.group.configuration().members);
    StateFile {
        process: Process {
            pid: std::process::id(),
            provider: env!("CARGO_PKG_VERSION").to_owned(),
            started_at_unix_ms: node.started_at_unix_ms,
        },
        node: names(node, core, members),
        cluster: Cluster {
            name: core.cluster.name.clone(),
            address: core.cluster.address.clone(),
            uuid: text_of(link.map(|link| link.group.history())),
        },
        state: state(node, core, &status),
        waits_for: wait_of(node, core),
        progress: status.progress.map(|progress| CatchUp {
            done: progress.done,
            total: progress.total,
            percent: progress.percent(),
            per_second: progress.per_second,
            left_s: progress.left_s(),
        }),
        leader: link.and_then(|link| leader(core, link)),
        members: lines(core, members),
        log: link.map(|link| log_sizes(link, &status)),
        flow_control: FlowControl {
            stopped: status.flow_control_active,
            asked_for: status.flow_control_requested,
            paused_ns: status.flow_control_paused_ns,
            paced_ns: status.paced_ns,
            apply_queue: status.local_recv_queue.now,
            send_queue: status.local_send_queue.now,
        },
        forced_views: (core.engine.replicator.forced_views())
            .map(|(id, seqno)| ForcedView {
                id: id.to_string(),
                seqno_before: seqno,
                unvouched: is_unvouched_override(&id),
            })
            .collect(),
        lost_from: core.engine.lost_from().map(|gtid| gtid.to_string()),
        conflicts: Conflicts {
            certification: status.conflicts.certification,
            brute_force_abort: status.conflicts.brute_force_abort,
            replay: status.conflicts.replay,
            recent: Vec::new(),
        },
        ..StateFile::default()
    }
}

/// Returns the id as text; empty if unknown.
fn text_of(id: Option<Uuid>) -> String {
    let known = id.filter(|id| !id.is_nil());
    known.map_or_else(String::new, |id| id.to_string())
}

fn names(node: &Node, core: &Core, members: &[Member]) -> NodeNames {
    let me = members.iter().find(|m| m.incarnation.0 == core.incarnation);
    let listens = || {
        core.line
            .as_ref()
            .map(|line| line.mesh.identity().listen_addr.clone())
    };
    NodeNames {
        name: node.settings.node_name.clone(),
        incoming: node.settings.node_incoming.clone(),
        address: me
            .map(|me| me.address.clone())
            .or_else(listens)
            .unwrap_or_default(),
        member_id: text_of(Some(core.incarnation)),
        ..NodeNames::default()
    }
}

fn state(node: &Node, core: &Core, status: &Status) -> State {
    let link = core.engine.link();
    let is_leaving = core.engine.replicator.is_leaving();
    State {
        component: match link.map(|link| link.group.component_state()) {
            None => "closed",
            Some(_) if is_leaving => "left",
            Some(ComponentState::Primary) => "primary",
            Some(ComponentState::NonPrimary) => "non-primary",
            Some(ComponentState::Outside) => "joining",
        }
        .to_owned(),
        node_state: status.local_state as i64,
        node_state_comment: status.local_state_comment.to_owned(),
        server_running: node.server.runs(),
        view: (link.map(|link| link.group.configuration().number)).filter(|number| *number > 0),
        last_committed: status.last_committed,
        lag_seqnos: status.lag_seqnos,
        lag_ms: Some(status.lag_ms),
        amnesiac: link.is_some_and(|link| link.group.is_amnesiac()),
    }
}

fn leader(core: &Core, link: &Link) -> Option<Leader> {
    let member = link.group.leader_member()?;
    Some(Leader {
        name: member.name.clone(),
        is_me: link.group.is_leader(),
        term: link.group.term().number,
        changes: core.leaders.changes(),
    })
}

fn lines(core: &Core, members: &[Member]) -> Vec<MemberLine> {
    let left_out = core.engine.replicator.left_out_members();
    (members.iter())
        .map(|member| line(core, member, left_out.contains(&member.incarnation)))
        .collect()
}

fn line(core: &Core, member: &Member, left_out: bool) -> MemberLine {
    let mut peers = core.line.iter().flat_map(|line| line.mesh.peers());
    let is_me = member.incarnation.0 == core.incarnation;
    MemberLine {
        name: member.name.clone(),
        incoming: member.incoming.clone(),
        address: member.address.clone(),
        member_id: member.incarnation.to_string(),
        replica_id: member.replica.0.to_string(),
        segment: member.segment,
        weight: member.weight,
        arbitrator: member.arbitrator,
        is_me,
        here: is_me || peers.any(|peer| peer.replica == member.replica.0.0),
        left_out,
    }
}

fn log_sizes(link: &Link, status: &Status) -> LogSizes {
    LogSizes {
        durability: match link.storage.durability() {
            Durability::Memory => "memory",
            Durability::Os => "os",
            Durability::Disk => "disk",
        }
        .to_owned(),
        bytes: link.storage.log_bytes(),
        pinned_bytes: link.storage.bytes_beyond_size(),
        first_seqno: Some(status.local_cached_downto).filter(|seqno| *seqno >= 0),
    }
}

#[cfg(test)]
mod tests {
    use super::log_dir;

    #[test]
    fn the_logs_directory_is_found_from_elsewhere() {
        assert_eq!(log_dir("/var/lib/mysql/", "/var/lib/mysql/"), ".");
        assert_eq!(log_dir("/var/lib/mysql", "/var/lib/mysql/"), ".");
        assert_eq!(log_dir("/srv/log", "/var/lib/mysql/"), "/srv/log");
        let here = std::env::current_dir().expect("a working directory");
        let log = log_dir("../log", "/var/lib/mysql/");
        assert_eq!(log, here.join("../log").to_string_lossy());
    }
}
