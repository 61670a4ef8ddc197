//! What a node that applies slowly asks the writers for.

use super::back_pressure::{BackPressure, Demand, Limits, Participation, Signal};
use crate::tests::incarnation;

const LIMITS: Limits = Limits {
    pace: 20.0,
    factor: 1.0,
};

/// What a run comes to.
#[derive(Debug, Default)]
struct Ran {
    /// The longest queue, and that at the end.
    greatest: usize,
    left: usize,
    /// How long writers were stopped.
    stopped_ms: u64,
    applied: u64,
}

/// A node that applies one write-set in each `apply_ms`, and writers that would write one each `write_ms`
/// if nobody paced them.
fn run(part: Participation, speeds: (u64, u64), for_ms: u64) -> Ran {
    run_at(part, |_| speeds, for_ms)
}

/// The same, with speeds that change with the time.
fn run_at(part: Participation, speeds: impl Fn(u64) -> (u64, u64), for_ms: u64) -> Ran {
    let mut pressure = BackPressure::default();
    let (mut queue, mut pace, mut owed) = (0, None, 0.0_f64);
    let mut ran = Ran::default();
    for now_ms in 0..for_ms {
        let (apply_ms, write_ms) = speeds(now_ms);
        let most = 1.0 / write_ms as f64;
        owed += match pace {
            None => most,
            Some(Demand::Stop | Demand::StepOut) => 0.0,
            Some(Demand::Pace(rate)) => most.min(rate / 1000.0),
        };
        ran.stopped_ms += u64::from(pace == Some(Demand::Stop));
        if owed >= 1.0 {
            owed -= 1.0;
            queue += 1;
            pressure.received(incarnation(0));
        }
        if queue > 0 && now_ms % apply_ms == 0 {
            queue -= 1;
            ran.applied += 1;
            pressure.applied();
        }
        ran.greatest = ran.greatest.max(queue);
        match pressure.watch(now_ms, queue, part, LIMITS) {
            Some(Signal::Demand(demand)) => pace = Some(demand),
            Some(Signal::Continue) => pace = None,
            None => {}
        }
    }
    ran.left = queue;
    ran
}

#[test]
fn writers_twice_as_fast_are_slowed_down_and_never_stopped() {
    let ran = run(Participation::InStep, (4, 2), 10_000);
    assert_eq!(ran.stopped_ms, 0);
    assert!((21..40).contains(&ran.greatest), "{ran:?}");
    assert!(ran.applied > 2_450, "it is never idle: {ran:?}");
}

#[test]
fn who_applies_nothing_stops_the_writers_at_the_limit() {
    let mut pressure = BackPressure::default();
    for now_ms in 0..100 {
        assert_eq!(
            pressure.watch(now_ms, 20, Participation::InStep, LIMITS),
            None
        );
    }
    // Who only stumbles stops nobody.
    for now_ms in 100..160 {
        assert_eq!(
            pressure.watch(now_ms, 21, Participation::InStep, LIMITS),
            None
        );
        assert_eq!(pressure.deadline_ms(), Some(160));
    }
    let tell = pressure.watch(160, 21, Participation::InStep, LIMITS);
    assert_eq!(tell, Some(Signal::Demand(Demand::Stop)));
    assert_eq!(pressure.watch(170, 21, Participation::InStep, LIMITS), None);
    assert_eq!(
        pressure.watch(260, 21, Participation::InStep, LIMITS),
        tell,
        "said again"
    );
    assert_eq!(
        pressure.watch(270, 20, Participation::InStep, LIMITS),
        Some(Signal::Continue)
    );
    assert_eq!(
        pressure.watch(1_200, 21, Participation::InStep, LIMITS),
        tell,
        "it has stopped them less than a second before"
    );
}

#[test]
fn who_relapses_holds_up_nobody_and_steps_out() {
    for apply_ms in [4, u64::MAX] {
        let mut pressure = BackPressure::default();
        for now_ms in 0..60 {
            if now_ms % apply_ms == 0 {
                pressure.applied();
            }
            let tell = pressure.watch(now_ms, 1_000, Participation::Relapsing, LIMITS);
            assert_eq!(tell, None, "at {now_ms} ms");
        }
        let tell = pressure.watch(60, 1_000, Participation::Relapsing, LIMITS);
        assert_eq!(tell, Some(Signal::Demand(Demand::StepOut)));
        assert_eq!(pressure.deadline_ms(), Some(160), "it is said again");
        assert_eq!(
            pressure.watch(61, 1_000, Participation::Relapsing, LIMITS),
            None
        );
        assert_eq!(
            pressure.watch(160, 1_000, Participation::Relapsing, LIMITS),
            tell
        );
    }
}

#[test]
fn who_catches_up_never_stops_the_writers_and_who_is_exempt_asks_for_nothing() {
    let mut pressure = BackPressure::default();
    let mut told = Vec::new();
    for now_ms in 0..500 {
        if now_ms % 2 == 0 {
            pressure.applied();
        }
        told.extend(pressure.watch(now_ms, 10_000, Participation::CatchingUp, LIMITS));
    }
    let paces = |tell: &Signal| matches!(tell, Signal::Demand(Demand::Pace(rate)) if (400.0..500.0).contains(rate));
    assert!(!told.is_empty() && told.iter().all(paces), "{told:?}");
    assert_eq!(
        pressure.watch(500, 10_000, Participation::Exempt, LIMITS),
        Some(Signal::Continue)
    );
    assert_eq!(
        pressure.watch(501, 10_000, Participation::Exempt, LIMITS),
        None
    );
}

#[test]
fn a_left_out_writer_paces_those_who_are_at_most_twice_as_fast() {
    let part = Participation::LeftOut { writes: true };
    // It has observed them for 0.6 s, and then catches up.
    let ran = run(part, (3, 2), 10_000);
    assert!(
        (95..110).contains(&ran.greatest) && ran.left <= 21,
        "{ran:?}"
    );
    assert_eq!(ran.stopped_ms, 0);
    // Its own pace does not make the others slow enough.
    for speeds in [(5, 2), (10, 1)] {
        let ran = run(part, speeds, 10_000);
        assert!(ran.left > 2_900, "it paces nobody: {ran:?}");
    }
    let ran = run(Participation::LeftOut { writes: false }, (3, 2), 10_000);
    assert!(ran.left > 1_600, "it has no clients: {ran:?}");
}

#[test]
fn a_left_out_writer_that_was_too_slow_for_a_while_is_judged_anew() {
    let part = Participation::LeftOut { writes: true };
    let speeds = |now_ms| if now_ms < 3_000 { (8, 2) } else { (3, 2) };
    let ran = run_at(part, speeds, 30_000);
    // 1,125 write-sets waited after those 3 s, and 167 more came in each second until it was judged.
    assert!((1_100..1_700).contains(&ran.greatest), "{ran:?}");
    assert!(ran.left < ran.greatest - 600, "it catches up: {ran:?}");
}

#[test]
fn each_writer_gets_its_part_of_the_pace() {
    let mut pressure = BackPressure::default();
    for now_ms in 0..=50 {
        for _ in 0..3 {
            pressure.received(incarnation(0));
        }
        pressure.received(incarnation(1));
        pressure.watch(now_ms, 5, Participation::InStep, LIMITS);
    }
    let shares = [0, 1, 2].map(|member| pressure.share(incarnation(member), 4, 1000.0));
    assert_eq!(shares, [750, 250, 125], "who wrote nothing may begin");
}
