//! Parts `far` and `regions`: the latency of commits when members are far apart.

use std::time::{Duration, Instant};

use trireme_testbed::interrupt;

use super::error::LatencyError;
use super::fault::sleep_until;
use super::figures::{Window, by_second, latencies_ms, measured};
use super::load::{Commit, Load};
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
    let Seen { nodes, per_second } = trial(site, settling, length, |a, b| {
        let is_far = a == far || b == far;
        let far_trip = Duration::from_millis(place.round_trip_ms.into());
        if is_far { far_trip } else { NEAR }
    })?;
    let pair = slower(&nodes[(far + 1) % 3], &nodes[(far + 2) % 3]);
    let figures = named("pair", pair).chain(named("third", &nodes[far]));
    Ok(measured(figures, per_second))
}

/// Runs one trial of `regions`.
pub fn regions(
    site: &Site,
    settling: Duration,
    length: Duration,
) -> Result<Measured, LatencyError> {
    let Seen { nodes, per_second } = trial(site, settling, length, |_, _| REGION)?;
    let names = ["node1", "node2", "node3"].into_iter();
    let figures = names
        .zip(&nodes)
        .flat_map(|(name, latencies)| named(name, latencies));
    Ok(measured(figures, per_second))
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

/// The commits in the window of a trial.
struct Seen {
    /// The sorted latencies at each node, in ms.
    nodes: [Vec<f64>; 3],
    /// The commits of all nodes in each second.
    per_second: Vec<u64>,
}

impl Seen {
    /// Evaluates the commits of each client, which has a node of its own. Fails if a node has none in the window.
    fn of(clients: &[(usize, Vec<Commit>)], window: Window) -> Result<Self, LatencyError> {
        let mut nodes = [const { Vec::new() }; 3];
        for (node, commits) in clients {
            nodes[*node] = latencies_ms(commits, window);
            if nodes[*node].is_empty() {
                return Err(LatencyError::NoCommits(node + 1));
            }
        }
        let all: Vec<Commit> = clients.iter().flat_map(|(_, c)| c.clone()).collect();
        let seconds = (window.to - window.from).as_secs() as usize;
        Ok(Self {
            nodes,
            per_second: by_second(&all, window.from, seconds),
        })
    }
}

/// Runs the load with these round trips between the nodes. The cluster has formed without delays.
fn trial(
    site: &Site,
    settling: Duration,
    length: Duration,
    round_trip: impl Fn(usize, usize) -> Duration,
) -> Result<Seen, LatencyError> {
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        site.network().set_round_trip(a, b, round_trip(a, b));
    }
    let load = Load::start(&site.cluster, &[0, 1, 2], 1, None);
    interrupt::sleep(settling)?;
    let window = Window::new(Instant::now(), length);
    sleep_until(window.to)?;
    Seen::of(&load.commits(), window)
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
    fn all_nodes_are_in_the_seconds() {
        let start = Instant::now();
        let commits = |due_ms: &[u64]| -> Vec<Commit> {
            let due = due_ms.iter().map(|ms| start + Duration::from_millis(*ms));
            due.map(|due| Commit {
                due,
                done: due + Duration::from_millis(5),
            })
            .collect()
        };
        let clients = [
            (0, commits(&[100, 200, 1100, 2500])),
            (1, commits(&[300])),
            (2, commits(&[1200, 1300])),
        ];
        let window = Window::new(start, Duration::from_secs(2));
        let seen = Seen::of(&clients, window).unwrap();
        assert_eq!(seen.per_second, [3, 3]);
        assert_eq!(seen.nodes[0], [5.0; 3]);
        let silent = [clients[0].clone(), (1, commits(&[2100]))];
        let error = Seen::of(&silent, window).err();
        assert!(matches!(error, Some(LatencyError::NoCommits(2))));
    }

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
