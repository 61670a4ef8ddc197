//! Holding the provider still: FLUSH TABLES WITH READ LOCK, an RSU, a donor's copy (contract 2.20).

use trireme_replicator::{Code, Event, Gtid};

use super::client::Stage as ClientStage;
use super::ctx::{Ctx, GO_ON, Next, Stride, ThreadId};
use super::server::Server;

/// How long a thread sleeps that finds another one pausing.
const AGAIN_US: u64 = 1000;

/// How far a pause is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PauseStage {
    #[default]
    Wanted,
    /// Waits for the commits under way.
    Blocking,
    Desyncing,
    Pausing,
    /// Everything stands still.
    Held,
    Failed,
}

/// A pause, its maker's to keep.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pause {
    /// Lets no commit begin, and waits for those that have begun, as FTWRL does; an RSU does not.
    pub blocks_commits: bool,
    /// Desyncs first; a donor is desynced already.
    pub desyncs: bool,
    pub stage: PauseStage,
    pub is_desynced: bool,
}

impl Server {
    /// Goes on when the pause holds or has failed; the lib lets one pause at a time.
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
                    self.commits_blocked = pause.blocks_commits;
                    pause.stage = PauseStage::Blocking;
                }
                PauseStage::Blocking => {
                    if pause.blocks_commits && self.committing > 0 {
                        return self.park(who, "for the commits under way");
                    }
                    if pause.desyncs {
                        pause.stage = PauseStage::Desyncing;
                        return self.ask(who, "desync", ctx, |ticket| Event::Desync { ticket });
                    }
                    return self.ask_pause(who, pause, ctx);
                }
                PauseStage::Desyncing => {
                    let code = self.await_answer(who)?.code;
                    if code != Code::Ok {
                        assert_eq!(code, Code::TrxFail, "desync() answers");
                        self.end_pause(pause, ctx);
                        pause.stage = PauseStage::Failed;
                        return GO_ON;
                    }
                    pause.is_desynced = true;
                    return self.ask_pause(who, pause, ctx);
                }
                PauseStage::Pausing => {
                    let answer = self.await_answer(who)?;
                    if answer.code != Code::Ok {
                        assert_eq!(answer.code, Code::ConnFail, "pause() answers");
                        self.end_pause(pause, ctx);
                        pause.stage = PauseStage::Failed;
                        return GO_ON;
                    }
                    let at = self.db.freeze();
                    assert!(
                        answer.gtid == at
                            || answer.gtid == Gtid::UNDEFINED
                            || ctx.is_inconsistent(),
                        "paused at {}, the database is at {at}",
                        answer.gtid
                    );
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

    /// Everything goes on.
    pub(super) fn end_pause(&mut self, pause: &mut Pause, ctx: &mut Ctx) {
        if pause.stage == PauseStage::Held {
            self.db.thaw();
            self.tell(ctx, |ticket| Event::Resume { ticket });
        }
        if std::mem::take(&mut pause.is_desynced) {
            self.tell(ctx, |ticket| Event::Resync { ticket });
        }
        self.pauser = None;
        if std::mem::take(&mut self.commits_blocked) {
            self.wake_clients_at(&[ClientStage::Deciding, ClientStage::ToiCalling]);
        }
    }
}
