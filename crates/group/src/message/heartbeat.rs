//! A heartbeat: the status of its sender, and what it tells for the choice of the leader.

use crate::ids::{Incarnation, Position, Term, TimeMs, Uuid};

/// Heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, Default, Hash)]
pub struct Status {
    /// The sender's promised term.
    pub term: Term,
    /// True if the sender leads in that term.
    pub leader: bool,
    /// The sender's component state.
    pub component_state: ComponentState,
    /// Cluster uuid, nil if unknown.
    pub history: Uuid,
    /// The forced-view history.
    pub overrides: Vec<Uuid>,
    /// Number of the committed configuration.
    pub configuration_number: u64,
    /// Its members.
    pub members: Vec<Incarnation>,
    /// The acknowledged position.
    pub ack: Position,
    /// Log end.
    pub end: Position,
    /// Commit point.
    pub commit: Position,
    /// The facts for the choice of the leader's place.
    pub outlook: Outlook,
}

impl Status {
    /// The heartbeat of a process that does not lead.
    pub(crate) fn of_no_leader(self) -> Status {
        Status {
            leader: false,
            ..self
        }
    }
}

/// The part of a heartbeat that serves the choice of the leader's place.
#[derive(Clone, Debug, PartialEq, Eq, Default, Hash)]
pub struct Outlook {
    /// The operator's choice for the sender (`repl.leader`).
    pub preference: Preference,
    /// True if the sender is able to lead.
    pub able: bool,
    /// The sender's clock; 0: none.
    pub stamp_ms: TimeMs,
    /// The links to the members to which the sender is connected.
    pub links: Vec<Link>,
}

/// `repl.leader`: whether a member should be the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub enum Preference {
    /// Only if no other member can lead.
    Never,
    /// If commits are fastest under this leader.
    #[default]
    Auto,
    /// Before all members without this value.
    Prefer,
}

/// The link to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct Link {
    /// The peer.
    pub peer: Incarnation,
    /// The stamp of the peer's latest heartbeat; 0: none.
    pub echo_ms: TimeMs,
    /// Time since the sender received that stamp.
    pub held_ms: u32,
    /// The round trip as the sender has measured it, or [`Link::UNKNOWN`].
    pub round_trip_us: u32,
}

impl Link {
    /// The value for an unknown round trip.
    pub const UNKNOWN: u32 = u32::MAX;
}

/// A process's component state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub enum ComponentState {
    /// Joining, or left.
    #[default]
    Outside,
    /// A member of the primary component.
    Primary,
    /// Was a member of the primary component, and hears no majority.
    NonPrimary,
}
