//! Makes, breaks and heals connections; carries state transfers.

use trireme_group::Event;

use super::losses::weight_of;
use super::{Happening, World};
use crate::machine::Input;
use crate::network::ConnectionId;
use crate::seen::NodeId;
use crate::server::{Cargo, Transfer};

impl World {
    /// Lets two nodes try to connect, again and again.
    pub(crate) fn connect(&mut self, a: NodeId, b: NodeId) {
        let again = self.now_us + self.random.within(20_000..=200_000);
        self.queue.push(again, Happening::Connect(a, b));
        if self.network.is_connected(a, b) || self.are_apart(a, b) {
            return;
        }
        match (self.listening(a), self.listening(b)) {
            (Some((a_start, false)), Some((b_start, false))) => {
                if self.turned_away(a, b) {
                    return;
                }
                let (id, a_up, b_up) =
                    self.network
                        .connect(self.now_us, (a, a_start), (b, b_start));
                let up = |node, start, input| Happening::To(node, start, input);
                self.queue.push(a_up, up(a, a_start, Input::LinkUp(b, id)));
                self.queue.push(b_up, up(b, b_start, Input::LinkUp(a, id)));
            }
            // Connection refused: no process listens there.
            (Some((start, _)), None) => self.refused(a, start, b),
            (None, Some((start, _))) => self.refused(b, start, a),
            _ => {}
        }
    }

    /// True if a fault lets these nodes make no connection.
    fn are_apart(&self, a: NodeId, b: NodeId) -> bool {
        let isolated = self.machines[a].isolated + self.machines[b].isolated > 0;
        isolated || self.network.are_cut_apart(a, b)
    }

    /// True if a fault keeps a node from another one.
    pub(super) fn is_cut_off(&self, node: NodeId) -> bool {
        let mut others = (0..self.machines.len()).filter(|other| *other != node);
        others.any(|other| self.are_apart(node, other))
    }

    /// True if faults keep a node from so many others that it reaches no majority of its view. A read asks the voters
    /// itself, so links between these do not matter.
    pub(super) fn lacks_majority(&self, node: NodeId) -> bool {
        if !self.is_cut_off(node) {
            return false;
        }
        let process = self.machines[node].process.as_ref();
        let Some(link) = process.and_then(|process| process.engine.link()) else {
            return true;
        };
        let is_reached = |other: &NodeId| {
            let runs = self.listening(*other).is_some_and(|(_, paused)| !paused);
            *other == node || runs && !self.are_apart(node, *other)
        };
        let reached = (0..self.machines.len()).filter(is_reached);
        let view = link.group.configuration();
        let weight = weight_of(view, reached.map(|other| &self.machines[other]));
        !view.is_majority(weight)
    }

    /// The process of a node; true if it is paused.
    fn listening(&self, node: NodeId) -> Option<(u64, bool)> {
        let process = self.machines[node].process.as_ref()?;
        process.engine.link()?;
        Some((process.start, process.free_us > self.now_us + 20_000))
    }

    /// The handshake rejects a process of another history (rule 11). An astray node was not known as such when the
    /// two met, so the group must reject it. Such a node meets no node without a history.
    fn turned_away(&mut self, a: NodeId, b: NodeId) -> bool {
        let strangers = self.are_strangers(a, b);
        self.coverage.strangers += u64::from(strangers);
        strangers != (self.is_astray(a) || self.is_astray(b))
    }

    fn are_strangers(&self, a: NodeId, b: NodeId) -> bool {
        let history = |node: NodeId| {
            let process = self.machines[node].process.as_ref()?;
            Some(process.progress.history).filter(|history| !history.is_nil())
        };
        matches!((history(a), history(b)), (Some(a), Some(b)) if a != b)
    }

    fn refused(&mut self, node: NodeId, start: u64, by: NodeId) {
        if let Some(incarnation) = self.machines[by].incarnations.last().copied() {
            let at = self.now_us + self.network.delay_us(by, node);
            let input = Input::Group(Box::new(Event::PeerDead { incarnation }));
            self.queue.push(at, Happening::To(node, start, input));
        }
    }

    pub(crate) fn link_up(&mut self, node: NodeId, other: NodeId, id: ConnectionId) {
        let Some(start) = self.network.set_up(node, other, id) else {
            return;
        };
        self.tell(|| format!("n{} is connected to n{}", node + 1, other + 1));
        let event = Event::PeerUp {
            replica: self.machines[other].replica,
            incarnation: self.machines[other].incarnation(start),
        };
        self.group(node, event);
        self.tell_listed(node);
    }

