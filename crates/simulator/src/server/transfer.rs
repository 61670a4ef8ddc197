//! SSTs, as the scripts do them: the threads of the donor and of the joiner (server-contract.md#sst_sent).

use trireme_replicator::{Event, Gtid};

use super::ctx::{Ctx, GO_ON, Next, Stride, ThreadId};
use super::datadir::Snapshot;
use super::pause::{Pause, PauseStage, Pauser};
use super::server::Server;
use super::thread::Waits;
use crate::seen::{NodeId, TimeUs};

/// The first bytes of a state request: the method's name.
const METHOD: &[u8] = b"sim\0";
/// The error code of a failed script (-ECANCELED).
const CANCELED: i32 = -125;

/// A transfer that has begun; the world carries it to the joiner.
#[derive(Debug)]
pub struct Transfer {
    /// The node of the joiner.
    pub to: NodeId,
    /// The number of the joiner's process that asked.
    pub to_start: u64,
    /// The state that is sent.
    pub cargo: Cargo,
    /// Duration of the transfer.
    pub takes_us: TimeUs,
    /// The thread to name in [`Server::donation_ended`].
    pub thread: ThreadId,
}

/// The state that a script brings to a joiner.
#[derive(Debug)]
pub enum Cargo {
    /// A database that replaces the joiner's database.
    Database(Box<Snapshot>),
    /// The position of the joiner's own database (bypass).
    Position,
}

/// The way in which a donor sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// As rsync: everything is paused from the copy to the end of the transfer.
    HoldAll,
    /// As mariabackup: everything is paused for a moment, near the end.
    HoldAtEnd,
    /// As mysqldump: sends within the callback.
    Within,
    /// With bypass: nothing is copied.
    PassOn,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Off,
    /// Donor: copies data that may still change; the rest follows.
    Streaming,
    /// Donor: begins a pause.
    Pausing(Pause),
    /// Donor: the transfer is under way; with the pause, if it holds until the end.
    Sending(Option<Pause>),
    /// Donor: the transfer has ended; true if it succeeded.
    Sent(Option<Pause>, bool),
    /// Joiner: the state has arrived; the storage engine starts on it.
    Starting(Cargo),
    Started(Cargo),
    /// Joiner: the state will not come.
    Broken,
}

/// A thread that sends or receives.
#[derive(Debug)]
pub(super) struct TransferThread {
    stage: Stage,
    method: Method,
    to: NodeId,
    to_start: u64,
    /// The applier whose callback began it.
    applier: ThreadId,
    sent: Gtid,
}

impl Default for TransferThread {
    fn default() -> Self {
        TransferThread {
            stage: Stage::Off,
            method: Method::HoldAll,
            to: 0,
            to_start: 0,
            applier: 0,
            sent: Gtid::UNDEFINED,
        }
    }
}

impl TransferThread {
    /// True while it sends or receives.
    pub fn is_busy(&self) -> bool {
        !matches!(self.stage, Stage::Off)
    }

    /// A description for a reader.
    pub fn describe(&self) -> String {
        match &self.stage {
            Stage::Off => "off".to_owned(),
            Stage::Starting(_) | Stage::Started(_) => "starts the storage engine".to_owned(),
            Stage::Broken => "gives up".to_owned(),
            Stage::Streaming => format!("streams to n{}#{}", self.to, self.to_start),
            Stage::Pausing(pause) => {
                format!("{:?} for n{}#{}", pause.stage, self.to, self.to_start)
            }
            Stage::Sending(_) => format!("sends {} to n{}#{}", self.sent, self.to, self.to_start),
            Stage::Sent(_, ok) => format!("has sent to n{}#{}: {ok}", self.to, self.to_start),
        }
    }
}

/// The request of a joiner's server: the address for the state.
pub(super) fn request(node: NodeId, start: u64) -> Vec<u8> {
    [METHOD, &(node as u64).to_le_bytes(), &start.to_le_bytes()].concat()
}

