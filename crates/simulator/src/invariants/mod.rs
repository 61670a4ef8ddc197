//! The invariants, one file each, with the reason and the source.
//!
//! Two pictures of the run are shared. [`prefix`] keeps [`logs::Logs`], the entries of all logs; [`gtid_unique`]
//! keeps [`databases::Databases`], the commits of all databases. Both are trees; without an operator's override they
//! have one branch. The other invariants only read them, so these two come first in [`all`].
//!
//! Memory: about 80 bytes per log entry and 100 per seqno of a run, kept to its end.

use std::cell::RefCell;
use std::hash::BuildHasherDefault;
use std::rc::Rc;

use crate::seen::Sight;

pub mod acknowledged_kept;
pub mod acknowledgements_held;
pub mod bounded;
pub mod commit_order;
mod content;
pub mod control_equal;
pub mod current_reads;
pub mod databases;
pub mod databases_equal;
pub mod failed_stays_out;
pub mod first_committer_wins;
pub mod gtid_unique;
mod lines;
pub mod list_append;
pub mod logs;
pub mod no_truncated_applied;
pub mod nobody_waits;
pub mod one_founder;
pub mod one_primary;
pub mod prefix;
mod promises;
pub mod reads_end;
mod rows;
#[cfg(test)]
mod story;
mod tree;
pub mod verdicts_equal;

/// A property that must hold at every step.
pub trait Invariant {
    /// The short name in reports: `one-primary`.
    fn name(&self) -> &'static str;
    /// Handles an event. Err: the violation, for a reader.
    fn see(&mut self, sight: &Sight) -> Result<(), String>;
    /// Checks the end of the run.
    fn end(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// A picture that one invariant keeps and others read. The invariants see each event one after another.
type Shared<T> = Rc<RefCell<T>>;

/// Maps and sets with a fast hash: nobody chooses keys here to make it slow.
type HashMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<content::Rolling>>;
type HashSet<T> = std::collections::HashSet<T, BuildHasherDefault<content::Rolling>>;

/// The invariants that hold even if a member lies.
pub fn among_liars() -> Vec<Box<dyn Invariant>> {
    vec![Box::new(bounded::Bounded)]
}

/// All invariants, for one run.
pub fn all() -> Vec<Box<dyn Invariant>> {
    let logs = Shared::<logs::Logs>::default();
    let databases = Shared::new(databases::Databases::new(&logs).into());
    vec![
        Box::new(prefix::Prefix::new(&logs)),
        Box::new(no_truncated_applied::NoTruncatedApplied::new(&logs)),
        Box::new(one_primary::OnePrimary::new(&logs)),
        Box::new(one_founder::OneFounder::default()),
        Box::new(control_equal::ControlEqual::new(&logs)),
        Box::new(verdicts_equal::VerdictsEqual::new(&logs)),
        Box::new(commit_order::CommitOrder::default()),
        Box::new(gtid_unique::GtidUnique::new(&databases)),
        Box::new(databases_equal::DatabasesEqual::new(&databases)),
        Box::new(first_committer_wins::FirstCommitterWins::new(&databases)),
        Box::new(failed_stays_out::FailedStaysOut::new(&databases, &logs)),
        Box::new(acknowledged_kept::AcknowledgedKept::new(&databases)),
        Box::new(list_append::ListAppend::new(&databases)),
        Box::new(current_reads::CurrentReads::new(&databases, &logs)),
        Box::new(acknowledgements_held::AcknowledgementsHeld::default()),
        Box::new(reads_end::ReadsEnd::default()),
        Box::new(nobody_waits::NobodyWaits),
        Box::new(bounded::Bounded),
    ]
}
