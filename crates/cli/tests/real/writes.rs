//! A healthy cluster: writes, schema changes, conflicts, current reads.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use super::load::Load;
use super::trial::{SOON, Trial, await_true, pause};

#[test]
fn writes_on_every_node_appear_on_every_other() {
    let Some(mut trial) = Trial::start(3, "") else {
        return;
    };
    for i in 0..3 {
        trial.await_size(i, 3, SOON);
    }

    for writer in 0..3 {
        trial.exec(
            writer,
            &format!("INSERT INTO d.t VALUES ({writer}, {writer})"),
        );
        for reader in 0..3 {
            let query = format!("SELECT COUNT(*) FROM d.t WHERE v = {writer}");
            trial.await_value(reader, &query, "1");
        }
    }
    trial.exec(2, "UPDATE d.t SET v = 10 WHERE id = 0");
    trial.exec(1, "DELETE FROM d.t WHERE id = 1");
    trial.assert_equal();
    assert_eq!(trial.value(0, "SELECT SUM(v) FROM d.t"), "12");
}

#[test]
fn automatic_keys_do_not_collide() {
    let Some(mut trial) = Trial::start(3, "") else {
        return;
    };
    trial.exec(
        0,
        "CREATE TABLE d.keyed (id INT AUTO_INCREMENT PRIMARY KEY, node INT)",
    );
    // The table must be everywhere before it is used everywhere.
    trial.assert_equal();
    thread::scope(|scope| {
        for i in 0..3 {
            let mut client = trial.client(i);
            scope.spawn(move || {
                for _ in 0..200 {
                    let inserted = client.exec(&format!("INSERT INTO d.keyed (node) VALUES ({i})"));
                    assert_eq!(inserted.expect("new keys are free"), 1);
                }
            });
        }
    });
    trial.assert_equal();
    assert_eq!(trial.value(1, "SELECT COUNT(*) FROM d.keyed"), "600");
}

#[test]
fn schema_changes_are_in_order_with_concurrent_writes() {
    let Some(mut trial) = Trial::start(3, "") else {
        return;
    };
    let load = Load::start(&trial, &[0, 1, 2]);
    for round in 0..4 {
        let i = round % 3;
        for statement in [
            "CREATE TABLE d.made (id INT PRIMARY KEY, a INT)",
            "INSERT INTO d.made VALUES (1, 1), (2, 2)",
            "ALTER TABLE d.load ADD COLUMN more INT NOT NULL DEFAULT 7",
            "CREATE INDEX by_v ON d.load (v)",
            "RENAME TABLE d.made TO d.renamed",
            "ALTER TABLE d.renamed ADD COLUMN b INT DEFAULT 5, DROP COLUMN a",
            "INSERT INTO d.renamed VALUES (3, 3)",
        ] {
            trial.exec(i, statement);
        }
        // The next node may drop only what has arrived there.
        let next = (round + 1) % 3;
        let shape = "SELECT GROUP_CONCAT(id, '-', b ORDER BY id) FROM d.renamed";
        let arrived = await_true(SOON, || {
            trial.client(next).value(shape).ok().flatten().as_deref() == Some("1-5,2-5,3-3")
        });
        assert!(
            arrived,
            "round {round}: d.renamed is not on {}",
            trial.name(next)
        );
        for statement in [
            "DROP TABLE d.renamed",
            "DROP INDEX by_v ON d.load",
            "ALTER TABLE d.load DROP COLUMN more",
        ] {
            trial.exec(next, statement);
        }
        let gone = await_true(SOON, || (0..3).all(|i| columns(&trial, i) == "id,node,v"));
        assert!(gone, "round {round}: d.load is not as before everywhere");
    }
    let record = load.stop();
    record.assert_undisturbed();
    trial.assert_equal();
    assert_eq!(
        trial.value(1, "SELECT COUNT(*) FROM d.load"),
        record.commits.len().to_string()
    );
}

/// The columns of the table under load, as node `i` has them.
fn columns(trial: &Trial, i: usize) -> String {
    let list = "SELECT GROUP_CONCAT(column_name ORDER BY ordinal_position) FROM information_schema.columns";
    trial.value(
        i,
        &format!("{list} WHERE table_schema = 'd' AND table_name = 'load'"),
    )
}

#[test]
fn of_two_transactions_on_one_row_exactly_one_commits() {
    let Some(mut trial) = Trial::start(2, "") else {
        return;
    };
    trial.exec(0, "INSERT INTO d.t VALUES (1, 0)");
    trial.assert_equal();

    for round in 1..=50 {
        let both_updated = Barrier::new(2);
        let transact = |i: usize| {
            let (trial, both_updated) = (&trial, &both_updated);
            move || {
                let mut client = trial.client(i);
                let begun = client
                    .exec("BEGIN")
                    .and_then(|_| client.exec("UPDATE d.t SET v = v + 1 WHERE id = 1"));
                both_updated.wait();
                begun.and_then(|_| client.exec("COMMIT"))
            }
        };
        let results = thread::scope(|scope| {
            let both = [scope.spawn(transact(0)), scope.spawn(transact(1))];
            both.map(|one| one.join().expect("a client does not panic"))
        });
        match &results {
            [Ok(_), Err(loser)] | [Err(loser), Ok(_)] => {
                assert_eq!(loser.code(), Some(1213), "round {round}: {loser}");
            }
            other => panic!("round {round}: not exactly one has committed: {other:?}"),
        }
        // Both begin the next round with this one's row.
        let settled = await_true(SOON, || {
            (0..2).all(|i| trial.value(i, "SELECT v FROM d.t WHERE id = 1") == round.to_string())
        });
        assert!(
            settled,
            "round {round}: the winner's update is not on both nodes"
        );
    }
    trial.assert_equal();
}

#[test]
fn a_reader_that_waits_sees_what_was_committed_elsewhere() {
    let Some(mut trial) = Trial::start(3, "") else {
        return;
    };
    trial.exec(0, "INSERT INTO d.t VALUES (1, 0)");
    // An update does not wait, so its row must be there; later each node has read before it writes.
    trial.assert_equal();
    let mut clients: Vec<_> = (0..3).map(|i| trial.client(i)).collect();
    for client in &mut clients {
        client
            .exec("SET SESSION wsrep_sync_wait = 1")
            .expect("a session variable can be set");
    }
    for round in 1..=500 {
        let (writer, reader) = (round % 3, (round + 1) % 3);
        let update = format!("UPDATE d.t SET v = {round} WHERE id = 1");
        let mut updated = clients[writer].exec(&update);
        while updated.as_ref().is_err_and(|error| error.is_conflict()) {
            pause(Duration::from_millis(1));
            updated = clients[writer].exec(&update);
        }
        let changed =
            updated.unwrap_or_else(|error| panic!("{}: {update}: {error}", trial.name(writer)));
        assert_eq!(
            changed,
            1,
            "{} changed no row in round {round}",
            trial.name(writer)
        );
        let seen = clients[reader].value("SELECT v FROM d.t WHERE id = 1");
        let seen = seen.unwrap_or_else(|error| panic!("{}: {error}", trial.name(reader)));
        assert_eq!(
            seen,
            Some(round.to_string()),
            "{} read too early",
            trial.name(reader)
        );
    }
}