/// Reads a request.
pub(super) fn read_request(request: &[u8]) -> (NodeId, u64) {
    let number = |at: usize| {
        let bytes = request
            .get(at..at + 8)
            .expect("a request that a server made");
        u64::from_le_bytes(bytes.try_into().expect("8 bytes"))
    };
    assert!(request.starts_with(METHOD), "not a request: {request:?}");
    (number(METHOD.len()) as NodeId, number(METHOD.len() + 8))
}

impl Server {
    fn first_transfer(&self) -> ThreadId {
        self.appliers.len() + self.clients.len() + 1
    }

    // --- the joiner

    /// The requested state has arrived; None: the donor, or the connection to it, died.
    pub fn script_ended(&mut self, cargo: Option<Cargo>) {
        if !self.is_with_scripts {
            return;
        }
        self.transfers[0].stage = match cargo {
            Some(cargo) => Stage::Starting(cargo),
            None => Stage::Broken,
        };
        self.runnable.push(self.first_transfer());
    }

    // --- the donor

    /// Starts a script within the donate callback, unless all threads still send.
    pub(super) fn prepare_donation(
        &mut self,
        a: ThreadId,
        (to, to_start): (NodeId, u64),
        bypass: Option<Gtid>,
        ctx: &mut Ctx,
    ) {
        let Some(t) = self.transfers.iter().position(|thread| !thread.is_busy()) else {
            return;
        };
        let methods = [Method::HoldAll, Method::HoldAtEnd, Method::Within];
        let method = match bypass {
            Some(_) => Method::PassOn,
            None => ctx.random.pick(&methods),
        };
        let thread = self.first_transfer() + t;
        self.transfers[t] = TransferThread {
            stage: Stage::Streaming,
            method,
            to,
            to_start,
            applier: a,
            sent: bypass.unwrap_or(Gtid::UNDEFINED),
        };
        match method {
            Method::Within => self.transfers[t].stage = self.send(t, None, ctx),
            Method::PassOn => self.transfers[t].stage = self.pass_on(t, ctx),
            Method::HoldAll | Method::HoldAtEnd => self.runnable.push(thread),
        }
    }

    fn donation_of(&self, a: ThreadId) -> Option<&TransferThread> {
        self.transfers
            .iter()
            .find(|thread| thread.is_busy() && thread.applier == a)
    }

    /// True if the applier's callback has started a script.
    pub(super) fn has_donation(&self, a: ThreadId) -> bool {
        self.donation_of(a).is_some()
    }

    /// True if the applier's callback lasts until all is sent.
    pub(super) fn donates_within(&self, a: ThreadId) -> bool {
        self.donation_of(a)
            .is_some_and(|thread| thread.method == Method::Within)
    }

    /// The donor's script has ended: `ok` if the joiner has everything. `thread` as in [`Transfer`].
    pub fn donation_ended(&mut self, thread: ThreadId, ok: bool) {
        let t = thread - self.first_transfer();
        if let Stage::Sending(pause) = self.transfers[t].stage {
            self.transfers[t].stage = Stage::Sent(pause, ok);
            self.threads[thread].waits = None;
            self.runnable.push(thread);
        }
    }

    /// Copies the database and hands it to the world. The scripts flush the engine's log first.
    fn send(&mut self, t: usize, pause: Option<Pause>, ctx: &mut Ctx) -> Stage {
        self.db.datadir.flush();
        let snapshot = self.db.datadir.snapshot(self.node);
        let span = self.plan.speed.transfer_us;
        let takes_us = match self.transfers[t].method {
            Method::HoldAtEnd => self.plan.speed.stage_us.draw(ctx.random),
            Method::HoldAll | Method::Within | Method::PassOn => span.draw(ctx.random),
        };
        self.transfers[t].sent = snapshot.position;
        self.hand_over(t, Cargo::Database(Box::new(snapshot)), takes_us, ctx);
        Stage::Sending(pause)
    }

    /// Tells the joiner the position of its own database.
    fn pass_on(&mut self, t: usize, ctx: &mut Ctx) -> Stage {
        let takes_us = self.plan.speed.stage_us.draw(ctx.random);
        self.hand_over(t, Cargo::Position, takes_us, ctx);
        Stage::Sending(None)
    }

