//! `trireme status`: the cluster at a glance. Pure.

mod notes;
mod row;
#[cfg(test)]
mod tests;

use serde::Serialize;
use trireme_agent::Component;

use crate::losses::{Losses, losses, voters};
use crate::members;
use crate::survey::Survey;
use crate::text::{self, bounded, shown};
use notes::notes;
use row::{Row, row};

/// The report of `trireme status`; `--json` prints it as it is. Within a version, fields are only added.
#[derive(Debug, Serialize)]
pub struct StatusReport {
    version: u32,
    cluster: Cluster,
    losses: Losses,
    members: Vec<Row>,
    /// Members without an address for clients: arbitrators, and servers that listen on loopback only.
    arbitrators: usize,
    /// The number of members that were not asked, because there are too many.
    not_asked: usize,
    /// The addresses in `wsrep_cluster_address` without a member.
    missing: Vec<String>,
    /// Such addresses, of which each may be an arbitrator's.
    perhaps_missing: Vec<String>,
    /// Sentences on the faults.
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Cluster {
    name: String,
    uuid: String,
    primary: bool,
    /// Whether the node that was asked has left the cluster.
    left: bool,
    size: i64,
    weight: i64,
    leader: Option<String>,
    term: Option<i64>,
}

impl StatusReport {
    /// Makes the report of a survey.
    pub fn new(survey: &Survey) -> Self {
        // This fallback is never used: a survey always has its first node.
        let first = survey.first().cloned().unwrap_or_default();
        let leader = match first.status("wsrep_trireme_leader") {
            "" => first.status("wsrep_trireme_sequencer"), // an earlier version
            name => name,
        };
        let newest = survey
            .nodes()
            .filter_map(|node| node.whole("wsrep_last_committed"))
            .max();
        let members: Vec<Row> = survey
            .members()
            .iter()
            .map(|member| row(member, leader, newest.unwrap_or(-1)))
            .collect();
        let absent = members::absent(survey);
        let shortened = |addresses: &[String]| addresses.iter().map(|at| bounded(at)).collect();
        let cluster = Cluster {
            name: bounded(first.variable("wsrep_cluster_name")),
            uuid: bounded(first.status("wsrep_cluster_state_uuid")),
            primary: first.is_primary(),
            left: first.component() == Component::Left,
            size: first.whole("wsrep_cluster_size").unwrap_or(0),
            weight: first.whole("wsrep_cluster_weight").unwrap_or(0),
            leader: (!leader.is_empty()).then(|| bounded(leader)),
            term: first.whole("wsrep_trireme_term"),
        };
        let report = Self {
            version: 1,
            losses: losses(
                first.component(),
                u64::try_from(cluster.weight).unwrap_or(0),
                voters(
                    survey.nodes(),
                    survey.silent().map(|(endpoint, _)| endpoint.to_string()),
                    survey.without_address(),
                ),
            ),
            members,
            arbitrators: survey.without_address(),
            not_asked: survey.left_off(),
            missing: shortened(&absent.missing),
            perhaps_missing: shortened(&absent.doubtful),
            notes: Vec::new(),
            cluster,
        };
        Self {
            notes: notes(&report, survey, absent.others),
            ..report
        }
    }

    /// The report as text for a terminal.
    pub fn text(&self) -> String {
        let cluster = &self.cluster;
        let component = match (cluster.primary, cluster.left) {
            (true, _) => "Primary",
            (false, false) => "non-Primary",
            (false, true) => "Disconnected",
        };
        let leader = cluster.leader.as_deref().map_or(String::new(), |name| {
            let term = cluster
                .term
                .map_or(String::new(), |term| format!(" (term {term})"));
            format!(", leader {}{term}", shown(name))
        });
        let without =
            "without an address for clients (arbitrators, or servers that listen on loopback only)";
        let arbitrators = match self.arbitrators {
            0 => String::new(),
            1 => format!(", one of them {without}"),
            n => format!(", {n} of them {without}"),
        };
        let mut out = text::wrapped(
            &format!(
                "cluster {}: {component}, {} member(s){arbitrators}{leader}",
                shown(&cluster.name),
                cluster.size
            ),
            2,
        );
        out += &text::wrapped(
            &format!(
                "survives the loss of {} member(s) now: {}",
                self.losses.survives, self.losses.why
            ),
            2,
        );
        out.push('\n');
        let header = [
            "node",
            "state",
            "lag",
            "queue",
            "p50/p99 ms",
            "log",
            "address",
        ];
        let right = ["lag", "queue", "p50/p99 ms", "log"];
        let rows: Vec<Vec<String>> = self.members.iter().map(Row::cells).collect();
        out += &text::table(&header, &right, &rows);
        out.push('\n');
        out += "lag: write-sets to commit; log: for how long a node may be away and catch up\n";
        if self.members.iter().any(Row::has_unknown_rate) {
            out += "(ws: for so many write-sets; nothing was committed since FLUSH STATUS)\n";
        }
        for note in &self.notes {
            out += &text::wrapped(&format!("! {note}"), 2);
        }
        out
    }
}
