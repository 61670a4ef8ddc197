//! Checks of the provider's options.

use std::collections::BTreeSet;

use trireme_node::options::{Options, Phase, parse_bool};

use crate::doctor::facts::{Facts, list};
use crate::doctor::finding::Finding;
use crate::node::Node;

/// Options that all nodes must share: they decide about the cluster's promises or about its votes.
const ALIKE: [&str; 6] = [
    "gcs.vote_policy",
    "repl.fc_desync_after_ms",
    "repl.max_ws_size",
    "evs.suspect_timeout",
    "pc.ignore_sb",
    "pc.ignore_quorum",
];

pub(crate) fn mixed_durability(facts: &Facts) -> Finding {
    match facts.differing(|node| node.option("repl.durability").to_owned()) {
        None => facts.unless_silent("all nodes have the same repl.durability"),
        Some(values) => Finding::failed(
            format!("repl.durability differs: {values}"),
            "set the same everywhere: a commit has survived only what the weakest node of its majority survives",
        ),
    }
}

pub(crate) fn durability(facts: &Facts) -> Finding {
    let weak = facts.those(|node| node.option("repl.durability") == "memory");
    match weak.is_empty() {
        true => Finding::ok("an acknowledged commit is in the log of a majority"),
        false => Finding::warning(
            format!("repl.durability=memory: {}", list(&weak)),
            "repl.durability=os, unless a kill of half of the processes may lose commits",
        ),
    }
}

pub(crate) fn recovery(facts: &Facts) -> Finding {
    let off = facts.those(|node| is_off(node, "pc.recovery"));
    match off.is_empty() {
        true => Finding::ok("pc.recovery is on"),
        false => Finding::failed(
            format!("pc.recovery=no: {}", list(&off)),
            "pc.recovery=yes: without it a cluster that was killed whole waits for a bootstrap by hand",
        ),
    }
}

pub(crate) fn log_recovery(facts: &Facts) -> Finding {
    let off = facts.those(|node| is_off(node, "gcache.recover"));
    match off.is_empty() {
        true => Finding::ok("gcache.recover is on"),
        false => Finding::failed(
            format!("gcache.recover=no: {}", list(&off)),
            "gcache.recover=yes: without it a restarted node forgets its log, and takes a full snapshot",
        ),
    }
}

pub(crate) fn split_brain(facts: &Facts) -> Finding {
    let risky = facts.those(|node| is_on(node, "pc.ignore_sb") || is_on(node, "pc.ignore_quorum"));
    match risky.is_empty() {
        true => Finding::ok("no node may go on without a majority"),
        false => Finding::failed(
            format!("pc.ignore_sb or pc.ignore_quorum is on: {}", list(&risky)),
            "turn both off: with them two halves may both take writes, and one half's are lost",
        ),
    }
}

pub(crate) fn without_effect(facts: &Facts) -> Finding {
    let set: BTreeSet<&str> = facts
        .nodes
        .iter()
        .flat_map(|seen| idle(&seen.node))
        .collect();
    let set: Vec<&str> = set.into_iter().collect();
    match set.is_empty() {
        true => Finding::ok("no option is set that has no effect"),
        false => Finding::warning(
            format!("set, and without effect here: {}", list(&set)),
            "take them out of wsrep_provider_options: they are Galera's",
        ),
    }
}

/// The options without effect, as the node itself lists them at its start. Options that this program does not know are
/// skipped: they belong to a later library.
fn idle(node: &Node) -> Vec<&'static str> {
    let Ok(mut options) = Options::new("", "", "") else {
        return Vec::new(); // cannot fail: empty texts set nothing
    };
    for pair in node.options() {
        let _ = options.apply_pairs([pair], Phase::Init);
    }
    let mut idle = options.without_effect();
    idle.retain(|name| !node.option(name).is_empty());
    idle
}

pub(crate) fn alike(facts: &Facts) -> Finding {
    let differing: Vec<String> = ALIKE
        .iter()
        .filter_map(|name| {
            let values = facts.differing(|node| node.option(name).to_owned())?;
            Some(format!("{name}: {values}"))
        })
        .collect();
    match differing.is_empty() {
        true => facts.unless_silent("the options that should be alike are so"),
        false => Finding::warning(
            format!("different on different nodes: {}", list(&differing)),
            "write the same into every configuration",
        ),
    }
}

pub(crate) fn expected_founders(facts: &Facts) -> Finding {
    let wrong = facts.those(|node| {
        let expected = node.option("pc.bootstrap_expect").parse().unwrap_or(0);
        let named = node.named().len();
        expected > 0 && expected != named
    });
    match wrong.is_empty() {
        true => Finding::ok("pc.bootstrap_expect, where set, fits wsrep_cluster_address"),
        false => Finding::warning(
            format!(
                "pc.bootstrap_expect is not the number of members in wsrep_cluster_address: {}",
                list(&wrong)
            ),
            "make them the same, without an arbitrator",
        ),
    }
}

pub(crate) fn forgetting_without(facts: &Facts) -> Finding {
    let set = facts.those(|node| {
        node.option_seconds("pc.wait_evidence")
            .is_some_and(|seconds| seconds > 0.0)
    });
    match set.is_empty() {
        true => {
            Finding::ok("after a loss of power of half or more, the nodes wait for all members")
        }
        false => Finding::warning(
            format!("pc.wait_evidence is set: {}", list(&set)),
            "pc.wait_evidence=PT0S, unless going on early is worth acknowledged commits (docs/guarantees.md)",
        ),
    }
}

pub(crate) fn is_on(node: &Node, option: &str) -> bool {
    parse_bool(node.option(option)) == Some(true)
}

pub(crate) fn is_off(node: &Node, option: &str) -> bool {
    parse_bool(node.option(option)) == Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_those_of_the_page() {
        let page = include_str!("../../../../../docs/provider-options.md");
        let (with, _) = page.split_once("## Accepted, without an effect").unwrap();
        for name in ALIKE {
            assert!(
                with.contains(&format!("| `{name}` ")),
                "{name} has no effect"
            );
        }
    }
}
