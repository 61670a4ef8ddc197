//! A server in memory: its database, its appliers, its client sessions.

use std::collections::BTreeMap;

use crate::{
    Action, Answer, Apply, Code, Event, Gtid, HostAction, Owner, Seqno, Task, TrxId, View, Work,
    flags,
};

/// Where an applier thread is within a callback.
#[derive(Debug, Clone, PartialEq)]
pub enum Applier {
    /// Has just got the work.
    Started(Work),
    /// Waits in commit_order_enter.
    Entering(Work, u64),
    /// Entered commit order.
    Inside(Work),
    /// Waits in commit_order_leave.
    Leaving(Work, u64),
}

/// Where a session is with its transaction.
#[derive(Debug, Clone, PartialEq)]
pub enum Session {
    Certifying(u64),
    /// certify() said OK.
    Certified(Seqno),
    Entering(Seqno, u64),
    Inside(Seqno, Box<Option<Apply>>),
    Left,
    /// Must replay.
    RolledBack(Seqno),
    Replaying(Seqno, u64),
    /// Ordered and failed: takes its place only.
    FailedOrdered(Seqno),
    FailedEntering(Seqno, u64),
    FailedInside(Seqno),
    /// Done, with the code that the client saw.
    Done(Code),
}

/// Where a session is with a total-order action.
#[derive(Debug, Clone, PartialEq)]
pub enum Toi {
    Starting(u64),
    Running(Seqno, Code),
    Ending(u64),
    Done(Code),
}

/// What happened, in the server's view.
#[derive(Debug, Clone, PartialEq)]
pub enum Happened {
    Connected(View),
    View(View, Seqno),
    Synced,
    SstRequest,
    Donate(Gtid),
    /// sst_donate() with bypass.
    PassOn(Gtid),
    Exit(Code),
}

/// One server.
#[derive(Default)]
pub struct Server {
    /// Data committed, by seqno; dummies are not in here.
    pub database: BTreeMap<Seqno, Vec<u8>>,
    /// Every seqno that reached the database, in commit order.
    pub commits: Vec<Seqno>,
    pub happened: Vec<Happened>,
    pub appliers: Vec<Applier>,
    pub sessions: BTreeMap<TrxId, (Session, Vec<u8>)>,
    pub tois: BTreeMap<u64, (Toi, Vec<u8>)>,
    pub answers: BTreeMap<u64, Answer>,
    pub next_ticket: u64,
    pub next_trx: TrxId,
    /// Applying these seqnos ends with an error.
    pub errors: BTreeMap<Seqno, Vec<u8>>,
    /// What sst_request answers.
    pub sst_request: Option<Vec<u8>>,
    /// What it gets may make no sense.
    pub is_lied_to: bool,
}

