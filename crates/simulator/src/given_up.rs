//! Connects that are given up before the node is admitted, in a plan. They have a stream of random numbers of their own,
//! so that all other draws of a seed stay as they were.

use crate::fault::Fault;
use crate::plan::Plan;
use crate::profile::Profile;
use crate::random::Random;
use crate::seen::{NodeId, TimeUs};

const STREAM: u64 = 18;
/// Maximum number of connects that a node gives up, one after the other.
const ATTEMPTS: u64 = 3;
/// Percentage of the nodes that make one of these attempts without the volume of their log.
const UNMOUNTED_PERCENT: u64 = 50;
/// Percentage of the attempts that reach nobody.
const ALONE_PERCENT: u64 = 50;

/// A connect that the provider gives up if no primary component takes the node in meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// `pc.wait_prim_timeout`.
    pub wait_us: TimeUs,
    /// Time until the next attempt.
    pub again_us: TimeUs,
    /// No other node is reached.
    pub alone: bool,
    /// The volume of the log is not mounted: the node finds an empty directory.
    pub unmounted: bool,
}

impl Attempt {
    fn some(random: &mut Random) -> Vec<Attempt> {
        let count = random.within(1..=ATTEMPTS);
        let unmounted = random.within(1..=count);
        let unmounted = random.percent(UNMOUNTED_PERCENT).then_some(unmounted);
        let attempt = |number| {
            let unmounted = unmounted == Some(number);
            // Most nodes are admitted soon; one without its log then also acknowledges entries with another one.
            let hurry = random.pick(&[1, 10, 100]);
            Attempt {
                wait_us: random.within(0..=2_000_000) / if unmounted { 1 } else { hurry },
                again_us: random.within(1_000..=500_000),
                alone: random.percent(ALONE_PERCENT),
                unmounted,
            }
        };
        (1..=count).map(attempt).collect()
    }
}

impl Plan {
    /// Lets some nodes that lose their connection by a fault give up the next few connects.
    pub(crate) fn give_up_connects(&mut self, profile: &Profile) {
        let random = &mut Random::new(self.seed, STREAM);
        let mut faults = Vec::with_capacity(self.faults.len());
        for (at, fault) in self.faults.drain(..) {
            let percent = profile.gives_up_percent;
            if let Some(node) = ends_connection(&fault).filter(|_| random.percent(percent)) {
                let attempts = Attempt::some(random);
                faults.push((at.saturating_sub(1), Fault::GiveUp { node, attempts }));
            }
            faults.push((at, fault));
        }
        faults.sort_by_key(|(at, _)| *at);
        self.faults = faults;
    }
}

/// The node whose connection the fault ends.
fn ends_connection(fault: &Fault) -> Option<NodeId> {
    match *fault {
        Fault::Crash { node, .. }
        | Fault::Leave { node, .. }
        | Fault::Reconnect { node, .. }
        | Fault::FullDisk { node, .. }
        | Fault::FlushFails { node, .. }
        | Fault::DeviceFails { node, .. }
        | Fault::NotesFail { node, .. }
        | Fault::Rot { node, .. } => Some(node),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiles;

    #[test]
    fn all_other_faults_of_a_seed_stay_as_they_were() {
        let profile = profiles::named("disks").expect("it exists");
        let mut given_up = 0;
        for seed in 0..20 {
            let mut plan = Plan::new(profile, seed);
            let count = plan.faults.len();
            plan.faults
                .retain(|(_, fault)| !matches!(fault, Fault::GiveUp { .. }));
            given_up += count - plan.faults.len();
            let plain = Plan::with_plain_connects(profile, seed);
            assert_eq!(plan.faults, plain.faults, "seed {seed}");
        }
        assert!(given_up > 0);
    }
}
