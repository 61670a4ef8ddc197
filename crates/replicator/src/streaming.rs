//! Streaming replication: a transaction that reaches the others in fragments, before it commits.
//!
//! A fragment is an ordinary entry with flags: the first has TRX_START, the last TRX_END. To the server of
//! every other node they are one transaction, which it keeps open ("streaming applier") until the last
//! fragment, a rollback fragment, or a view that closes it.

use trireme_certification::Seqno;
use trireme_group::{Configuration, Incarnation, SubmissionId};
use trireme_mutants::{Mutant, planted};

use crate::context::Context;
use crate::views::Views;
use crate::writeset::WriteSet;

/// Returns true for a fragment of this very process whose client no longer waits: the client was told that it failed.
/// The others have applied it, and undo it with the rollback fragment that follows; here there is nothing to undo
/// (rule 7).
pub(crate) fn is_abandoned_fragment(
    context: &Context,
    id: SubmissionId,
    write_set: &WriteSet,
) -> bool {
    let is_own = id.incarnation == context.me() && write_set.is_fragment();
    is_own && !planted(Mutant::AbandonedFragmentApplied)
}

/// Returns true if the servers have closed the streaming transactions of `origin` at a view that `origin` had not
/// seen when it sent this fragment. A late fragment would be part of a transaction here, and of none there; so it
/// fails everywhere. The servers close these transactions when their origin is no member, and all of them when a
/// view has the members of the view before.
pub(crate) fn was_closed(views: &Views, origin: Incarnation, last_seen: Seqno) -> bool {
    let mut views = views.iter().rev().peekable();
    while let Some((seqno, view)) = views.next() {
        if *seqno <= last_seen {
            return false;
        }
        // Views before the oldest remembered one are unknown.
        let closes_all = views.peek().is_none_or(|(_, before)| is_same(view, before));
        if closes_all || view.index_of(origin).is_none() {
            return !planted(Mutant::ClosedStreamGoesOn);
        }
    }
    false
}

/// Returns true if both views have the same processes with data.
pub(crate) fn is_same(view: &Configuration, before: &Configuration) -> bool {
    let [here, there] =
        [view, before].map(|view| view.data_members().map(|member| member.incarnation));
    here.eq(there)
}
