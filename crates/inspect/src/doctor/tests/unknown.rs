//! What could not be found out does not pass.

use super::*;

#[test]
fn what_could_not_be_found_out_is_unknown_and_never_passes() {
    let mut facts = healthy();
    facts.host = None;
    facts.tables = Tables::default();
    for seen in &mut facts.nodes {
        seen.statements = None;
        seen.users = None;
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
fn a_statement_on_a_node_that_was_not_examined_is_not_excluded() {
    let mut facts = healthy();
    facts.silent = vec![("192.0.2.3".to_owned(), "denied".to_owned())];
    facts.nodes[1].statements = None;
    let report = DoctorReport::of(&facts);
    let found = check(&report, "long-statement");
    assert_eq!(found.result, Outcome::Unknown);
    for name in ["192.0.2.3", "node2"] {
        assert!(found.text.contains(name), "{}", found.text);
    }
}

/// MariaDB's root may log in by its socket only, so its doctor asks one node.
#[test]
fn nodes_that_were_not_asked_are_not_said_to_be_alike() {
    let compared = [
        "one-history",
        "one-view",
        "clocks",
        "mixed-durability",
        "options-alike",
        "cluster-address",
        "library-versions",
        "server-versions",
        "causal-reads",
        "sst-method",
        "mixed-tls",
    ];
    let mut facts = healthy();
    facts.nodes.truncate(2);
    facts.silent = vec![("192.0.2.3:3306".to_owned(), "denied".to_owned())];
    let report = DoctorReport::of(&facts);
    for name in compared {
        let found = check(&report, name);
        assert_eq!(found.result, Outcome::Unknown, "{name}: {}", found.text);
        assert!(found.text.contains("192.0.2.3:3306"), "{}", found.text);
        let user = "--user NAME --password-file FILE";
        assert!(found.remedy.contains(user), "{name}: {}", found.remedy);
    }
    // A difference among those that answered counts.
    for broken in all_broken() {
        if compared.contains(&broken.check) {
            let mut facts = facts.clone();
            (broken.harm)(&mut facts);
            let found = check(&DoctorReport::of(&facts), broken.check).result;
            assert_eq!(found, broken.outcome, "{}", broken.check);
        }
    }
    // A node without a majority does not tell its time.
    let mut facts = healthy();
    facts.nodes[2].clock_ms = None;
    let report = DoctorReport::of(&facts);
    let found = check(&report, "clocks");
    assert_eq!(found.result, Outcome::Unknown);
    assert!(
        found.text.ends_with("these did not tell: node3"),
        "{}",
        found.text
    );
}

/// An ordinary user may see the data directory, but not all that is in it.
#[test]
fn files_that_were_not_read_do_not_pass() {
    let mut facts = healthy();
    let host = facts.host.as_mut().unwrap();
    host.log_bytes = None;
    host.damaged = None;
    host.same_replica = None;
    host.security_files = vec![SecurityFile {
        exposed: Err("Permission denied".to_owned()),
        ..private("socket.ssl_key", None)
    }];
    let report = DoctorReport::of(&facts);
    for name in ["free-space", "damaged-log", "copied-data", "key-mode"] {
        let found = check(&report, name);
        assert_eq!(found.result, Outcome::Unknown, "{name}: {}", found.text);
        assert!(found.text.contains("as root"), "{name}: {}", found.text);
    }
    // A copy that was found counts, and so does an exposed key.
    let host = facts.host.as_mut().unwrap();
    host.security_files
        .push(private("repl.secret_file", Some(0o644)));
    host.error_log = Some("[ERROR] WSREP: copied data directory".to_owned());
    let report = DoctorReport::of(&facts);
    for name in ["copied-data", "key-mode"] {
        assert_eq!(check(&report, name).result, Outcome::Failed, "{name}");
    }
    // The copy was mended since: it joined as a new node.
    let host = facts.host.as_mut().unwrap();
    let told = host.error_log.as_mut().unwrap();
    *told += "\n[Note] Starting MariaDB 10.11.19-MariaDB-0+deb12u1 as process 8";
    let report = DoctorReport::of(&facts);
    assert_eq!(check(&report, "copied-data").result, Outcome::Unknown);
}

#[test]
fn a_log_whose_rate_is_unknown_does_not_pass() {
    const IDLE: Changes = &[
        ("wsrep_local_cached_downto", "501"),
        ("wsrep_replicated", "0"),
        ("wsrep_received", "0"),
    ];
    let mut facts = healthy();
    facts.nodes[0] = seen("node1", IDLE);
    let report = DoctorReport::of(&facts);
    let found = check(&report, "ist-window");
    assert_eq!(found.result, Outcome::Unknown);
    assert!(
        found.text.contains("the last 500 write-sets"),
        "{}",
        found.text
    );
}

/// No node tells an arbitrator's address, so a dead node's may be that.
#[test]
fn a_node_that_may_be_the_arbitrator_is_not_said_to_be_there() {
    let mut facts = healthy();
    facts.without_address = 1;
    facts.absent.doubtful = vec!["192.0.2.9:4567".to_owned()];
    let report = DoctorReport::of(&facts);
    let found = check(&report, "missing-members");
    assert_eq!(found.result, Outcome::Unknown);
    let words = "not there, unless it is the arbitrator or listens for clients on loopback only: 192.0.2.9:4567";
    assert!(found.text.contains(words), "{}", found.text);
    assert!(found.remedy.contains("start mariadb"), "{}", found.remedy);
}
