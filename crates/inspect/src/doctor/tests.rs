//! Every check passes on a healthy cluster, and fails on one that lacks just what it looks for.

use std::collections::BTreeSet;

use super::checks::CHECKS;
use super::facts::{Certificate, Facts, Host, Process, Seen, Tables};
use super::finding::Outcome;
use super::{Check, DoctorReport};
use crate::node::testing::node;

type Changes = &'static [(&'static str, &'static str)];

const HEALTHY: Changes = &[
    ("@version", "11.8.2-MariaDB"),
    ("@port", "3306"),
    ("@innodb_snapshot_isolation", "ON"),
    ("@innodb_autoinc_lock_mode", "2"),
    ("@binlog_format", "ROW"),
    ("@default_storage_engine", "InnoDB"),
    ("@innodb_flush_log_at_trx_commit", "2"),
    ("@wsrep_certify_nonpk", "ON"),
    ("@wsrep_slave_threads", "4"),
    ("@wsrep_sst_method", "rsync"),
    ("@wsrep_sync_wait", "0"),
    ("@max_connections", "100"),
    ("@log_bin", "ON"),
    ("@log_slave_updates", "ON"),
    ("threads_connected", "10"),
    ("wsrep_trireme_commit_ordering_p99_us", "5000"),
    ("wsrep_local_commits", "1000"),
    ("wsrep_replicated_bytes", "1000000"),
    ("wsrep_received_bytes", "1000000"),
    ("pc.recovery", "true"),
    ("gcache.recover", "yes"),
    ("repl.mark_dir", "/dev/shm"),
    ("repl.fc_desync_after_ms", "60"),
    ("evs.send_window", "4"),
];

fn seen(name: &str, changes: Changes) -> Seen {
    let all: Vec<_> = HEALTHY.iter().chain(changes).copied().collect();
    let applier = Process {
        user: "system user".to_owned(),
        ..Process::default()
    };
    Seen {
        node: node(name, &all),
        clock_ms: Some((5.0, 1.0)),
        processes: Some(vec![applier]),
    }
}

fn healthy() -> Facts {
    let host = Host {
        log_volume: Some((50 << 30, 100 << 30)),
        data_volume: Some((50 << 30, 100 << 30)),
        log_bytes: Some(100 << 20),
        programs: BTreeSet::from(["rsync", "socat", "mbstream", "mariadb-backup"]),
        mark_dir_in_memory: Some(true),
        arguments: Some(vec!["/usr/sbin/mariadbd".to_owned()]),
        environment: Some(vec!["PATH".to_owned()]),
        error_log: Some(String::new()),
        start_timeout_s: Some(f64::INFINITY),
        agent_answers: true,
        ..Host::default()
    };
    Facts {
        nodes: ["node1", "node2", "node3"]
            .map(|name| seen(name, &[]))
            .into(),
        tables: Tables {
            without_primary_key: Some(Vec::new()),
            not_innodb: Some(Vec::new()),
        },
        host: Some(host),
        ..Facts::default()
    }
}

/// What to do to a healthy cluster, and what the check must say then.
struct Broken {
    check: &'static str,
    harm: fn(&mut Facts),
    outcome: Outcome,
    word: &'static str,
}

/// One node is not as the others.
macro_rules! node2 {
    ($check:literal, $outcome:ident, $word:literal, $($change:expr),+) => {
        Broken {
            check: $check,
            harm: |facts| facts.nodes[1] = seen("node2", &[$($change),+]),
            outcome: Outcome::$outcome,
            word: $word,
        }
    };
}

macro_rules! host {
    ($check:literal, $outcome:ident, $word:literal, $harm:expr) => {
        Broken {
            check: $check,
            harm: |facts| {
                let harm: fn(&mut Host) = $harm;
                harm(facts.host.as_mut().unwrap());
            },
            outcome: Outcome::$outcome,
            word: $word,
        }
    };
}

macro_rules! cluster {
    ($check:literal, $outcome:ident, $word:literal, $harm:expr) => {
        Broken {
            check: $check,
            harm: $harm,
            outcome: Outcome::$outcome,
            word: $word,
        }
    };
}

fn one(text: &str) -> Vec<String> {
    vec![text.to_owned()]
}

fn certificate(option: &'static str, days: i64, is_public: bool) -> Certificate {
    Certificate {
        option,
        file: "/etc/x.pem".to_owned(),
        days: Ok(days),
        is_public,
    }
}

