//! The lag budget: how long writers wait for one slow member before they propose to leave it out.

use std::collections::BTreeMap;

use trireme_group::Incarnation;

use super::leases::Holder;

/// Weight of a wait for a pace, where a wait for a stop counts 1.
const PACE_COUNTS: f64 = 1.0 / 8.0;
/// Rate at which a charge is forgotten, where it is gathered at rate 1.
const FORGIVEN: f64 = 1.0 / 10.0;
/// Maximum of one charge: a process that overslept must not blame others for that time.
const LONGEST_STEP_MS: u64 = 20;

/// The time that each member has cost the writers recently. Each writer keeps its own account. When a member's budget
/// is spent, the writer proposes to leave the member out, and the order decides.
#[derive(Debug, Default)]
pub(crate) struct LagBudget {
    spent_ms: BTreeMap<Incarnation, f64>,
    /// The member that has kept own writers waiting since `at_ms`.
    holder: Option<Holder>,
    at_ms: u64,
}

impl LagBudget {
    /// `holder`: the member that alone keeps own writers waiting from now on. Returns a member to leave out.
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

    /// Returns the time of the next check.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        self.holder.map(|_| self.at_ms + LONGEST_STEP_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trireme_group::Uuid;

    /// How long a member that holds up the writers for `hold_ms` of each 100 ms is borne with.
    fn borne_ms(stops: bool, hold_ms: u64) -> Option<u64> {
        let mut budget = LagBudget::default();
        let member = Incarnation(Uuid([1; 16]));
        (0..20_000).step_by(5).find(|now_ms| {
            let holds = now_ms % 100 < hold_ms;
            let holder = holds.then_some(Holder { member, stops });
            budget.watch(*now_ms, holder, 60).is_some()
        })
    }

    #[test]
    fn a_stop_is_borne_for_its_time_a_pace_eight_times_as_long_and_little_of_either_for_ever() {
        assert_eq!(borne_ms(true, 100), Some(60));
        assert_eq!(borne_ms(false, 100), Some(480));
        assert_eq!(borne_ms(true, 50), Some(115));
        assert_eq!(borne_ms(true, 5), None);
        assert_eq!(borne_ms(false, 40), None);
    }

    #[test]
    fn a_process_that_overslept_blames_nobody() {
        let mut budget = LagBudget::default();
        let member = Incarnation(Uuid([1; 16]));
        let holder = Some(Holder {
            member,
            stops: true,
        });
        assert_eq!(budget.watch(0, holder, 60), None);
        assert_eq!(budget.watch(10_000, holder, 60), None);
    }
}
