//! Clusters that lack one thing each.

use super::*;

/// What to do to a healthy cluster, and what the check must say then.
pub(super) struct Broken {
    pub(super) check: &'static str,
    pub(super) harm: fn(&mut Facts),
    pub(super) outcome: Outcome,
    pub(super) word: &'static str,
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

/// A broken cluster for each check, for some more than one.
pub(super) fn all_broken() -> Vec<Broken> {
    vec![
        node2!(
            "majority",
            Failed,
            "node2",
            ("wsrep_cluster_status", "non-Primary")
        ),
        cluster!("missing-members", Failed, "192.0.2.3:4567", |facts| facts
            .absent
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
                facts.nodes[1].statements.as_mut().unwrap().push(Process {
                    id: "7".to_owned(),
                    user: "app".to_owned(),
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
            host.damaged = Some(one("trireme-damaged-1-7.log"))
        }),
        host!("mark-dir", Warning, "not in memory", |host| host
            .mark_dir_in_memory =
            Some(false)),
        host!("copied-data", Failed, "/srv/copy", |host| host
            .same_replica =
            Some(vec!["/srv/copy".into()])),
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
        node2!(
            "innodb-flush-interval",
            Failed,
            "node2",
            ("@innodb_flush_log_at_timeout", "60")
        ),
        node2!("appliers", Warning, "node2", ("@wsrep_slave_threads", "1")),
        node2!("connections", Warning, "node2", ("threads_connected", "81")),
        node2!(
            "rejects",
            Warning,
            "node2",
            ("@wsrep_reject_queries", "ALL")
        ),
        node2!(
            "read-only",
            Warning,
            "node2",
            ("@read_only", "NO_LOCK_NO_ADMIN")
        ),
        cluster!("load-balancer", Warning, "proxysql_mon", |facts| {
            let users = facts.nodes[0].users.as_mut().unwrap();
            users.push("proxysql_mon".to_owned());
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
        node2!(
            "mixed-tls",
            Warning,
            "node2 plaintext",
            ("socket.ssl", "no")
        ),
        node2!("both-accepted", Warning, "node2", ("socket.dynamic", "yes")),
        host!("certificates", Failed, "has expired", |host| host
            .security_files =
            vec![certificate(-1)]),
        host!(
            "revocation-lists",
            Failed,
            "/etc/x.crl has expired",
            |host| { host.security_files = vec![certificate(90), revocation_list(-1)] }
        ),
        host!("key-mode", Failed, "0644", |host| host.security_files =
            vec![private("socket.ssl_key", Some(0o644))]),
    ]
}
