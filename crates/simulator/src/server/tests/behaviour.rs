//! What a server does with its clients and its administrator.

use std::collections::BTreeMap;

use trireme_replicator::{Code, Event, Gtid, LocalState};

use super::solo::{HISTORY, Solo};
use crate::seen::{ClientTrx, Seen, roll};
use crate::server::writeset::TABLES;
use crate::server::{AdminPlan, Flush, ServerPlan, Span, Speed, Workload};

/// Busy clients on few rows.
fn plan() -> ServerPlan {
    ServerPlan {
        load: Workload {
            clients: 8,
            keys: 12,
            think_us: Span(100, 2000),
            ddl_per_mille: 0,
            ..Workload::default()
        },
        ..ServerPlan::default()
    }
}

fn ended(solo: &Solo, code: Code) -> usize {
    solo.count(|what| matches!(what, Seen::Ended { code: ended, .. } if *ended == code))
}

/// Rebuilds all rows from the order and compares them with what was read and with the database.
fn judge(solo: &mut Solo) {
    let mut digests: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    let mut writers: Vec<ClientTrx> = Vec::new();
    let (mut last, mut reads) = (0, BTreeMap::new());
    for sight in &solo.watch.sights {
        match &sight.what {
            Seen::Ordered {
                seqno,
                writer,
                writes,
                ..
            } => {
                assert_eq!(*seqno, last + 1);
                last = *seqno;
                writers.extend(writer);
                for key in writes {
                    let row = digests.entry(*key).or_insert_with(|| vec![0]);
                    row.push(roll(row[row.len() - 1], writer.expect("somebody wrote")));
                    if let Some(seen) = reads.get(&(writer.unwrap_or(0), *key)) {
                        assert_eq!(*seen as usize, row.len() - 2, "a lost update");
                    }
                }
            }
            Seen::Read {
                trx,
                key,
                len,
                digest,
                ..
            } => {
                let row = digests.entry(*key).or_insert_with(|| vec![0]);
                assert_eq!(row[*len as usize], *digest);
                reads.insert((*trx, *key), *len);
            }
            Seen::Ended {
                trx,
                code: Code::Ok,
                writes,
                ..
            } if !writes.is_empty() => {
                assert!(writers.contains(trx), "acknowledged and not committed");
            }
            _ => {}
        }
    }
    let all = writers.len();
    writers.sort_unstable();
    writers.dedup();
    assert_eq!(writers.len(), all, "something was committed twice");
    assert_eq!(solo.server().position(), (HISTORY, last));
    assert_eq!(solo.engine.replicator.last_committed().seqno, last);
}

#[test]
fn clients_commit_and_wait_for_one_another() {
    let mut solo = Solo::new(plan(), 1);
    solo.run(2_000_000);
    solo.finish();
    judge(&mut solo);
    let acknowledged = solo.server().acknowledged();
    assert!(acknowledged > 1000, "{acknowledged}");
    // Nothing but deadlocks, rollbacks and clients that went away.
    assert_eq!(ended(&solo, Code::NodeFail), 0);
    assert!(ended(&solo, Code::TrxFail) > 10);
    assert!(solo.steps / acknowledged < 40, "{} steps", solo.steps);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let sights = |seed| {
        let mut solo = Solo::new(plan(), seed);
        solo.run(300_000);
        format!("{:?}", solo.watch.sights)
    };
    assert_eq!(sights(7), sights(7));
    assert_ne!(sights(7), sights(8));
}

#[test]
fn ddl_aborts_those_who_use_the_table() {
    let mut plan = plan();
    plan.load.ddl_per_mille = 30;
    plan.speed.ddl_us = Span(200, 2000);
    let mut solo = Solo::new(plan, 2);
    solo.run(4_000_000);
    solo.finish();
    judge(&mut solo);
    // Whoever is ordered after an action that it had not seen fails certification.
    let failures = solo.status().local_cert_failures;
    assert!(failures > 2, "{failures}");
    let dummy = |w: &Seen| {
        matches!(
            w,
            Seen::Ordered {
                writer: None,
                view: None,
                ..
            }
        )
    };
    assert!(solo.count(dummy) > 2);
    let tables =
        |w: &Seen| matches!(w, Seen::Ordered { writes, .. } if writes.iter().any(|k| *k < TABLES));
    assert!(solo.count(tables) > 50);
}

