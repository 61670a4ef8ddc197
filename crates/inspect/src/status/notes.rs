//! The notes of the status report: one sentence for each fault.

use trireme_agent::Component;

use super::StatusReport;
use crate::members::unless;
use crate::node::Node;
use crate::survey::Survey;
use crate::text::{clipped, shown};

/// Returns the sentences on the faults of the cluster. `others` members go by an unknown address.
pub(super) fn notes(report: &StatusReport, survey: &Survey, others: usize) -> Vec<String> {
    let mut notes = Vec::new();
    match survey.first().map(Node::component) {
        Some(Component::NonPrimary) => notes.push(
            "this node has no majority, and takes no statements: ask `trireme why-waiting --dir DATADIR` on its machine"
                .to_owned(),
        ),
        Some(Component::Left) => notes.push(
            "this node has left the cluster, and takes no statements: its error log says why, and so does `trireme \
             why-waiting --dir DATADIR` on its machine; mend the cause, then: systemctl restart mariadb"
                .to_owned(),
        ),
        Some(Component::Primary) | None => {}
    }
    for absent in [&report.missing, &report.perhaps_missing] {
        if absent.is_empty() {
            continue;
        }
        let names: Vec<String> = absent
            .iter()
            .take(8)
            .map(|name| clipped(name, 48))
            .collect();
        notes.push(format!(
            "not here{}: {} (in wsrep_cluster_address): down, cut off, or taken out of the cluster for good",
            unless(absent.len(), others, report.arbitrators),
            names.join(", ")
        ));
    }
    for (endpoint, refusal) in survey.silent() {
        notes.push(format!("{}: {refusal}", clipped(&endpoint.to_string(), 48)));
    }
    // All nodes name the same members as left out.
    let mut left_out = survey
        .nodes()
        .map(|node| node.status("wsrep_trireme_left_out"));
    if let Some(names) = left_out.find(|names| !names.is_empty()) {
        notes.push(format!(
            "left out of flow control, as too slow: {}",
            shown(names)
        ));
    }
    for node in survey.nodes() {
        let progress = node.status("wsrep_trireme_catching_up");
        if !progress.is_empty() {
            let name = shown(node.name());
            notes.push(format!("{name} catches up: {}", shown(progress)));
        }
    }
    if let Some(node) = survey
        .nodes()
        .find(|node| !node.status("wsrep_trireme_lost_from").is_empty())
    {
        notes.push(format!(
            "acknowledged commits from {} on may be lost: compare with binary logs, backups or the applications \
             (docs/guarantees.md, sections 4 and 6)",
            shown(node.status("wsrep_trireme_lost_from"))
        ));
    }
    let old: Vec<String> = survey
        .nodes()
        .filter(|node| {
            node.status("wsrep_trireme_lag_seqnos").is_empty()
                && node.status("wsrep_connected") == "ON"
        })
        .map(|node| shown(node.name()))
        .collect();
    if !old.is_empty() {
        notes.push(format!(
            "an older library tells less (lag by position only, no commit times): {}; upgrade trireme-provider",
            old.join(", ")
        ));
    }
    if report.not_asked > 0 {
        notes.push(format!("{} more members were not asked", report.not_asked));
    }
    notes
}
