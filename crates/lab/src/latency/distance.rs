//! Parts `far` and `regions`: the latency of commits when members are far apart.

use std::time::{Duration, Instant};

use trireme_testbed::interrupt;

use super::error::LatencyError;
use super::fault::sleep_until;
use super::figures::{Window, latencies_ms, measured};
use super::load::Load;
use super::site::Site;
use crate::frame::Measured;
use crate::stats::percentile;

/// The factor with the distance of the third node.
pub const ROUND_TRIP: &str = "round_trip_ms";

/// The round trip between near nodes.
const NEAR: Duration = Duration::from_millis(1);

/// The round trip between regions.
pub const REGION: Duration = Duration::from_millis(40);

/// The percentiles in the figures, in percent.
pub const PERCENTILES: [u32; 3] = [50, 95, 99];

/// The place of the third node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The round trip to each of the other nodes, in ms.
    pub round_trip_ms: u32,
    /// Whether the third node was started first; otherwise it joined last.
    pub is_first: bool,
}

impl Place {
    /// As near as the others are to each other.
    pub const NEAR: Self = Self {
        round_trip_ms: NEAR.as_millis() as u32,
        is_first: false,
    };

    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match (self == Self::NEAR, self.is_first) {
            (true, _) => "third near",
            (false, false) => "third far, joined last",
            (false, true) => "third far, first started",
        }
    }
}

/// Runs one trial of `far`.
pub fn far(
    site: &Site,
    place: Place,
    settling: Duration,
    length: Duration,
) -> Result<Measured, LatencyError> {
    let far = if place.is_first { 0 } else { 2 };
    let nodes = trial(site, settling, length, |a, b| {
        let is_far = a == far || b == far;
        let far_trip = Duration::from_millis(place.round_trip_ms.into());
        if is_far { far_trip } else { NEAR }
    })?;
    let pair = slower(&nodes[(far + 1) % 3], &nodes[(far + 2) % 3]);
    let figures = named("pair", pair).chain(named("third", &nodes[far]));
    Ok(measured(figures, Vec::new()))
}

/// Runs one trial of `regions`.
pub fn regions(
    site: &Site,
    settling: Duration,
    length: Duration,
) -> Result<Measured, LatencyError> {
    let nodes = trial(site, settling, length, |_, _| REGION)?;
    let names = ["node1", "node2", "node3"].into_iter();
    let figures = names
        .zip(&nodes)
        .flat_map(|(name, latencies)| named(name, latencies));
    Ok(measured(figures, Vec::new()))
}

/// The figure's name for a percentile of the commits at a node, or at the slower node of a pair.
pub fn figure(node: &str, percent: u32) -> String {
    format!("{node}_p{percent}_ms")
}

fn named(node: &str, latencies: &[f64]) -> impl Iterator<Item = (String, f64)> {
    PERCENTILES.into_iter().map(move |percent| {
        let value = percentile(latencies, f64::from(percent) / 100.0);
        (figure(node, percent), value.unwrap_or_default())
    })
}

/// Returns the sorted latencies of each node's commits, with these round trips between the nodes. The cluster has
/// formed without delays.
fn trial(
    site: &Site,
    settling: Duration,
    length: Duration,
    round_trip: impl Fn(usize, usize) -> Duration,
) -> Result<[Vec<f64>; 3], LatencyError> {
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        site.network().set_round_trip(a, b, round_trip(a, b));
    }
    let load = Load::start(&site.cluster, &[0, 1, 2], 1, None);
    interrupt::sleep(settling)?;
    let window = Window::new(Instant::now(), length);
    sleep_until(window.to)?;
    let mut nodes = [const { Vec::new() }; 3];
    for (node, commits) in load.commits() {
        nodes[node] = latencies_ms(&commits, window);
        if nodes[node].is_empty() {
            return Err(LatencyError::NoCommits(node + 1));
        }
    }
    Ok(nodes)
}

/// The node of a near pair whose median commit is slower.
fn slower<'a>(a: &'a [f64], b: &'a [f64]) -> &'a [f64] {
    if percentile(a, 0.5) < percentile(b, 0.5) {
        b
    } else {
        a
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pair_is_as_fast_as_its_slower_half() {
        let (fast, slow) = ([1.0, 2.0, 90.0], [3.0, 4.0, 5.0]);
        assert_eq!(slower(&fast, &slow), slow);
        assert_eq!(slower(&slow, &fast), slow);
        let figures: Vec<(String, f64)> = named("pair", &slow).collect();
        assert_eq!(figures[0], ("pair_p50_ms".to_string(), 4.0));
        assert_eq!(figures[2], ("pair_p99_ms".to_string(), 5.0));
    }
}
