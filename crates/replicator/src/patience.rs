//! How long writers wait for one slow member before the group goes on without it.

use std::collections::BTreeMap;

use trireme_group::Incarnation;

use crate::flow::Holder;

/// A pace counts so much less than a stop.
const PACE_COUNTS: f64 = 1.0 / 8.0;
/// What was waited is forgotten so much more slowly than it is gathered.
const FORGIVEN: f64 = 1.0 / 10.0;
/// A process that overslept does not blame others for it.
const LONGEST_STEP_MS: u64 = 20;

/// What each member has cost the writers of late. Kept by each writer; who has run out of patience
/// proposes to leave the member out, and the order decides.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    spent_ms: BTreeMap<Incarnation, f64>,
    /// Who has kept them waiting since `at_ms`.
    holder: Option<Holder>,
    at_ms: u64,
}

impl Patience {
    /// `holder`: who alone keeps own writers waiting from now on. Returns who is to be left out.
    pub(crate) fn watch(
        &mut self,
        now_ms: u64,
        holder: Option<Holder>,
        limit_ms: u64,
    ) -> Option<Incarnation> {
        let elapsed_ms = now_ms.saturating_sub(self.at_ms).min(LONGEST_STEP_MS) as f64;
        let held = std::mem::replace(&mut self.holder, holder);
        self.at_ms = now_ms;
        if let Some(held) = held {
            let weight = if held.stops { 1.0 } else { PACE_COUNTS };
            *self.spent_ms.entry(held.member).or_default() += elapsed_ms * weight;
        }
        self.spent_ms.retain(|member, spent| {
            if held.is_none_or(|held| held.member != *member) {
                *spent -= elapsed_ms * FORGIVEN;
            }
            *spent > 0.0
        });
        let limit = limit_ms as f64;
        let over = self.spent_ms.iter().find(|(_, spent)| **spent >= limit);
        let member = over.map(|(member, _)| *member).filter(|_| limit_ms > 0)?;
        self.spent_ms.remove(&member);
        Some(member)
    }

    /// Nobody has cost anything.
    pub(crate) fn forget(&mut self) {
        *self = Patience::default();
    }

    /// When to look again.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        self.holder.map(|_| self.at_ms + LONGEST_STEP_MS)
    }
}
