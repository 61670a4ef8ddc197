//! Finds the cause of a wait: evidence goes in, one line and a remedy come out. Pure.

use super::evidence::{Evidence, FULL_BYTES, Server};
use crate::text::{age, clipped};
use trireme_agent::state_file::STALE_MS;
use trireme_node::state_file::{Peer, StateFile, Wait};

/// The duration of a flush, in seconds, from which on the node reports it.
const FLUSH_TOLD_S: f64 = 5.0;
/// The longest text of a node in the line, in characters.
const MAX_TEXT_CHARS: usize = 600;

/// The cause, and the remedy.
pub(super) struct Verdict {
    pub(super) cause: String,
    pub(super) remedy: String,
    pub(super) waits: bool,
}

fn verdict_of(waits: bool, cause: impl Into<String>, remedy: impl Into<String>) -> Verdict {
    Verdict {
        cause: cause.into(),
        remedy: remedy.into(),
        waits,
    }
}

/// Weighs the evidence. A fault that stops the whole node comes first.
pub(super) fn verdict(evidence: &Evidence) -> Verdict {
    let name = evidence
        .state
        .as_ref()
        .map_or("the node".to_owned(), |state| {
            match state.node.name.as_str() {
                "" => "the node".to_owned(),
                name => clipped(name, 40),
            }
        });
    if let Server::Paused(pid) = evidence.server {
        return verdict_of(
            true,
            format!("{name} does not run: its process {pid} was stopped by a signal (SIGSTOP)"),
            format!("kill -CONT {pid}"),
        );
    }
    if let Some(free) = evidence.free_bytes.filter(|free| *free < FULL_BYTES) {
        return verdict_of(
            true,
            format!(
                "the disk of {name} is full: {} KiB are free in its data directory",
                free >> 10
            ),
            "make room or grow the volume, then: systemctl restart mariadb",
        );
    }
    match (&evidence.state, evidence.server) {
        (Some(state), Server::Down) => down(evidence, &name, Some(state)),
        (Some(_), _) if is_stale(evidence) => verdict_of(
            true,
            format!(
                "{name} has told nothing for {}, though its process runs",
                age(silence_s(evidence))
            ),
            "its disk may hang (dmesg, iostat -x), or the process be stuck: see the end of its error log (or journalctl -u mariadb)",
        ),
        (Some(state), _) => match &state.waits_for {
            Some(waits) => waiting(evidence, &name, state, waits),
            None => left(&name, state).unwrap_or_else(|| idle(&name, state)),
        },
        (None, Server::Down) => down(evidence, &name, None),
        (None, _) => from_log(evidence, &name),
    }
}

/// The words before the operator's decision, in a node's text on the majority that it misses.
const WAY_OUT: &str = "to go on without them, ";

fn silence_s(evidence: &Evidence) -> f64 {
    evidence.state_age_ms as f64 / 1000.0
}

fn is_stale(evidence: &Evidence) -> bool {
    evidence.state_age_ms > STALE_MS
}

/// The length of the wait: by the node's clock until the file was written, and by the file system's clock after that.
pub(super) fn waits_s(evidence: &Evidence, state: &StateFile, waits: &Wait) -> f64 {
    let before = state.written_at_unix_ms.saturating_sub(waits.since_unix_ms);
    before.saturating_add(evidence.state_age_ms) as f64 / 1000.0
}

fn waiting(evidence: &Evidence, name: &str, state: &StateFile, waits: &Wait) -> Verdict {
    let since = age(waits_s(evidence, state, waits));
    let missing = missing_names(waits);
    let told = clipped(&waits.text, MAX_TEXT_CHARS);
    let done = state.progress.as_ref().map_or(String::new(), |progress| {
        let left = progress.left_s.map_or(String::new(), |seconds| {
            format!(", about {} left", age(seconds as f64))
        });
        format!(
            ": {} of {} write-sets ({:.0} %{left})",
            progress.done, progress.total, progress.percent
        )
    });
    let start =
        "start mariadb there, or mend its network; one that is lost for good: docs/runbooks.md";
    match waits.reason.as_str() {
        "majority" if !missing.is_empty() => verdict_of(
            true,
            format!("{name} has waited {since} for a majority: missing are {missing}"),
            // The node has compared the logs: it names the one that keeps most.
            match waits.text.split_once(WAY_OUT) {
                Some((_, how)) => format!("{start}: {}", clipped(how, MAX_TEXT_CHARS)),
                None => start.to_owned(),
            },
        ),
        "founders" if !missing.is_empty() => verdict_of(
            true,
            format!("{name} has waited {since} to found the cluster: missing are {missing}"),
            start,
        ),
        "component" if !missing.is_empty() => verdict_of(
            true,
            format!("{name} has looked for the cluster for {since}: no answer at {missing}"),
            "start mariadb there, or mend the network or wsrep_cluster_address",
        ),
        "state-transfer" => verdict_of(
            true,
            format!(
                "{name} has received a full snapshot (SST) for {since} from {}{done}",
                clipped(waits.donor.as_deref().unwrap_or("a donor"), 40)
            ),
            "let it go on; read its error log and the donor's for errors",
        ),
        "incremental-transfer" | "catch-up" => verdict_of(
            true,
            format!("{name} has caught up for {since}{done}"),
            "let it go on",
        ),
        "donor" => verdict_of(
            true,
            format!("{name} has waited {since} for a donor: {told}"),
            "a Synced member that is no arbitrator; see wsrep_sst_donor",
        ),
        "disk" => verdict_of(
            true,
            format!(
                "the disk of {name} is slow: a flush of the write-set log has not ended for {}",
                age(waits_s(evidence, state, waits) + FLUSH_TOLD_S)
            ),
            "look at the disk (iostat -x, dmesg); the others go on without this node",
        ),
        "refused" => verdict_of(
            true,
            format!("{name} is refused by the cluster: {told}"),
            "",
        ),
        "failed" => verdict_of(
            true,
            format!("{name} cannot go on: {told}"),
            "waiting does not help; see docs/runbooks.md",
        ),
        reason => verdict_of(
            true,
            format!("{name} waits ({}) for {since}: {told}", clipped(reason, 40)),
            "",
        ),
    }
}