fn all_broken() -> Vec<Broken> {
    vec![
        node2!(
            "majority",
            Failed,
            "node2",
            ("wsrep_cluster_status", "non-Primary")
        ),
        cluster!("missing-members", Failed, "192.0.2.3:4567", |facts| facts
            .missing =
            one("192.0.2.3:4567")),
        cluster!("losses", Failed, "no member", |facts| {
            facts.nodes.pop();
            facts.nodes[0] = seen("node1", &[("wsrep_cluster_weight", "2")]);
        }),
        cluster!("members-answer", Warning, "192.0.2.3 (denied)", |facts| {
            facts.silent = vec![("192.0.2.3".to_owned(), "denied".to_owned())];
        }),
        node2!(
            "one-history",
            Failed,
            "node2 other",
            ("wsrep_cluster_state_uuid", "other")
        ),
        node2!(
            "one-view",
            Warning,
            "node2 9",
            ("wsrep_cluster_conf_id", "9")
        ),
        node2!(
            "lost-commits",
            Failed,
            "uuid:7",
            ("wsrep_trireme_lost_from", "uuid:7")
        ),
        node2!(
            "in-step",
            Warning,
            "node2 is Donor",
            ("wsrep_local_state", "2"),
            ("wsrep_local_state_comment", "Donor/Desynced")
        ),
        node2!(
            "left-out",
            Warning,
            "node3",
            ("wsrep_trireme_left_out", "node3")
        ),
        node2!("desynced", Warning, "node2", ("@wsrep_desync", "ON")),
        cluster!(
            "long-statement",
            Failed,
            "ALTER TABLE d.t ADD x INT for 12 s on node2, connection 7 of app",
            |facts| {
                facts.nodes[1].processes.as_mut().unwrap().push(Process {
                    id: "7".to_owned(),
                    user: "app".to_owned(),
                    command: "Query".to_owned(),
                    seconds: 12.0,
                    statement: "ALTER TABLE d.t ADD x INT".to_owned(),
                });
            }
        ),
        host!("free-space", Failed, "nearly full", |host| host
            .log_volume =
            Some((1 << 30, 100 << 30))),
        host!("backlog", Failed, "lasts 3 h", |host| host.log_volume =
            Some((6_000_000, 20_000_000))),
        cluster!("ist-window", Warning, "reaches back 8 min", |facts| {
            let full: Changes = &[
                ("wsrep_local_cached_downto", "801"),
                ("wsrep_replicated", "1000"),
                ("wsrep_received", "500"),
            ];
            facts.nodes[0] = seen("node1", full);
        }),
        host!("damaged-log", Warning, "trireme-damaged-1-7.log", |host| {
            host.damaged = one("trireme-damaged-1-7.log")
        }),
        host!("mark-dir", Warning, "not in memory", |host| host
            .mark_dir_in_memory =
            Some(false)),
        host!("copied-data", Failed, "/srv/copy", |host| host
            .same_replica =
            vec!["/srv/copy".into()]),
        cluster!(
            "clocks",
            Failed,
            "differ by 90.0 s: node2 is ahead",
            |facts| facts.nodes[1].clock_ms = Some((90_000.0, 1.0))
        ),
        node2!(
            "slow-commits",
            Warning,
            "node2 900 ms, most in majority",
            ("wsrep_trireme_commit_ordering_p99_us", "10000"),
            ("wsrep_trireme_commit_majority_p99_us", "890000")
        ),
        node2!(
            "flow-control",
            Warning,
            "node2",
            ("wsrep_flow_control_paused", "0.4")
        ),
        node2!(
            "conflicts",
            Warning,
            "node2",
            ("wsrep_local_cert_failures", "100")
        ),
        node2!(
            "mixed-durability",
            Failed,
            "node2 disk",
            ("repl.durability", "disk")
        ),
        node2!(
            "durability",
            Warning,
            "node2",
            ("repl.durability", "memory")
        ),
        node2!("pc-recovery", Failed, "node2", ("pc.recovery", "no")),
        node2!("gcache-recover", Failed, "node2", ("gcache.recover", "no")),
        node2!("split-brain", Failed, "node2", ("pc.ignore_sb", "yes")),
        node2!(
            "wait-evidence",
            Warning,
            "node2",
            ("pc.wait_evidence", "PT10S")
        ),
        node2!(
            "options-alike",
            Warning,
            "gcs.vote_policy",
            ("gcs.vote_policy", "1")
        ),
        node2!(
            "options-without-effect",
            Warning,
            "evs.send_window",
            ("evs.send_window", "512")
        ),
        node2!(
            "bootstrap-expect",
            Warning,
            "node2",
            ("pc.bootstrap_expect", "5")
        ),
        host!(
            "automatic-bootstrap",
            Failed,
            "MARIADB_GALERA_CLUSTER_BOOTSTRAP",
            |host| {
                host.environment = Some(one("MARIADB_GALERA_CLUSTER_BOOTSTRAP"));
            }
        ),
        node2!(
            "bootstrap-address",
            Failed,
            "node2",
            ("@wsrep_cluster_address", "gcomm://")
        ),
        node2!(
            "cluster-address",
            Warning,
            "node2 192.0.2.1:4567",
            ("@wsrep_cluster_address", "gcomm://192.0.2.1")
        ),
        node2!("own-address", Failed, "node2", ("base_host", "127.0.0.1")),
        node2!("ports", Failed, "node2", ("base_port", "4444")),
        node2!("weights", Warning, "node2", ("pc.weight", "0")),
        node2!("names", Warning, "node1", ("@wsrep_node_name", "node1")),
        node2!(
            "library-versions",
            Warning,
            "node2 0.0.9",
            ("wsrep_provider_version", "0.0.9")
        ),
        node2!(
            "server-versions",
            Warning,
            "node2 10.11",
            ("@version", "10.11.19-MariaDB")
        ),
        cluster!("primary-keys", Warning, "d.heap", |facts| facts
            .tables
            .without_primary_key =
            Some(one("d.heap"))),
        cluster!("engines", Failed, "d.m (MyISAM)", |facts| facts
            .tables
            .not_innodb =
            Some(one("d.m (MyISAM)"))),
        node2!(
            "default-engine",
            Warning,
            "node2",
            ("@default_storage_engine", "Aria")
        ),
        node2!("nonpk", Failed, "node2", ("@wsrep_certify_nonpk", "OFF")),
        node2!("row-format", Failed, "node2", ("@binlog_format", "MIXED")),
        node2!(
            "autoinc",
            Failed,
            "node2",
            ("@innodb_autoinc_lock_mode", "1")
        ),
        node2!(
            "snapshot-isolation",
            Warning,
            "node2",
            ("@innodb_snapshot_isolation", "OFF")
        ),
        node2!(
            "causal-reads",
            Warning,
            "node2 7",
            ("@wsrep_sync_wait", "7")
        ),
        node2!("binary-log", Failed, "node2", ("@log_slave_updates", "OFF")),
        node2!(
            "innodb-flush",
            Warning,
            "node2",
            ("@innodb_flush_log_at_trx_commit", "1")
        ),
        node2!("appliers", Warning, "node2", ("@wsrep_slave_threads", "1")),
        node2!("connections", Warning, "node2", ("threads_connected", "81")),
        node2!(
            "rejects",
            Warning,
            "node2",
            ("@wsrep_reject_queries", "ALL")
        ),
        node2!("read-only", Warning, "node2", ("@read_only", "ON")),
        cluster!("load-balancer", Warning, "proxysql_mon", |facts| {
            facts.nodes[0].processes.as_mut().unwrap().push(Process {
                user: "proxysql_mon".to_owned(),
                ..Process::default()
            });
        }),
        host!("agent", Warning, "8077", |host| host.agent_answers = false),
        host!("start-timeout", Failed, "90 s", |host| host
            .start_timeout_s =
            Some(90.0)),
        node2!(
            "sst-method",
            Warning,
            "node2 mariabackup",
            ("@wsrep_sst_method", "mariabackup"),
            ("@wsrep_sst_auth", "x:")
        ),
        host!("sst-programs", Failed, "rsync", |host| host.programs =
            BTreeSet::new()),
        node2!(
            "sst-user",
            Warning,
            "node2",
            ("@wsrep_sst_method", "mariabackup")
        ),
        node2!(
            "plaintext",
            Warning,
            "node2",
            ("wsrep_trireme_plaintext_links", "2")
        ),
        node2!("mixed-tls", Warning, "node2 yes", ("socket.ssl", "YES")),
        node2!("both-accepted", Warning, "node2", ("socket.dynamic", "yes")),
        host!("certificates", Failed, "has expired", |host| host
            .certificates =
            vec![certificate("socket.ssl_cert", -1, true)]),
        host!("key-mode", Failed, "/etc/x.pem", |host| host.certificates =
            vec![certificate("socket.ssl_key", 9999, true)]),
    ]
}

