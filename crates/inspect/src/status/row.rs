//! The row of one member in the status report.

use serde::Serialize;
use trireme_agent::Component;

use crate::log_reach::{Reach, log_reach, log_seqnos};
use crate::node::Node;
use crate::survey::Member;
use crate::text::{bounded, clipped};

/// The data of one member.
#[derive(Debug, Default, Serialize)]
pub(super) struct Row {
    name: Option<String>,
    address: String,
    state: Option<String>,
    leader: bool,
    lag_seqnos: Option<i64>,
    lag_ms: Option<f64>,
    apply_queue: Option<i64>,
    commit_p50_us: Option<f64>,
    commit_p99_us: Option<f64>,
    durability: Option<String>,
    weight: Option<u64>,
    library: Option<String>,
    /// The number of write-sets that the node's log can serve to a returning node.
    log_seqnos: Option<i64>,
    /// The same in minutes, at the average rate since FLUSH STATUS; `null` if the log has all, or the rate is unknown.
    log_minutes: Option<f64>,
    /// Whether nothing was dropped from the log yet.
    log_has_all: Option<bool>,
    log_bytes: Option<i64>,
    /// The reason why the member did not answer.
    error: Option<String>,
}

/// The longest name in the table, in characters.
const NAME_CHARS: usize = 16;

impl Row {
    /// Whether the table shows the log's reach in write-sets, because the rate of commits is unknown.
    pub(super) fn has_unknown_rate(&self) -> bool {
        self.log_minutes.is_none() && self.log_has_all == Some(false)
    }

    /// The cells of the table.
    pub(super) fn cells(&self) -> Vec<String> {
        let number = |value: Option<i64>| value.map_or("-".to_owned(), |value| value.to_string());
        let name = self
            .name
            .as_deref()
            .map_or("?".to_owned(), |name| clipped(name, NAME_CHARS));
        let ms = |us: f64| match us {
            us if us < 100_000.0 => format!("{:.1}", us / 1000.0),
            us => format!("{:.0}", us / 1000.0),
        };
        vec![
            if self.leader {
                format!("{name}*")
            } else {
                name
            },
            self.state
                .as_deref()
                .map_or("no answer".to_owned(), |state| clipped(state, 16)),
            number(self.lag_seqnos),
            number(self.apply_queue),
            match (self.commit_p50_us, self.commit_p99_us) {
                (Some(p50), Some(p99)) => format!("{}/{}", ms(p50), ms(p99)),
                _ => "-".to_owned(),
            },
            match (self.log_minutes, self.log_seqnos) {
                (Some(minutes), _) if minutes >= 48.0 * 60.0 => {
                    format!("{:.0} d", minutes / 60.0 / 24.0)
                }
                (Some(minutes), _) if minutes >= 120.0 => format!("{:.0} h", minutes / 60.0),
                (Some(minutes), _) => format!("{minutes:.0} min"),
                (None, _) if self.log_has_all == Some(true) => "all".to_owned(),
                (None, Some(seqnos)) => format!("{seqnos} ws"),
                (None, None) => "-".to_owned(),
            },
            clipped(&self.address, 48),
        ]
    }
}

/// The row of a member. `newest` is the last committed write-set of all nodes.
pub(super) fn row(member: &Member, leader: &str, newest: i64) -> Row {
    let address = bounded(&member.endpoint.to_string());
    let node = match &member.answer {
        Ok(node) => node,
        Err(refusal) => {
            return Row {
                address,
                error: Some(refusal.to_string()),
                ..Row::default()
            };
        }
    };
    let committed = node.whole("wsrep_last_committed");
    let behind = committed.map(|committed| (newest - committed).max(0));
    let state = match node.component() {
        Component::Primary => bounded(node.status("wsrep_local_state_comment")),
        // Such a node reports "Initialized", which says less.
        Component::NonPrimary => "no majority".to_owned(),
        Component::Left => "has left".to_owned(),
    };
    let reach = log_reach(node);
    Row {
        name: Some(bounded(node.name())),
        address,
        state: Some(state),
        leader: is_leader(node, leader),
        lag_seqnos: node.whole("wsrep_trireme_lag_seqnos").or(behind),
        lag_ms: node.number("wsrep_trireme_lag_ms"),
        apply_queue: node.whole("wsrep_local_recv_queue"),
        commit_p50_us: node.commit_us("p50"),
        commit_p99_us: node.commit_us("p99"),
        durability: Some(bounded(node.option("repl.durability"))),
        weight: node.weight(),
        library: Some(bounded(node.status("wsrep_provider_version"))),
        log_seqnos: log_seqnos(node),
        log_minutes: match reach {
            Some(Reach::Minutes(minutes)) => Some(minutes),
            Some(Reach::All | Reach::Seqnos(_)) | None => None,
        },
        log_has_all: reach.map(|reach| reach == Reach::All),
        log_bytes: node.whole("wsrep_trireme_log_bytes"),
        error: None,
    }
}

fn is_leader(node: &Node, leader: &str) -> bool {
    match node.status("wsrep_trireme_is_leader") {
        // An older library does not report this; but it names the leader.
        "" => !leader.is_empty() && node.name() == leader,
        told => matches!(told, "1" | "ON" | "true"),
    }
}