/// The first of the missing members.
fn missing_names(waits: &Wait) -> String {
    let name = |peer: &Peer| match peer.name.as_str() {
        "" => clipped(&peer.address, 60),
        name => format!("{} ({})", clipped(name, 40), clipped(&peer.address, 60)),
    };
    let names: Vec<String> = waits.missing.iter().take(8).map(name).collect();
    names.join(", ")
}

/// The verdict on a node that has left: it does nothing more, although its server runs.
fn left(name: &str, state: &StateFile) -> Option<Verdict> {
    let has_left = matches!(state.state.component.as_str(), "closed" | "left");
    let error = state
        .events
        .iter()
        .rev()
        .find(|event| event.level == "error")?;
    has_left.then(|| {
        verdict_of(
            true,
            format!(
                "{name} has left the cluster: {}",
                clipped(&error.text, MAX_TEXT_CHARS)
            ),
            "mend the cause, then: systemctl restart mariadb",
        )
    })
}

fn idle(name: &str, state: &StateFile) -> Verdict {
    let place = match state.state.component.as_str() {
        "primary" => format!(
            "in the primary component, {}",
            clipped(&state.state.node_state_comment, 40)
        ),
        other => clipped(other, 40),
    };
    let lag = match state.state.lag_seqnos {
        0 => String::new(),
        lag => format!(", {lag} write-sets behind"),
    };
    let remedy = match state.state.server_running {
        true => "ask it by SQL: trireme status",
        false => "",
    };
    verdict_of(
        false,
        format!("{name} waits for nothing: {place}{lag}"),
        remedy,
    )
}

fn down(evidence: &Evidence, name: &str, state: Option<&StateFile>) -> Verdict {
    let last = evidence.told.error.as_ref().map_or(String::new(), |error| {
        format!("; its last error: {}", clipped(error, MAX_TEXT_CHARS))
    });
    let when = state.map_or(String::new(), |_| {
        format!(", and last wrote {} ago", age(silence_s(evidence)))
    });
    let in_order = state.is_some_and(|state| state.state.component == "closed");
    let how = if in_order {
        " (it was stopped in order)"
    } else {
        ""
    };
    let remedy = match (&evidence.saved, &evidence.told.error) {
        (_, Some(_)) => "mend the cause, then: systemctl start mariadb",
        // Galera's last node begins Trireme's cluster. Later all start in the ordinary way.
        (Some(saved), None) if state.is_none() && saved.left_last() => {
            "systemctl start mariadb; if it comes from Galera, and all nodes are down, this one left last and begins: \
             galera_new_cluster"
        }
        _ => "systemctl start mariadb",
    };
    verdict_of(
        false,
        format!("{name} does not run{how}{when}{last}"),
        remedy,
    )
}

/// The verdict without a state file, which an older library does not write: from the error log.
fn from_log(evidence: &Evidence, name: &str) -> Verdict {
    match (&evidence.told.wait, &evidence.told.error) {
        (Some(wait), _) => verdict_of(
            true,
            format!("{name} waits: {}", clipped(wait, MAX_TEXT_CHARS)),
            "this is from its error log; upgrade trireme-provider for more",
        ),
        (None, Some(error)) => verdict_of(
            true,
            format!("{name} runs, and says: {}", clipped(error, MAX_TEXT_CHARS)),
            "",
        ),
        (None, None) => verdict_of(
            false,
            format!("{name} runs; its files do not tell of a wait"),
            "ask it by SQL (trireme status), or see its error log",
        ),
    }
}
