//! Checks of the counters: stalls, conflicts, slow commits and clocks.

use crate::doctor::facts::{Facts, list};
use crate::doctor::finding::Finding;
use crate::node::{Node, STAGES};

/// The shares that give a warning: of the time in which flow control stopped writers, and of the commits that lost.
const PAUSED_SHARE: f64 = 0.1;
const CONFLICT_SHARE: f64 = 0.02;
/// The number of commits from which on a share means something.
const FEW_COMMITS: f64 = 100.0;
/// The difference of clocks, in ms, that confuses people, certificates and time stamps in tables.
const CLOCK_MS: f64 = 1000.0;

pub(crate) fn paused(facts: &Facts) -> Finding {
    let paused = facts.those(|node| paused_share(node) > PAUSED_SHARE);
    match paused.is_empty() {
        true => Finding::ok("flow control holds up writers for less than a tenth of the time"),
        false => Finding::warning(
            format!(
                "flow control held up writers for more than a tenth of the time: {}",
                list(&paused)
            ),
            "look for the slow member (wsrep_flow_control_sent is highest there); more wsrep_slave_threads, smaller load",
        ),
    }
}

fn paused_share(node: &Node) -> f64 {
    let paced_ns = node.number("wsrep_trireme_paced_ns").unwrap_or(0.0);
    let paced = paced_ns / 1e9 / node.counted_s().unwrap_or(f64::INFINITY);
    node.number("wsrep_flow_control_paused")
        .unwrap_or(0.0)
        .max(paced)
}

pub(crate) fn conflicts(facts: &Facts) -> Finding {
    let many = facts.those(|node| {
        let lost = ["wsrep_local_cert_failures", "wsrep_local_bf_aborts"];
        let lost: f64 = lost.iter().filter_map(|name| node.number(name)).sum();
        let commits = node.number("wsrep_local_commits").unwrap_or(0.0);
        commits >= FEW_COMMITS && lost > CONFLICT_SHARE * commits
    });
    match many.is_empty() {
        true => Finding::ok("few commits lose conflicts"),
        false => Finding::warning(
            format!(
                "more than 2 of 100 commits lose a conflict: {}",
                list(&many)
            ),
            "`trireme conflicts` names the rows: write them on one node, or in smaller transactions",
        ),
    }
}

pub(crate) fn clocks(facts: &Facts) -> Finding {
    let known: Vec<(&str, f64, f64)> = facts
        .nodes
        .iter()
        .filter_map(|seen| {
            seen.clock_ms
                .map(|(ahead, doubt)| (seen.node.name(), ahead, doubt))
        })
        .collect();
    let by_clock = |a: &&(&str, f64, f64), b: &&(&str, f64, f64)| a.1.total_cmp(&b.1);
    let (Some(slow), Some(fast)) = (known.iter().min_by(by_clock), known.iter().max_by(by_clock))
    else {
        return Finding::unknown(
            "no node answered with its time: without a majority a node takes no statements",
        );
    };
    let apart = fast.1 - slow.1;
    match apart - slow.2 - fast.2 > CLOCK_MS {
        // With one node, its clock is compared with this machine's.
        false if known.len() == 1 && slow.1.abs() - slow.2 > CLOCK_MS => Finding::warning(
            format!(
                "the clock of {} is {:.1} s off this machine's",
                list(&[slow.0]),
                slow.1 / 1000.0
            ),
            "run chrony or systemd-timesyncd on both: timedatectl set-ntp true",
        ),
        false => facts.unless_hidden("the nodes' clocks agree within a second", |seen| {
            seen.clock_ms.is_some()
        }),
        true => Finding::failed(
            format!(
                "clocks differ by {:.1} s: {} is ahead of {}",
                apart / 1000.0,
                list(&[fast.0]),
                list(&[slow.0])
            ),
            "run chrony or systemd-timesyncd on every node: timedatectl set-ntp true",
        ),
    }
}

pub(crate) fn slow_commits(facts: &Facts) -> Finding {
    const SLOW_US: f64 = 200_000.0;
    let told = |node: &Node| node.commit_us("p99");
    if facts.nodes.iter().all(|seen| told(&seen.node).is_none()) {
        return Finding::unknown(
            "no commit since the start, or a library that tells no commit times",
        );
    }
    let slow = |node: &Node| {
        let total = told(node).filter(|us| *us > SLOW_US)?;
        let of = |stage: &str| node.stage_us(stage, "p99").unwrap_or(0.0);
        let worst = STAGES.into_iter().max_by(|a, b| of(a).total_cmp(&of(b)))?;
        Some(format!(
            "{} {:.0} ms, most in {worst}",
            node.name(),
            total / 1000.0
        ))
    };
    let slow: Vec<String> = facts
        .nodes
        .iter()
        .filter_map(|seen| slow(&seen.node))
        .collect();
    match slow.is_empty() {
        true => {
            Finding::ok("the 99th percentiles of a commit's stages are less than 200 ms together")
        }
        false => Finding::warning(
            format!(
                "slow commits (sum of the stages' 99th percentiles): {}",
                list(&slow)
            ),
            "ordering: the network to the leader; majority: network or disks of the others; flow_control: a slow member; \
             commit_order: large transactions",
        ),
    }
}