fn check<'a>(report: &'a DoctorReport, name: &str) -> &'a Check {
    let found = report.checks.iter().find(|check| check.name == name);
    found.unwrap_or_else(|| panic!("there is no check {name}"))
}

#[test]
fn a_healthy_cluster_passes_every_check() {
    let report = DoctorReport::of(&healthy());
    for check in &report.checks {
        assert_eq!(check.result, Outcome::Ok, "{}: {}", check.name, check.text);
    }
    assert!(!report.has_failed());
    assert!(report.checks.len() >= 25, "{}", report.checks.len());
}

#[test]
fn every_check_finds_what_it_looks_for_and_names_a_remedy() {
    let broken = all_broken();
    let names: Vec<_> = broken.iter().map(|broken| broken.check).collect();
    let checks: Vec<_> = CHECKS.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, checks, "one harm for each check, in their order");
    for broken in broken {
        let mut facts = healthy();
        (broken.harm)(&mut facts);
        let report = DoctorReport::of(&facts);
        let found = check(&report, broken.check);
        assert_eq!(
            found.result, broken.outcome,
            "{}: {}",
            broken.check, found.text
        );
        assert!(
            found.text.contains(broken.word),
            "{}: {}",
            broken.check,
            found.text
        );
        assert!(!found.remedy.is_empty(), "{}", broken.check);
        assert!(report.text(false).contains(broken.check));
    }
}

