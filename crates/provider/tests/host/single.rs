//! A cluster of one node.

use std::time::{Duration, Instant};

use trireme_wsrep_abi::{WsrepStatus, flag};

use crate::server::{Server, logged};
use crate::transaction::{Transaction, begin_isolated, execute_isolated};

/// No timer and no batching stands between a write-set and its commit.
#[test]
fn a_commit_takes_no_longer_than_its_work() {
    const ROUNDS: usize = 2000;
    let server = Server::start("single", "").expect("init");
    server.connect("gcomm://");
    let mut took: Vec<Duration> = (0..ROUNDS)
        .map(|i| {
            let transaction = Transaction::new(&server, &format!("{i}"), "a row");
            let start = Instant::now();
            assert!(transaction.run());
            start.elapsed()
        })
        .collect();
    took.sort_unstable();
    let (median, p99) = (took[ROUNDS / 2], took[ROUNDS * 99 / 100]);
    println!("certify, enter, leave, release: median {median:?}, 99 % within {p99:?}");
    assert!(median < Duration::from_micros(200), "{median:?}");
    assert_eq!(server.state().rows.len(), ROUNDS);
    assert_eq!(
        server.status("last_committed"),
        server.state().rows[ROUNDS - 1].0
    );

    assert_eq!(server.sync(), server.last_committed());
}

/// The server commits although `append_data` refused: nobody else would have had the row.
#[test]
fn a_write_set_that_is_too_large_is_not_certified() {
    let server = Server::start("too-large", "").expect("init");
    server.connect("gcomm://");
    assert_eq!(server.set_options("repl.max_ws_size=512"), WsrepStatus::OK);
    let mut transaction = Transaction::new(&server, "1", "a row");
    let rest = "x".repeat(400);
    assert_eq!(transaction.append(&rest), WsrepStatus::SIZE_EXCEEDED);
    assert_eq!(transaction.certify(), WsrepStatus::SIZE_EXCEEDED);
    transaction.roll_back();
    let mut transaction = Transaction::new(&server, "1", "a row");
    assert_eq!(transaction.append("another"), WsrepStatus::OK);
    assert_eq!(transaction.certify(), WsrepStatus::OK);
    transaction.commit();
    assert_eq!(server.state().rows.len(), 1);
    // A client that tries again and again does not fill the server's error log.
    for n in 0..40 {
        let mut transaction = Transaction::new(&server, &n.to_string(), "a row");
        assert_eq!(transaction.append(&rest), WsrepStatus::SIZE_EXCEEDED);
        transaction.roll_back();
    }
    assert_eq!(logged("repl.max_ws_size is 512").len(), 20);
}

/// As an ordinary total-order action it would block the cluster, and its end would be a second action.
#[test]
fn a_non_blocking_operation_is_refused_and_takes_no_seqno() {
    let server = Server::start("nbo", "").expect("init");
    server.connect("gcomm://");
    let before = execute_isolated(&server, "alter table");
    for flags in [flag::TRX_START, flag::TRX_END, 0] {
        assert_eq!(
            begin_isolated(&server, 77, "alter table", flags),
            (WsrepStatus::NOT_IMPLEMENTED, -1)
        );
    }
    assert_eq!(execute_isolated(&server, "alter table"), before + 1);
    for _ in 0..40 {
        begin_isolated(&server, 77, "alter table", 0);
    }
    assert_eq!(logged("refused a non-blocking operation").len(), 20);
}
