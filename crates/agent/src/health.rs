//! Health checks for load balancers: a sample goes in, a verdict with its reason comes out. Pure.

use std::fmt;

use crate::database::DatabaseError;
use crate::plain::visible;
use crate::sample::{Component, Sample};

/// `wsrep_local_state` of a node that is in step with the cluster.
const SYNCED: &str = "4";
/// `wsrep_local_state` of nodes whose SQL is open: donor or desynced, joined, synced.
const OPEN: [&str; 3] = ["2", "3", SYNCED];

/// The answer to a health check, with its reason in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Whether a load balancer may send traffic.
    pub(crate) ok: bool,
    /// The reason, for people.
    pub(crate) reason: String,
}

impl Verdict {
    pub(crate) fn yes(reason: impl Into<String>) -> Self {
        Self {
            ok: true,
            reason: reason.into(),
        }
    }

    pub(crate) fn no(reason: impl Into<String>) -> Self {
        Self {
            ok: false,
            reason: reason.into(),
        }
    }
}

impl fmt::Display for Verdict {
    /// Parts of the reason come from other nodes, so control characters are made visible.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.ok { "ok" } else { "no" };
        write!(f, "{verdict}: {}", visible(&self.reason))
    }
}

type Seen<'a> = Result<&'a Sample, &'a DatabaseError>;

/// Whether the server answers; an error of the server is an answer, too.
pub(crate) fn live(seen: Seen<'_>) -> Verdict {
    match seen {
        Ok(_) => Verdict::yes("the server answers"),
        Err(error @ DatabaseError::Refused(..)) => Verdict::yes(error.to_string()),
        Err(error) => Verdict::no(format!(
            "{error} (SQL is closed while a node starts, joins, or waits for its majority: see its error log)"
        )),
    }
}

/// Whether the node belongs to the primary component and serves SQL.
pub(crate) fn ready(seen: Seen<'_>) -> Verdict {
    let sample = match seen {
        Ok(sample) => sample,
        Err(_) => {
            return Verdict {
                ok: false,
                ..live(seen)
            };
        }
    };
    let provider = sample.status("wsrep_provider_name");
    let state = sample.status("wsrep_local_state_comment");
    if provider != "Trireme" {
        return Verdict::no(match provider {
            "" => "the server is no node of a cluster (wsrep_on, wsrep_provider)".to_owned(),
            other => format!("the server's wsrep provider is {other}, not Trireme"),
        });
    }
    match sample.component() {
        Component::Primary => {}
        Component::Left => {
            return Verdict::no(
                "the node has left the cluster: mend the cause in its error log, then restart the server",
            );
        }
        Component::NonPrimary => {
            return Verdict::no(
                "the node is not in the primary component: it waits for a majority",
            );
        }
    }
    if sample.status("wsrep_ready") != "ON" || !OPEN.contains(&sample.status("wsrep_local_state")) {
        return Verdict::no(format!("the node takes no statements yet: {state}"));
    }
    match sample.variable("wsrep_reject_queries") {
        "NONE" | "" => {}
        other => return Verdict::no(format!("wsrep_reject_queries is {other}")),
    }
    let size = sample.status("wsrep_cluster_size");
    Verdict::yes(format!("{state}, one of {size} members"))
}

/// Whether the node accepts writes and is synced.
pub(crate) fn write(seen: Seen<'_>) -> Verdict {
    let ready = ready(seen);
    let (true, Ok(sample)) = (ready.ok, seen) else {
        return ready;
    };
    if !matches!(sample.variable("read_only"), "OFF" | "0" | "") {
        return Verdict::no("the server is read_only");
    }
    if sample.status("wsrep_local_state") != SYNCED {
        let state = sample.status("wsrep_local_state_comment");
        let left_out = match sample.status("wsrep_trireme_left_out") {
            "" => String::new(),
            names => format!(" (left out of flow control: {names})"),
        };
        return Verdict::no(format!("the node is not in step: {state}{left_out}"));
    }
    ready
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(changes: &[(&str, &str)]) -> Sample {
        let of = |pairs: &[(&str, &str)]| {
            let own = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
            pairs.iter().map(own).collect::<Vec<_>>()
        };
        let mut status = of(&[
            ("wsrep_provider_name", "Trireme"),
            ("wsrep_cluster_status", "Primary"),
            ("wsrep_ready", "ON"),
            ("wsrep_local_state", "4"),
            ("wsrep_local_state_comment", "Synced"),
            ("wsrep_cluster_size", "3"),
        ]);
        status.extend(of(changes));
        let mut variables = of(&[("read_only", "OFF"), ("wsrep_reject_queries", "NONE")]);
        variables.extend(of(changes));
        Sample::new(status, variables)
    }

    #[track_caller]
    fn assert_verdicts(
        changes: &[(&str, &str)],
        expected_ready: bool,
        expected_write: bool,
        word: &str,
    ) {
        let sample = sample(changes);
        assert!(live(Ok(&sample)).ok);
        let (ready, write) = (ready(Ok(&sample)), write(Ok(&sample)));
        assert_eq!(
            (ready.ok, write.ok),
            (expected_ready, expected_write),
            "{ready} / {write}"
        );
        assert!(write.reason.contains(word), "{write}");
    }

    #[test]
    fn a_synced_node_takes_all_and_others_say_why_not() {
        assert_verdicts(&[], true, true, "one of 3 members");
        assert_verdicts(&[("read_only", "ON")], true, false, "read_only");
        let donor = [
            ("wsrep_local_state", "2"),
            ("wsrep_local_state_comment", "Donor/Desynced"),
        ];
        assert_verdicts(&donor, true, false, "Donor/Desynced");
        let left_out = [donor[0], donor[1], ("wsrep_trireme_left_out", "n3")];
        assert_verdicts(&left_out, true, false, "left out of flow control: n3");
        assert_verdicts(
            &[("wsrep_cluster_status", "non-Primary")],
            false,
            false,
            "majority",
        );
        assert_verdicts(
            &[("wsrep_cluster_status", "Disconnected")],
            false,
            false,
            "left the cluster: mend the cause in its error log, then restart",
        );
        assert_verdicts(&[("wsrep_ready", "OFF")], false, false, "no statements yet");
        assert_verdicts(
            &[("wsrep_local_state", "1")],
            false,
            false,
            "no statements yet",
        );
        assert_verdicts(
            &[("wsrep_reject_queries", "ALL")],
            false,
            false,
            "wsrep_reject_queries is ALL",
        );
        assert_verdicts(
            &[("wsrep_provider_name", "Galera")],
            false,
            false,
            "is Galera, not Trireme",
        );
        assert_verdicts(
            &[("wsrep_provider_name", "")],
            false,
            false,
            "no node of a cluster",
        );
    }

    #[test]
    fn a_server_that_refuses_lives_and_one_that_is_silent_does_not() {
        let refused = DatabaseError::Refused(1040, "Too many connections".to_owned());
        assert!(live(Err(&refused)).ok);
        assert!(!ready(Err(&refused)).ok);
        let silent = DatabaseError::Silent {
            endpoint: "/s".to_owned(),
            reason: "gone".to_owned(),
        };
        assert!(!live(Err(&silent)).ok);
        assert!(write(Err(&silent)).reason.contains("error log"));
    }

    #[test]
    fn control_characters_are_made_visible() {
        let verdict = Verdict::no("evil \u{1b}[2J\nname");
        assert_eq!(verdict.to_string(), "no: evil \\u{1b}[2J\\nname");
    }
}
