//! The lag budget: how long writers wait for one slow member before they propose to leave it out.

use std::collections::BTreeMap;

use trireme_group::Incarnation;

use super::leases::Holder;

/// Weight of a wait for a pace, where a wait for a stop counts 1.
const PACE_COUNTS: f64 = 1.0 / 8.0;
/// Rate at which a charge is forgotten, where it is gathered at rate 1.
const FORGIVEN: f64 = 1.0 / 10.0;
/// Maximum of one charge: a process that overslept must not blame others for that time. What is forgotten has no
/// maximum: a node without a load looks here once a second.
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
    /// `holder`: the member that alone keeps own writers waiting from now on. `limit_ms`: a member's budget; 0: there is
    /// none, and nothing is charged. Returns a member to leave out.
    pub(crate) fn watch(
        &mut self,
        now_ms: u64,
        holder: Option<Holder>,
        limit_ms: u64,
    ) -> Option<Incarnation> {
        let elapsed_ms = now_ms.saturating_sub(self.at_ms);
        let held = std::mem::replace(&mut self.holder, holder);
        self.at_ms = now_ms;
        if limit_ms == 0 {
            self.spent_ms.clear();
            return None;
        }
        let held_up = |member: &Incarnation| held.is_some_and(|held| held.member == *member);
        self.spent_ms.retain(|member, spent| {
            if !held_up(member) {
                *spent -= elapsed_ms as f64 * FORGIVEN;
            }
            *spent > 0.0
        });
        let held = held?;
        let weight = if held.stops { 1.0 } else { PACE_COUNTS };
        let spent = self.spent_ms.entry(held.member).or_default();
        *spent += elapsed_ms.min(LONGEST_STEP_MS) as f64 * weight;
        if *spent < limit_ms as f64 {
            return None;
        }
        self.spent_ms.remove(&held.member);
        Some(held.member)
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

    const MEMBER: Incarnation = Incarnation(Uuid([1; 16]));

    fn holder(stops: bool) -> Option<Holder> {
        let member = MEMBER;
        Some(Holder { member, stops })
    }

    /// How long a member that holds up the writers for `hold_ms` of each 100 ms is borne with.
    fn borne_ms(stops: bool, hold_ms: u64) -> Option<u64> {
        let mut budget = LagBudget::default();
        (0..20_000).step_by(5).find(|now_ms| {
            let holds = now_ms % 100 < hold_ms;
            let holder = holder(stops).filter(|_| holds);
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
    fn a_node_without_a_load_forgets_as_fast_as_one_with() {
        let mut budget = LagBudget::default();
        for second in 0..100 {
            let now_ms = second * 1_000;
            assert_eq!(budget.watch(now_ms, holder(true), 60), None);
            assert_eq!(budget.watch(now_ms + 20, None, 60), None);
        }
    }

    #[test]
    fn without_a_limit_nothing_is_charged() {
        let mut budget = LagBudget::default();
        for now_ms in 0..1_000 {
            assert_eq!(budget.watch(now_ms, holder(true), 0), None);
        }
        assert_eq!(budget.watch(1_000, holder(true), 60), None);
        assert_eq!(budget.watch(1_001, None, 60), None);
    }

    #[test]
    fn a_process_that_overslept_blames_nobody() {
        let mut budget = LagBudget::default();
        assert_eq!(budget.watch(0, holder(true), 60), None);
        assert_eq!(budget.watch(10_000, holder(true), 60), None);
    }
}
