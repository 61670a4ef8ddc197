//! What a node tells in its state-and-event file, while nobody can ask the server.

use std::time::{Duration, Instant};

use trireme_node::state_file::{STATE_FILE, StateFile};
use trireme_wsrep_abi::WsrepStatus;

use crate::AtEnd;
use crate::server::{Server, free_port, logged};
use crate::transaction::Transaction;

fn read(server: &Server) -> Option<StateFile> {
    let bytes = std::fs::read(server.data_dir().join(STATE_FILE)).ok()?;
    Some(StateFile::decode(&bytes).expect("a whole file at any time"))
}

/// The first file that says so.
pub fn told(server: &Server, what: &str, fulfilled: impl Fn(&StateFile) -> bool) -> StateFile {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        match read(server) {
            Some(file) if fulfilled(&file) => return file,
            file => assert!(Instant::now() < until, "not told: {what}: {file:#?}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn waits_for(reason: &str) -> impl Fn(&StateFile) -> bool {
    move |file| {
        file.waits_for
            .as_ref()
            .is_some_and(|wait| wait.reason == reason)
    }
}

#[test]
fn options_of_the_cluster_address_are_told() {
    let server = Server::start("addressed", "").expect("init");
    server.connect("gcomm://?gmcast.segment=3&pc.weight=2");
    let file = told(&server, "a member", |file| !file.members.is_empty());
    assert_eq!((file.node.segment, file.node.weight), (3, 2));
    assert_eq!((file.members[0].segment, file.members[0].weight), (3, 2));
    assert_eq!(server.status_text("gmcast_segment"), "3");
    // The default is a change here.
    assert_eq!(server.set_options("pc.weight=1"), WsrepStatus::OK);
    told(&server, "the new weight", |file| {
        file.members[0].weight == 1
    });
}

#[test]
fn a_node_that_serves_says_so_and_its_last_word_is_that_it_is_closed() {
    let server = Server::start("told", "repl.durability=disk").expect("init");
    server.connect("gcomm://");
    assert!(Transaction::new(&server, "k", "row").run());
    let seqno = server.last_committed().seqno;
    let file = told(&server, "the commit", |file| {
        file.state.last_committed == seqno
    });
    assert_eq!(file.state.component, "primary");
    assert_eq!((file.state.node_state, file.waits_for), (4, None));
    let leader = file.leader.expect("itself");
    assert!(leader.is_me && leader.name == "told" && leader.term > 0);
    let [me] = &file.members[..] else {
        panic!("one member")
    };
    assert!(me.is_me && me.here && me.member_id == file.node.member_id);
    assert_eq!(file.log.expect("it has one").durability, "disk");
    assert_eq!(file.cluster.name, "host");
    assert_eq!(file.process.pid, std::process::id());
    let times = file.commit_us.expect("a commit was measured");
    let own = [
        "certification",
        "commit_order",
        "flow_control",
        "log_flush",
        "log_write",
        "majority",
        "ordering",
    ];
    assert_eq!(times.keys().collect::<Vec<_>>(), own);
    assert_eq!(
        (times["ordering"].count, times["certification"].count),
        (1, 1)
    );
    server.disconnect();
    server.free();
    let last = read(&server).expect("the last one stays");
    assert_eq!(last.state.component, "closed");
    assert_eq!((last.waits_for, last.state.last_committed), (None, seqno));
}

#[test]
fn a_node_that_finds_nobody_says_where_it_looks() {
    let server = Server::start("seeker", "pc.wait_prim_timeout=PT5S").expect("init");
    let nobody = format!("127.0.0.1:{}", free_port());
    std::thread::scope(|scope| {
        let connects = scope.spawn(|| server.try_connect(&format!("gcomm://{nobody}")));
        let wait = told(&server, "whom it looks for", waits_for("component")).waits_for;
        let wait = wait.expect("just seen");
        assert_eq!(wait.missing[0].address, nobody);
        assert!(
            wait.text.contains(&nobody) && wait.since_unix_ms > 0,
            "{wait:?}"
        );
        assert_eq!(connects.join().unwrap(), WsrepStatus::NODE_FAIL);
    });
    let file = told(&server, "closed", |file| file.state.component == "closed");
    assert_eq!(file.waits_for, None);
}

#[test]
fn a_node_without_a_majority_names_those_that_are_missing_and_the_way_out() {
    let options = "evs.suspect_timeout=PT1S";
    let one = Server::start("stays", options).expect("init");
    let two = Server::start("goes", options).expect("init");
    Server::found(&[&one, &two]);
    let both = told(&one, "both", |file| {
        file.members.iter().filter(|m| m.here).count() == 2
    });
    assert_eq!(both.waits_for, None);
    assert_eq!(two.set_options("gmcast.isolate=1"), WsrepStatus::OK);
    let file = told(&one, "the lack of a majority", |file| {
        waits_for("majority")(file) && !file.waits_for.as_ref().unwrap().missing.is_empty()
    });
    assert_eq!(file.state.component, "non-primary");
    let wait = file.waits_for.expect("just seen");
    assert_eq!(
        (wait.here[0].name.as_str(), wait.missing[0].name.as_str()),
        ("stays", "goes")
    );
    assert!(wait.text.contains("pc.bootstrap=1"), "{}", wait.text);
    assert_eq!(two.set_options("gmcast.isolate=0"), WsrepStatus::OK);
    told(&one, "that both are back", |file| {
        file.state.component == "primary" && file.waits_for.is_none()
    });
}

/// The snapshot brings the view along, so none is shown.
#[test]
fn a_server_with_a_snapshot_runs() {
    let (donor, joiner) = (Server::start("donor", ""), Server::start("joiner", ""));
    let (donor, joiner) = (donor.expect("init"), joiner.expect("init"));
    donor.connect("gcomm://");
    joiner.connect(&donor.url());
    told(&joiner, "that its server runs", |file| {
        file.state.server_running
    });
}

/// Monitoring that waits for 100 must not take a joiner for a node that is in step.
#[test]
fn a_joiner_without_its_snapshot_has_caught_up_nothing() {
    let (donor, joiner) = (Server::start("gives", ""), Server::start("takes", ""));
    let (donor, joiner) = (&donor.expect("init"), &joiner.expect("init"));
    let percent = |server: &Server| server.status_double("trireme_catching_up_percent");
    donor.connect("gcomm://");
    assert_eq!(percent(donor), 100.0);
    joiner.state().script_waits = true;
    std::thread::scope(|scope| {
        let _opens = AtEnd(|| joiner.open_gate());
        scope.spawn(|| joiner.connect(&donor.url()));
        told(joiner, "its snapshot", waits_for("state-transfer"));
        assert_eq!(percent(joiner), 0.0);
    });
    assert_eq!(percent(joiner), 100.0);
}

/// MariaDB stops only after a first view. Without one SIGTERM had no effect for as long as the majority was away.
#[test]
fn a_server_that_runs_waits_for_its_view_within_connect() {
    let options = "evs.suspect_timeout=PT1S";
    let one = Server::start("stays", options).expect("init");
    let two = Server::start("goes", options).expect("init");
    Server::found(&[&one, &two]);
    assert_eq!(two.set_options("gmcast.isolate=1"), WsrepStatus::OK);
    told(&one, "the lack of a majority", waits_for("majority"));
    one.disconnect();
    for wait in ["yes", "no"] {
        let options = format!("pc.wait_prim={wait}&pc.wait_prim_timeout=PT0.3S");
        let url = format!("{}?{options}", two.url());
        assert_eq!(one.try_connect(&url), WsrepStatus::NODE_FAIL, "{url}");
    }
    assert_eq!(two.set_options("gmcast.isolate=0"), WsrepStatus::OK);
    one.connect(&two.url());
    assert!(Transaction::new(&one, "key", "back").run());
}

#[test]
fn a_loser_names_the_row_and_the_winner() {
    let winner = Server::start("winner", "").expect("init");
    let loser = Server::start("loser", "cert.log_conflicts=yes").expect("init");
    Server::found(&[&winner, &loser]);
    loser.state().gate = Some("first".into());
    // Both run at the same time: the second one cannot have seen the first, which waits to be applied.
    let mut second = Transaction::new(&loser, "key", "second");
    let mut third = Transaction::new(&loser, "key", "third");
    assert!(Transaction::new(&winner, "key", "first").run());
    loser.wait_for("the applier", |state| state.at_gate);
    let first = winner.state().rows[0].0;
    assert_eq!(second.certify(), WsrepStatus::TRX_FAIL);
    let seqno = second.seqno();
    // The applier meets a lock of the third, which still executes.
    let id = third.handle.trx_id;
    assert_eq!(Transaction::abort(&loser, first, id), (WsrepStatus::OK, -1));
    loser.open_gate();
    second.roll_back();
    assert_eq!(third.certify(), WsrepStatus::CONN_FAIL);
    third.roll_back();
    let file = told(&loser, "both losses", |file| {
        file.conflicts.recent.len() == 2
    });
    let counts = (
        file.conflicts.certification,
        file.conflicts.brute_force_abort,
    );
    assert_eq!((counts, file.conflicts.replay), ((1, 1), 0));
    let [aborted, failed] = &file.conflicts.recent[..] else {
        unreachable!("there are two")
    };
    assert_eq!(
        (failed.kind.as_str(), failed.seqno),
        ("certification", Some(seqno))
    );
    assert_eq!(
        (aborted.kind.as_str(), aborted.seqno),
        ("brute-force-abort", None)
    );
    for loss in [failed, aborted] {
        // "key" in hexadecimal.
        assert_eq!(
            (loss.table.as_deref(), loss.key.as_deref()),
            (Some("db.table"), Some("6b6579"))
        );
        assert_eq!(
            (loss.winner.as_deref(), loss.winner_seqno),
            (Some("winner"), Some(first))
        );
        assert!(loss.winner_member_id.is_some() && loss.connection == Some(7));
    }
    // The log is written before a commit is told of, in this mode without a flush of its own.
    let writes = file.commit_us.expect("commits were measured")["log_write"].count;
    assert!(writes > 2, "{writes}");
    assert_eq!(logged("lost on db.table, key 6b6579: write-set").len(), 2);
    assert_eq!(loser.status("trireme_conflicts_certification"), 1);
}
