//! Pauses of the provider: FLUSH TABLES WITH READ LOCK, an RSU, a donor's copy (server-contract.md#pause).

use trireme_replicator::{Code, Event, Gtid};

use super::client::Stage as ClientStage;
use super::ctx::{Ctx, GO_ON, Next, Stride, ThreadId};
use super::server::Server;
use super::state::State;

/// Sleep of a thread that finds another thread's pause.
const AGAIN_US: u64 = 1000;

/// The stage of a pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PauseStage {
    #[default]
    Wanted,
    /// Waits for the commits under way.
    Blocking,
    Desyncing,
    Pausing,
    /// Everything is paused.
    Held,
    Failed,
}

/// The purpose of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pauser {
    /// An RSU always desyncs first. It blocks no commit.
    Rsu,
    /// FLUSH TABLES WITH READ LOCK blocks new commits, and waits for the commits under way. It desyncs first if the
    /// server is Synced.
    Client,
    /// The same for a script that sends the database; pauses the provider only in a donor's state.
    Donor,
}

/// A pause; the thread that makes it keeps it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pause {
    pub pauser: Pauser,
    pub stage: PauseStage,
    /// The node must be resynced, for an RSU or if the pause fails; see also [`Server::desynced_on_pause`].
    pub is_desynced: bool,
}

impl Pause {
    /// A pause that is about to begin.
    pub(super) fn of(pauser: Pauser) -> Pause {
        Pause {
            pauser,
            stage: PauseStage::Wanted,
            is_desynced: false,
        }
    }
}

impl Server {
    /// Goes on when the pause holds or has failed; wsrep-lib allows one pause at a time.
    pub(super) fn pursue_pause(
        &mut self,
        who: ThreadId,
        pause: &mut Pause,
        ctx: &mut Ctx,
    ) -> Stride {
        loop {
            match pause.stage {
                PauseStage::Wanted => {
                    if self.pauser.is_some() {
                        return Stride::Break(Next::After(AGAIN_US));
                    }
                    self.pauser = Some(who);
                    self.commits_blocked = pause.pauser != Pauser::Rsu;
                    pause.stage = PauseStage::Blocking;
                }
                PauseStage::Blocking => {
                    if pause.pauser != Pauser::Rsu && self.committing > 0 {
                        return self.park(who, "for the commits under way");
                    }
                    match (pause.pauser, self.state) {
                        (Pauser::Rsu, _) | (Pauser::Client, State::Synced) => {
                            pause.stage = PauseStage::Desyncing;
                            return self.ask(who, "desync", ctx, |ticket| Event::Desync { ticket });
                        }
                        (Pauser::Client, _) | (Pauser::Donor, State::Donor) => {
                            return self.ask_pause(who, pause, ctx);
                        }
                        // The provider is not paused: the script gets no position.
                        (Pauser::Donor, _) => return self.fail(pause, ctx),
                    }
                }
                PauseStage::Desyncing => {
                    let code = self.await_answer(who)?.code;
                    assert!(
                        matches!(code, Code::Ok | Code::TrxFail),
                        "desync() answers {code:?}"
                    );
                    pause.is_desynced = code == Code::Ok;
                    if !pause.is_desynced && pause.pauser == Pauser::Rsu {
                        return self.fail(pause, ctx);
                    }
                    return self.ask_pause(who, pause, ctx);
                }
                PauseStage::Pausing => {
                    let answer = self.await_answer(who)?;
                    if answer.code != Code::Ok {
                        assert_eq!(answer.code, Code::ConnFail, "pause() answers");
                        return self.fail(pause, ctx);
                    }
                    let at = self.db.freeze();
                    assert!(
                        answer.gtid == at
                            || answer.gtid == Gtid::UNDEFINED
                            || ctx.is_inconsistent(),
                        "paused at {}, the database is at {at}",
                        answer.gtid
                    );
                    if pause.pauser == Pauser::Client && std::mem::take(&mut pause.is_desynced) {
                        self.desynced_on_pause = true;
                    }
                    pause.stage = PauseStage::Held;
                }
                PauseStage::Held | PauseStage::Failed => return GO_ON,
            }
        }
    }

    fn ask_pause(&mut self, who: ThreadId, pause: &mut Pause, ctx: &mut Ctx) -> Stride {
        pause.stage = PauseStage::Pausing;
        self.ask(who, "pause", ctx, |ticket| Event::Pause { ticket })
    }

    fn fail(&mut self, pause: &mut Pause, ctx: &mut Ctx) -> Stride {
        self.end_pause(pause, ctx);
        pause.stage = PauseStage::Failed;
        GO_ON
    }

    /// Ends the pause.
    pub(super) fn end_pause(&mut self, pause: &mut Pause, ctx: &mut Ctx) {
        if pause.stage == PauseStage::Held {
            self.db.thaw();
            self.let_go(pause, ctx);
            if self.state == State::Disconnecting {
                (0..self.appliers.len()).for_each(|a| self.wake_if_parked(a));
            }
        }
        if std::mem::take(&mut pause.is_desynced) {
            self.tell(ctx, |ticket| Event::Resync { ticket });
        }
        self.pauser = None;
        if std::mem::take(&mut self.commits_blocked) {
            self.wake_clients_at(&[ClientStage::Deciding, ClientStage::ToiCalling]);
        }
    }

    /// UNLOCK TABLES depends on the server's state at that time.
    fn let_go(&mut self, pause: &mut Pause, ctx: &mut Ctx) {
        match (pause.pauser, self.state) {
            (Pauser::Client, State::Synced) => {
                self.tell(ctx, |ticket| Event::Resume { ticket });
                pause.is_desynced = std::mem::take(&mut self.desynced_on_pause);
            }
            (Pauser::Rsu | Pauser::Client, _) | (Pauser::Donor, State::Donor) => {
                self.tell(ctx, |ticket| Event::Resume { ticket });
            }
            // The script calls nothing: the provider is paused for good.
            (Pauser::Donor, state) => assert_eq!(
                state,
                State::Disconnecting,
                "a script lets go of a provider that it has paused as a donor"
            ),
        }
    }
}
