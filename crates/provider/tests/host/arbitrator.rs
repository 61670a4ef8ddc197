//! Two nodes and an arbitrator in one process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use trireme_arbitrator::{ArbitratorError, Directory, Log, Request, Settings};
use trireme_wsrep_abi::{ViewStatus, WsrepStatus};

use crate::AtEnd;
use crate::server::{Server, free_port};
use crate::transaction::Transaction;

/// Settings of an arbitrator that looks for the cluster at these.
fn settings(nodes: &[&Server]) -> Settings {
    let hosts: Vec<String> = nodes
        .iter()
        .map(|node| format!("127.0.0.1:{}", node.port))
        .collect();
    let port = free_port();
    Settings {
        address: format!("gcomm://{}?pc.wait_prim_timeout=PT5S", hosts.join(",")),
        group: "host".into(),
        options: format!("base_port={port};gmcast.listen_addr=tcp://127.0.0.1:{port}"),
        name: "garb".into(),
    }
}

/// Waits for a view of so many members, all with a vote.
fn await_voters(server: &Server, wanted: i32) {
    server.wait_for(&format!("{wanted} members"), |state| {
        let last = state.views.last();
        last.is_some_and(|(status, _, members)| {
            (*status, *members) == (ViewStatus::PRIMARY, wanted)
        })
    });
    let until = Instant::now() + Duration::from_secs(20);
    while server.votes() != wanted.to_string() {
        assert!(Instant::now() < until, "{} votes", server.votes());
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_node_that_loses_the_other_goes_on_with_the_arbitrator() {
    let [a, b] = &std::array::from_fn(|i| {
        let name = format!("node{}", i + 1);
        Server::start(&name, "evs.suspect_timeout=PT1S").expect("init")
    });
    Server::found(&[a, b]);
    let dir = tempfile::tempdir().expect("a directory");
    let settings = settings(&[a, b]);
    // The second one goes on with the log of the first.
    for round in 0..2 {
        let stop = AtomicBool::new(false);
        let run = || {
            let directory = Directory::take(Some(dir.path())).expect("it is its own");
            let requests = || stop.load(Ordering::SeqCst).then_some(Request::Stop);
            trireme_arbitrator::run(&settings, directory, Log::to_stderr(), requests)
        };
        thread::scope(|scope| {
            let arbitrator = scope.spawn(run);
            let running = AtEnd(|| stop.store(true, Ordering::SeqCst));
            await_voters(a, 3);
            assert_eq!(b.set_options("gmcast.isolate=1"), WsrepStatus::OK);
            await_voters(a, 2);
            let key = round.to_string();
            assert!(Transaction::new(a, &key, "with the arbitrator").run());
            assert_eq!(b.set_options("gmcast.isolate=0"), WsrepStatus::OK);
            await_voters(a, 3);
            b.wait_for("the row", |state| state.rows.len() > round);
            drop(running);
            let ended = arbitrator.join().expect("it does not panic");
            assert!(ended.is_ok(), "{ended:?}");
            await_voters(a, 2);
        });
    }
}

#[test]
fn an_arbitrator_without_a_cluster_gives_up() {
    let nobody = Settings {
        address: format!("gcomm://127.0.0.1:{}", free_port()),
        group: "host".into(),
        options: format!(
            "pc.wait_prim_timeout=PT0.2S;gmcast.listen_addr=tcp://127.0.0.1:{}",
            free_port()
        ),
        name: "garb".into(),
    };
    let run = |settings: &Settings| {
        let directory = Directory::take(None).expect("a directory");
        trireme_arbitrator::run(settings, directory, Log::to_stderr(), || None)
    };
    let ended = run(&nobody);
    assert!(
        matches!(ended, Err(ArbitratorError::NoPrimary { .. })),
        "{ended:?}"
    );
    let founder = Settings {
        address: "gcomm://".into(),
        ..nobody
    };
    let ended = run(&founder);
    assert!(
        matches!(ended, Err(ArbitratorError::NobodyNamed(_))),
        "{ended:?}"
    );
}
