//! A log checkpoint from the leader begins the log anew: this process is new, or was away for longer than any log reaches
//! back.

use trireme_mutants::{Mutant, planted};

use super::Replica;
use crate::checkpoint::Checkpoint;
use crate::event::{Action, Delivery};
use crate::ids::{Incarnation, Position, Term};

impl Replica<'_> {
    /// The leader sends a log checkpoint: this process is new, or was away for longer than any log reaches back.
    pub(crate) fn install(
        &mut self,
        from: Incarnation,
        term: Term,
        checkpoint: Checkpoint,
        intact_at: Position,
    ) {
        // A log on another branch than the forced view gives way, whatever its length (rule 11).
        let own = self.branches().binding_overrides();
        let is_continued = checkpoint.overrides.starts_with(own);
        let forked = is_continued && checkpoint.overrides != self.log.committed().overrides;
        let history = self.log.committed().history;
        if !history.is_nil() && checkpoint.history != history
            || !is_continued
            || !self.accept_term(from, term)
            || (checkpoint.position <= self.log.committed().position && !forked)
                && !planted(Mutant::InstallGoesBack)
        {
            return;
        }
        // An entry acknowledged in this term is kept as long as the term lasts (rule 1).
        if !planted(Mutant::InstallDropsAcknowledged) && !planted(Mutant::InstallGoesBack) {
            let holds = self.log.tail().term_at(checkpoint.position) == Some(checkpoint.term);
            if holds && !forked {
                return self.keep_log(checkpoint.position, intact_at);
            }
            if checkpoint.position <= self.agreed_end() && !forked {
                return self.refuse_forked(from, checkpoint.position);
            }
        }
        if forked {
            self.leave_branch();
        }
        self.out.count(|c| c.installs += 1);
        self.forced_views.log_replaced(self.context.now());
        // The new log may lack entries that this replica acknowledged with the old log (rule 4).
        self.vote.begin_log_anew(intact_at, forked);
        self.component.majority_mut().heard(self.context.now());
        self.component.left_at_most_in(match forked {
            true => 0, // numbers of the branch that was left mean nothing here
            false => checkpoint.configuration.number,
        });
        self.log.begin_at(&checkpoint);
        self.component.set_joined(Vec::new());
        self.matching.begin_at(checkpoint.position);
        let configuration = checkpoint.configuration.clone();
        let position = checkpoint.position;
        let covered = checkpoint
            .last_number(self.my_replica(), self.context.me())
            .unwrap_or(0);
        self.membership().fail_covered(covered);
        self.out.push(Action::Reset { checkpoint });
        if configuration.member(self.context.me()).is_some() {
            // This process was admitted below the checkpoint: the checkpoint's view is its first one.
            self.out.push(Action::Deliver {
                position,
                delivery: Delivery::Configuration(configuration.clone()),
            });
            self.membership().admitted(&configuration);
        }
    }

    /// The leader has sent a log checkpoint that lies within this log: it was asked twice, or before a catch-up. The
    /// entries above the checkpoint stay, because this member may have acknowledged them. The leader's next entries
    /// follow the checkpoint.
    fn keep_log(&mut self, position: Position, intact_at: Position) {
        self.component.majority_mut().heard(self.context.now());
        self.logs_meet();
        self.vote.will_be_intact_at(intact_at);
        self.matching.keep_from(position);
    }

    /// The last position of the local log that agrees with the log of the promised term's leader.
    fn agreed_end(&self) -> Position {
        (self.matching).end_agreed_with_leader(self.log, self.role.is_leader())
    }
}
