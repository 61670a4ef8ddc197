//! `trireme status`: the cluster at a glance. Pure.

use serde::Serialize;

use crate::losses::{Losses, losses, voters};
use crate::members;
use crate::node::{Node, bytes};
use crate::survey::{Member, Survey};
use crate::text::{self, bounded, clipped, shown};

/// What `trireme status` tells; `--json` prints it as it is. Within a version members are only added.
#[derive(Debug, Serialize)]
pub struct StatusReport {
    version: u32,
    cluster: Cluster,
    losses: Losses,
    members: Vec<Row>,
    /// Members without a database.
    arbitrators: usize,
    /// Members that were not asked, since there are too many.
    not_asked: usize,
    /// Named in `wsrep_cluster_address`, and not there.
    missing: Vec<String>,
    /// Sentences on what is not as it should be.
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Cluster {
    name: String,
    uuid: String,
    primary: bool,
    size: i64,
    weight: i64,
    leader: Option<String>,
    term: Option<i64>,
}

/// One member.
#[derive(Debug, Serialize)]
struct Row {
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
    /// Write-sets that its log can serve to a node that comes back.
    log_seqnos: Option<i64>,
    /// The same in minutes, at the rate of commits since the server's start; absent in a cluster that commits nothing.
    log_minutes: Option<f64>,
    log_bytes: Option<i64>,
    /// Why it says nothing.
    error: Option<String>,
}

/// Longest name in the table, in characters.
const NAME_CHARS: usize = 16;

impl StatusReport {
    /// What the survey shows.
    pub fn new(survey: &Survey) -> Self {
        // A survey has its first node.
        let first = survey.nodes().next().cloned().unwrap_or_default();
        let leader = first.status("wsrep_trireme_sequencer");
        let newest = survey
            .nodes()
            .filter_map(|node| node.whole("wsrep_last_committed"))
            .max();
        let members: Vec<Row> = survey
            .members()
            .iter()
            .map(|member| row(member, leader, newest.unwrap_or(-1)))
            .collect();
        let missing = members::missing(survey)
            .iter()
            .map(|address| bounded(address))
            .collect();
        let cluster = Cluster {
            name: bounded(first.variable("wsrep_cluster_name")),
            uuid: bounded(first.status("wsrep_cluster_state_uuid")),
            primary: first.is_primary(),
            size: first.whole("wsrep_cluster_size").unwrap_or(0),
            weight: first.whole("wsrep_cluster_weight").unwrap_or(0),
            leader: (!leader.is_empty()).then(|| bounded(leader)),
            term: first.whole("wsrep_trireme_term"),
        };
        let report = Self {
            version: 1,
            losses: losses(
                cluster.primary,
                u64::try_from(cluster.weight).unwrap_or(0),
                voters(
                    survey.nodes(),
                    survey.silent().map(|(endpoint, _)| endpoint.to_string()),
                    survey.without_database(),
                ),
            ),
            members,
            arbitrators: survey.without_database(),
            not_asked: survey.left_off(),
            missing,
            notes: Vec::new(),
            cluster,
        };
        Self {
            notes: notes(&report, survey),
            ..report
        }
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let cluster = &self.cluster;
        let component = if cluster.primary {
            "Primary"
        } else {
            "non-Primary"
        };
        let leader = cluster.leader.as_deref().map_or(String::new(), |name| {
            let term = cluster
                .term
                .map_or(String::new(), |term| format!(" (term {term})"));
            format!(", leader {}{term}", shown(name))
        });
        let arbitrators = match self.arbitrators {
            0 => String::new(),
            1 => ", one of them an arbitrator".to_owned(),
            n => format!(", {n} of them arbitrators"),
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
        for note in &self.notes {
            out += &text::wrapped(&format!("! {note}"), 2);
        }
        out
    }
}

impl Row {
    fn cells(&self) -> Vec<String> {
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
                (None, Some(_)) => "all".to_owned(),
                (None, None) => "-".to_owned(),
            },
            clipped(&self.address, 48),
        ]
    }
}

