//! Carries packets between TUN devices, each link with its delay, in one thread. Packets of a link stay in order,
//! unless the delay is reduced meanwhile; TCP repairs that.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tun_rs::SyncDevice;

use super::node_at;

/// The longest time until the router notices that it should end.
const TIMEOUT: Duration = Duration::from_millis(100);

/// The most packets taken from a device at a time, so that other devices do not wait long.
const BATCH: usize = 64;

/// The state of the links; it changes while the router runs.
pub struct Wires {
    nodes: usize,
    /// The one-way delays in microseconds, with a row per sender.
    delay_us: Vec<AtomicU64>,
    cut: Vec<AtomicBool>,
    ended: AtomicBool,
}

impl Wires {
    /// Makes links without delay between `nodes` nodes.
    pub fn new(nodes: usize) -> Self {
        Self {
            nodes,
            delay_us: (0..nodes * nodes).map(|_| AtomicU64::new(0)).collect(),
            cut: (0..nodes).map(|_| AtomicBool::new(false)).collect(),
            ended: AtomicBool::new(false),
        }
    }

    /// Sets the one-way delay between two nodes, in both directions.
    pub fn set_delay(&self, a: usize, b: usize, delay: Duration) {
        let us = delay.as_micros() as u64;
        self.delay_us[a * self.nodes + b].store(us, Ordering::Relaxed);
        self.delay_us[b * self.nodes + a].store(us, Ordering::Relaxed);
    }

    /// Cuts off node `i`.
    pub fn cut(&self, i: usize) {
        self.cut[i].store(true, Ordering::Relaxed);
    }

    /// Ends the router.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// The destination of a packet from node `from`, and its delay; None if it goes nowhere.
    fn route(&self, from: usize, packet: &[u8]) -> Option<(usize, Duration)> {
        let to = node_at(ipv4_destination(packet)?, self.nodes)?;
        let is_cut = |i: usize| self.cut[i].load(Ordering::Relaxed);
        if is_cut(from) || is_cut(to) {
            return None;
        }
        let us = self.delay_us[from * self.nodes + to].load(Ordering::Relaxed);
        Some((to, Duration::from_micros(us)))
    }
}

/// A packet on its way. Ordered by due time, then by number, which keeps the order within a link.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct UnderWay {
    due: Instant,
    number: u64,
    from: usize,
    to: usize,
    packet: Vec<u8>,
}

/// Carries packets between TUN devices.
pub struct Router {
    devices: Vec<SyncDevice>,
    wires: Arc<Wires>,
    under_way: BinaryHeap<Reverse<UnderWay>>,
    sent: u64,
}

impl Router {
    /// Makes a router between `devices`, one for each node of `wires`.
    pub fn new(devices: Vec<SyncDevice>, wires: Arc<Wires>) -> Self {
        Self {
            devices,
            wires,
            under_way: BinaryHeap::new(),
            sent: 0,
        }
    }

    /// Carries packets until [`Wires::end`].
    pub fn run(mut self) {
        let mut buffer = vec![0; 65_536];
        while !self.wires.ended.load(Ordering::Relaxed) {
            self.deliver();
            for from in self.wait() {
                for _ in 0..BATCH {
                    // There are no more packets, or the device is being removed.
                    let Ok(length) = self.devices[from].recv(&mut buffer) else {
                        break;
                    };
                    self.accept(from, &buffer[..length]);
                }
            }
        }
    }

    fn accept(&mut self, from: usize, packet: &[u8]) {
        match self.wires.route(from, packet) {
            Some((to, Duration::ZERO)) => self.hand_over(to, packet),
            Some((to, delay)) => {
                self.sent += 1;
                self.under_way.push(Reverse(UnderWay {
                    due: Instant::now() + delay,
                    number: self.sent,
                    from,
                    to,
                    packet: packet.to_vec(),
                }));
            }
            None => {}
        }
    }

    /// Delivers the packets that are due. A cut also drops packets on their way.
    fn deliver(&mut self) {
        while let Some(Reverse(next)) = self.under_way.peek() {
            if next.due > Instant::now() {
                break;
            }
            let Some(Reverse(next)) = self.under_way.pop() else {
                break;
            };
            if self.wires.route(next.from, &next.packet).is_some() {
                self.hand_over(next.to, &next.packet);
            }
        }
    }

    fn hand_over(&self, to: usize, packet: &[u8]) {
        // A packet that the device does not take is lost, as on any network.
        let _ = self.devices[to].send(packet);
    }

    /// Waits until a packet comes or is due. Returns the devices with packets.
    fn wait(&self) -> Vec<usize> {
        let due = self.under_way.peek().map(|Reverse(next)| next.due);
        let timeout = due.map_or(TIMEOUT, |due| {
            due.saturating_duration_since(Instant::now()).min(TIMEOUT)
        });
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let mut fds: Vec<PollFd<'_>> = self
            .devices
            .iter()
            .map(|device| PollFd::from_borrowed_fd(device.as_fd(), PollFlags::IN))
            .collect();
        if poll(&mut fds, Some(&timeout)).is_err() {
            return Vec::new();
        }
        let readable = fds.iter().enumerate();
        let readable = readable.filter(|(_, fd)| fd.revents().contains(PollFlags::IN));
        readable.map(|(i, _)| i).collect()
    }
}

/// The destination of an IPv4 packet; None for any other packet, such as router searches of IPv6.
fn ipv4_destination(packet: &[u8]) -> Option<[u8; 4]> {
    let is_ipv4 = packet.first()? >> 4 == 4;
    packet.get(16..20)?.try_into().ok().filter(|_| is_ipv4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet_to(node: u8) -> Vec<u8> {
        let mut packet = vec![0; 20];
        packet[0] = 0x45;
        packet[16..].copy_from_slice(&[10, 77, 0, node + 1]);
        packet
    }

    #[test]
    fn a_link_has_its_delay_in_both_directions() {
        let wires = Wires::new(3);
        wires.set_delay(0, 2, Duration::from_millis(50));
        assert_eq!(
            wires.route(0, &packet_to(2)),
            Some((2, Duration::from_millis(50)))
        );
        assert_eq!(
            wires.route(2, &packet_to(0)),
            Some((0, Duration::from_millis(50)))
        );
        assert_eq!(wires.route(0, &packet_to(1)), Some((1, Duration::ZERO)));
    }

    #[test]
    fn nothing_comes_from_or_to_a_node_cut_off() {
        let wires = Wires::new(3);
        wires.cut(2);
        assert_eq!(wires.route(0, &packet_to(2)), None);
        assert_eq!(wires.route(2, &packet_to(0)), None);
        assert!(wires.route(1, &packet_to(0)).is_some());
    }

    #[test]
    fn other_packets_go_nowhere() {
        let wires = Wires::new(2);
        assert_eq!(wires.route(0, &packet_to(7)), None);
        assert_eq!(wires.route(0, &[0x60; 40]), None);
        assert_eq!(wires.route(0, &[0x45; 10]), None);
        assert_eq!(wires.route(0, &[]), None);
    }

    #[test]
    fn packets_leave_by_time_and_then_in_order() {
        let now = Instant::now();
        let under_way = |due_ms: u64, number: u64| {
            Reverse(UnderWay {
                due: now + Duration::from_millis(due_ms),
                number,
                from: 0,
                to: 1,
                packet: Vec::new(),
            })
        };
        let mut heap = BinaryHeap::from([under_way(5, 1), under_way(1, 3), under_way(1, 2)]);
        let order: Vec<u64> = std::iter::from_fn(|| heap.pop().map(|r| r.0.number)).collect();
        assert_eq!(order, [2, 3, 1]);
    }
}
