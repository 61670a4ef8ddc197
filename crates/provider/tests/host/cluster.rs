//! Three nodes in one process: what the server of each of them sees.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use trireme_wsrep_abi::{Buf, ViewStatus, WsrepStatus, flag};

use crate::server::Server;
use crate::transaction::{Transaction, execute_isolated};
use crate::{AtEnd, call};

fn servers<const N: usize>() -> [Server; N] {
    std::array::from_fn(|i| Server::start(&format!("node{}", i + 1), "").expect("init"))
}

/// Waits until every server has as many rows; they must be the same ones at the same seqnos.
fn check_equal(servers: &[&Server], rows: usize) {
    for server in servers {
        server.wait_for(&format!("{rows} rows"), |state| state.rows.len() >= rows);
    }
    let expected = servers[0].state().rows.clone();
    assert_eq!(expected.len(), rows);
    for server in &servers[1..] {
        assert_eq!(server.state().rows, expected);
    }
}

#[test]
fn concurrent_writes_commit_in_one_order_on_all_nodes() {
    const EACH: usize = 120;
    let [a, b, c] = &servers::<3>();
    Server::found(&[a, b]);
    let (committed, warm) = (AtomicUsize::new(0), AtomicBool::new(false));
    let write = |server: &Server, name: &str| {
        // A writer that fails holds up nobody.
        let _ends = AtEnd(|| warm.store(true, Ordering::SeqCst));
        for i in 0..EACH {
            // Few keys: some transactions fail.
            let transaction =
                Transaction::new(server, &format!("{}", i % 7), &format!("{name}{i}"));
            committed.fetch_add(usize::from(transaction.run()), Ordering::SeqCst);
            warm.fetch_or(i > EACH / 4, Ordering::SeqCst);
        }
    };
    thread::scope(|scope| {
        for (server, name) in [(a, "a"), (a, "A"), (b, "b"), (b, "B")] {
            scope.spawn(move || write(server, name));
        }
        // The third node's state transfer happens among writes.
        while !warm.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
        c.connect(&b.url());
        scope.spawn(|| write(c, "c"));
    });
    check_equal(&[a, b, c], committed.load(Ordering::SeqCst));
    let donated = |server: &Server| server.state().donated.clone();
    assert_eq!(
        [donated(a), donated(b), donated(c)].concat(),
        [false, false]
    );
    assert_eq!(a.status("local_commits"), a_commits(a));
    // The view that a snapshot contains is not shown to the joiner.
    assert_eq!(c.state().views, []);
    for server in [a, b] {
        let (status, _, members) = server.state().views.last().copied().expect("views");
        assert_eq!((status, members), (ViewStatus::PRIMARY, 3));
    }
}

/// Rows that the clients of the first node have committed.
fn a_commits(a: &Server) -> i64 {
    let own = |data: &str| data.starts_with(['a', 'A']);
    a.state().rows.iter().filter(|(_, data)| own(data)).count() as i64
}

#[test]
fn of_two_conflicting_transactions_the_later_one_fails() {
    let [a, b] = &servers::<2>();
    Server::found(&[a, b]);
    b.state().gate = Some("first".into());
    // Both run at the same time: the second one cannot have seen the first, which waits to be applied.
    let mut second = Transaction::new(b, "key", "second");
    assert!(Transaction::new(a, "key", "first").run());
    b.wait_for("the applier", |state| state.at_gate);
    assert_eq!(second.certify(), WsrepStatus::TRX_FAIL);
    assert!(second.seqno() > a.state().rows[0].0);
    b.open_gate();
    second.roll_back();
    check_equal(&[a, b], 1);
    b.sync();
    assert!(Transaction::new(b, "key", "third").run());
    check_equal(&[a, b], 2);
    assert_eq!(b.status("local_cert_failures"), 1);
    // The failed one took its place on the other node as a dummy.
    let dummies = |flags: &u32| flags & flag::ROLLBACK != 0;
    assert_eq!(
        a.state()
            .applied_flags
            .iter()
            .filter(|f| dummies(f))
            .count(),
        1
    );
}

#[test]
fn a_brute_force_aborted_transaction_is_replayed() {
    let [a, b] = &servers::<2>();
    Server::found(&[a, b]);
    a.state().gate = Some("applied".into());
    assert!(Transaction::new(b, "1", "applied").run());
    a.wait_for("the applier", |state| state.at_gate);
    let bf_seqno = b.state().rows[0].0;

    let mut victim = Transaction::new(a, "2", "victim");
    assert_eq!(victim.certify(), WsrepStatus::OK);
    let (id, seqno) = (victim.handle.trx_id, victim.seqno());
    thread::scope(|scope| {
        let entering = scope.spawn(|| victim.enter());
        thread::sleep(Duration::from_millis(20));
        assert!(!entering.is_finished(), "the applier comes first");
        // The applier meets a lock of the victim.
        assert_eq!(
            Transaction::abort(a, bf_seqno, id),
            (WsrepStatus::OK, seqno)
        );
        assert_eq!(entering.join().unwrap(), WsrepStatus::BF_ABORT);
    });
    // Once is enough; and what is ordered before its aborter is no victim.
    assert_eq!(
        Transaction::abort(a, bf_seqno, id),
        (WsrepStatus::NOT_ALLOWED, seqno)
    );
    assert_eq!(
        Transaction::abort(a, seqno + 1, id),
        (WsrepStatus::NOT_ALLOWED, seqno)
    );
    a.open_gate();
    victim.replay();
    check_equal(&[a, b], 2);
    assert_eq!(a.status("local_replays"), 1);

    // A victim that still executes cannot be ordered any more; one that the provider never saw is the server's affair.
    let mut early = Transaction::new(a, "3", "early");
    assert_eq!(
        Transaction::abort(a, -1, early.handle.trx_id),
        (WsrepStatus::OK, -1)
    );
    assert_eq!(early.certify(), WsrepStatus::CONN_FAIL);
    early.roll_back();
    assert_eq!(
        Transaction::abort(a, -1, u64::MAX - 1),
        (WsrepStatus::OK, -1)
    );
    check_equal(&[a, b], 2);
}