fn row(member: &Member, leader: &str, newest: i64) -> Row {
    let address = bounded(&member.endpoint.to_string());
    let node = match &member.answer {
        Ok(node) => node,
        Err(refusal) => {
            return Row {
                name: None,
                address,
                state: None,
                leader: false,
                lag_seqnos: None,
                lag_ms: None,
                apply_queue: None,
                commit_p50_us: None,
                commit_p99_us: None,
                durability: None,
                weight: None,
                library: None,
                log_seqnos: None,
                log_minutes: None,
                log_bytes: None,
                error: Some(refusal.to_string()),
            };
        }
    };
    let committed = node.whole("wsrep_last_committed");
    let behind = committed.map(|committed| (newest - committed).max(0));
    let state = match node.is_primary() {
        true => bounded(node.status("wsrep_local_state_comment")),
        // A node without a majority says Initialized, which says less.
        false => "no majority".to_owned(),
    };
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
        log_minutes: log_minutes(node),
        log_bytes: node.whole("wsrep_trireme_log_bytes"),
        error: None,
    }
}

fn is_leader(node: &Node, leader: &str) -> bool {
    match node.status("wsrep_trireme_is_leader") {
        // A library that does not tell names the leader all the same.
        "" => !leader.is_empty() && node.name() == leader,
        told => matches!(told, "1" | "ON" | "true"),
    }
}

/// Write-sets that the log can serve.
pub(crate) fn log_seqnos(node: &Node) -> Option<i64> {
    let down_to = node
        .whole("wsrep_local_cached_downto")
        .filter(|seqno| *seqno >= 0)?;
    let committed = node.whole("wsrep_last_committed")?;
    Some((committed - down_to + 1).max(0))
}

/// For how many minutes of commits the log reaches back, at the rate since the server's start. `None` for one that begins with the
/// first write-set and is not full, or in a cluster that commits nothing.
pub(crate) fn log_minutes(node: &Node) -> Option<f64> {
    let seqnos = log_seqnos(node)? as f64;
    let per_second = commits_per_second(node)?;
    let reaches_first = node.whole("wsrep_local_cached_downto") == Some(1);
    if reaches_first
        && node.number("wsrep_trireme_log_bytes").is_none_or(|used| {
            bytes(node.option("gcache.size")).is_some_and(|size| used < size as f64)
        })
    {
        return None;
    }
    (per_second > 0.0).then(|| seqnos / per_second / 60.0)
}

/// Write-sets of the cluster in a second, since the server's start.
pub(crate) fn commits_per_second(node: &Node) -> Option<f64> {
    let seen = node.number("wsrep_replicated")? + node.number("wsrep_received")?;
    let uptime = node.number("uptime").filter(|seconds| *seconds > 0.0)?;
    Some(seen / uptime)
}