#[test]
fn ddl_that_fails_everywhere_is_voted_on_and_changes_nothing() {
    let mut plan = plan();
    plan.load.ddl_per_mille = 30;
    plan.load.ddl_error_percent = 100;
    let mut solo = Solo::new(plan, 9);
    solo.run(2_000_000);
    solo.finish();
    judge(&mut solo);
    let tables =
        |w: &Seen| matches!(w, Seen::Ordered { writes, .. } if writes.iter().any(|k| *k < TABLES));
    assert_eq!(solo.count(tables), 0);
    let agreed = solo
        .logs()
        .iter()
        .filter(|text| text.contains("is consistent with group"));
    assert!(agreed.count() > 20);
}

#[test]
fn killed_transactions_roll_back_or_replay() {
    let mut plan = plan();
    plan.admin = AdminPlan {
        every_us: Some(Span(500, 3000)),
        weights: [1, 0, 0, 0],
        ..AdminPlan::default()
    };
    plan.load.keys = 4;
    for seed in 0..4 {
        let mut solo = Solo::new(plan.clone(), seed);
        solo.run(2_000_000);
        solo.finish();
        judge(&mut solo);
        assert!(solo.status().local_replays > 3);
        assert!(solo.count(|w| matches!(w, Seen::Ended { certain: false, .. })) > 100);
        assert_eq!(solo.status().open_transactions, 0, "marks are left behind");
    }
}

#[test]
fn nothing_commits_during_a_pause() {
    let mut plan = plan();
    plan.load.ddl_per_mille = 5;
    plan.admin = AdminPlan {
        every_us: Some(Span(1000, 20_000)),
        hold_us: Span(1000, 50_000),
        weights: [1, 3, 3, 1],
    };
    let mut solo = Solo::new(plan, 4);
    solo.run(5_000_000);
    // Database::write panics if anything commits meanwhile.
    solo.finish();
    judge(&mut solo);
    assert_eq!(solo.status().local_state, LocalState::Synced);
    assert!(solo.count(|w| matches!(w, Seen::Ordered { .. })) > 200);
}

#[test]
fn a_clean_stop_keeps_everything_and_the_next_process_goes_on() {
    let mut plan = plan();
    plan.flush = Flush::EachSecond;
    let mut solo = Solo::new(plan.clone(), 5);
    solo.run(500_000);
    solo.server().disconnecting();
    let now_ms = solo.now_us / 1000;
    solo.engine.node(now_ms, Event::Disconnect);
    solo.pump();
    solo.run(5_000_000);
    assert!(solo.closed());
    assert_eq!(solo.server().appliers_running(), 0);
    let (uuid, seqno) = solo.server().position();
    let server = solo.take_server();
    let datadir = server.stop(solo.now_us, &mut solo.watch);
    assert_eq!(datadir.position(), Gtid { uuid, seqno });

    let local = datadir.position();
    let mut next = Solo::on(datadir, local, 2, plan, 6);
    next.run(500_000);
    next.finish();
    assert!(next.server().position().1 > seqno + 100);
}

#[test]
fn a_crash_takes_a_suffix() {
    let mut plan = plan();
    plan.flush = Flush::EachSecond;
    plan.speed = Speed {
        statement_us: Span(2000, 20_000),
        ..Speed::default()
    };
    let mut lost = 0;
    for seed in 0..10 {
        let mut solo = Solo::new(plan.clone(), seed);
        solo.run(3_000_000);
        let (uuid, seqno) = solo.server().position();
        let digests: BTreeMap<i64, u64> = (solo.watch.sights.iter())
            .filter_map(|sight| match sight.what {
                Seen::Database { seqno, digest, .. } => Some((seqno, digest)),
                _ => None,
            })
            .collect();
        let server = solo.take_server();
        let mut random = crate::random::Random::new(seed, 2);
        let datadir = server.crash(false, solo.now_us, &mut random, &mut solo.watch);
        let left = datadir.position();
        assert!(left.uuid == uuid && left.seqno <= seqno);
        lost += seqno - left.seqno;
        let plan = ServerPlan::default();
        let mut next = Solo::on(datadir, left, 2, plan, seed);
        assert_eq!(next.server().digest(), digests[&left.seqno]);
    }
    assert!(lost > 10, "{lost}");
}