#[test]
fn what_could_not_be_found_out_is_unknown_and_never_passes() {
    let mut facts = healthy();
    facts.host = None;
    facts.tables = Tables::default();
    for seen in &mut facts.nodes {
        seen.processes = None;
        seen.clock_ms = None;
    }
    let report = DoctorReport::of(&facts);
    for name in [
        "free-space",
        "backlog",
        "copied-data",
        "certificates",
        "primary-keys",
        "engines",
        "long-statement",
        "clocks",
    ] {
        assert_eq!(check(&report, name).result, Outcome::Unknown, "{name}");
    }
    assert!(
        report.text(false).contains("unknown clocks:"),
        "{}",
        report.text(false)
    );
}

#[test]
fn nobody_is_no_reason_to_panic() {
    let report = DoctorReport::of(&Facts::default());
    assert!(report.checks.len() >= 25);
}

#[test]
fn thresholds_are_where_the_texts_say() {
    let expiring = |days| {
        let mut facts = healthy();
        facts.host.as_mut().unwrap().certificates =
            vec![certificate("socket.ssl_cert", days, true)];
        check(&DoctorReport::of(&facts), "certificates").result
    };
    assert_eq!(
        [6, 7, 29, 30].map(expiring),
        [
            Outcome::Failed,
            Outcome::Warning,
            Outcome::Warning,
            Outcome::Ok
        ]
    );
    let apart = |ms| {
        let mut facts = healthy();
        facts.nodes[1].clock_ms = Some((5.0 + ms, 1.0));
        check(&DoctorReport::of(&facts), "clocks").result
    };
    assert_eq!(
        [999.0, 1100.0, -1100.0].map(apart),
        [Outcome::Ok, Outcome::Failed, Outcome::Failed]
    );
}

#[test]
fn a_report_has_eighty_columns_and_harms_no_terminal() {
    let mut facts = healthy();
    facts.missing = vec!["\u{1b}[2J".repeat(10_000); 100];
    facts.tables.without_primary_key = Some(vec!["d.\u{202e}evil".to_owned(); 100_000]);
    facts.nodes[1].processes.as_mut().unwrap().push(Process {
        command: "Query".to_owned(),
        seconds: 1e9,
        statement: format!("ALTER \n\u{7}{}", "x".repeat(1_000_000)),
        ..Process::default()
    });
    let report = DoctorReport::of(&facts);
    let text = report.text(true);
    assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let json = serde_json::to_string(&report).unwrap();
    assert!(
        text.len() < 40_000 && json.len() < 40_000,
        "{} {}",
        text.len(),
        json.len()
    );
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["checks"][1]["name"], "missing-members");
    assert_eq!(value["checks"][1]["result"], "failed");
    assert!(value["checks"][1]["remedy"].is_string());
}