fn notes(report: &StatusReport, survey: &Survey) -> Vec<String> {
    let mut notes = Vec::new();
    if !report.cluster.primary {
        notes.push(
            "this node has no majority, and takes no statements: ask `trireme why-waiting --dir DATADIR` on its machine"
                .to_owned(),
        );
    }
    if !report.missing.is_empty() {
        let names: Vec<String> = report
            .missing
            .iter()
            .take(8)
            .map(|name| clipped(name, 48))
            .collect();
        notes.push(format!(
            "not here: {} (in wsrep_cluster_address): down, cut off, or taken out of the cluster for good",
            names.join(", ")
        ));
    }
    for row in report.members.iter() {
        if let Some(error) = &row.error {
            notes.push(format!("{}: {error}", clipped(&row.address, 48)));
        }
    }
    for node in survey.nodes() {
        let name = shown(node.name());
        match node.status("wsrep_trireme_left_out") {
            "" => {}
            left_out => {
                notes.push(format!(
                    "left out of flow control, as too slow: {}",
                    shown(left_out)
                ));
                break;
            }
        }
        let progress = node.status("wsrep_trireme_catching_up");
        if !progress.is_empty() {
            notes.push(format!("{name} catches up: {}", shown(progress)));
        }
    }
    if let Some(node) = survey
        .nodes()
        .find(|node| !node.status("wsrep_trireme_lost_from").is_empty())
    {
        notes.push(format!(
            "acknowledged commits from {} on may be lost (docs/protocol.md, rule 4)",
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::testing::node;
    use crate::refusal::Refusal;
    use trireme_agent::{DatabaseError, Endpoint};

    fn member(node: Node) -> Member {
        let (host, port) = (node.option("base_host").to_owned(), 3306);
        Member {
            endpoint: Endpoint::Tcp { host, port },
            answer: Ok(node),
        }
    }

    fn report(nodes: Vec<Node>) -> StatusReport {
        StatusReport::new(&Survey::of(nodes.into_iter().map(member).collect(), 0))
    }

    #[test]
    fn a_healthy_cluster_in_eighty_columns() {
        let nodes = vec![
            node("node1", &[]),
            node("node2", &[("wsrep_last_committed", "990")]),
            node("node3", &[]),
        ];
        let report = report(nodes);
        let text = report.text();
        assert!(
            text.starts_with("cluster shop: Primary, 3 member(s), leader node1\n"),
            "{text}"
        );
        assert!(
            text.contains("survives the loss of 1 member(s) now: 3 votes, a majority is 2"),
            "{text}"
        );
        assert!(text.contains("\nnode1*  Synced    0"), "{text}");
        assert!(text.contains("\nnode2   Synced   10"), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        assert!(report.missing.is_empty());
    }

    #[test]
    fn what_the_provider_tells_is_shown() {
        let told = [
            ("wsrep_trireme_lag_seqnos", "5"),
            ("wsrep_trireme_commit_ordering_p50_us", "300"),
            ("wsrep_trireme_commit_majority_p50_us", "12"),
            ("wsrep_trireme_commit_ordering_p99_us", "12400"),
            ("wsrep_trireme_is_leader", "1"),
            ("wsrep_trireme_term", "7"),
            ("wsrep_local_cached_downto", "401"),
            ("wsrep_replicated", "3600"),
            ("wsrep_received", "0"),
        ];
        let text = report(vec![node("node1", &told)]).text();
        assert!(text.contains("leader node1 (term 7)"), "{text}");
        assert!(text.contains("5      -    0.3/12.4  10 min"), "{text}");
        assert!(!text.contains("older library"), "{text}");
    }

    #[test]
    fn the_missing_and_the_silent_are_named() {
        let mut members = vec![member(node("node1", &[])), member(node("node2", &[]))];
        members.push(Member {
            endpoint: Endpoint::Tcp {
                host: "192.0.2.9".to_owned(),
                port: 3306,
            },
            answer: Err(Refusal::Database(DatabaseError::Refused(
                1045,
                "Access denied".to_owned(),
            ))),
        });
        let report = StatusReport::new(&Survey::of(members, 0));
        let text = report.text();
        assert!(text.contains("not here: 192.0.2.3:4567"), "{text}");
        assert!(text.contains("?       no answer"), "{text}");
        assert!(text.contains("Access denied"), "{text}");
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["version"], 1);
        assert_eq!(json["losses"]["survives"], 1);
        assert_eq!(json["missing"][0], "192.0.2.3:4567");
        assert_eq!(json["members"][2]["state"], serde_json::Value::Null);
    }

    #[test]
    fn without_a_majority_the_next_command_is_named() {
        let alone = [
            ("wsrep_cluster_status", "non-Primary"),
            ("wsrep_cluster_weight", "0"),
        ];
        let report = report(vec![node("node1", &alone)]);
        assert_eq!(report.losses.survives, 0);
        assert!(report.text().contains("why-waiting"), "{}", report.text());
        assert!(report.text().contains("no majority"));
    }

    #[test]
    fn hostile_names_do_no_harm() {
        let name = format!("\u{1b}]0;x\u{7}{}", "n".repeat(100_000));
        let changes = [
            ("@wsrep_node_name", name.as_str()),
            ("@wsrep_cluster_name", name.as_str()),
            ("wsrep_trireme_sequencer", name.as_str()),
            ("wsrep_trireme_left_out", name.as_str()),
        ];
        let report = report(vec![node("node1", &changes)]);
        let text = report.text();
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{7}'),
            "{text}"
        );
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        let json = serde_json::to_string(&report).unwrap();
        assert!(
            text.len() + json.len() < 20_000,
            "{} {}",
            text.len(),
            json.len()
        );
        assert!(!json.contains('\u{1b}'));
    }
}