    pub(crate) fn link_down(&mut self, node: NodeId, other: NodeId, id: ConnectionId) {
        let Some(start) = self.network.set_down(node, other, id) else {
            return;
        };
        self.tell(|| format!("n{} has lost its connection to n{}", node + 1, other + 1));
        let incarnation = self.machines[other].incarnation(start);
        self.group(node, Event::PeerDown { incarnation });
        self.tell_listed(node);
    }

    /// Handles an input for a process that is gone.
    pub(crate) fn missed(&mut self, node: NodeId, input: Input) {
        if let Input::LinkUp(other, id) | Input::LinkDown(other, id) = input {
            self.network.set_down(node, other, id);
        }
    }

    /// Breaks the connection between two nodes; both will notice.
    pub(crate) fn break_link(&mut self, a: NodeId, b: NodeId) {
        let Some((id, a_at, b_at)) = self.network.break_connection(self.now_us, a, b) else {
            return;
        };
        self.coverage.breaks += 1;
        for (node, other, at) in [(a, b, a_at), (b, a, b_at)] {
            self.notice(node, other, id, at);
        }
    }

    /// Lets the process of a node notice at this time that its connection is broken.
    fn notice(&mut self, node: NodeId, other: NodeId, id: ConnectionId, at: u64) {
        match self.listening(node) {
            Some((start, _)) => {
                let input = Input::LinkDown(other, id);
                self.queue.push(at, Happening::To(node, start, input));
            }
            None => {
                self.network.set_down(node, other, id);
            }
        }
    }

    /// Closes the connections of a process that is gone, as its kernel does.
    pub(crate) fn close_links(&mut self, node: NodeId) {
        for other in 0..self.machines.len() {
            if other == node {
                continue;
            }
            let broken = self.network.break_connection(self.now_us, node, other);
            if let Some((id, _, at)) = broken {
                self.network.set_down(node, other, id);
                self.notice(other, node, id, at);
            } else if let Some(id) = self.network.is_broken(node, other) {
                self.network.set_down(node, other, id);
            }
        }
    }

    /// Ends a cut.
    pub(crate) fn heal(&mut self, from: NodeId, to: NodeId) {
        for (at, bulk) in self.network.heal(self.now_us, from, to) {
            let start = self.machines[to].starts();
            let input = Input::Frame(from, bulk);
            self.queue.push(at, Happening::To(to, start, input));
        }
        if let Some(id) = self.network.is_broken(from, to) {
            let at = self.now_us + self.network.notice_us(from, to);
            self.notice(to, from, id, at);
        }
        self.drain(from, to);
    }

    /// Tells a process that a queue which had overflowed is empty again.
    pub(crate) fn drain(&mut self, from: NodeId, to: NodeId) {
        if !self.network.drained(from, to) {
            return;
        }
        if let (Some((start, _)), Some(incarnation)) =
            (self.listening(from), self.machines[to].incarnations.last())
        {
            let incarnation = *incarnation;
            let input = Input::Group(Box::new(Event::PeerDrained { incarnation }));
            self.queue
                .push(self.now_us, Happening::To(from, start, input));
        }
    }

    /// Begins the state transfer of a donor.
    pub(crate) fn begin_transfer(&mut self, donor: NodeId, transfer: Transfer) {
        let (joiner, is_bypass) = (transfer.to, matches!(transfer.cargo, Cargo::Position));
        match is_bypass {
            true => self.coverage.bypasses += 1,
            false => self.coverage.transfers += 1,
        }
        self.tell(|| {
            let what = if is_bypass {
                "word of its position"
            } else {
                "its database"
            };
            format!("n{} sends {what} to n{}", donor + 1, joiner + 1)
        });
        let at = self.now_us + transfer.takes_us.max(1);
        let start = self.machines[donor].starts();
        let happening = Happening::TransferEnds(donor, start, Box::new(transfer));
        self.queue.push(at, happening);
        if let Some(index) = self.transfer_fault.take() {
            self.crash_in_transfer(index, donor, joiner, at);
        }
    }

    /// Ends a state transfer. It succeeds if both ends still live and no cut is between them.
    pub(crate) fn transfer_ends(&mut self, donor: NodeId, start: u64, transfer: Transfer) {
        let Transfer {
            to,
            to_start,
            cargo,
            thread,
            ..
        } = transfer;
        let cut = self.network.are_cut_apart(donor, to);
        let alive = self.machines[donor].alive(start).is_some();
        let ok = alive && !cut && self.machines[to].alive(to_start).is_some();
        self.coverage.transfers_broken += u64::from(!ok);
        let result = if ok { "has arrived" } else { "broke off" };
        self.tell(|| format!("what n{} sends to n{} {result}", donor + 1, to + 1));
        self.input(donor, start, Input::DonationEnded(thread, ok));
        self.input(to, to_start, Input::ScriptEnded(ok.then_some(cargo)));
    }
}
