//! Forced views (rule 11): made here, by an operator's override (`pc.bootstrap`) or by an option set beforehand
//! (`pc.ignore_sb`, `pc.ignore_quorum`), and met in the statuses of peers. A process gives way to a forced-view history
//! that extends its own.

use trireme_mutants::{Mutant, planted};

use super::Membership;
use crate::branches::tell_no_more_overrides;
use crate::configuration::{Configuration, Member};
use crate::event::Action;
use crate::ids::{Incarnation, Uuid};
use crate::message::{Message, Status};
use crate::yielding::marked_as_automatic;

impl Membership<'_> {
    // ---- forced views made here ----

    /// Carries out `pc.bootstrap`, which has no effect in a primary component.
    pub(crate) fn force_primary(&mut self, override_id: Uuid) {
        if self.component.is_non_primary() {
            self.force(override_id);
        }
    }

    fn force(&mut self, override_id: Uuid) {
        if self.branches().own_seat().is_none() {
            let text = "pc.bootstrap had no effect: the last view that this node knows does not list it; it joins by itself";
            self.out.note(text);
            return;
        }
        if self.branches().is_full_of_overrides() {
            let text = tell_no_more_overrides();
            return self.out.push(Action::Alarm { text });
        }
        let number = self.vote.promised().number + 1;
        let won = (self.elections()).ask_promises(number, Some(override_id), None);
        self.lead(won);
    }

    pub(super) fn may_go_on_alone(&self) -> bool {
        // A silent member, connected or not, may go on by itself (simulator, seed 6100003414 of `mistakes`).
        let within_ms = self.context.config().suspect_timeout_ms;
        let is_heard = |m: &Member| {
            let peer = self.peers.get(m.incarnation);
            let is_heard = peer.is_some_and(|peer| {
                self.known().hears(within_ms, peer)
                    || peer.up && planted(Mutant::UnpromisedHalfCounts)
            });
            m.incarnation == self.me() || is_heard
        };
        let half = |configuration: &Configuration| {
            configuration.is_half(configuration.weight_of(is_heard))
        };
        // A view that may be in force, and that lacks this process, cannot be followed by one that it forms.
        self.branches().own_seat().is_some()
            && (self.context.config().ignore_quorum
                || self.context.config().ignore_split_brain
                    && self.log.in_every_configuration(half))
    }

    /// Forms the forced view that the operator ordered beforehand by an option.
    pub(super) fn go_on_alone(&mut self) {
        self.component
            .majority_mut()
            .tries_alone(self.context.now());
        let override_id = self.yielding_override();
        self.force(override_id);
    }

    /// Makes the id of a yielding forced view.
    fn yielding_override(&mut self) -> Uuid {
        marked_as_automatic(self.elections().automatic_override())
    }

    // ---- forced views met here ----

    /// A forced view outranks every view without it (rule 11): if the sender knows one that this process lacks, this
    /// process gives way and requests admission. Returns false if the sender must give way.
    pub(crate) fn heed_overrides(&mut self, from: Incarnation, status: &Status) -> bool {
        if self.component.is_outside() {
            return true;
        }
        let own = self.branches().binding_overrides();
        if !status.overrides.starts_with(own) {
            return false;
        }
        if self.branches().outvotes(from, status) {
            if self.component.is_primary() {
                let lost = self.branches().beyond_own(&status.overrides).to_vec();
                self.forced_views.give_up(&lost);
            }
            return false;
        }
        let following = self.matching.is_matched() && status.term == self.vote.promised();
        let overruled = status.overrides.len() > own.len() && !following;
        if overruled && !planted(Mutant::OverridesIgnored) {
            self.forced_views.heed(&status.overrides);
            self.elections().step_aside();
            self.declare_non_primary();
        }
        true
    }

    /// Gives way if a component without the last forced views of this log is primary, and these views yield. The word of
    /// a follower is enough: its leader may not be heard, and this process orders nothing any more.
    pub(crate) fn give_up_overrides(&mut self, from: Incarnation) {
        if self.component.is_outside() || !self.branches().gives_up_overrides() {
            return;
        }
        let had_a_say = self.component.is_primary() || self.role.is_leader();
        if had_a_say {
            let text = format!(
                "this node went on without a quorum (pc.ignore_quorum, pc.ignore_sb, bootstrapped without \
                 grastate.dat), and so did a primary component to which {from} belongs: this node gives way, and drops \
                 its commits since then"
            );
            self.out.note(text);
        }
        let last = self.branches().yielding_overrides().to_vec();
        self.forced_views.give_way(&last);
        self.elections().step_aside();
        self.declare_non_primary();
        // Before this process requests admission: a member that is still primary with those views is removed.
        if had_a_say {
            self.announce();
        }
    }

    /// The leader `from` refuses admission, which is final for a process that waits outside. If the leader is on
    /// another branch, the refusal is not final at once: a majority of this branch may be about to form, and that
    /// leader would give way to it (rule 11).
    pub(crate) fn join_refused(&mut self, from: Incarnation, reason: String) {
        // The request may have named forced views that this process has given up since. The next one does not.
        if self.branches().gives_up_overrides() {
            return;
        }
        let waits = self.component.is_outside() || self.component.is_resumed();
        let recent_ms = 2 * self.context.config().suspect_timeout_ms;
        let recent = !self
            .component
            .majority()
            .is_silent(self.context.now(), recent_ms);
        let may_form =
            recent && self.component.is_resumed() && self.branches().has_gone_elsewhere(from);
        if waits && (!may_form || planted(Mutant::OtherBranchRefuses)) {
            self.out.push(Action::Refused { reason });
        }
    }

    /// The sender stands without knowing a forced view of this log: tells it by a status before it is elected.
    pub(crate) fn tell_older_branch(&mut self, from: Incarnation, message: &Message) {
        let seeks = matches!(message, Message::PreVote { .. } | Message::Prepare { .. });
        if seeks && !self.component.is_outside() {
            let status = Message::Status(self.status_for(from));
            self.send(from, status);
        }
    }

    /// Reports a split: the sender has a forced view that this log lacks, and this log has one that the sender lacks.
    /// Neither side gives way, and both may take writes.
    pub(crate) fn tell_split(&mut self, status: &Status) {
        let excluded = self.branches().excludes(status) && !planted(Mutant::SplitNotTold);
        if !excluded || !self.forced_views.is_split_due(self.context.now()) {
            return;
        }
        self.out.count(|c| c.splits += 1);
        let text = self.branches().describe_split();
        self.out.push(Action::Alarm { text });
    }
}
