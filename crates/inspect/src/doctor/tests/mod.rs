//! Every check passes on a healthy cluster, and fails on one that lacks just what it looks for.

mod broken;
mod unknown;

use std::collections::BTreeSet;

use super::checks::CHECKS;
use super::facts::{CRL, Facts, Host, Process, SecurityFile, Seen, Tables};
use super::finding::Outcome;
use super::{Check, DoctorReport};
use crate::node::testing::node;
use broken::all_broken;

type Changes = &'static [(&'static str, &'static str)];

const HEALTHY: Changes = &[
    ("@version", "11.8.2-MariaDB"),
    ("@port", "3306"),
    ("@innodb_snapshot_isolation", "ON"),
    ("@innodb_autoinc_lock_mode", "2"),
    ("@binlog_format", "ROW"),
    ("@default_storage_engine", "InnoDB"),
    ("@innodb_flush_log_at_trx_commit", "2"),
    ("@innodb_flush_log_at_timeout", "1"),
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
    ("socket.ssl", "yes"),
];

fn seen(name: &str, changes: Changes) -> Seen {
    let all: Vec<_> = HEALTHY.iter().chain(changes).copied().collect();
    Seen {
        node: node(name, &all),
        clock_ms: Some((5.0, 1.0)),
        statements: Some(Vec::new()),
        users: Some(vec!["system user".to_owned()]),
    }
}

