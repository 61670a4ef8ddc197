//! The model for stateright, with its properties.

use std::fmt;
use std::time::{Duration, Instant};

use stateright::{Checker, HasDiscoveries, Model, Property};
use trireme_mutants::Mutant;

use crate::actions::{self, Action};
use crate::bound::Bound;
use crate::breach;
use crate::formation::form;
use crate::memo::Memo;
use crate::reduction;
use crate::system::System;
use crate::words;

/// The group core within one bound.
pub struct GroupModel {
    bound: Bound,
    memo: Memo,
    formed: System,
    reduced: bool,
    #[cfg_attr(not(feature = "mutants"), expect(dead_code))]
    mutant: Option<Mutant>,
}

impl GroupModel {
    /// A formed group; Err: the cores do not form one.
    pub fn new(bound: Bound, reduced: bool, mutant: Option<Mutant>) -> Result<GroupModel, String> {
        let memo = Memo::new();
        let formed = form(&bound, &memo)?;
        Ok(GroupModel {
            bound,
            memo: Memo::new(),
            formed,
            reduced,
            mutant,
        })
    }

    /// Plants the mutant on this thread: mutants are set per thread, and stateright has its own threads.
    fn plant(&self) {
        #[cfg(feature = "mutants")]
        trireme_mutants::set(self.mutant);
    }
}

fn holds(system: &System, rule: breach::Rule) -> bool {
    let broken = system.breach.as_ref();
    broken.is_none_or(|breach| breach.property != rule.0)
}

impl Model for GroupModel {
    type State = System;
    type Action = Action;

    fn init_states(&self) -> Vec<System> {
        vec![self.formed.clone()]
    }

    fn actions(&self, system: &System, actions: &mut Vec<Action>) {
        self.plant();
        if system.breach.is_none() {
            actions::possible(system, &self.bound, &self.memo, actions);
            if self.reduced {
                reduction::reduce(system, &self.bound, &self.memo, actions);
            }
        }
    }

    fn next_state(&self, system: &System, action: Action) -> Option<System> {
        self.plant();
        Some(actions::apply(system, action, &self.bound, &self.memo))
    }

    fn within_boundary(&self, system: &System) -> bool {
        let mut processes = system.nodes.iter().filter_map(|node| node.running());
        processes.all(|process| self.bound.includes(process))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        use Property as P;
        macro_rules! always {
            ($($rule:ident)*) => {
                [$(P::always(breach::$rule.0, |_: &Self, s: &System| holds(s, breach::$rule)),)*]
            };
        }
        let mut all =
            Vec::from(always!(ONE_LEADER HISTORIES KEPT ONCE WITHDRAWN ONE_CHANGE DISK ASSERTION));
        all.extend([
            P::sometimes(COMMIT_AFTER_CRASH, |_, s: &System| {
                s.seen.commit_after_crash
            }),
            P::sometimes(TRUNCATION, |_, s: &System| s.seen.truncation),
            P::sometimes(REMOVAL, |_, s: &System| s.seen.removal),
            P::sometimes(READMISSION, |_, s: &System| s.seen.readmission),
            P::sometimes(VOTE_REGAINED, |_, s: &System| s.seen.vote_regained),
        ]);
        all
    }
}

const COMMIT_AFTER_CRASH: &str = "a commit after a leader's crash";
const TRUNCATION: &str = "an uncommitted suffix is dropped";
const REMOVAL: &str = "a view without the crashed member";
const READMISSION: &str = "the restarted member is in a view again";
const VOTE_REGAINED: &str = "the restarted member has its vote again";

/// The `sometimes` properties. If an exploration shows no example of one, the bounds are too small to prove anything.
pub fn examples() -> [&'static str; 5] {
    [
        COMMIT_AFTER_CRASH,
        TRUNCATION,
        REMOVAL,
        READMISSION,
        VOTE_REGAINED,
    ]
}

/// How to search.
#[derive(Clone, Debug)]
pub struct Search {
    /// Number of threads that search.
    pub threads: usize,
    /// Maximum number of actions from the start; None: no limit but the bound.
    pub depth: Option<usize>,
    /// Search breadth-first: finds short paths, needs much more memory.
    pub breadth_first: bool,
    /// Leave out orders of events that lead to the same states (see `reduction`).
    pub reduced: bool,
    /// Time limit. The report then covers the states found so far.
    pub timeout: Option<Duration>,
}

/// The result of an exploration.
#[derive(Debug)]
pub struct Report {
    /// Number of distinct states.
    pub states: usize,
    /// Number of actions carried out.
    pub transitions: usize,
    /// Number of distinct states of a process, of all three processes together.
    pub processes: usize,
    /// Length of the longest path.
    pub depth: usize,
    /// Duration of the search.
    pub took: Duration,
    /// False if the time limit stopped the search.
    pub complete: bool,
    /// The `sometimes` properties for which an example was found.
    pub seen: Vec<&'static str>,
    /// The broken property and the path that leads to it.
    pub violation: Option<(&'static str, String)>,
}

/// Explores everything within `bound`.
pub fn explore(bound: &Bound, mutant: Option<Mutant>, search: &Search) -> Result<Report, String> {
    let model = GroupModel::new(bound.clone(), search.reduced, mutant)?;
    let began = Instant::now();
    // Stateright checks the time limit only when threads share their work.
    let threads = search
        .threads
        .max(1 + usize::from(search.timeout.is_some()));
    let mut builder = model
        .checker()
        .threads(threads)
        .finish_when(HasDiscoveries::AnyFailures);
    if let Some(depth) = search.depth {
        builder = builder.target_max_depth(depth);
    }
    if let Some(timeout) = search.timeout {
        builder = builder.timeout(timeout);
    }
    if search.breadth_first {
        Ok(report(began, search, builder.spawn_bfs().join()))
    } else {
        Ok(report(began, search, builder.spawn_dfs().join()))
    }
}

fn report(began: Instant, search: &Search, checker: impl Checker<GroupModel>) -> Report {
    let model = checker.model();
    let took = began.elapsed();
    let rules = model.properties();
    let discoveries = checker.discoveries();
    let failed = |property: &&Property<GroupModel>| property.expectation.discovery_is_failure();
    let violation = rules.iter().filter(failed).find_map(|property| {
        let path = discoveries.get(property.name)?;
        Some((property.name, words::path(path.clone().into_vec())))
    });
    let mut seen: Vec<_> = rules
        .iter()
        .filter(|p| !failed(p))
        .map(|p| p.name)
        .collect();
    seen.retain(|name| discoveries.contains_key(name));
    Report {
        states: checker.unique_state_count(),
        transitions: checker.state_count(),
        processes: model.memo.processes(),
        depth: checker.max_depth(),
        took,
        complete: search.timeout.is_none_or(|timeout| took < timeout),
        seen,
        violation,
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match (&self.violation, self.complete) {
            (Some((property, _)), _) => format!("VIOLATION: {property}"),
            (None, true) => "all hold".into(),
            (None, false) => "all hold so far (time is up)".into(),
        };
        write!(
            f,
            "{} states, {} transitions, {} distinct processes, depth {}, {:.1} s: {verdict}",
            self.states,
            self.transitions,
            self.processes,
            self.depth,
            self.took.as_secs_f64()
        )
    }
}
