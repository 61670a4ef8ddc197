//! The history of the group as a whole: everything that any process has ever committed. Each new commit is compared
//! with it, so that the check also covers processes that are gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use trireme_group::{Body, Configuration, Entry, Incarnation, Position, SubmissionId, Term};

use crate::breach::{self, Breach};
use crate::fingerprint::Known;
use crate::process::{Fact, Log};

/// An entry and how it was committed.
#[derive(Clone, Debug, Hash)]
struct Committed {
    entry: Arc<Known<Entry>>,
    /// The lowest term of a process at the time when it committed the entry.
    term: Term,
    delivered: bool,
}

/// A leader, and its log at the start of its term.
#[derive(Clone, Debug, Hash)]
struct Leadership {
    holder: Incarnation,
    log: Log,
}

/// The history of the group. It does not depend on the order of events at different processes (see
/// [`crate::reduction`]).
#[derive(Clone, Debug, Default, Hash)]
pub struct Truth {
    committed: Vec<Committed>,
    /// The leader of each term, with its log.
    leaderships: BTreeMap<Term, Leadership>,
    withdrawn: BTreeSet<SubmissionId>,
}

impl Truth {
    pub fn end(&self) -> Position {
        self.committed.len() as Position
    }

    /// Last committed configuration.
    pub fn configuration(&self) -> Option<&Configuration> {
        let newest_first = self.committed.iter().rev();
        newest_first
            .filter_map(|c| match &c.entry.value.body {
                Body::Configuration(configuration) => Some(configuration),
                _ => None,
            })
            .next()
    }

    /// Forgets the withdrawals of a process that is gone.
    pub fn crashed(&mut self, process: Incarnation) {
        self.withdrawn.retain(|id| id.incarnation != process);
    }

    /// Adds a fact of process `who`. Err: the fact breaks a rule.
    pub fn learn(&mut self, who: Incarnation, fact: &Fact) -> Result<(), Breach> {
        match fact {
            Fact::Committed {
                entry,
                term,
                delivered,
            } => {
                let known = entry.value.position.checked_sub(1).map(|at| at as usize);
                match known.and_then(|at| self.committed.get(at)) {
                    Some(known) => agree(who, known, entry, *delivered)?,
                    None => self.commit(who, entry, *delivered)?,
                }
                let known = &mut self.committed[entry.value.position as usize - 1];
                if *term < known.term || known.term == Term::default() {
                    known.term = *term;
                }
                self.is_kept()
            }
            Fact::Reset(checkpoint) => {
                let at = checkpoint.position.checked_sub(1).map(|at| at as usize);
                let known = at.and_then(|at| self.committed.get(at));
                match known {
                    Some(known) if known.entry.value.term == checkpoint.term => Ok(()),
                    _ => Err(breach::HISTORIES.broken(format!(
                        "{who} begins at {} of {}, where {known:?} is committed",
                        checkpoint.position, checkpoint.term
                    ))),
                }
            }
            Fact::Withdrawn(id) => {
                self.withdrawn.insert(*id);
                let delivered = self.committed.iter().filter(|c| c.delivered);
                let committed = delivered
                    .map(|c| &c.entry.value)
                    .find(|e| e.submission() == Some(*id));
                match committed {
                    None => Ok(()),
                    Some(entry) => Err(breach::WITHDRAWN.broken(format!(
                        "{who} withdraws {id}, which is committed at {}",
                        entry.position
                    ))),
                }
            }
            Fact::TookLeadership(term, log) => {
                let (holder, log) = (who, log.clone());
                let before = self.leaderships.insert(*term, Leadership { holder, log });
                match before.filter(|leadership| leadership.holder != who) {
                    None => self.is_kept(),
                    Some(other) => Err(breach::ONE_LEADER.broken(format!(
                        "{who} takes leadership of {term}, which was {}'s",
                        other.holder
                    ))),
                }
            }
            Fact::Truncated => Ok(()),
            Fact::Breach(breach) => Err(breach.clone()),
        }
    }

    fn commit(
        &mut self,
        who: Incarnation,
        entry: &Arc<Known<Entry>>,
        delivered: bool,
    ) -> Result<(), Breach> {
        let value = &entry.value;
        if value.position != self.end() + 1 {
            return Err(breach::HISTORIES.broken(format!(
                "{who} commits {} where {} is the next",
                value.position,
                self.end() + 1
            )));
        }
        if let Some(id) = value.submission() {
            let earlier = self
                .committed
                .iter()
                .filter_map(|c| c.entry.value.submission());
            let last = earlier
                .filter(|other| other.incarnation == id.incarnation)
                .map(|other| other.number)
                .fold(0, u64::max);
            // A voided submission uses up all numbers up to its own.
            let is_void = matches!(value.body, Body::Voided { .. });
            if id.number <= last || id.number != last + 1 && !is_void {
                return Err(breach::ONCE.broken(format!(
                    "{id} is committed at {} after number {last}",
                    value.position
                )));
            }
            if delivered && self.withdrawn.contains(&id) {
                return Err(breach::WITHDRAWN.broken(format!(
                    "{id} was withdrawn, and commits at {}",
                    value.position
                )));
            }
        }
        self.committed.push(Committed {
            entry: entry.clone(),
            term: Term::default(),
            delivered,
        });
        Ok(())
    }

    /// Checks rule 1: an entry committed in an earlier term was in the log of every later leader.
    fn is_kept(&self) -> Result<(), Breach> {
        for (term, leadership) in &self.leaderships {
            for earlier in self.committed.iter().filter(|c| c.term < *term) {
                let position = earlier.entry.value.position;
                if position > leadership.log.base()
                    && leadership.log.get(position) != Some(&earlier.entry)
                {
                    return Err(breach::KEPT.broken(format!(
                        "{} took leadership of {term} without {position}, committed in {}",
                        leadership.holder, earlier.term
                    )));
                }
            }
        }
        Ok(())
    }
}

/// Checks that all processes commit the same entry at a position, and all or none deliver it.
fn agree(
    who: Incarnation,
    known: &Committed,
    entry: &Arc<Known<Entry>>,
    delivered: bool,
) -> Result<(), Breach> {
    let position = entry.value.position;
    if known.entry != *entry {
        return Err(breach::HISTORIES.broken(format!(
            "{who} commits {:?} at {position}, where {:?} is committed",
            entry.value.body, known.entry.value.body
        )));
    }
    if known.delivered != delivered {
        return Err(
            breach::ONCE.broken(format!("{who} differs in whether {position} is delivered"))
        );
    }
    Ok(())
}
