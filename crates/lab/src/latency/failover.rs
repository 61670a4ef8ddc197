//! Part `failover`: how long two nodes pause when something happens to the third.

use std::time::{Duration, Instant};

use super::LatencyError;
use super::fault::{Fault, sleep_until};
use super::figures::{Window, longest_gap, per_second};
use super::load::{Commit, Load};
use super::report::{Figure, Measure};
use super::site::{Ground, Site};
use trireme_testbed::interrupt;
use trireme_testbed::systems::Wsrep;

/// Load before anything is measured.
const WARMUP: Duration = Duration::from_secs(3);

/// Length of the stretch without a fault, and of the one from the fault on.
const LENGTH: Duration = Duration::from_secs(12);

/// Whom the fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Victim {
    /// A member that is not the sequencer. Galera has none: any member.
    Other,
    /// The sequencer.
    Sequencer,
}

impl Victim {
    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Sequencer => "sequencer",
        }
    }
}

const GAP: Measure = Measure::median("gap ms", 0);
const WORST_GAP: Measure = Measure::max("worst gap ms", 0);
const GAP_BEGIN: Measure = Measure::median("begins at s", 2);
const ANYONES_GAP: Measure = Measure::median("both silent ms", 0);
const QUIET_GAP: Measure = Measure::median("gap without fault ms", 0);
const QUIET_RATE: Measure = Measure::median("commits/s before", 0);
const WITHIN_QUIET: Measure = Measure::count("<= 0.1 s or 1.5 x without");
const WITHIN_HALF: Measure = Measure::count("<= 0.5 s");
const WITHIN_ONE: Measure = Measure::count("<= 1 s");
const HELD_BACK: Measure = Measure::median("flow control ms", 0);
const OFFICE_MOVED: Measure = Measure::count("office moved before");

/// One trial.
pub fn trial(
    ground: &Ground,
    system: &Wsrep,
    fault: Fault,
    victim: Victim,
    office_option: Option<&str>,
) -> Result<Vec<Figure>, LatencyError> {
    let mut site = Site::apart(ground, system, 3)?;
    let outcome = measure(&mut site, fault, victim, office_option);
    site.end(outcome.is_err())?;
    outcome
}

fn measure(
    site: &mut Site<'_>,
    fault: Fault,
    victim: Victim,
    office_option: Option<&str>,
) -> Result<Vec<Figure>, LatencyError> {
    // Until a member says who it is: the first started.
    let sequencer = site.sequencer(0)?.unwrap_or(0);
    let (struck, others) = split(sequencer, victim);
    if let (Victim::Sequencer, Some(option)) = (victim, office_option) {
        let statement = format!("SET GLOBAL wsrep_provider_options = '{option}'");
        site.cluster.sql(struck)?.exec(&statement)?;
    }
    let load = Load::start(&site.cluster, &others, 1, None);
    interrupt::sleep(WARMUP)?;
    let quiet = Window::new(Instant::now(), LENGTH);
    sleep_until(quiet.to)?;

    let is_sequencer = site.sequencer(others[0])?.map(|now| now == struck);
    let held_back_ms = flow_control_ms(site, others[0])?;
    let struck_window = Window::new(Instant::now(), LENGTH);
    fault.strike(site, struck, struck_window.to)?;
    let clients: Vec<Vec<Commit>> = load.commits().into_iter().map(|(_, c)| c).collect();
    let mut figures = figures(&clients, quiet, struck_window);
    let held_back_ms = flow_control_ms(site, others[0])? - held_back_ms;
    figures.push((HELD_BACK, held_back_ms));
    if let Some(is_sequencer) = is_sequencer {
        let moved = is_sequencer != (victim == Victim::Sequencer);
        figures.push((OFFICE_MOVED, f64::from(u8::from(moved))));
    }
    Ok(figures)
}

/// How long flow control has stopped node `i` since its start.
fn flow_control_ms(site: &Site<'_>, i: usize) -> Result<f64, LatencyError> {
    let mut sql = site.cluster.sql(i)?;
    let ns = sql.status("wsrep_flow_control_paused_ns")?;
    Ok(ns.and_then(|ns| ns.parse().ok()).unwrap_or(0.0) / 1e6)
}

/// The victim's number and the other two.
fn split(sequencer: usize, victim: Victim) -> (usize, [usize; 2]) {
    let struck = match victim {
        Victim::Sequencer => sequencer,
        Victim::Other => (sequencer + 2) % 3,
    };
    (struck, [(struck + 1) % 3, (struck + 2) % 3])
}

fn figures(clients: &[Vec<Commit>], quiet: Window, struck: Window) -> Vec<Figure> {
    let worst = |window: Window| {
        let gaps = clients.iter().map(|commits| longest_gap(commits, window));
        gaps.max_by_key(|gap| gap.length)
            .unwrap_or_else(|| longest_gap(&[], window))
    };
    let all: Vec<Commit> = clients.concat();
    let gap = worst(struck);
    let gap_ms = gap.ms();
    let quiet_ms = worst(quiet).ms();
    let begin_s = gap
        .begin
        .saturating_duration_since(struck.from)
        .as_secs_f64();
    let within = |limit_ms: f64| f64::from(u8::from(gap_ms <= limit_ms));
    vec![
        (GAP, gap_ms),
        (WORST_GAP, gap_ms),
        (GAP_BEGIN, begin_s),
        (ANYONES_GAP, longest_gap(&all, struck).ms()),
        (QUIET_GAP, quiet_ms),
        (QUIET_RATE, per_second(&all, quiet)),
        (WITHIN_QUIET, within((1.5 * quiet_ms).max(100.0))),
        (WITHIN_HALF, within(500.0)),
        (WITHIN_ONE, within(1000.0)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_victim_has_no_client() {
        for sequencer in 0..3 {
            assert_eq!(split(sequencer, Victim::Sequencer).0, sequencer);
            for victim in [Victim::Other, Victim::Sequencer] {
                let (struck, others) = split(sequencer, victim);
                assert_eq!(struck == sequencer, victim == Victim::Sequencer);
                let mut all = vec![struck, others[0], others[1]];
                all.sort_unstable();
                assert_eq!(all, [0, 1, 2]);
            }
        }
    }

    #[test]
    fn the_limit_grows_with_the_gap_without_fault() {
        let start = Instant::now();
        let at = |ms: u64| Commit {
            due: start,
            done: start + Duration::from_millis(ms),
        };
        let window = |from_ms, to_ms| Window {
            from: start + Duration::from_millis(from_ms),
            to: start + Duration::from_millis(to_ms),
        };
        let found = |commits: &[u64], wanted: Measure| -> f64 {
            let commits: Vec<Commit> = commits.iter().copied().map(at).collect();
            let all = figures(&[commits], window(0, 1000), window(1000, 2000));
            all.iter().find(|(m, _)| *m == wanted).unwrap().1
        };
        let every = |step: usize| (0..2000).step_by(step).collect::<Vec<u64>>();
        assert_eq!(found(&every(200), GAP), 200.0);
        assert_eq!(found(&every(200), WITHIN_QUIET), 1.0);
        let mut stall = every(10);
        stall.retain(|ms| !(1100..1700).contains(ms));
        assert_eq!(found(&stall, WITHIN_QUIET), 0.0);
        assert_eq!(found(&stall, WITHIN_HALF), 0.0);
        assert_eq!(found(&stall, WITHIN_ONE), 1.0);
    }
}
