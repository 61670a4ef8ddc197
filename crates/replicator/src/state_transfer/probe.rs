//! The check that members have the entries that this node lacks. It is made before the server gets its first entry,
//! while the server can still take an SST. A server with a gap behind the entries that it has taken can only restart.
//!
//! In: the first entry that this node lacks, answers of members. Out: the entry to ask for, and what is missing.

use trireme_certification::Seqno;
use trireme_group::Incarnation;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    NotBegun,
    /// Members are asked for this entry.
    Asks { seqno: Seqno, before_script: bool },
    /// The donor to be is asked for the last entry, to see whether it lives. Any answer will do.
    Greets(Seqno),
    /// `shown_by`: the member that has answered; None: no member was asked, or the donor to be did not answer.
    Done {
        before_script: bool,
        shown_by: Option<Incarnation>,
    },
}

#[derive(Debug, Default)]
pub(super) struct Probe {
    stage: Stage,
    /// True if a donor to be was greeted.
    greeted: bool,
}

impl Probe {
    /// Returns true if the check was not made yet. `before_script`: a check for entries that are handed over without a
    /// script is not enough.
    pub(super) fn is_due(&self, before_script: bool) -> bool {
        match self.stage {
            Stage::NotBegun => true,
            Stage::Greets(_) => false,
            Stage::Asks {
                before_script: checked,
                ..
            }
            | Stage::Done {
                before_script: checked,
                ..
            } => before_script && !checked,
        }
    }

    /// Begins the check. `asks`: the entry that members must show; None: there is no gap.
    pub(super) fn begin(&mut self, asks: Option<Seqno>, before_script: bool) {
        self.stage = match asks {
            Some(seqno) => Stage::Asks {
                seqno,
                before_script,
            },
            None => Stage::Done {
                before_script,
                shown_by: None,
            },
        };
    }

    /// Returns the entry for which a member is to be asked.
    pub(super) fn asks(&self) -> Option<Seqno> {
        match self.stage {
            Stage::Asks { seqno, .. } | Stage::Greets(seqno) => Some(seqno),
            Stage::NotBegun | Stage::Done { .. } => None,
        }
    }

    /// Asks the donor to be for the `last` entry, once, if the check has asked nobody. Returns false otherwise.
    pub(super) fn greet(&mut self, last: Seqno) -> bool {
        let asked_nobody = matches!(self.stage, Stage::Done { shown_by: None, .. });
        let greets = asked_nobody && !self.greeted;
        if greets {
            (self.greeted, self.stage) = (true, Stage::Greets(last));
        }
        greets
    }

    /// Returns true if this member has shown that it lives and has the entries.
    pub(super) fn was_shown_by(&self, member: Incarnation) -> bool {
        matches!(self.stage, Stage::Done { shown_by: Some(by), .. } if by == member)
    }

    /// Takes in a member's answer, which begins with the entry `shown`. Returns None if the check asks nobody, and as
    /// an error the entry that the member lacks.
    pub(super) fn answered(
        &mut self,
        from: Incarnation,
        shown: Option<Seqno>,
    ) -> Option<Result<(), Seqno>> {
        let before_script = match self.stage {
            Stage::NotBegun | Stage::Done { .. } => return None,
            Stage::Asks { seqno, .. } if shown != Some(seqno) => return Some(Err(seqno)),
            Stage::Asks { before_script, .. } => before_script,
            Stage::Greets(_) => true,
        };
        self.stage = Stage::Done {
            before_script,
            shown_by: Some(from),
        };
        Some(Ok(()))
    }

    /// Takes in that the asked member does not answer. A donor to be is not asked again. Returns true if the check is
    /// over by that.
    pub(super) fn is_not_answered(&mut self) -> bool {
        let greets = matches!(self.stage, Stage::Greets(_));
        if greets {
            self.begin(None, true);
        }
        greets
    }
}
