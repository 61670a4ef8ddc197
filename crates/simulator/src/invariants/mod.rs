//! What must hold, one file each, with the reason and the source.
//!
//! Two pictures of the run are shared: [`logs::Logs`], every entry that any log ever held, kept by
//! [`prefix`]; and [`databases::Databases`], everything that any database ever committed, kept by
//! [`gtid_unique`]. Both are trees: without an operator's override they have one branch. The other
//! invariants only read them, so the two stand first in [`all`].
//!
//! Memory: about 80 bytes per log entry and 100 per seqno of a run, kept to its end.

use std::cell::RefCell;
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
pub mod reads_end;
mod rows;
#[cfg(test)]
mod story;
mod tree;
pub mod verdicts_equal;

/// Something that must hold at every step.
pub trait Invariant {
    /// Short name, as in reports: `one-primary`.
    fn name(&self) -> &'static str;
    /// Takes in what was seen. Err: the violation, for a person to read.
    fn see(&mut self, sight: &Sight) -> Result<(), String>;
    /// The run has ended.
    fn end(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// A picture that one invariant keeps and others read. They see each sight one after another.
type Shared<T> = Rc<RefCell<T>>;

/// What a liar cannot break.
pub fn among_liars() -> Vec<Box<dyn Invariant>> {
    vec![Box::new(bounded::Bounded)]
}

/// All of them, for one run.
pub fn all() -> Vec<Box<dyn Invariant>> {
    let logs = Shared::<logs::Logs>::default();
    let databases = Shared::new(databases::Databases::new(&logs).into());
    vec![
        Box::new(prefix::Prefix::new(&logs)),
        Box::new(no_truncated_applied::NoTruncatedApplied::default()),
        Box::new(one_primary::OnePrimary::new(&logs)),
        Box::new(one_founder::OneFounder::default()),
        Box::new(control_equal::ControlEqual::new(&logs)),
        Box::new(verdicts_equal::VerdictsEqual::new(&logs)),
        Box::new(commit_order::CommitOrder::default()),
        Box::new(gtid_unique::GtidUnique::new(&databases)),
        Box::new(databases_equal::DatabasesEqual::new(&databases)),
        Box::new(first_committer_wins::FirstCommitterWins::new(&databases)),
        Box::new(failed_stays_out::FailedStaysOut::new(&databases)),
        Box::new(acknowledged_kept::AcknowledgedKept::new(&databases)),
        Box::new(list_append::ListAppend::new(&databases)),
        Box::new(current_reads::CurrentReads::new(&databases)),
        Box::new(acknowledgements_held::AcknowledgementsHeld::default()),
        Box::new(reads_end::ReadsEnd::default()),
        Box::new(nobody_waits::NobodyWaits),
        Box::new(bounded::Bounded),
    ]
}
