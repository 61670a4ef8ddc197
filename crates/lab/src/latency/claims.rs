//! The project's own goals, as predicates on the raw data.

use std::collections::BTreeSet;

use super::case::{CASE, VICTIM};
use super::distance::{REGION, ROUND_TRIP, figure};
use super::failover::{GAP, MOVED_BEFORE, QUIET_GAP};
use super::fault::Fault;
use super::goals::{Bound, in_every_trial, is_part, number};
use super::plan::Victim;
use super::slow::{COMMITS_RATIO, P99_RATIO};
use super::{away, own_goals, restart};
use crate::frame::{By, Cell, Claim, Comparison, Record, Side, State, Verdict, Wanted, judge};

/// Judges the goals that have data, for both systems.
pub fn claims(records: &[Record]) -> Vec<Claim> {
    let mut claims = gaps(records);
    claims.extend(distances(records));
    claims.extend(slowness(records));
    claims.extend(returns(records));
    claims.extend(own_goals::claims(records));
    let is_measured = |verdict: &Verdict| verdict.state != State::NotMeasured;
    claims.retain(|claim| is_measured(&claim.galera) || is_measured(&claim.trireme));
    claims
}

fn gaps(records: &[Record]) -> Vec<Claim> {
    let lost = [Fault::Kill, Fault::Pause, Fault::Cut].map(Fault::name);
    let busy = [Fault::Lock, Fault::Backup].map(Fault::name);
    let is_lost = |cell: &Cell| lost.contains(&cell.level(CASE));
    let is_busy = |cell: &Cell| busy.contains(&cell.level(CASE));
    let strikes = |cell: &Cell, victim: Victim| cell.level(VICTIM) == victim.name();
    let quiet = |record: &Record| {
        let without = number(record, QUIET_GAP).unwrap_or(0.0);
        Bound::Most((1.5 * without).max(100.0))
    };
    let gap = |record: &Record| number(record, GAP);
    // Only a trial that struck the member that it names counts.
    let has_moved =
        |record: &&Record| record.complete && number(record, MOVED_BEFORE).is_some_and(|n| n > 0.0);
    let moved: BTreeSet<&Cell> = records.iter().filter(has_moved).map(|r| &r.cell).collect();
    let is_struck = |cell: &Cell| is_lost(cell) && !moved.contains(cell);
    vec![
        in_every_trial(
            records,
            (
                "A member that does not lead is killed, paused or cut off: no client of the others waits longer than 0.1 s, or 1.5 \
             times as long as without a fault.",
                "ms",
            ),
            |cell| is_part(cell, "failover") && is_struck(cell) && strikes(cell, Victim::Other),
            gap,
            quiet,
        ),
        in_every_trial(
            records,
            (
                "The leader is killed, paused or cut off: no client of the others waits longer than 0.5 s.",
                "ms",
            ),
            |cell| is_part(cell, "failover") && is_struck(cell) && strikes(cell, Victim::Leader),
            gap,
            |_| Bound::Most(500.0),
        ),
        in_every_trial(
            records,
            (
                "A member is under FLUSH TABLES WITH READ LOCK or mariabackup: no client of the others waits longer than 0.1 s, or \
             1.5 times as long as without.",
                "ms",
            ),
            |cell| is_part(cell, "failover") && is_busy(cell),
            gap,
            quiet,
        ),
        in_every_trial(
            records,
            (
                "All nodes are restarted in turn: no client, which goes on at another node, waits longer than 0.5 s.",
                "ms",
            ),
            |cell| is_part(cell, "restart"),
            |record| number(record, restart::GAP),
            |_| Bound::Most(500.0),
        ),
        in_every_trial(
            records,
            (
                "Each of them is synced again 2 s after the start of its server.",
                "s",
            ),
            |cell| is_part(cell, "restart"),
            |record| number(record, restart::BACK),
            |_| Bound::Most(2.0),
        ),
    ]
}

