//! The cases: the action of a trial, with its name in the report, its duration, and the part that runs it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use trireme_testbed::cluster::Cluster;
use trireme_testbed::systems::System;

use super::away::{self, Departure};
use super::distance::{self, Place};
use super::durability::{self, Strength};
use super::failover;
use super::fault::Fault;
use super::large::{self, Large};
use super::plan::{Part, Plan, Victim};
use super::restart;
use super::site::Site;
use super::slow::{self, Hindrance};
use super::trace::{self, Promise};
use super::{LatencyError, windows};
use crate::frame::Measured;

/// The factor that names the part.
pub const PART: &str = "part";

/// The factor that names the action.
pub const CASE: &str = "case";

/// The factor that names the victim.
pub const VICTIM: &str = "victim";

/// The action of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// A fault strikes the third node.
    Failover(Fault, Victim),
    /// The third node is near or far.
    Far(Place),
    /// All nodes are far from each other.
    Regions,
    /// All nodes are restarted.
    Restart,
    /// The third node is slow.
    Slow(Hindrance, Victim),
    /// A client commits a large transaction.
    Large(Large, Victim),
    /// A node is away.
    Away(Departure),
    /// Commits are held as strongly as this.
    Durability(Strength),
    /// Flushes are watched.
    Trace(Promise),
    /// Conflicts are counted.
    Windows,
}

impl Case {
    /// The part of the experiment.
    pub fn part(self) -> Part {
        match self {
            Self::Failover(..) => Part::Failover,
            Self::Far(_) => Part::Far,
            Self::Regions => Part::Regions,
            Self::Restart => Part::Restart,
            Self::Slow(..) => Part::Slow,
            Self::Large(..) => Part::Large,
            Self::Away(_) => Part::Away,
            Self::Durability(_) => Part::Durability,
            Self::Trace(_) => Part::Trace,
            Self::Windows => Part::Windows,
        }
    }

    /// The levels that identify this case.
    pub fn factors(self) -> BTreeMap<String, String> {
        let mut factors = vec![(PART, self.part().name()), (CASE, self.name())];
        factors.extend(self.victim().map(|v| (VICTIM, v.name().to_string())));
        if let Self::Far(place) = self {
            factors.push((distance::ROUND_TRIP, place.round_trip_ms.to_string()));
        }
        let factors = factors.into_iter();
        factors
            .map(|(name, level)| (name.to_string(), level))
            .collect()
    }

    fn name(self) -> String {
        match self {
            Self::Failover(fault, _) => fault.name().to_string(),
            Self::Far(place) => place.name().to_string(),
            Self::Regions => "three regions".to_string(),
            Self::Restart => "rolling restart".to_string(),
            Self::Slow(hindrance, _) => hindrance.name().to_string(),
            Self::Large(large, _) => large.name(),
            Self::Away(departure) => departure.name().to_string(),
            Self::Durability(strength) => strength.name().to_string(),
            Self::Trace(promise) => promise.name().to_string(),
            Self::Windows => "4 nodes, 10000 rows".to_string(),
        }
    }

    fn victim(self) -> Option<Victim> {
        match self {
            Self::Failover(_, victim) | Self::Slow(_, victim) | Self::Large(_, victim) => {
                Some(victim)
            }
            _ => None,
        }
    }

    /// Roughly the seconds that a trial takes, without the start of its servers.
    pub fn estimate_seconds(self, plan: &Plan) -> f64 {
        let length = plan.length().as_secs_f64();
        let settling = plan.settling().as_secs_f64();
        match self {
            Self::Failover(..) => failover::SECONDS,
            Self::Far(_) | Self::Regions => settling + length,
            Self::Restart => restart::SECONDS,
            Self::Slow(..) => 18.0 + 2.0 * length,
            Self::Large(large, _) => 20.0 + f64::from(large.mib) / 12.0,
            Self::Away(_) => 25.0 + length + plan.away().as_secs_f64(),
            Self::Durability(_) => 4.0 * (3.0 + length),
            Self::Trace(_) => 10.0 + 1.5 * length,
            Self::Windows => 8.0 + length,
        }
    }

    /// Whether all nodes run at the end of a trial. Otherwise the rows of the others are compared.
    pub fn ends_whole(self) -> bool {
        !matches!(self, Self::Failover(..))
    }

    /// Starts the cluster of a trial below `dir`.
    pub fn start(self, system: &dyn System, dir: &Path) -> Result<Site, LatencyError> {
        let data = self.part().data(system.server())?;
        type Prepare<'a> = &'a dyn Fn(&mut Cluster) -> Result<(), LatencyError>;
        let on_loopback =
            |nodes, prepare: Prepare| Site::on_loopback(system, data.clone(), dir, nodes, prepare);
        match self {
            Self::Failover(..) | Self::Far(_) | Self::Regions => Site::apart(system, data, dir),
            Self::Restart | Self::Large(..) | Self::Away(_) => on_loopback(3, &|_| Ok(())),
            Self::Slow(hindrance, victim) => on_loopback(3, &|cluster| {
                Ok(hindrance.prepare(cluster, slow::node_of(victim))?)
            }),
            Self::Durability(strength) => on_loopback(3, &|cluster| {
                strength.set(cluster.settings_mut());
                Ok(())
            }),
            Self::Trace(promise) => on_loopback(3, &|cluster| {
                promise.set(cluster.settings_mut());
                Ok(())
            }),
            Self::Windows => on_loopback(windows::NODES, &|_| Ok(())),
        }
    }

    /// Runs one trial. If it ends early, its data so far are in `kept`.
    pub fn measure(
        self,
        plan: &Plan,
        site: &mut Site,
        repetition: u32,
        kept: &mut Measured,
    ) -> Result<Measured, LatencyError> {
        let length: Duration = plan.length();
        match self {
            Self::Failover(fault, victim) => {
                failover::measure(site, fault, victim, plan.leader_option.as_deref(), kept)
            }
            Self::Far(place) => distance::far(site, place, plan.settling(), length),
            Self::Regions => distance::regions(site, plan.settling(), length),
            Self::Restart => restart::measure(site, kept),
            Self::Slow(hindrance, victim) => slow::measure(site, hindrance, victim, length, kept),
            Self::Large(large, victim) => large::measure(site, large, victim, kept),
            Self::Away(departure) => away::measure(site, departure, plan.away(), length, kept),
            Self::Durability(_) => durability::measure(site, repetition, length, kept),
            Self::Trace(promise) => trace::measure(site, promise, length),
            Self::Windows => windows::measure(site, repetition, length),
        }
    }
}
