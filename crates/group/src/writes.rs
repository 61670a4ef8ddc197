//! The two writes to the local log: both also go to the driver, which writes the log on disk.

use crate::component::Component;
use crate::context::Context;
use crate::entry::Entry;
use crate::event::Action;
use crate::ids::Position;
use crate::log::Log;
use crate::matching::Matching;
use crate::outbox::Outbox;

/// Appends an entry to the local log.
pub(crate) fn append(context: &Context, log: &mut Log, entry: Entry, out: &mut Outbox) {
    log.append(entry.clone(), context.config().append_is_durable);
    out.push(Action::Append { entry });
}

/// Drops the suffix above `after`, which conflicts with the leader's log. Returns the dropped entries.
///
/// # Panics
/// If this member acknowledged one of them in the term in force.
pub(crate) fn truncate(
    matching: &Matching,
    log: &mut Log,
    after: Position,
    component: &mut Component,
    out: &mut Outbox,
) -> Vec<Entry> {
    assert!(
        after >= matching.agreed().min(log.tail().end()),
        "what was acknowledged in a term is never dropped within it (rule 1)"
    );
    let dropped = log.truncate(after);
    if !dropped.is_empty() {
        out.count(|c| c.truncations += 1);
        component.left_at_most_in(log.latest().number);
        out.push(Action::Truncate { after });
    }
    dropped
}