fn distances(records: &[Record]) -> Vec<Claim> {
    let median = figure("pair", 50);
    let is_near = |cell: &Cell| is_part(cell, "far") && cell.level(ROUND_TRIP) == "1";
    let of_pair = |system: &str| {
        let mut places: Vec<(&str, &str)> = records
            .iter()
            .map(|r| &r.cell)
            .filter(|cell| is_part(cell, "far") && !is_near(cell))
            .map(|cell| (cell.level(ROUND_TRIP), cell.level(CASE)))
            .collect();
        places.sort_unstable();
        places.dedup();
        let compared = places.into_iter().map(|(trip, case)| {
            let is_there = |cell: &Cell| {
                is_part(cell, "far") && cell.level(ROUND_TRIP) == trip && cell.level(CASE) == case
            };
            let far = Side {
                system,
                chosen: &is_there,
            };
            let near = Side {
                system,
                chosen: &is_near,
            };
            let ratio = Comparison::of(records, (&far, &near), &median, By::Ratio);
            (format!("{case} at {trip} ms"), ratio)
        });
        judge(&compared.collect::<Vec<_>>(), Wanted::Below(1.3))
    };
    let trips = |record: &Record| {
        let trip_ms = record.cell.number(ROUND_TRIP) as f64;
        Some(number(record, &figure("third", 50))? / trip_ms)
    };
    let all_trips = |record: &Record| {
        let of = |node: &str| number(record, &figure(node, 50));
        let worst_ms = of("node1")?.max(of("node2")?).max(of("node3")?);
        Some(worst_ms / (REGION.as_secs_f64() * 1000.0))
    };
    vec![
        Claim::of(
            "A far third member does not slow down the near pair: their commits take less than 1.3 times as long as with \
             the third near (ratio of medians).",
            of_pair,
        ),
        in_every_trial(
            records,
            (
                "A commit at the far member takes at most 1.1 round trips (median).",
                "round trips",
            ),
            |cell| is_part(cell, "far") && !is_near(cell),
            trips,
            |_| Bound::Most(1.1),
        ),
        in_every_trial(
            records,
            (
                "In three regions a commit takes at most 1.2 round trips at every node (median).",
                "round trips",
            ),
            |cell| is_part(cell, "regions"),
            all_trips,
            |_| Bound::Most(1.2),
        ),
    ]
}

fn slowness(records: &[Record]) -> Vec<Claim> {
    vec![
        in_every_trial(
            records,
            (
                "Beside a slow third member the 99th percentile of the others' commits is at most 1.3 times the usual one.",
                "times",
            ),
            |cell| is_part(cell, "slow"),
            |record| number(record, P99_RATIO),
            |_| Bound::Most(1.3),
        ),
        in_every_trial(
            records,
            ("They commit at least 0.9 times as much as before.", "times"),
            |cell| is_part(cell, "slow"),
            |record| number(record, COMMITS_RATIO),
            |_| Bound::Least(0.9),
        ),
        in_every_trial(
            records,
            (
                "Until one large transaction is ordered, the 99th percentile of small commits is at most 3 times the usual one.",
                "times",
            ),
            |cell| is_part(cell, "large"),
            |record| number(record, P99_RATIO),
            |_| Bound::Most(3.0),
        ),
    ]
}

