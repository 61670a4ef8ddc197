//! Does the simulator find what is wrong? Each mistake of the list is planted in every node, and
//! schedules are run until something is violated.

use trireme_mutants::{Mutant, set};

use crate::plan::Plan;
use crate::profile;
use crate::run::{self, Violation};

/// When a mutant was caught.
pub struct Caught {
    /// After so many schedules.
    pub schedules: u64,
    /// What was violated.
    pub violation: Violation,
}

/// Plants a mistake and runs schedules, at most `limit`. One that is violated without the mistake,
/// too, does not count.
pub fn hunt(mutant: Mutant, limit: u64, only: Option<&str>) -> Option<Caught> {
    let only = only.and_then(profile::named);
    (0..limit).find_map(|seed| {
        let plan = || Plan::new(only.unwrap_or(profile::by_turn(seed)), seed);
        set(Some(mutant));
        let violation = run::run(plan()).violation;
        set(None);
        let violation = violation?;
        let sound = run::run(plan()).violation.is_none();
        sound.then_some(Caught {
            schedules: seed + 1,
            violation,
        })
    })
}

/// Hunts all of them, or the one of this name; true if each was caught.
pub fn hunt_all(limit: u64, name: Option<&str>, profile: Option<&str>) -> bool {
    let chosen = |mutant: &Mutant| name.is_none_or(|name| format!("{mutant:?}") == name);
    let mut missed = 0;
    for (mutant, mistake) in Mutant::ALL.iter().filter(|(mutant, _)| chosen(mutant)) {
        match hunt(*mutant, limit, profile) {
            Some(caught) => {
                let violation = caught.violation;
                let text = violation.text.replace('\n', " ");
                let text: String = text.chars().take(160).collect();
                println!(
                    "{mutant:?}: caught in {} schedules by {}: {text}",
                    caught.schedules, violation.what
                );
            }
            None => {
                missed += 1;
                println!("{mutant:?}: NOT CAUGHT in {limit} schedules ({mistake})");
            }
        }
    }
    println!("{missed} not caught");
    missed == 0
}
