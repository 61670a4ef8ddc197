//! Does the simulator find mistakes? Each mistake of the list is planted in every node, then schedules are played
//! until an invariant is violated. The schedules written by hand for the mistake (`directed`) come first, with one
//! seed after the other; then random schedules of all profiles, in turn.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use trireme_mutants::{Mutant, set};

use crate::directed::{self, Directed};
use crate::invariants;
use crate::plan::Plan;
use crate::profile::Profile;
use crate::profiles;
use crate::run::{self, Violation};
use crate::watch::Watch;

/// Maximum number of seeds for a directed schedule.
const DIRECTED_SEEDS: u64 = 100;

/// The mistakes to hunt, and the limits of the hunt.
pub struct Hunt {
    /// Hunt only this mistake.
    pub name: Option<String>,
    /// Hunt only with directed schedules, and only the mistakes for which there is one.
    pub directed: bool,
    /// Give up after so many random schedules.
    pub limit: u64,
    /// Give up after so many random schedules if a directed one has caught the mistake.
    pub limit_caught: u64,
    /// Play random schedules of this profile only.
    pub profile: Option<String>,
    /// Number of threads.
    pub jobs: usize,
}

/// How a mistake was caught.
pub struct Caught {
    /// Number of schedules that it took.
    pub schedules: u64,
    /// The name of the last schedule, if it is a directed one.
    pub directed: Option<&'static str>,
    /// The violation of the last schedule.
    pub violation: Violation,
}

/// The result of a hunt.
struct Found {
    mutant: Mutant,
    directed: Option<Caught>,
    random: Option<Caught>,
    /// Number of random schedules played.
    tried: u64,
}

/// Plants the mistake with this name on this thread, from now on. Err: there is no such mistake.
pub fn plant(name: Option<&str>) -> Result<(), String> {
    if let Some(name) = name {
        set(Some(named(name)?.0));
    }
    Ok(())
}

/// The mutant with this name, and its description. Err: there is none.
fn named(name: &str) -> Result<(Mutant, &'static str), String> {
    let mut all = Mutant::ALL.iter();
    let found = all.find(|(mutant, _)| format!("{mutant:?}") == name);
    found.copied().ok_or_else(|| format!("no mutant '{name}'"))
}

/// Plays a schedule with the mistake. A violation does not count if the schedule has one without the mistake, too.
fn play(mutant: Mutant, schedule: impl Fn() -> Option<Violation>) -> Option<Violation> {
    set(Some(mutant));
    let violation = schedule();
    set(None);
    violation.filter(|_| schedule().is_none())
}

/// The directed schedules that are written for the mistake.
fn written_for(mutant: Mutant) -> impl Iterator<Item = &'static (&'static str, &'static Directed)> {
    let all = directed::ALL.iter();
    all.filter(move |(_, directed)| directed.mutants.contains(&mutant))
}

/// Hunts with the directed schedules that are written for the mistake.
fn hunt_directed(mutant: Mutant) -> Option<Caught> {
    let meant: Vec<_> = written_for(mutant).collect();
    let plays = (0..DIRECTED_SEEDS).flat_map(|seed| meant.iter().map(move |d| (seed, d)));
    plays
        .zip(1..)
        .find_map(|((seed, (name, directed)), schedules)| {
            let watch = || Watch::new(invariants::all());
            let violation = play(mutant, || directed.run(seed, watch()).0.violation)?;
            Some(Caught {
                schedules,
                directed: Some(name),
                violation,
            })
        })
}

/// Hunts with at most `limit` random schedules.
fn hunt_random(mutant: Mutant, limit: u64, only: Option<&'static Profile>) -> Option<Caught> {
    // All profiles, also those that take no turn in other runs.
    let profiles: Vec<_> = profiles::ALL.iter().collect();
    (0..limit)
        .zip(profiles.iter().cycle())
        .find_map(|(seed, turn)| {
            let plan = || Plan::new(only.unwrap_or(turn), seed);
            let violation = play(mutant, || run::run(plan()).violation)?;
            Some(Caught {
                schedules: seed + 1,
                directed: None,
                violation,
            })
        })
}