fn returns(records: &[Record]) -> Vec<Claim> {
    vec![
        in_every_trial(
            records,
            (
                "A node that was away comes back without a snapshot.",
                "snapshots",
            ),
            |cell| is_part(cell, "away"),
            |record| number(record, away::SNAPSHOTS),
            |_| Bound::Most(0.0),
        ),
        in_every_trial(
            records,
            (
                "It catches up at least 5 times as fast as the others write.",
                "times",
            ),
            |cell| is_part(cell, "away"),
            |record| number(record, away::SPEED_RATIO),
            |_| Bound::Least(5.0),
        ),
        in_every_trial(
            records,
            (
                "Meanwhile the 99th percentile of the others' commits is at most 1.5 times the usual one.",
                "times",
            ),
            |cell| is_part(cell, "away"),
            |record| number(record, P99_RATIO),
            |_| Bound::Most(1.5),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use trireme_testbed::interrupt::Interrupted;

    use crate::frame::fixtures;
    use crate::latency::case::PART;
    use crate::latency::goals::{GALERA, TRIREME};

    fn record(
        system: &str,
        factors: &[(&'static str, &str)],
        repetition: u32,
        figures: &[(&str, f64)],
    ) -> Record {
        let cell = fixtures::cell(system, factors.iter().copied(), repetition);
        fixtures::record(cell, figures.iter().copied())
    }

    fn killed(system: &str, victim: &str, repetition: u32, gap: f64, quiet: f64) -> Record {
        let factors = [(PART, "failover"), (CASE, "kill -9"), (VICTIM, victim)];
        let figures = [(GAP, gap), (QUIET_GAP, quiet)];
        record(system, &factors, repetition, &figures)
    }

    #[test]
    fn one_trial_beyond_its_bound_refutes_the_goal() {
        let mut records = vec![
            killed(TRIREME, "other", 1, 90.0, 10.0),
            // Slow, and hardly slower than without the fault.
            killed(TRIREME, "other", 2, 140.0, 95.0),
            killed(GALERA, "other", 1, 5300.0, 20.0),
        ];
        let claim = gaps(&records).remove(0);
        assert_eq!(
            (claim.trireme.state, claim.galera.state),
            (State::Holds, State::Fails)
        );
        assert_eq!(
            claim.trireme.evidence,
            "kill -9, other: 2 of 2, worst 140 ms"
        );
        records.push(killed(TRIREME, "other", 3, 151.0, 95.0));
        let claim = gaps(&records).remove(0);
        assert_eq!(claim.trireme.state, State::Fails);
        assert_eq!(gaps(&records)[1].trireme.state, State::NotMeasured);
        records[0].complete = false;
        assert!(gaps(&records)[0].trireme.evidence.contains("1 of 2"));
    }

    #[test]
    fn a_failed_trial_leaves_a_goal_open_until_it_is_made_again() {
        let mut records = vec![
            killed(TRIREME, "other", 1, 90.0, 10.0),
            killed(TRIREME, "other", 2, 90.0, 10.0),
        ];
        records[1].complete = false;
        records[1].note = Interrupted.to_string();
        let judged = |records: &[Record]| gaps(records).remove(0).trireme;
        assert_eq!(judged(&records).state, State::Open);
        records[1].note = "of the 7 inserts ... the table has 6".to_string();
        let open = judged(&records);
        assert_eq!(open.state, State::Open);
        assert!(open.evidence.ends_with("; 1 trials failed"));
        // A goal that no trial has met is not left out of the report.
        assert_eq!(judged(&records[1..]).state, State::Open);
        records.push(killed(TRIREME, "other", 2, 90.0, 10.0));
        assert_eq!(judged(&records).state, State::Holds);
    }

    #[test]
    fn one_good_trial_of_ten_planned_ones_settles_nothing() {
        let mut records: Vec<Record> = (2..=10)
            .map(|n| Record::not_measured(killed(TRIREME, "other", n, 0.0, 0.0).cell))
            .collect();
        let judged = |records: &[Record]| gaps(records).remove(0).trireme;
        assert_eq!(judged(&records).state, State::NotMeasured);
        records.push(killed(TRIREME, "other", 1, 90.0, 10.0));
        let open = judged(&records);
        assert_eq!(open.state, State::Open);
        assert!(open.evidence.ends_with("; 9 trials not measured yet"));
        // One beyond its bound refutes the goal all the same.
        records.push(killed(TRIREME, "other", 2, 190.0, 10.0));
        assert_eq!(judged(&records).state, State::Fails);
    }

    #[test]
    fn a_trial_that_struck_another_member_says_nothing_of_its_victim() {
        let mut records = vec![killed(TRIREME, "leader", 1, 900.0, 10.0)];
        let figures = &mut records[0].measured.figures;
        figures.insert(MOVED_BEFORE.to_string(), 1.0);
        assert_eq!(gaps(&records)[1].trireme.state, State::NotMeasured);
        // A lock may strike any member.
        let case = records[0].cell.factors.get_mut(CASE).unwrap();
        *case = Fault::Lock.name().to_string();
        assert_eq!(gaps(&records)[2].trireme.state, State::Fails);
        let figures = &mut records[0].measured.figures;
        figures.insert(MOVED_BEFORE.to_string(), 0.0);
        let case = records[0].cell.factors.get_mut(CASE).unwrap();
        *case = Fault::Kill.name().to_string();
        assert_eq!(gaps(&records)[1].trireme.state, State::Fails);
    }

    #[test]
    fn a_far_member_is_compared_with_a_near_one() {
        let at = |trip: &str, case: &str, repetition, pair, third| {
            let factors = [(PART, "far"), (CASE, case), (ROUND_TRIP, trip)];
            let figures = [("pair_p50_ms", pair), ("third_p50_ms", third)];
            record(TRIREME, &factors, repetition, &figures)
        };
        let records = [
            at("1", "third near", 1, 2.0, 2.0),
            at("100", "third far, joined last", 1, 2.2, 105.0),
            at("1", "third near", 2, 4.0, 2.0),
            at("100", "third far, joined last", 2, 4.4, 112.0),
        ];
        let claims = distances(&records);
        assert_eq!(claims[0].trireme.state, State::Holds);
        assert!(claims[0].trireme.evidence.contains("at 100 ms: 1.10"));
        assert_eq!(claims[1].trireme.state, State::Fails);
        assert!(
            claims[1]
                .trireme
                .evidence
                .contains("1 of 2, worst 1.12 round trips")
        );
        assert_eq!(claims[0].galera.state, State::NotMeasured);
    }
}
