//! A node that holds up the writers: the group leaves it out, and the node shows itself as its option says.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use trireme_wsrep_abi::WsrepStatus;

use crate::AtEnd;
use crate::server::Server;
use crate::transaction::Transaction;

const TIMEOUT: Duration = Duration::from_secs(30);

const DONOR: i64 = 2;
const SYNCED: i64 = 4;

fn await_left_out(server: &Server, count: i64) {
    let begun = Instant::now();
    while server.status("trireme_left_out_count") != count {
        assert!(
            begun.elapsed() < TIMEOUT,
            "not {count} nodes are left out after {TIMEOUT:?}"
        );
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_node_that_is_left_out_shows_as_its_option_says() {
    let [a, b, c] = &std::array::from_fn(|i| {
        Server::start(&format!("lag{}", i + 1), "gcs.fc_limit=2").expect("init")
    });
    Server::found(&[a, b, c]);
    c.state().gate = Some("a row that takes long".into());
    let stop = &AtomicBool::new(false);
    thread::scope(|scope| {
        let _stops = AtEnd(|| stop.store(true, Ordering::Relaxed));
        scope.spawn(move || {
            assert!(Transaction::new(a, "slow", "a row that takes long").run());
            for i in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                Transaction::new(a, &format!("{i}"), "a row").run();
                thread::sleep(Duration::from_millis(1));
            }
        });
        await_left_out(a, 1);
        await_left_out(c, 1);
    });
    let shown = || c.status("local_state");
    assert_eq!(shown(), DONOR);
    assert_eq!(
        c.set_options("repl.fc_desync_state=synced"),
        WsrepStatus::OK
    );
    assert_eq!(shown(), SYNCED);
    // The others know, whatever it shows.
    assert_eq!(a.status("trireme_left_out_count"), 1);
    assert_ne!(
        c.set_options("repl.fc_desync_state=joined"),
        WsrepStatus::OK
    );
    assert_eq!(c.set_options("repl.fc_desync_state=donor"), WsrepStatus::OK);
    assert_eq!(shown(), DONOR);
    c.open_gate();
    await_left_out(a, 0);
    await_left_out(c, 0);
    assert_eq!(shown(), SYNCED);
}
