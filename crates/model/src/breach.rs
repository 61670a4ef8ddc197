//! The properties that no state may break.

use trireme_group::{Message, Term};

use crate::process::Fact;

/// A broken property.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Breach {
    pub property: &'static str,
    pub text: String,
}

/// A property that every state has.
#[derive(Clone, Copy, Debug)]
pub struct Rule(pub &'static str);

pub const ONE_LEADER: Rule = Rule("one leader per term");
pub const HISTORIES: Rule = Rule("histories agree");
pub const KEPT: Rule = Rule("what is committed is in the log of every later leader");
pub const ONCE: Rule = Rule("no submission is delivered twice or out of turn");
pub const WITHDRAWN: Rule = Rule("what was withdrawn never commits");
pub const ONE_CHANGE: Rule = Rule("one uncommitted change of membership at a time");
pub const DISK: Rule = Rule("what is sent rests on what is on disk");
pub const ASSERTION: Rule = Rule("no assertion of the core fails");

impl Rule {
    pub fn broken(self, text: impl Into<String>) -> Breach {
        Breach {
            property: self.0,
            text: text.into(),
        }
    }

    pub fn fact(self, text: impl Into<String>) -> Fact {
        Fact::Breach(self.broken(text))
    }
}

/// The promise that must be on disk before this message leaves (rule 4); None if the message needs none.
pub fn rests_on(message: &Message) -> Option<Term> {
    match message {
        Message::Promise(promise) => Some(promise.term),
        Message::Prepare { term, .. } => Some(*term),
        Message::Ack { term, position, .. } if *position > 0 => Some(*term),
        Message::Append(append) if append.ack > 0 => Some(append.term),
        Message::Status(status) if status.ack > 0 => Some(status.term),
        _ => None,
    }
}
