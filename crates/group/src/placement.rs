//! The cost of commits under each possible leader: arithmetic only (`docs/protocol.md`, "Where the leader sits").
//!
//! In: votes, shares of submissions, and round trips. Out: the mean commit time under a leader, in us.

/// The value for an unknown round trip, in us.
pub(crate) const UNKNOWN_US: u64 = 1_000_000;

/// A member, as the leader weighs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    /// Its votes.
    pub weight: u64,
    /// Its share of the ordered submissions.
    pub share: u64,
}

/// Members and the round trips between them.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    sites: Vec<Site>,
    /// Round trip from the member of the row to that of the column; symmetric.
    round_trip_us: Vec<Vec<u64>>,
}

impl Map {
    /// `said(a, b)`: the round trip to `b` as `a` has measured it. The greater of both measurements counts.
    pub fn new(sites: Vec<Site>, said: impl Fn(usize, usize) -> Option<u64>) -> Map {
        let between = |a: usize, b: usize| match (a == b, said(a, b).max(said(b, a))) {
            (true, _) => 0,
            (false, Some(known)) => known.min(UNKNOWN_US),
            (false, None) => UNKNOWN_US,
        };
        let all = 0..sites.len();
        let round_trip_us = all
            .clone()
            .map(|a| all.clone().map(|b| between(a, b)).collect())
            .collect();
        Map {
            sites,
            round_trip_us,
        }
    }

    /// The time that a commit of `origin` takes under `leader`, in us.
    fn commit_us(&self, leader: usize, origin: usize) -> u64 {
        let trip = |a: usize, b: usize| self.round_trip_us[a][b];
        let mut votes: Vec<(u64, u64)> = (self.sites.iter().enumerate())
            .map(|(m, site)| {
                let way_us = trip(origin, leader) + trip(leader, m) + trip(m, origin);
                (way_us / 2, site.weight)
            })
            .collect();
        votes.sort_unstable();
        let total: u64 = self.sites.iter().map(|site| site.weight).sum();
        let mut heard = 0;
        let majority = votes.iter().find(|(_, weight)| {
            heard += weight;
            heard * 2 > total
        });
        majority
            .map_or(UNKNOWN_US, |(at_us, _)| *at_us)
            .max(trip(origin, leader))
    }

    /// The mean commit time over all origins, weighted by their shares, in us.
    pub fn cost_us(&self, leader: usize) -> u64 {
        let shares: u64 = self.sites.iter().map(|site| site.share).sum();
        let origins = self.sites.iter().enumerate();
        let sum: u128 = origins
            .map(|(o, site)| u128::from(site.share) * u128::from(self.commit_us(leader, o)))
            .sum();
        (sum / u128::from(shares.max(1))) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members with these shares and one vote each; round trips in ms above the diagonal.
    fn map(shares: &[u64], trips_ms: &[&[u64]]) -> Map {
        let sites = shares.iter().map(|share| Site {
            weight: 1,
            share: *share,
        });
        Map::new(sites.collect(), |a, b| {
            (a < b).then(|| trips_ms[a][b - a - 1] * 1_000)
        })
    }

    fn costs_ms(map: &Map) -> Vec<u64> {
        (0..map.sites.len())
            .map(|leader| map.cost_us(leader) / 1_000)
            .collect()
    }

    #[test]
    fn a_far_leader_costs_everybody_the_way_to_it() {
        // The first is far away.
        let far = map(&[1, 1, 1], &[&[100, 100], &[2]]);
        assert_eq!(costs_ms(&far), [100, 34, 34]);
        let written_near = map(&[0, 1, 1], &[&[100, 100], &[2]]);
        assert_eq!(costs_ms(&written_near), [100, 2, 2]);
        let written_far = map(&[1, 0, 0], &[&[100, 100], &[2]]);
        assert_eq!(costs_ms(&written_far), [100, 100, 100], "no seat is better");
    }

    #[test]
    fn regions_alike_cost_alike() {
        assert_eq!(
            costs_ms(&map(&[1, 1, 1], &[&[40, 40], &[40]])),
            [40, 40, 40]
        );
        // Three of five votes are 20 ms away, wherever among the three the leader is.
        let five = map(
            &[1, 0, 0, 0, 0],
            &[&[1, 20, 40, 40], &[20, 40, 40], &[40, 40], &[1]],
        );
        assert_eq!(costs_ms(&five), [20, 20, 20, 40, 40]);
    }

    #[test]
    fn the_worse_word_counts_and_no_word_is_the_worst() {
        let sites = vec![
            Site {
                weight: 1,
                share: 1
            };
            2
        ];
        let liar = Map::new(sites.clone(), |a, _| Some(if a == 0 { 1 } else { 30_000 }));
        assert_eq!(liar.cost_us(0), 30_000);
        let silent = Map::new(sites, |_, _| None);
        assert_eq!(silent.cost_us(0), UNKNOWN_US);
    }

    #[test]
    fn weights_decide_whose_word_is_waited_for() {
        let mut heavy = map(&[1, 0, 0], &[&[5, 50], &[50]]);
        heavy.sites[2].weight = 3;
        assert_eq!(
            heavy.cost_us(0),
            50_000,
            "the two near ones are no majority"
        );
    }
}
