//! Does the simulator find what is wrong? Each mistake of the list is planted in every node, and
//! schedules are played until something is violated: first those written by hand for it
//! (`directed`), with one seed after the other, then random ones of all profiles in turn.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use trireme_mutants::{Mutant, set};

use crate::directed;
use crate::invariants;
use crate::plan::Plan;
use crate::profile::Profile;
use crate::profiles;
use crate::run::{self, Violation};
use crate::watch::Watch;

/// A directed schedule is played with so many seeds at most.
const DIRECTED_SEEDS: u64 = 100;

/// What to hunt, and for how long.
pub struct Hunt {
    /// Only this one.
    pub name: Option<String>,
    /// Gives up after so many random schedules.
    pub limit: u64,
    /// And after so many if directed ones have caught it already.
    pub limit_caught: u64,
    /// Random schedules of this profile only.
    pub profile: Option<String>,
    /// On so many threads.
    pub jobs: usize,
}

/// When a mutant was caught.
pub struct Caught {
    /// After so many schedules.
    pub schedules: u64,
    /// By the last one's name, if it is a directed one.
    pub directed: Option<&'static str>,
    /// What was violated.
    pub violation: Violation,
}

/// What a hunt came to.
struct Found {
    mutant: Mutant,
    directed: Option<Caught>,
    random: Option<Caught>,
    /// How many random schedules there were.
    tried: u64,
}

/// Plants the mistake with this name in all that this thread runs from here on. Err: there is none.
pub fn plant(name: Option<&str>) -> Result<(), String> {
    if let Some(name) = name {
        set(Some(named(name)?.0));
    }
    Ok(())
}

/// The mutant with this name, and what is wrong. Err: there is none.
fn named(name: &str) -> Result<(Mutant, &'static str), String> {
    let mut all = Mutant::ALL.iter();
    let found = all.find(|(mutant, _)| format!("{mutant:?}") == name);
    found.copied().ok_or_else(|| format!("no mutant '{name}'"))
}

/// Plays a schedule with the mistake. One that is violated without it, too, does not count.
fn play(mutant: Mutant, schedule: impl Fn() -> Option<Violation>) -> Option<Violation> {
    set(Some(mutant));
    let violation = schedule();
    set(None);
    violation.filter(|_| schedule().is_none())
}

/// By the directed schedules that are there for it.
fn hunt_directed(mutant: Mutant) -> Option<Caught> {
    let meant = directed::ALL.iter();
    let meant: Vec<_> = meant.filter(|(_, d)| d.mutants.contains(&mutant)).collect();
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

/// By random schedules, at most `limit`.
fn hunt_random(mutant: Mutant, limit: u64, only: Option<&'static Profile>) -> Option<Caught> {
    // Those, too, that take no turn in other runs.
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
    /// Hunts, and prints a table; true if each was caught. Err: no such mutant or profile.
    pub fn run(&self) -> Result<bool, String> {
        let only = match &self.profile {
            Some(name) => Some(profiles::named(name).ok_or(format!("no profile '{name}'"))?),
            None => None,
        };
        let all = match &self.name {
            Some(name) => vec![named(name)?],
            None => Mutant::ALL.to_vec(),
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
        Ok(missed == 0)
    }

    fn hunt(&self, mutant: Mutant, only: Option<&'static Profile>) -> Found {
        let directed = hunt_directed(mutant);
        let tried = match &directed {
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