impl Hunt {
    /// Hunts, and prints a table and its inverse; true if each mistake was caught and, in a whole hunt, each invariant
    /// was the first to see one. Err: no such mutant or profile.
    pub fn run(&self) -> Result<bool, String> {
        let only = match &self.profile {
            Some(name) => Some(profiles::named(name).ok_or(format!("no profile '{name}'"))?),
            None => None,
        };
        let all = match &self.name {
            Some(name) => vec![named(name)?],
            None => (Mutant::ALL.iter().copied())
                .filter(|(mutant, _)| !self.directed || written_for(*mutant).next().is_some())
                .collect(),
        };
        let next = AtomicUsize::new(0);
        let found = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(|| {
                    while let Some((mutant, _)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let one = self.hunt(*mutant, only);
                        eprintln!("{one}");
                        found.lock().unwrap_or_else(|e| e.into_inner()).push(one);
                    }
                });
            }
        });
        let found = found.into_inner().unwrap_or_else(|e| e.into_inner());
        println!("{:26} directed schedules, random schedules", "mutant");
        let mut missed = 0;
        for (mutant, mistake) in &all {
            let of = found.iter().find(|found| found.mutant == *mutant);
            let of = of.expect("each was hunted");
            println!("{of}");
            if of.directed.is_none() && of.random.is_none() {
                println!("    NOT CAUGHT: {mistake}");
                missed += 1;
            }
        }
        println!("{} of {} caught", all.len() - missed, all.len());
        let is_whole = self.name.is_none() && !self.directed && self.profile.is_none();
        let idle = tell_first_seen(&first_seen(&found, &all), is_whole);
        Ok(missed == 0 && idle == 0)
    }

    fn hunt(&self, mutant: Mutant, only: Option<&'static Profile>) -> Found {
        let directed = hunt_directed(mutant);
        let tried = match &directed {
            _ if self.directed => 0,
            Some(_) => self.limit_caught.min(self.limit),
            None => self.limit,
        };
        Found {
            mutant,
            directed,
            random: hunt_random(mutant, tried, only),
            tried,
        }
    }
}

/// For each invariant the mutants that it was the first to see, in the order of the table. Other checks count as
/// invariants here: liveness, panics, the directed schedules' own.
fn first_seen(found: &[Found], all: &[(Mutant, &str)]) -> BTreeMap<String, Vec<Mutant>> {
    let mut by: BTreeMap<String, Vec<Mutant>> = BTreeMap::new();
    for (mutant, _) in all {
        let of = found.iter().filter(|found| found.mutant == *mutant);
        let caught = of.flat_map(|found| found.directed.iter().chain(&found.random));
        for violation in caught.map(|caught| &caught.violation) {
            let seen = by.entry(violation.what.clone()).or_default();
            if !seen.contains(mutant) {
                seen.push(*mutant);
            }
        }
    }
    by
}

/// Prints the mutants of each invariant, as the table in docs/guarantees.md, section 8. Returns the number of
/// invariants without one, if the hunt was `whole`.
fn tell_first_seen(by: &BTreeMap<String, Vec<Mutant>>, whole: bool) -> usize {
    println!("\n| seen first by | planted bugs |\n|---|---|");
    for (name, mutants) in by {
        let mutants: Vec<String> = mutants.iter().map(|mutant| format!("{mutant:?}")).collect();
        println!("| `{name}` | {} |", mutants.join(", "));
    }
    let invariants = invariants::all();
    let idle = invariants
        .iter()
        .map(|invariant| invariant.name())
        .filter(|name| whole && !by.contains_key(*name));
    idle.inspect(|name| println!("| `{name}` | NONE: no planted bug shows that it is needed |"))
        .count()
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = format!("{:?}", self.mutant);
        let directed = self.directed.as_ref();
        let directed = directed.map_or("-".to_owned(), Caught::to_string);
        let random = self.random.as_ref();
        let random = random.map_or(format!("not in {}", self.tried), Caught::to_string);
        write!(f, "{name:26} {directed:64} {random}")
    }
}

impl fmt::Display for Caught {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = &self.violation.what;
        match self.directed {
            Some(name) => write!(f, "{} ({name}, by {by})", self.schedules),
            None => write!(f, "{} (by {by})", self.schedules),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(mutant: Mutant, what: &str) -> Found {
        Found {
            mutant,
            directed: None,
            random: Some(Caught {
                schedules: 1,
                directed: None,
                violation: Violation {
                    what: what.to_owned(),
                    text: String::new(),
                },
            }),
            tried: 1,
        }
    }

    #[test]
    fn an_invariant_that_sees_nothing_first_fails_the_whole_hunt_only() {
        let all = [
            (Mutant::QueueKeepsAll, ""),
            (Mutant::HangUnseen, ""),
            (Mutant::JoinerWrites, ""),
        ];
        let found = [
            found(Mutant::HangUnseen, "bounded"),
            found(Mutant::JoinerWrites, "prefix"),
            found(Mutant::QueueKeepsAll, "bounded"),
        ];
        let by = first_seen(&found, &all);
        assert_eq!(by["bounded"], [Mutant::QueueKeepsAll, Mutant::HangUnseen]);
        assert_eq!(tell_first_seen(&by, false), 0);
        assert_eq!(tell_first_seen(&by, true), invariants::all().len() - 2);
    }
}
