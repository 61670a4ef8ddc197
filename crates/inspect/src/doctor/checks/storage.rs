//! Checks of the disk, the write-set log and the files on the first node's machine.

use crate::doctor::facts::{Facts, Host, list};
use crate::doctor::finding::Finding;
use crate::doctor::outages::longest_outage_s;
use crate::error_log::since_last_start;
use crate::log_reach::{Reach, log_reach};
use crate::node::{Node, bytes};

/// The hours until a growing backlog fills the disk: few, and very few.
const FEW_HOURS: f64 = 24.0;
const VERY_FEW_HOURS: f64 = 4.0;
/// The assumed length of a restart, in seconds, if the error log shows no longer one.
const ASSUMED_OUTAGE_S: f64 = 600.0;

/// Judges the facts of the host; if there are none, the finding says why.
pub(crate) fn with_host(facts: &Facts, judge: impl FnOnce(&Host, &Node) -> Finding) -> Finding {
    match (&facts.host, facts.first()) {
        (Some(host), Some(node)) => judge(host, node),
        _ => Finding::unknown(
            "the node's files are not on this machine, or may not be read: run it there, as root",
        ),
    }
}

pub(crate) fn free_space(facts: &Facts) -> Finding {
    with_host(facts, |host, node| {
        let volumes = [
            ("the write-set log", host.log_volume),
            ("the data", host.data_volume),
        ];
        let full: Vec<String> = volumes
            .iter()
            .filter_map(|(what, volume)| {
                let (free, total) = (*volume)?;
                (free as f64 <= 0.05 * total as f64)
                    .then(|| format!("{what}: {} MiB of {} free", free >> 20, total >> 20))
            })
            .collect();
        let to_grow = bytes(node.option("gcache.size")).zip(host.log_bytes);
        let lacking = match (to_grow, host.log_volume) {
            (Some((size, used)), Some((free, _))) if size.saturating_sub(used) > free => {
                Some(format!(
                    "the log may grow by {} MiB to gcache.size, and {} MiB are free",
                    (size - used) >> 20,
                    free >> 20
                ))
            }
            _ => None,
        };
        let texts: Vec<String> = full.into_iter().chain(lacking).collect();
        let are_known = volumes.iter().all(|(_, volume)| volume.is_some());
        match texts.is_empty() {
            true if host.log_bytes.is_none() || !are_known => Finding::unknown(
                "the directory or the volume of the write-set log or of the data cannot be examined: run it as root",
            ),
            true => Finding::ok("the volumes have room"),
            false => Finding::failed(
                format!("the disk is nearly full: {}", list(&texts)),
                "make room or grow the volume now: a node whose log cannot be written leaves the cluster",
            ),
        }
    })
}

/// The bytes that the log adds to each write-set (docs/sizing.md).
const ENTRY_BYTES: f64 = 144.0;

pub(crate) fn backlog(facts: &Facts) -> Finding {
    with_host(facts, |host, node| {
        let sum = |names: [&str; 2]| -> f64 { names.iter().filter_map(|n| node.number(n)).sum() };
        let entries = sum(["wsrep_replicated", "wsrep_received"]);
        let bytes = sum(["wsrep_replicated_bytes", "wsrep_received_bytes"]);
        let written = bytes + ENTRY_BYTES * entries;
        let (Some(counted_s), Some((free, _))) = (node.counted_s(), host.log_volume) else {
            return Finding::unknown("the volume of the log cannot be examined");
        };
        let per_hour = written / counted_s * 3600.0;
        let hours = if per_hour > 0.0 {
            free as f64 / per_hour
        } else {
            f64::INFINITY
        };
        let text = format!(
            "the log keeps what a slow or paused member lacks: at {:.0} MiB an hour, the free space lasts {hours:.0} h",
            per_hour / f64::from(1 << 20)
        );
        let remedy =
            "grow the volume, or end long pauses (FLUSH TABLES WITH READ LOCK, backups) sooner";
        match hours {
            hours if hours < VERY_FEW_HOURS => Finding::failed(text, remedy),
            hours if hours < FEW_HOURS => Finding::warning(text, remedy),
            hours if hours.is_finite() => Finding::ok(text),
            _ => Finding::ok("nothing is written"),
        }
    })
}