impl Server {
    pub fn ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket
    }

    pub fn take(&mut self, ticket: u64) -> Option<Answer> {
        self.answers.remove(&ticket)
    }

    fn commit(&mut self, seqno: Seqno, data: Option<&[u8]>) {
        assert!(
            self.is_lied_to || self.commits.last().is_none_or(|last| *last < seqno),
            "{seqno} after {:?}",
            self.commits.last()
        );
        self.commits.push(seqno);
        if let Some(data) = data {
            self.database.insert(seqno, data.to_vec());
        }
    }

    /// Applier `index` takes its next step; None if it must wait.
    pub fn step_applier(&mut self, index: usize, last_committed: Seqno) -> Option<Event> {
        let applier = self.appliers.get(index)?.clone();
        let (next, event) = match applier {
            Applier::Started(work) => match &work.task {
                Task::Apply(apply) => {
                    assert!(
                        apply.depends_on <= last_committed,
                        "applied before {} is released",
                        apply.depends_on
                    );
                    let (seqno, ticket) = (apply.gtid.seqno, self.ticket());
                    let event = Event::CommitOrderEnter {
                        ticket,
                        owner: Owner::Applied(seqno),
                    };
                    (Some(Applier::Entering(work, ticket)), event)
                }
                Task::SstRequest => {
                    self.happened.push(Happened::SstRequest);
                    let request = self.sst_request.clone().map(Into::into);
                    (
                        None,
                        Event::SstRequested {
                            work: work.id,
                            request,
                        },
                    )
                }
                Task::Donate { gtid, bypass, .. } => {
                    assert!(
                        *bypass || gtid.seqno == last_committed,
                        "the donor's state is not the one it names"
                    );
                    self.happened.push(match bypass {
                        true => Happened::PassOn(*gtid),
                        false => Happened::Donate(*gtid),
                    });
                    (
                        None,
                        Event::Donated {
                            work: work.id,
                            ok: true,
                        },
                    )
                }
                Task::View(view) => {
                    if view.primary {
                        assert!(
                            last_committed < view.gtid.seqno,
                            "the view is committed before it is shown"
                        );
                        if self
                            .commits
                            .last()
                            .is_none_or(|last| *last < view.gtid.seqno)
                        {
                            assert_eq!(last_committed, view.gtid.seqno - 1);
                            self.commit(view.gtid.seqno, None);
                        }
                    }
                    self.happened
                        .push(Happened::View(view.clone(), last_committed));
                    (
                        None,
                        Event::WorkDone {
                            work: work.id,
                            ok: true,
                        },
                    )
                }
                Task::Connected(view) => {
                    assert!(view.my_index.is_some());
                    self.happened.push(Happened::Connected(view.clone()));
                    (
                        None,
                        Event::WorkDone {
                            work: work.id,
                            ok: true,
                        },
                    )
                }
                Task::Synced => {
                    self.happened.push(Happened::Synced);
                    (
                        None,
                        Event::WorkDone {
                            work: work.id,
                            ok: true,
                        },
                    )
                }
                Task::Exit { .. } => unreachable!("exits are taken by the driver"),
            },
            Applier::Entering(work, ticket) => {
                assert_eq!(self.take(ticket)?.code, Code::Ok);
                self.appliers[index] = Applier::Inside(work);
                return self.step_applier(index, last_committed);
            }
            Applier::Inside(work) => {
                let Task::Apply(apply) = &work.task else {
                    unreachable!()
                };
                let seqno = apply.gtid.seqno;
                let error = self.errors.get(&seqno).cloned().map(Into::into);
                let dummy = apply.flags & flags::ROLLBACK != 0;
                assert!(
                    self.is_lied_to || !dummy || apply.data.is_empty(),
                    "a dummy has nothing to apply"
                );
                let dummy = dummy || error.is_some();
                self.commit(seqno, (!dummy).then_some(&apply.data));
                let (ticket, owner) = (self.ticket(), Owner::Applied(seqno));
                let event = Event::CommitOrderLeave {
                    ticket,
                    owner,
                    error,
                };
                (Some(Applier::Leaving(work, ticket)), event)
            }
            Applier::Leaving(work, ticket) => {
                let ok = self.take(ticket)?.code == Code::Ok;
                (None, Event::WorkDone { work: work.id, ok })
            }
        };
        match next {
            Some(next) => self.appliers[index] = next,
            None => drop(self.appliers.remove(index)),
        }
        Some(event)
    }

    /// Session `trx` takes its next step; None if it must wait or is done.
    pub fn step_session(&mut self, trx: TrxId) -> Option<Event> {
        let (session, data) = self.sessions.get(&trx)?.clone();
        let owner = Owner::Trx(trx);
        let (next, event) = match session {
            Session::Certifying(ticket) => {
                let answer = self.take(ticket)?;
                let next = match answer.code {
                    Code::Ok => Session::Certified(answer.gtid.seqno),
                    Code::BfAbort => Session::RolledBack(answer.gtid.seqno),
                    Code::TrxFail => Session::FailedOrdered(answer.gtid.seqno),
                    code => {
                        assert_eq!(answer.gtid, Gtid::UNDEFINED, "{code:?}");
                        let event = Event::Release {
                            ticket: self.ticket(),
                            trx,
                        };
                        self.sessions.insert(trx, (Session::Done(code), data));
                        return Some(event);
                    }
                };
                assert!(answer.gtid.seqno > 0);
                self.sessions.insert(trx, (next, data));
                return self.step_session(trx);
            }
            Session::Certified(seqno) => {
                let ticket = self.ticket();
                (
                    Session::Entering(seqno, ticket),
                    Event::CommitOrderEnter { ticket, owner },
                )
            }
            Session::Entering(seqno, ticket) => {
                let next = match self.take(ticket)?.code {
                    Code::Ok => Session::Inside(seqno, Box::new(None)),
                    Code::BfAbort => Session::RolledBack(seqno),
                    code => panic!("commit_order_enter answered {code:?}"),
                };
                self.sessions.insert(trx, (next, data));
                return self.step_session(trx);
            }
            Session::RolledBack(seqno) => {
                let ticket = self.ticket();
                (
                    Session::Replaying(seqno, ticket),
                    Event::Replay { ticket, trx },
                )
            }
            Session::Replaying(seqno, ticket) => {
                let answer = self.take(ticket)?;
                assert_eq!(answer.code, Code::Ok);
                let replay = answer.replay.expect("what to replay");
                assert_eq!(replay.data, data);
                assert_eq!(replay.gtid.seqno, seqno);
                let ticket = self.ticket();
                (
                    Session::Entering(seqno, ticket),
                    Event::CommitOrderEnter { ticket, owner },
                )
            }
            Session::Inside(seqno, _) => {
                self.commit(seqno, Some(&data));
                (
                    Session::Left,
                    Event::CommitOrderLeave {
                        ticket: self.ticket(),
                        owner,
                        error: None,
                    },
                )
            }
            Session::Left => (
                Session::Done(Code::Ok),
                Event::Release {
                    ticket: self.ticket(),
                    trx,
                },
            ),
            Session::FailedOrdered(seqno) => {
                let ticket = self.ticket();
                (
                    Session::FailedEntering(seqno, ticket),
                    Event::CommitOrderEnter { ticket, owner },
                )
            }
            Session::FailedEntering(seqno, ticket) => {
                assert_eq!(self.take(ticket)?.code, Code::Ok);
                self.commit(seqno, None);
                let event = Event::CommitOrderLeave {
                    ticket: self.ticket(),
                    owner,
                    error: None,
                };
                (Session::FailedInside(seqno), event)
            }
            Session::FailedInside(_) => (
                Session::Done(Code::TrxFail),
                Event::Release {
                    ticket: self.ticket(),
                    trx,
                },
            ),
            Session::Done(_) => return None,
        };
        self.sessions.insert(trx, (next, data));
        Some(event)
    }

    /// The total-order action of `conn` takes its next step.
    pub fn step_toi(&mut self, conn: u64) -> Option<Event> {
        let (toi, data) = self.tois.get(&conn)?.clone();
        let (next, event) = match toi {
            Toi::Starting(ticket) => {
                let answer = self.take(ticket)?;
                let next = match answer.code {
                    Code::Ok | Code::TrxFail => Toi::Running(answer.gtid.seqno, answer.code),
                    code => Toi::Done(code),
                };
                self.tois.insert(conn, (next, data));
                return None;
            }
            Toi::Running(seqno, code) => {
                let error = self.errors.get(&seqno).cloned().map(Into::into);
                let data = (code == Code::Ok && error.is_none()).then_some(data.as_slice());
                self.commit(seqno, data);
                let ticket = self.ticket();
                (
                    Toi::Ending(ticket),
                    Event::ToiEnd {
                        ticket,
                        conn,
                        error,
                    },
                )
            }
            Toi::Ending(ticket) => {
                let code = self.take(ticket)?.code;
                self.tois.insert(conn, (Toi::Done(code), data));
                return None;
            }
            Toi::Done(_) => return None,
        };
        self.tois.insert(conn, (next, data));
        Some(event)
    }

    /// Keeps what a replicator said.
    pub fn answered(&mut self, action: &Action) {
        if let Action::Host(HostAction::Answer { ticket, answer }) = action {
            let before = self.answers.insert(*ticket, answer.clone());
            assert!(before.is_none(), "ticket {ticket} answered twice");
        }
    }
}
