//! The replicator's actions, sorted by the part that carries them out.

use bytes::Bytes;
use trireme_group::{Incarnation, Position, Uuid};
use trireme_log::Outcome;
use trireme_mutants::{Mutant, planted};
use trireme_replicator::{Action, Answer, Gtid, Level, Seqno, Ticket};

/// An action that concerns the server, its threads, and the saved state; see [`Action`] for each.
#[derive(Clone, Debug, PartialEq)]
pub enum HostAction {
    /// [`Action::Answer`]
    Answer {
        /// The call.
        ticket: Ticket,
        /// Its answer.
        answer: Answer,
    },
    /// [`Action::WakeAppliers`]
    WakeAppliers {
        /// So many threads; `usize::MAX` for all.
        n: usize,
    },
    /// [`Action::SaveState`]
    SaveState {
        /// Position of the database.
        gtid: Gtid,
        /// `safe_to_bootstrap`.
        safe_to_bootstrap: bool,
    },
    /// [`Action::MarkUnsafe`]
    MarkUnsafe,
    /// [`Action::MarkSafe`]
    MarkSafe,
    /// [`Action::MarkCorrupt`]
    MarkCorrupt,
    /// [`Action::MarkUncorrupt`]
    MarkUncorrupt,
    /// [`Action::Admitted`]
    Admitted,
    /// [`Action::Closed`]
    Closed,
    /// [`Action::Log`]
    Log {
        /// How loud.
        level: Level,
        /// The line.
        text: String,
    },
    /// [`Action::Fatal`]
    Fatal {
        /// Why.
        text: String,
    },
}

/// An action that asks the group for something.
pub(crate) enum GroupAction {
    Submit {
        number: u64,
        payload: Bytes,
    },
    Spread {
        parcel: u64,
        payload: Bytes,
        head: u32,
        digest: u32,
    },
    Recall {
        parcel: u64,
    },
    SubmitParcel {
        number: u64,
        parcel: u64,
        head: Bytes,
    },
    Read {
        token: u64,
    },
    SetJoined {
        position: Position,
        members: Vec<Incarnation>,
    },
    Leave,
}

/// An action that concerns the write-set log.
pub(crate) enum LogAction {
    /// The outcome of the entry at this position.
    Outcome(Position, Outcome),
    /// It keeps everything from here on; other members have not reported to have applied what is above these positions.
    Pin(Position, Vec<(Incarnation, Position)>),
}

/// Something that a restart must know, beside the log.
pub(crate) enum Note {
    Action { gtid: Gtid, ended: bool },
    Applying,
    Overrides(Vec<(Uuid, Seqno)>),
}

/// Where an action goes.
pub(crate) enum Routed {
    Group(GroupAction),
    Peer { to: Incarnation, bytes: Bytes },
    Log(LogAction),
    Note(Note),
    Host(HostAction),
}

impl Routed {
    /// Sorts an action.
    pub(crate) fn of(action: Action) -> Routed {
        use GroupAction as G;
        use HostAction as H;
        use Routed::{Group, Host, Log, Note as Noted};
        match action {
            Action::Submit { number, payload } => Group(G::Submit { number, payload }),
            Action::Spread {
                parcel,
                payload,
                head,
                digest,
            } => Group(G::Spread {
                parcel,
                payload,
                head,
                digest,
            }),
            Action::Recall { parcel } => Group(G::Recall { parcel }),
            Action::SubmitParcel {
                number,
                parcel,
                head,
            } => Group(G::SubmitParcel {
                number,
                parcel,
                head,
            }),
            Action::Read { token } => Group(G::Read { token }),
            Action::SetJoined { position, members } => Group(G::SetJoined { position, members }),
            Action::Leave => Group(G::Leave),
            Action::SendTo { to, bytes } => Routed::Peer { to, bytes },
            Action::RecordOutcome {
                position,
                seqno,
                depends_on,
                failed,
            } => Log(LogAction::Outcome(
                position,
                outcome(seqno, depends_on, failed),
            )),
            Action::PinLog {
                keep_from,
                unreported,
            } => Log(LogAction::Pin(keep_from, unreported)),
            Action::NoteAction { gtid, ended } => Noted(Note::Action { gtid, ended }),
            Action::NoteApplying => Noted(Note::Applying),
            Action::NoteOverrides { overrides } => Noted(Note::Overrides(overrides)),
            Action::Answer { ticket, answer } => Host(H::Answer { ticket, answer }),
            Action::WakeAppliers { n } => Host(H::WakeAppliers { n }),
            Action::SaveState {
                gtid,
                safe_to_bootstrap,
            } => Host(H::SaveState {
                gtid,
                safe_to_bootstrap,
            }),
            Action::MarkUnsafe => Host(H::MarkUnsafe),
            Action::MarkSafe => Host(H::MarkSafe),
            Action::MarkCorrupt => Host(H::MarkCorrupt),
            Action::MarkUncorrupt => Host(H::MarkUncorrupt),
            Action::Admitted => Host(H::Admitted),
            Action::Closed => Host(H::Closed),
            Action::Log { level, text } => Host(H::Log { level, text }),
            Action::Fatal { text } => Host(H::Fatal { text }),
        }
    }
}

fn outcome(seqno: Seqno, depends_on: Seqno, failed: bool) -> Outcome {
    let is_noted = failed && !planted(Mutant::OutcomeOfFailedLost);
    Outcome {
        seqno,
        flags: if is_noted { Outcome::FAILED } else { 0 },
        depends_on,
    }
}