fn healthy() -> Facts {
    let host = Host {
        log_volume: Some((50 << 30, 100 << 30)),
        data_volume: Some((50 << 30, 100 << 30)),
        log_bytes: Some(100 << 20),
        damaged: Some(Vec::new()),
        same_replica: Some(Vec::new()),
        programs: BTreeSet::from(["rsync", "socat", "mbstream", "mariadb-backup"]),
        mark_dir_in_memory: Some(true),
        arguments: Some(vec!["/usr/sbin/mariadbd".to_owned()]),
        // The second is what galera_new_cluster leaves.
        environment: Some(vec!["PATH".to_owned(), "_WSREP_NEW_CLUSTER".to_owned()]),
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

fn certificate(days: i64) -> SecurityFile {
    SecurityFile {
        option: "socket.ssl_cert",
        file: "/etc/x.pem".to_owned(),
        days: Some(Ok(days)),
        exposed: Ok(None),
    }
}

fn revocation_list(days: i64) -> SecurityFile {
    SecurityFile {
        option: CRL,
        file: "/etc/x.crl".to_owned(),
        ..certificate(days)
    }
}

fn private(option: &'static str, exposed: Option<u32>) -> SecurityFile {
    SecurityFile {
        option,
        file: "/etc/private".to_owned(),
        days: None,
        exposed: Ok(exposed),
    }
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
fn statements_that_hold_up_the_cluster_are_known_in_all_spellings() {
    let result = |statement: &str| {
        let mut facts = healthy();
        facts.nodes[1].statements.as_mut().unwrap().push(Process {
            user: "app".to_owned(),
            seconds: 12.0,
            statement: statement.to_owned(),
            ..Process::default()
        });
        check(&DoctorReport::of(&facts), "long-statement").result
    };
    for statement in [
        "alter table t add x int",
        "/* app:7 */ ALTER TABLE t ADD x INT",
        "-- a comment\n# another\n  ALTER TABLE t ADD x INT",
        "/*!40000 ALTER TABLE t DISABLE KEYS */",
        "/*M!100100 ALTER TABLE t ADD x INT */",
        "SET STATEMENT max_statement_time=0, lock_wait_timeout=5 FOR ALTER TABLE t ADD x INT",
        "CREATE INDEX i ON t (x)",
        "CREATE  UNIQUE\tINDEX i ON t (x)",
        "CREATE FULLTEXT INDEX i ON t (x)",
        "CREATE SPATIAL INDEX i ON t (x)",
        "CREATE OR REPLACE INDEX i ON t (x)",
        "CREATE OR REPLACE UNIQUE INDEX i ON t (x)",
        "CREATE OR REPLACE TABLE t (x INT)",
        "DROP TABLE t",
        "DROP INDEX i ON t",
        "DROP DATABASE d",
        "OPTIMIZE TABLE t",
        "TRUNCATE t",
        "RENAME TABLE t TO u",
    ] {
        assert_eq!(result(statement), Outcome::Failed, "{statement}");
    }
    for statement in [
        "",
        "/* ALTER TABLE t",
        "SELECT 'ALTER TABLE t'",
        "SET STATEMENT max_statement_time=0 FOR SELECT SLEEP(9)",
        "CREATE USER u",
        "DROP TEMPORARY TABLE t",
        "UPDATE t SET x = 1",
    ] {
        assert_eq!(result(statement), Outcome::Ok, "{statement}");
    }
}

/// wsrep_OSU_method=RSU desyncs the node while its DDL runs there alone.
#[test]
fn a_statement_of_one_node_alone_holds_up_nobody() {
    let result = |changes: Changes| {
        let mut facts = healthy();
        facts.nodes[1] = seen("node2", changes);
        facts.nodes[1].statements.as_mut().unwrap().push(Process {
            seconds: 12.0,
            statement: "ALTER TABLE t ADD x INT".to_owned(),
            ..Process::default()
        });
        check(&DoctorReport::of(&facts), "long-statement").result
    };
    const BY_HAND: (&str, &str) = ("@wsrep_desync", "ON");
    assert_eq!(result(&[("wsrep_desync_count", "1")]), Outcome::Ok);
    assert_eq!(result(&[("wsrep_desync_count", "2"), BY_HAND]), Outcome::Ok);
    assert_eq!(result(&[("wsrep_desync_count", "0")]), Outcome::Failed);
    assert_eq!(
        result(&[("wsrep_desync_count", "1"), BY_HAND]),
        Outcome::Failed
    );
}

/// rsync encrypts by stunnel, which only the settings of `[sst]` ask for.
#[test]
fn an_encrypted_rsync_needs_stunnel() {
    let mut facts = healthy();
    facts.host.as_mut().unwrap().sst_encrypts = true;
    let report = DoctorReport::of(&facts);
    let found = check(&report, "sst-programs");
    assert_eq!(found.result, Outcome::Failed);
    assert!(found.text.ends_with("missing: stunnel"), "{}", found.text);
    assert!(found.remedy.contains("stunnel4"), "{}", found.remedy);
    facts.host.as_mut().unwrap().programs.insert("stunnel");
    let result = check(&DoctorReport::of(&facts), "sst-programs").result;
    assert_eq!(result, Outcome::Ok);
}

/// A secret is as good as certificates, if all have it and nobody else does.
#[test]
fn a_shared_secret_is_known() {
    const SECRET: Changes = &[("socket.ssl", "no"), ("repl.secret_file", "/etc/secret")];
    let mut facts = healthy();
    facts.nodes = ["node1", "node2"].map(|name| seen(name, SECRET)).into();
    let host = facts.host.as_mut().unwrap();
    host.security_files = vec![private("repl.secret_file", None)];
    let result = |facts: &Facts, name| check(&DoctorReport::of(facts), name).result;
    for name in ["plaintext", "mixed-tls", "certificates", "key-mode"] {
        assert_eq!(result(&facts, name), Outcome::Ok, "{name}");
    }
    facts.nodes.push(seen("node3", &[]));
    assert_eq!(result(&facts, "mixed-tls"), Outcome::Warning);
    let host = facts.host.as_mut().unwrap();
    host.security_files = vec![private("repl.secret_file", Some(0o644))];
    assert_eq!(result(&facts, "key-mode"), Outcome::Failed);
}

/// A database that flushes at each commit needs nothing of the write-set log.
#[test]
fn an_interval_between_flushes_counts_if_commits_do_not_flush() {
    let result = |at_commit: &'static str, interval_s: &'static str| {
        let changes = [
            ("@innodb_flush_log_at_trx_commit", at_commit),
            ("@innodb_flush_log_at_timeout", interval_s),
        ];
        let mut facts = healthy();
        let all: Vec<_> = HEALTHY.iter().copied().chain(changes).collect();
        facts.nodes[1].node = node("node2", &all);
        check(&DoctorReport::of(&facts), "innodb-flush-interval").result
    };
    for at_commit in ["0", "2"] {
        assert_eq!(result(at_commit, "5"), Outcome::Ok);
        assert_eq!(result(at_commit, "6"), Outcome::Failed);
        assert_eq!(result(at_commit, "2700"), Outcome::Failed);
    }
    for at_commit in ["1", "3"] {
        assert_eq!(result(at_commit, "2700"), Outcome::Ok);
    }
}

/// A blank node asks every leader for admission, also one of the cluster that is to be given up.
#[test]
fn of_two_clusters_one_is_stopped_whole_before_files_are_moved() {
    let mut facts = healthy();
    facts.nodes[1] = seen("node2", &[("wsrep_cluster_state_uuid", "other")]);
    let report = DoctorReport::of(&facts);
    let remedy = &check(&report, "one-history").remedy;
    let (_, then) = remedy.split_once("First stop all").expect("the first step");
    assert!(then.contains("move grastate.dat"), "{remedy}");
}

/// A node leaves by an error of its own; other members cannot bring it back.
#[test]
fn a_node_that_has_left_is_told_from_one_without_a_majority() {
    let mut facts = healthy();
    facts.nodes[1] = seen("node2", &[("wsrep_cluster_status", "Disconnected")]);
    let report = DoctorReport::of(&facts);
    let found = check(&report, "majority");
    assert_eq!(found.result, Outcome::Failed);
    assert_eq!(found.text, "has left the cluster: node2");
    assert!(found.remedy.contains("error log"), "{}", found.remedy);
    assert!(
        found.remedy.contains("systemctl restart mariadb"),
        "{}",
        found.remedy
    );
    facts.nodes[2] = seen("node3", &[("wsrep_cluster_status", "non-Primary")]);
    let report = DoctorReport::of(&facts);
    let text = &check(&report, "majority").text;
    assert!(
        text.contains("no majority, so no statements: node3"),
        "{text}"
    );
    assert!(text.contains("has left the cluster: node2"), "{text}");
}

#[test]
fn an_error_log_that_was_not_read_is_looked_for_in_the_journal() {
    let mut facts = healthy();
    facts.host.as_mut().unwrap().error_log = None;
    let report = DoctorReport::of(&facts);
    let text = &check(&report, "ist-window").text;
    assert!(text.contains("journalctl -u mariadb"), "{text}");
}

#[test]
fn the_backlog_grows_at_the_rate_since_flush_status() {
    const FLUSHED: Changes = &[
        ("uptime", "36000000"),
        ("uptime_since_flush_status", "3600"),
    ];
    let mut facts = healthy();
    facts.nodes[0] = seen("node1", FLUSHED);
    facts.host.as_mut().unwrap().log_volume = Some((6_000_000, 20_000_000));
    let report = DoctorReport::of(&facts);
    let found = check(&report, "backlog");
    assert_eq!(found.result, Outcome::Failed, "{}", found.text);
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
        facts.host.as_mut().unwrap().security_files = vec![certificate(days)];
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
    let ending = |days| {
        let mut facts = healthy();
        facts.host.as_mut().unwrap().security_files = vec![certificate(90), revocation_list(days)];
        let report = DoctorReport::of(&facts);
        let certificates = check(&report, "certificates").result;
        assert_eq!(certificates, Outcome::Ok, "a list is no certificate");
        let lists = check(&report, "revocation-lists");
        assert_eq!(lists.remedy.contains("-gencrl"), days < 7, "{days}");
        lists.result
    };
    assert_eq!(
        [1, 2, 6, 7].map(ending),
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
    facts.absent.missing = vec!["\u{1b}[2J".repeat(10_000); 100];
    facts.tables.without_primary_key = Some(vec!["d.\u{202e}evil".to_owned(); 100_000]);
    facts.nodes[1].statements.as_mut().unwrap().push(Process {
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
