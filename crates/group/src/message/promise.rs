//! A promise to a candidate: what the promiser has in its log and its database.

use crate::checkpoint::Checkpoint;
use crate::configuration::Configuration;
use crate::ids::{Position, SubmissionId, Term};

/// A log in short: its commit point, its end, and the terms of its newest entries.
#[derive(Clone, Debug, PartialEq, Eq, Default, Hash)]
pub struct Summary {
    /// The commit point.
    pub commit: Position,
    /// Last position; 0 for an empty log.
    pub end: Position,
    /// Term of the last entry.
    pub end_term: Term,
    /// Runs of entries with the same term, ascending: (term, first, last). Only the newest runs are listed, up to the
    /// log's end.
    pub runs: Vec<(Term, Position, Position)>,
}

impl Summary {
    /// True if the log is known to hold the last entry that the checkpoint covers, and so all entries below it.
    pub(crate) fn holds(&self, checkpoint: &Checkpoint) -> bool {
        self.has(checkpoint.position, checkpoint.term)
    }

    /// True if the log is known to hold this entry.
    pub(crate) fn has(&self, position: Position, term: Term) -> bool {
        let mut runs = self.runs.iter();
        runs.any(|(b, first, last)| *b == term && (*first..=*last).contains(&position))
    }

    /// The run of entries of one term that this position belongs to, if the summary tells it.
    pub(crate) fn run_at(&self, position: Position) -> Option<(Term, Position, Position)> {
        let mut runs = self.runs.iter();
        let run = runs.find(|(_, first, last)| (*first..=*last).contains(&position));
        run.copied()
    }

    /// Term of the entry at this position, if the summary tells it.
    pub(crate) fn term_at(&self, position: Position) -> Option<Term> {
        self.run_at(position).map(|(term, ..)| term)
    }

    /// False if the log certainly lacks this entry. The summary does not tell the entries between the commit point and
    /// the first run.
    pub(crate) fn may_have(&self, position: Position, term: Term) -> bool {
        let told = self.runs.first().map_or(0, |(_, first, _)| *first);
        position <= self.commit || position < told || self.has(position, term)
    }

    /// (term, position) of the last entry; the better of two logs has the greater pair (rule 1).
    pub(crate) fn last(&self) -> (Term, Position) {
        (self.end_term, self.end)
    }
}

/// The evidence of a process in seqnos. The replicator counts them; the group only compares them (rule 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct Proof {
    /// The seqno up to which the log is known to be committed.
    pub known: u64,
    /// The database's own evidence.
    pub database: DatabaseProof,
}

/// The seqno up to which a database proves that entries were committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub enum DatabaseProof {
    /// There is no database, or an SST will replace it.
    #[default]
    Nothing,
    /// The database holds everything up to this seqno.
    UpTo {
        /// The seqno.
        seqno: u64,
    },
    /// The database cannot be compared with the logs.
    Unclear,
}

/// Answer to a [`Message::Prepare`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Promise {
    /// The promised term.
    pub term: Term,
    /// The promiser's log.
    pub summary: Summary,
    /// Last committed configuration, and any later one in the log, with their positions.
    pub configurations: Vec<(Position, Configuration)>,
    /// True if the promiser is amnesiac: entries that it acknowledged may be missing (rule 4).
    pub amnesiac: bool,
    /// True for lost views: acknowledged configurations may be missing, too. The log is damaged, or is not the one with
    /// which the replica acknowledged.
    pub lost_views: bool,
    /// The promiser's evidence in seqnos (rule 5).
    pub proof: Proof,
    /// Withdrawals: submissions that this process has reported as failed (rule 7), under its present incarnation or
    /// earlier ones. It never held those under earlier incarnations.
    pub withdrawn: Vec<SubmissionId>,
}
