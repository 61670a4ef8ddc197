//! Parts `far` and `regions`: what a commit takes when members are far apart.

use std::time::{Duration, Instant};

use super::LatencyError;
use super::fault::sleep_until;
use super::figures::{Window, latencies_ms};
use super::load::Load;
use super::report::{Figure, Measure};
use super::site::{Ground, Site};
use crate::stats::percentile;
use trireme_testbed::interrupt;
use trireme_testbed::systems::Wsrep;

/// Load before anything is measured: time for the cluster to adapt.
const SETTLING: Duration = Duration::from_secs(10);

/// Round trip between near nodes.
const NEAR: Duration = Duration::from_millis(1);

/// Round trip to the far node.
const FAR: Duration = Duration::from_millis(100);

/// Round trip between regions.
const REGION: Duration = Duration::from_millis(40);

const NEAR_MS: Measure = Measure::median("near commit ms", 2);
const NEAR_RATIO: Measure = Measure::median("x third near", 2);
const NEAR_FIGURE: Measure = Measure::count("<= 1.3 x");
const FAR_MS: Measure = Measure::median("far commit ms", 1);
const FAR_TRIPS: Measure = Measure::median("far round trips", 2);
const FAR_FIGURE: Measure = Measure::count("<= 1.1 trips");
const NODE_TRIPS: [Measure; 3] = [
    Measure::median("node1 round trips", 2),
    Measure::median("node2 round trips", 2),
    Measure::median("node3 round trips", 2),
];
const REGION_FIGURE: Measure = Measure::count("all <= 1.2");

/// One trial of `far`: the third node near, then far and joined last, then far and started first. A row of figures for
/// each, named.
pub fn far(
    ground: &Ground,
    system: &Wsrep,
    length: Duration,
) -> Result<Vec<(&'static str, Vec<Figure>)>, LatencyError> {
    let near = commit_ms(ground, system, length, &[])?;
    let usual_ms = slower(near[0], near[1]);
    let mut rows = vec![("third near", vec![(NEAR_MS, usual_ms)])];
    for (case, far) in [
        ("third far, joined last", 2),
        ("third far, first started", 0),
    ] {
        let [a, b] = [(far + 1) % 3, (far + 2) % 3];
        let ms = commit_ms(ground, system, length, &[(far, a), (far, b)])?;
        let near_ms = slower(ms[a], ms[b]);
        rows.push((case, far_figures(usual_ms, near_ms, ms[far])));
    }
    Ok(rows)
}

fn far_figures(usual_ms: f64, near_ms: f64, far_ms: f64) -> Vec<Figure> {
    let ratio = near_ms / usual_ms;
    let trips = far_ms / (FAR.as_secs_f64() * 1000.0);
    vec![
        (NEAR_MS, near_ms),
        (NEAR_RATIO, ratio),
        (NEAR_FIGURE, f64::from(u8::from(ratio <= 1.3))),
        (FAR_MS, far_ms),
        (FAR_TRIPS, trips),
        (FAR_FIGURE, f64::from(u8::from(trips <= 1.1))),
    ]
}

/// One trial of `regions`.
pub fn regions(
    ground: &Ground,
    system: &Wsrep,
    length: Duration,
) -> Result<Vec<Figure>, LatencyError> {
    let trips = trial(ground, system, length, |site| {
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            site.network().set_round_trip(a, b, REGION);
        }
    })?
    .map(|ms| ms / (REGION.as_secs_f64() * 1000.0));
    let mut figures: Vec<Figure> = NODE_TRIPS.into_iter().zip(trips).collect();
    let all = trips.iter().all(|trips| *trips <= 1.2);
    figures.push((REGION_FIGURE, f64::from(u8::from(all))));
    Ok(figures)
}

/// The median commit of each node, with `far_links` far and the others near.
fn commit_ms(
    ground: &Ground,
    system: &Wsrep,
    length: Duration,
    far_links: &[(usize, usize)],
) -> Result<[f64; 3], LatencyError> {
    trial(ground, system, length, |site| {
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            let is_far = far_links.contains(&(a, b)) || far_links.contains(&(b, a));
            let round_trip = if is_far { FAR } else { NEAR };
            site.network().set_round_trip(a, b, round_trip);
        }
    })
}

fn trial(
    ground: &Ground,
    system: &Wsrep,
    length: Duration,
    lay_out: impl FnOnce(&Site<'_>),
) -> Result<[f64; 3], LatencyError> {
    // The cluster forms without delay; the snapshots of its start are not what is measured.
    let site = Site::apart(ground, system, 3)?;
    lay_out(&site);
    let outcome = measure(&site, length);
    site.end(outcome.is_err())?;
    outcome
}

fn measure(site: &Site<'_>, length: Duration) -> Result<[f64; 3], LatencyError> {
    let load = Load::start(&site.cluster, &[0, 1, 2], 1, None);
    interrupt::sleep(SETTLING)?;
    let window = Window::new(Instant::now(), length);
    sleep_until(window.to)?;
    let mut medians = [0.0; 3];
    for (node, commits) in load.commits() {
        let sorted = latencies_ms(&commits, window);
        medians[node] = percentile(&sorted, 0.5).ok_or(LatencyError::NoCommits(node + 1))?;
    }
    Ok(medians)
}

/// The near pair is as fast as its slower half.
fn slower(a_ms: f64, b_ms: f64) -> f64 {
    a_ms.max(b_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_far_member_counts_in_round_trips() {
        let figures = far_figures(1.5, 1.8, 112.0);
        let value = |wanted: Measure| figures.iter().find(|(m, _)| *m == wanted).unwrap().1;
        assert!((value(NEAR_RATIO) - 1.2).abs() < 1e-9);
        assert_eq!(value(NEAR_FIGURE), 1.0);
        assert!((value(FAR_TRIPS) - 1.12).abs() < 1e-9);
        assert_eq!(value(FAR_FIGURE), 0.0);
    }
}