    fn hand_over(&mut self, t: usize, cargo: Cargo, takes_us: TimeUs, ctx: &mut Ctx) {
        let thread = self.first_transfer() + t;
        let donation = &self.transfers[t];
        ctx.transfers.push(Transfer {
            to: donation.to,
            to_start: donation.to_start,
            cargo,
            takes_us,
            thread,
        });
        self.threads[thread].waits = Some(Waits::Server("for the joiner to have everything"));
    }

    pub(super) fn step_transfer(&mut self, who: ThreadId, ctx: &mut Ctx) -> Next {
        loop {
            if let Stride::Break(next) = self.transfer_stride(who, ctx) {
                return next;
            }
        }
    }

    fn end_sending(&mut self, t: usize, pause: Option<Pause>, ok: bool, ctx: &mut Ctx) {
        if let Some(mut pause) = pause {
            self.end_pause(&mut pause, ctx);
        }
        let (gtid, rcode) = match ok {
            true => (self.transfers[t].sent, 0),
            false => (Gtid::UNDEFINED, CANCELED),
        };
        self.state_after_donation();
        self.tell(ctx, |ticket| Event::SstSent {
            ticket,
            gtid,
            rcode,
        });
        let TransferThread {
            method, applier, ..
        } = self.transfers[t];
        if method == Method::Within {
            self.wake_if_parked(applier);
        }
    }

    fn transfer_stride(&mut self, who: ThreadId, ctx: &mut Ctx) -> Stride {
        let t = who - self.first_transfer();
        match std::mem::take(&mut self.transfers[t].stage) {
            Stage::Off => Stride::Break(Next::Blocked),
            Stage::Streaming => {
                let span = match self.transfers[t].method {
                    Method::HoldAtEnd => self.plan.speed.transfer_us,
                    Method::HoldAll | Method::Within | Method::PassOn => self.plan.speed.stage_us,
                };
                self.transfers[t].stage = Stage::Pausing(Pause::of(Pauser::Donor));
                ctx.sleep(span)
            }
            Stage::Pausing(mut pause) => {
                let stride = self.pursue_pause(who, &mut pause, ctx);
                self.transfers[t].stage = match (pause.stage, self.transfers[t].method) {
                    (PauseStage::Failed, _) => Stage::Sent(None, false),
                    (PauseStage::Held, Method::HoldAtEnd) => {
                        let sending = self.send(t, None, ctx);
                        self.end_pause(&mut pause, ctx);
                        sending
                    }
                    (PauseStage::Held, _) => self.send(t, Some(pause), ctx),
                    _ => Stage::Pausing(pause),
                };
                stride
            }
            Stage::Sending(pause) => {
                self.transfers[t].stage = Stage::Sending(pause);
                Stride::Break(Next::Blocked)
            }
            Stage::Sent(pause, ok) => {
                self.end_sending(t, pause, ok, ctx);
                GO_ON
            }
            Stage::Starting(cargo) => {
                self.transfers[t].stage = Stage::Started(cargo);
                ctx.sleep(self.plan.speed.start_us)
            }
            Stage::Started(cargo) => {
                if let Cargo::Database(snapshot) = cargo {
                    self.db.replace(*snapshot, ctx);
                }
                self.last_members = self.db.datadir.members().map(<[_]>::to_vec);
                self.forget_streams();
                self.recover_streams();
                let gtid = self.db.position();
                self.is_with_scripts = false;
                self.tell(ctx, |ticket| Event::SstReceived {
                    ticket,
                    gtid,
                    rcode: 0,
                });
                self.storage_is_up();
                GO_ON
            }
            Stage::Broken => {
                self.is_with_scripts = false;
                self.tell(ctx, |ticket| Event::SstReceived {
                    ticket,
                    gtid: Gtid::UNDEFINED,
                    rcode: CANCELED,
                });
                GO_ON
            }
        }
    }
}
