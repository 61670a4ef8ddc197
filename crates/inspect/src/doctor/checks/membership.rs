//! Checks of the members: whether they are there, and in which state.

use trireme_agent::Component;

use crate::doctor::facts::{Facts, SILENT_REMEDY, list};
use crate::doctor::finding::Finding;
use crate::losses::{losses, voters};
use crate::members::{Absent, unless};
use crate::node::Node;

pub(crate) fn majority(facts: &Facts) -> Finding {
    let are = |component| facts.those(|node| node.component() == component);
    let kinds = [
        (
            "no majority, so no statements",
            are(Component::NonPrimary),
            "bring the missing members back; `trireme why-waiting --dir DATADIR` on the node names them",
        ),
        (
            "has left the cluster",
            are(Component::Left),
            "a node that has left: its error log says why, and so does `trireme why-waiting --dir DATADIR` on its machine; \
             mend the cause, then: systemctl restart mariadb",
        ),
    ];
    let mut texts = Vec::new();
    let mut remedies = Vec::new();
    for (what, names, remedy) in kinds {
        if !names.is_empty() {
            texts.push(format!("{what}: {}", list(&names)));
            remedies.push(remedy);
        }
    }
    match texts.is_empty() {
        true => Finding::ok("all nodes that answered are in the primary component"),
        false => Finding::failed(texts.join("; "), remedies.join("; ")),
    }
}

pub(crate) fn answers(facts: &Facts) -> Finding {
    let silent: Vec<String> = facts
        .silent
        .iter()
        .map(|(address, reason)| format!("{address} ({reason})"))
        .collect();
    match silent.is_empty() {
        true if facts.without_address > 0 => Finding::ok(format!(
            "all members of the view with an address for clients answer; {} without one may be arbitrators, or servers \
             that listen on loopback only",
            facts.without_address
        )),
        true => Finding::ok("all members of the view answer"),
        false => Finding::warning(format!("not examined: {}", list(&silent)), SILENT_REMEDY),
    }
}

pub(crate) fn missing(facts: &Facts) -> Finding {
    let remedy = "start mariadb there, or mend its network; take a node that is gone for good out of wsrep_cluster_address";
    let of = |addresses: &[String]| {
        format!(
            "named in wsrep_cluster_address, and not there{}: {}",
            unless(addresses.len(), facts.absent.others, facts.without_address),
            list(addresses)
        )
    };
    let Absent {
        missing, doubtful, ..
    } = &facts.absent;
    if !missing.is_empty() {
        return Finding::failed(of(missing), remedy);
    }
    if !doubtful.is_empty() {
        return Finding::unknown(of(doubtful)).with_remedy(format!("if it is a node: {remedy}"));
    }
    Finding::ok("all members that wsrep_cluster_address names are there")
}

pub(crate) fn in_step(facts: &Facts) -> Finding {
    let behind: Vec<String> = facts
        .nodes
        .iter()
        .map(|seen| &seen.node)
        .filter(|node| node.is_primary() && !node.is_synced())
        .map(|node| {
            format!(
                "{} is {}",
                node.name(),
                node.status("wsrep_local_state_comment")
            )
        })
        .collect();
    match behind.is_empty() {
        true => Finding::ok("all nodes are Synced"),
        false => Finding::warning(
            format!("not Synced: {}", list(&behind)),
            "wait while it catches up (wsrep_trireme_catching_up); a forgotten desync: SET GLOBAL wsrep_desync = OFF",
        ),
    }
}

pub(crate) fn one_history(facts: &Facts) -> Finding {
    match facts.differing(|node| node.status("wsrep_cluster_state_uuid").to_owned()) {
        None => facts.unless_silent("all nodes have the same cluster UUID"),
        Some(values) => Finding::failed(
            format!("different cluster UUIDs: {values}"),
            "these are two clusters: keep the one with the right data. First stop all nodes of the other, since one that \
             runs could admit a node without a history; then move grastate.dat and trireme* away on each, and start it",
        ),
    }
}

pub(crate) fn one_view(facts: &Facts) -> Finding {
    let primary = |node: &Node| match node.is_primary() {
        true => node.status("wsrep_cluster_conf_id").to_owned(),
        false => String::new(),
    };
    match facts.differing(primary) {
        None => facts.unless_silent("all nodes have the same view"),
        Some(values) => Finding::warning(
            format!("different views: {values}"),
            "ask again: a view is being formed; if it stays so, the network between them is broken",
        ),
    }
}