#[test]
fn isolated_statements_and_pauses_stop_everything_else() {
    let [a, b, c] = &servers::<3>();
    Server::found(&[a, b, c]);
    assert!(Transaction::new(b, "1", "before").run());
    let seqno = execute_isolated(a, "alter table");
    c.sync();
    assert_eq!(c.state().rows.len(), 2);
    assert!(Transaction::new(c, "1", "after").run());
    check_equal(&[a, b, c], 3);
    assert_eq!(b.state().rows[1], (seqno, "alter table".to_string()));
    let isolated = flag::TRX_START | flag::TRX_END | flag::ISOLATION;
    assert_eq!(
        a.state()
            .applied_flags
            .iter()
            .filter(|f| **f == isolated)
            .count(),
        0
    );
    for server in [b, c] {
        assert_eq!(
            server
                .state()
                .applied_flags
                .iter()
                .filter(|f| **f == isolated)
                .count(),
            1
        );
    }

    let paused_at = call!(b, pause);
    assert_eq!(paused_at, b.last_committed().seqno);
    thread::scope(|scope| {
        let paused = AtEnd(|| assert_eq!(call!(b, resume), WsrepStatus::OK));
        assert!(Transaction::new(a, "2", "elsewhere").run());
        let here = scope.spawn(|| Transaction::new(b, "3", "here").run());
        c.wait_for("the other rows", |state| state.rows.len() >= 4);
        thread::sleep(Duration::from_millis(50));
        assert_eq!(
            (b.last_committed().seqno, b.state().rows.len()),
            (paused_at, 3)
        );
        assert!(!here.is_finished());
        drop(paused);
        assert!(here.join().unwrap());
    });
    check_equal(&[a, b, c], 5);
}

#[test]
fn a_node_leaves_and_comes_back() {
    let [a, b, c] = &servers::<3>();
    Server::found(&[a, b, c]);
    assert!(Transaction::new(c, "1", "all").run());
    check_equal(&[a, b, c], 1);
    let id = c.state().id;

    let returned = c.disconnect();
    let [delivered, other] = [
        &[WsrepStatus::OK][..],
        &[WsrepStatus::CONN_FAIL, WsrepStatus::FATAL],
    ]
    .map(|codes| returned.iter().filter(|code| codes.contains(code)).count());
    // FATAL: this thread came after the end.
    assert_eq!((delivered, other), (1, 2), "{returned:?}");
    let last = c.state().views.last().copied().expect("views");
    assert_eq!((last.0, last.2), (ViewStatus::NON_PRIMARY, 0));
    assert_eq!(call!(c, disconnect), WsrepStatus::OK);
    let mut late = Transaction::new(c, "2", "late");
    assert_eq!(late.certify(), WsrepStatus::CONN_FAIL);
    late.roll_back();
    for server in [a, b] {
        let two = |(status, _, members): &(ViewStatus, i64, i32)| {
            (*status, *members) == (ViewStatus::PRIMARY, 2)
        };
        server.wait_for("a view of two", |state| state.views.last().is_some_and(two));
    }

    for i in 0..50 {
        assert!(Transaction::new(a, &format!("{i}"), &format!("missed{i}")).run());
    }
    execute_isolated(b, "missed statement");
    c.connect(&b.url());
    c.sync();
    assert!(Transaction::new(c, "3", "back").run());
    check_equal(&[a, b, c], 53);
    assert_ne!(c.state().id, id);
    assert_eq!(
        call!(c, sst_sent, &c.last_committed(), 0),
        WsrepStatus::CONN_FAIL
    );
    let nothing: *const Buf = &Buf::EMPTY;
    let received = call!(c, sst_received, &c.last_committed(), nothing, 0);
    assert_eq!(received, WsrepStatus::CONN_FAIL);
}

#[test]
fn a_leaving_node_lets_its_clients_go() {
    let [a, b] = &servers::<2>();
    Server::found(&[a, b]);
    let paused_at = call!(b, pause);
    thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut transaction = Transaction::new(b, "1", "stuck");
            (transaction.certify(), transaction)
        });
        thread::sleep(Duration::from_millis(30));
        assert!(!client.is_finished());
        b.disconnect();
        let (status, transaction) = client.join().unwrap();
        assert!(
            matches!(status, WsrepStatus::CONN_FAIL | WsrepStatus::NODE_FAIL),
            "{status:?}"
        );
        transaction.roll_back();
    });
    assert_eq!(
        (b.state().rows.len(), b.last_committed().seqno),
        (0, paused_at)
    );
}