pub(crate) fn ist_window(facts: &Facts) -> Finding {
    let Some(node) = facts.first() else {
        return Finding::unknown("no node answers");
    };
    let error_log = facts.host.as_ref().map(|host| host.error_log.as_deref());
    let seen = error_log.flatten().and_then(longest_outage_s);
    let outage_s = seen.unwrap_or(ASSUMED_OUTAGE_S);
    let assumed = format!("a restart may take {:.0} min", ASSUMED_OUTAGE_S / 60.0);
    let what = match (seen, error_log) {
        (Some(seconds), _) => format!("the longest restart in the error log took {seconds:.0} s"),
        (None, Some(None)) => {
            format!("{assumed} (the error log was not read; it may be in journalctl -u mariadb)")
        }
        (None, _) => assumed,
    };
    let minutes = match log_reach(node) {
        Some(Reach::Minutes(minutes)) => minutes,
        Some(Reach::All) => {
            return Finding::ok(format!("the log still has all commits; {what}"));
        }
        Some(Reach::Seqnos(seqnos)) => {
            return Finding::unknown(format!(
                "the log has the last {seqnos} write-sets; nothing was committed since the start or FLUSH STATUS, so it is \
                 unknown for how long they suffice; {what}"
            ));
        }
        None => return Finding::unknown("the node does not tell what its log has"),
    };
    let text = format!(
        "the log reaches back {minutes:.0} min, at the rate of commits since FLUSH STATUS; {what}"
    );
    match minutes * 60.0 < 2.0 * outage_s {
        false => Finding::ok(text),
        true => Finding::warning(
            text,
            "raise gcache.size: a node that is away for longer takes a full snapshot",
        ),
    }
}

pub(crate) fn damaged(facts: &Facts) -> Finding {
    with_host(facts, |host, _| match host.damaged.as_deref() {
        None => Finding::unknown(
            "the directory of the write-set log (gcache.dir) cannot be read: run it as root",
        ),
        Some([]) => Finding::ok("no damaged part of a log was set aside"),
        Some(damaged) => Finding::warning(
            format!("damaged parts of the log were set aside: {}", list(damaged)),
            "look into the disk's health (dmesg, smartctl); remove the files when done with them",
        ),
    })
}

pub(crate) fn mark_dir(facts: &Facts) -> Finding {
    with_host(facts, |host, node| {
        let dir = node.option("repl.mark_dir");
        match (node.option("repl.durability"), host.mark_dir_in_memory) {
            ("os", _) if dir.is_empty() => Finding::warning(
                "repl.mark_dir is empty: a log whose disk lost its end cannot tell",
                "repl.mark_dir=/dev/shm",
            ),
            ("os", Some(false)) => Finding::warning(
                format!("repl.mark_dir is not in memory: {}", list(&[dir])),
                "a directory of a tmpfs, such as /dev/shm: on a disk a mark may outlive a loss of power",
            ),
            ("os", None) => Finding::unknown(format!("{} cannot be examined", list(&[dir]))),
            _ => Finding::ok(
                "the mark outside the log's volume lies in memory (tmpfs), or is not needed",
            ),
        }
    })
}

pub(crate) fn copies(facts: &Facts) -> Finding {
    with_host(facts, |host, _| {
        // An earlier process may have told of a copy that was mended since.
        let told = since_last_start(host.error_log.as_deref().unwrap_or_default());
        let is_told = told.contains("copied data directory");
        match (host.same_replica.as_deref(), is_told) {
            (Some([]), false) => {
                Finding::ok("no other data directory with this replica id was found")
            }
            (None, false) => Finding::unknown(
                "the replica ids of this directory and of those beside it (trireme.gvwstate.dat) cannot all be read: run it \
                 as root",
            ),
            (Some([]) | None, true) => Finding::failed(
                "the error log tells of a copied data directory: two replicas have one id",
                "stop the copy; remove trireme* and grastate.dat from it; start it again: it joins as a new node",
            ),
            (Some(copies), _) => {
                let names: Vec<String> = copies
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect();
                Finding::failed(
                    format!("copies of this data directory: {}", list(&names)),
                    "before a copy is started, remove trireme* and grastate.dat from it: two replicas with one id cannot vote",
                )
            }
        }
    })
}