pub(crate) fn loss(facts: &Facts) -> Finding {
    let Some(first) = facts.first() else {
        return Finding::unknown("no node answers");
    };
    let voters = voters(
        facts.nodes.iter().map(|seen| &seen.node),
        facts.silent.iter().map(|(address, _)| address.clone()),
        facts.without_address,
    );
    let total = first
        .whole("wsrep_cluster_weight")
        .and_then(|sum| u64::try_from(sum).ok());
    let losses = losses(first.component(), total.unwrap_or(0), voters);
    match losses.survives {
        0 => Finding::failed(
            format!("survives the loss of no member now: {}", losses.why),
            "bring back a missing member; three voters at least, of equal weight: a third node, or `trireme arbitrator`",
        ),
        n => Finding::ok(format!(
            "survives the loss of {n} member(s) now: {}",
            losses.why
        )),
    }
}

pub(crate) fn weights(facts: &Facts) -> Finding {
    let none = facts.those(|node| node.weight() == Some(0));
    match none.is_empty() {
        true => Finding::ok("every node has a vote"),
        false => Finding::warning(
            format!(
                "pc.weight is 0, so these members have no vote: {}",
                list(&none)
            ),
            "SET GLOBAL wsrep_provider_options = 'pc.weight=1'",
        ),
    }
}

pub(crate) fn names(facts: &Facts) -> Finding {
    let mut names = facts.those(|_| true);
    names.sort();
    let twice: Vec<String> = names
        .windows(2)
        .filter(|pair| pair[0] == pair[1])
        .map(|pair| pair[0].clone())
        .collect();
    match twice.is_empty() {
        true => Finding::ok("every node has a name of its own"),
        false => Finding::warning(
            format!("several nodes share a name: {}", list(&twice)),
            "set wsrep_node_name to another one on each: wsrep_sst_donor and the logs go by it",
        ),
    }
}

pub(crate) fn left_out(facts: &Facts) -> Finding {
    let left_out = facts
        .nodes
        .iter()
        .map(|seen| seen.node.status("wsrep_trireme_left_out"));
    match left_out.into_iter().find(|names| !names.is_empty()) {
        None => Finding::ok("no member is left out of flow control"),
        Some(names) => Finding::warning(
            format!("too slow, and left out of flow control: {}", list(&[names])),
            "look for what slows it down: disk, processor, wsrep_slave_threads, a backup; it comes back by itself",
        ),
    }
}

pub(crate) fn desynced(facts: &Facts) -> Finding {
    let desynced = facts.those(|node| node.variable("wsrep_desync") == "ON");
    match desynced.is_empty() {
        true => Finding::ok("no node is desynced by hand"),
        false => Finding::warning(
            format!("wsrep_desync is ON: {}", list(&desynced)),
            "SET GLOBAL wsrep_desync = OFF when the backup or maintenance is over",
        ),
    }
}

pub(crate) fn versions(facts: &Facts) -> Finding {
    match facts.differing(|node| node.status("wsrep_provider_version").to_owned()) {
        None => facts.unless_silent("all nodes have the same library"),
        Some(values) => Finding::warning(
            format!("different libraries: {values}"),
            "upgrade trireme-provider on the others too, and restart node after node",
        ),
    }
}

pub(crate) fn server_versions(facts: &Facts) -> Finding {
    let series = |node: &Node| {
        let parts: Vec<&str> = node.variable("version").split(['.', '-']).take(2).collect();
        parts.join(".")
    };
    match facts.differing(series) {
        None => facts.unless_silent("all servers are of the same series"),
        Some(values) => Finding::warning(
            format!("servers of different series: {values}"),
            "upgrade the others too: a newer server may replicate what an older one does not know",
        ),
    }
}

pub(crate) fn lost_commits(facts: &Facts) -> Finding {
    let lost = facts
        .nodes
        .iter()
        .map(|seen| seen.node.status("wsrep_trireme_lost_from"));
    match lost.into_iter().find(|gtid| !gtid.is_empty()) {
        None => Finding::ok("nothing acknowledged is known to be lost"),
        Some(gtid) => Finding::failed(
            format!("acknowledged commits from {} on may be lost", list(&[gtid])),
            "compare with binary logs, backups or the applications; repl.durability=disk where power may fail everywhere",
        ),
    }
}

pub(crate) fn addresses(facts: &Facts) -> Finding {
    let named = |node: &Node| {
        let mut named = node.named();
        named.sort();
        named.join(",")
    };
    match facts.differing(named) {
        None => facts.unless_silent("all nodes name the same members"),
        Some(values) => Finding::warning(
            format!("wsrep_cluster_address differs: {values}"),
            "write the same list of all members into every configuration",
        ),
    }
}

pub(crate) fn bootstrap_address(facts: &Facts) -> Finding {
    let empty = facts.those(|node| node.named().is_empty());
    match empty.is_empty() {
        true => Finding::ok("no node would found a cluster of its own at its next start"),
        false => Finding::failed(
            format!(
                "wsrep_cluster_address is gcomm:// without members: {}",
                list(&empty)
            ),
            "name all members there: as it is, the next restart begins a second cluster",
        ),
    }
}
