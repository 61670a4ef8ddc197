//! This node's database, as far as it is known without reading it: its position, its view, its branch of the history,
//! and its in-doubt DDL.
//!
//! Each connect() makes it anew. In: control states. Out: judgements whether the database can follow them.

use trireme_certification::Seqno;
use trireme_group::{Configuration, DatabaseProof, Position, Uuid};
use trireme_mutants::{Mutant, planted};

use crate::action::Level;
use crate::control::Control;
use crate::event::Connect;
use crate::forks::{Fork, Forks};
use crate::gtid::Gtid;
use crate::in_doubt::InDoubt;

/// The judgement whether the database can follow a control state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fitness {
    /// The seqno after which cluster and database went different ways; None: they did not.
    pub fork: Option<Seqno>,
    /// True if the database holds entries above that seqno.
    pub is_forked: bool,
    /// True if the database is on the cluster's branch.
    pub is_here: bool,
    /// True if the missing entries can be applied to it.
    pub is_usable: bool,
}

/// In place of the seqno above which an override forks the history: the override has been ordered, and was not delivered.
pub const NOT_DELIVERED: Seqno = -1;

#[derive(Debug)]
pub(crate) struct Database {
    /// Its position at connect(), or when the log began anew; seqno -1: unknown.
    local: Gtid,
    /// The view that the database is in, with its seqno, if this process or its log was in that view.
    view: Option<(Seqno, Configuration)>,
    in_doubt: InDoubt,
    /// The overrides that its history includes, and the choices of one database that it comes from.
    forks: Forks,
    /// The overrides below the point where the group's log began anew; None: it has not begun anew since connect().
    below_log: Option<Vec<Uuid>>,
    /// The control state's forks before the group's log began anew here.
    before_reset: Forks,
    /// Up to this position a member's control state stands: that member's branch is not proven above the last position that
    /// all branches share.
    borrowed_upto: Position,
}

impl Database {
    /// Returns a database of which nothing is known.
    pub(crate) fn unknown() -> Database {
        Database {
            local: Gtid::UNDEFINED,
            view: None,
            in_doubt: InDoubt::default(),
            forks: Forks::default(),
            below_log: None,
            before_reset: Forks::default(),
            borrowed_upto: 0,
        }
    }

    /// Returns the database of a connect(), and a line for the log. `applied`: its position, if this process has
    /// brought it there.
    pub(crate) fn of(
        connect: &Connect,
        applied: Option<Gtid>,
    ) -> (Database, Option<(Level, String)>) {
        let (local, in_doubt, text) = match applied.filter(|_| connect.server_running) {
            Some(applied) => (applied, InDoubt::default(), None),
            None => place(connect),
        };
        let database = Database {
            local,
            in_doubt,
            forks: connect.overrides.clone().into(),
            ..Database::unknown()
        };
        (database, text)
    }

    pub(crate) fn local(&self) -> Gtid {
        self.local
    }

    pub(crate) fn forks(&self) -> &[Fork] {
        self.forks.all()
    }

    // --- in-doubt actions (DDL)

    /// Returns true while nothing may be applied to the database: the order has not decided yet.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.in_doubt.is_open()
    }

    /// Notes the order's decision to go on with this database. Returns the last action that may be executed again.
    pub(crate) fn trust(&mut self) -> Gtid {
        self.in_doubt.close().unwrap_or(self.local)
    }

    /// Puts the database in doubt if it comes from before a choice of one database. That one may have executed DDL a second
    /// time, which this one has executed once, or will. Returns true if it is in doubt now, and was not before.
    pub(crate) fn doubt_if_not_chosen(&mut self, control: &Control) -> bool {
        let begins = !self.is_in_doubt() && !self.forks.has_choices_of(&control.forks);
        if begins {
            self.in_doubt.open();
        }
        begins
    }

    /// Notes that this database is on the control state's branch, and comes from all its choices, unless it is in doubt.
    /// Returns the points to note for later processes.
    pub(crate) fn follows(&mut self, control: Option<&Control>) -> Option<&[Fork]> {
        let control = control.filter(|_| !self.is_in_doubt())?;
        self.forks = control.forks.clone();
        Some(self.forks.all())
    }

    /// Forgets the note of an action: the database has diverged, or is replaced.
    pub(crate) fn forget_action(&mut self) {
        self.in_doubt = InDoubt::default();
    }

    /// Notes that the database has passed the in-doubt action. Returns that action, if there was one.
    pub(crate) fn end_doubt(&mut self) -> Option<Gtid> {
        self.in_doubt.end()
    }

    pub(crate) fn in_doubt(&self) -> &InDoubt {
        &self.in_doubt
    }

    // --- views

    /// Returns the view that the database was in at this seqno. The server must see this view before any later one: at
    /// another view it undoes streaming transactions whose origin is not a member (rule 6). The group remembers its
    /// last views; this process and its log remember the views that they were in. None: the view is no longer known.
    pub(crate) fn view_at<'a>(
        &'a self,
        control: &'a Control,
        at: Seqno,
    ) -> Option<&'a (Seqno, Configuration)> {
        let guesses = planted(Mutant::ForgottenViewGuessed);
        let own = self.view.as_ref().filter(|(from, _)| *from <= at);
        control
            .views
            .at(at)
            .or(own.filter(|_| !guesses))
            .or(control.views.first())
            .or(control.views.oldest().filter(|_| guesses))
    }

    /// Notes that the server is shown this view.
    pub(crate) fn enters(&mut self, seqno: Seqno, view: Configuration) {
        self.view = Some((seqno, view));
    }

    /// Notes the view that the database is in, if the control state knows it.
    pub(crate) fn note_view(&mut self, control: Option<&Control>) {
        let control = control.filter(|c| c.history == self.local.uuid);
        let view = control.and_then(|c| c.views.at(self.local.seqno));
        let noted = self.view.as_ref().map(|(from, _)| *from);
        if let Some(view) = view.filter(|(from, _)| noted < Some(*from)) {
            self.view = Some(view.clone());
        }
    }

    /// As [`Self::note_view`], before the control state is given up. A control state that ends below the database's
    /// position does not know the view.
    pub(crate) fn keep_view(&mut self, control: Option<&Control>) {
        self.note_view(control);
        if control.is_some_and(|c| c.seqno() < self.local.seqno) {
            self.view = None;
        }
    }

    // --- branches of the history (rule 11)

    /// Notes that the group's log begins anew, above these overrides, and that the control state is given up.
    /// `brought_to`: the position to which the queue brings the database.
    pub(crate) fn log_begins_anew(
        &mut self,
        control: Option<&Control>,
        brought_to: Option<Gtid>,
        below: &[Uuid],
    ) {
        if let Some(gtid) = brought_to {
            self.local = gtid;
            // Without a control state the node has heard of no further points since the log last began anew.
            self.follows(control);
        }
        self.keep_view(control);
        self.below_log = Some(below.to_vec());
        // Positions of the branch that is given up mean nothing on the new one. The next control state is judged anew.
        self.borrowed_upto = 0;
        if let Some(control) = control {
            self.before_reset = control.forks.clone();
        }
    }

    /// Takes overrides that were ordered, and not processed, before the log began anew. Returns all points to note; None:
    /// there is nothing new.
    pub(crate) fn adds_forks(&mut self, forks: Vec<Fork>) -> Option<&[Fork]> {
        let is_new = !forks.is_empty();
        for (id, fork) in forks {
            self.forks.add_override(id, fork);
        }
        is_new.then(|| self.forks.all())
    }

    /// Notes that a member's control state stands for the entries up to this position.
    pub(crate) fn borrows(&mut self, upto: Position) {
        self.borrowed_upto = self.borrowed_upto.max(upto);
    }

    #[cfg(test)]
    pub(crate) fn borrow_nothing(&mut self) {
        self.borrowed_upto = 0;
    }

    /// Returns true if an override that is delivered now forks the history below what a member's word stands for: the
    /// member may have been on the other branch. Not by seqnos: entries without one, too, make another control state.
    pub(crate) fn is_doubtful_above(&self, fork: Position) -> bool {
        fork < self.borrowed_upto
    }

    /// Returns true if the cluster's history has forked since the log began anew.
    pub(crate) fn has_forked_since_reset(&self, control: &Control) -> bool {
        control.forks != self.before_reset
    }

    /// Judges whether and how the database can follow the control state.
    pub(crate) fn fitness(&self, control: &Control) -> Fitness {
        // The two sides differ beyond the first override that only one of them knows.
        // An override that was not delivered may be in the log, or was never made.
        let is_delivered =
            |fork: Seqno| fork != NOT_DELIVERED || planted(Mutant::OrderedOverrideForks);
        let only_here = (self.forks.overrides())
            .filter(|(id, fork)| is_delivered(*fork) && !control.forks.has(id));
        let only_there = (control.forks.overrides()).filter(|(id, _)| !self.forks.has(id));
        let fork = only_here.chain(only_there).map(|(_, seqno)| seqno).min();
        let (local, upto) = (self.local, control.seqno());
        let is_forked = fork
            .is_some_and(|fork| local.seqno > fork || !self.in_doubt.is_within(fork))
            && !planted(Mutant::ForkedDatabaseUsed);
        let is_within = (0..=upto).contains(&local.seqno) && self.in_doubt.is_within(upto);
        let is_here = local.uuid == control.history && is_within && !is_forked;
        Fitness {
            fork,
            is_forked,
            is_here,
            is_usable: is_here && self.view_at(control, local.seqno).is_some(),
        }
    }

    /// Returns true if a peer's control state is of the branch that is delivered here. A member that has not heard of
    /// an override yet has the state of the old branch, in which the same positions have other entries. A member that
    /// has still to yield knows one override more. `delivered`: the configurations that wait here.
    pub(crate) fn is_of_its_branch<'a>(
        &self,
        control: &Control,
        delivered: impl Iterator<Item = (Position, &'a Configuration)>,
    ) -> bool {
        let delivered = delivered
            .take_while(|(position, _)| *position <= control.position)
            .filter_map(|(_, configuration)| configuration.override_id);
        let below = self.below_log.as_deref();
        // The state may lack some of the overrides below.
        let (first, last) = match below.and_then(<[Uuid]>::split_last) {
            Some((last, first)) => (first, Some(*last)),
            None => (&[][..], None),
        };
        let required: Vec<Uuid> = last.into_iter().chain(delivered).collect();
        let mut overrides = control.forks.overrides();
        let is_here = |id: Uuid| first.contains(&id) || required.contains(&id);
        let no_other = below.is_none() || overrides.all(|(id, _)| is_here(id));
        required.iter().all(|id| control.forks.has(id))
            && (no_other || planted(Mutant::OtherBranchsStateTaken))
    }

    /// Returns the database's position, as far as it is on the branch of the log. For a database that this process has
    /// not begun to use.
    pub(crate) fn proof(&self, control: &Control) -> DatabaseProof {
        // Before November 2026 the note of an override that was not delivered said 0.
        let mut noted = self.forks.overrides().filter(|(_, fork)| *fork > 0);
        if noted.any(|(id, _)| !control.forks.has(&id)) {
            return DatabaseProof::Unclear;
        }
        let only_there = (control.forks.overrides()).filter(|(id, _)| !self.forks.has(id));
        let fork = only_there.map(|(_, seqno)| seqno).min();
        // An action above the position, which the database may hold (rule 13), proves nothing about the entries
        // between.
        let seqno = self.local.seqno;
        match fork.is_some_and(|fork| seqno > fork) {
            true => DatabaseProof::Nothing, // its entries above the fork were given up
            false => DatabaseProof::UpTo {
                seqno: seqno.max(0) as u64,
            },
        }
    }
}

/// Returns the database's position, with its doubts. A database that was to execute a total-order action above its
/// position may hold that action. To execute an action and to set the position are two steps, and the second may be
/// lost (rule 13). Nothing may be applied to such a database until the order has seen that no member has a better one.
fn place(connect: &Connect) -> (Gtid, InDoubt, Option<(Level, String)>) {
    let (local, last) = (connect.local, connect.last_action);
    let action = last.gtid;
    let may_hold = local.is_known() && local.precedes(action);
    if connect.bootstrap.is_some() {
        if !may_hold || planted(Mutant::ExecutedActionForgotten) {
            return (local, InDoubt::default(), None);
        }
        let text = format!(
            "the total-order action (DDL) at {action} has been executed on this database, whose position is {local}: \
             it now counts as being at {action}. What was committed in between is missing unless it was flushed \
             with the action, and the other nodes take a full snapshot of it"
        );
        return (action, InDoubt::default(), Some((Level::Warn, text)));
    }
    let text = last.leaves_in_doubt(local).then(|| {
        let text = format!(
            "the total-order action (DDL) at {action} may have been executed on this database, whose position is {local}: \
             it needs a full state transfer, unless the databases of all members are in doubt"
        );
        (Level::Info, text)
    });
    (local, InDoubt::of(local, last), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HISTORY: Uuid = Uuid([7; 16]);

    fn at(seqno: Seqno, overrides: &[(Uuid, Seqno)]) -> Database {
        Database {
            local: Gtid {
                uuid: HISTORY,
                seqno,
            },
            forks: overrides.to_vec().into(),
            ..Database::unknown()
        }
    }

    /// A cluster that has come to `seqno`; its views are not known.
    fn control(seqno: Seqno, forks: &[(Uuid, Seqno)]) -> Control {
        Control::found(HISTORY, seqno, forks.to_vec().into(), 100)
    }

    #[test]
    fn a_database_beyond_an_override_that_one_side_only_knows_is_forked() {
        let id = Uuid([1; 16]);
        for (seqno, here, there, is_forked) in [
            (5, &[][..], &[][..], false),
            (5, &[], &[(id, 4)], true),
            (5, &[(id, 4)], &[], true),
            (5, &[(id, 4)], &[(id, 4)], false),
            (4, &[], &[(id, 4)], false),
        ] {
            let fitness = at(seqno, here).fitness(&control(9, there));
            assert_eq!(fitness.is_forked, is_forked, "{seqno} {here:?} {there:?}");
            assert_eq!(fitness.is_here, !is_forked);
        }
        assert!(
            !at(10, &[]).fitness(&control(9, &[])).is_here,
            "it is ahead"
        );
    }

    #[test]
    fn a_database_from_before_a_choice_is_in_doubt() {
        let mut after = control(9, &[]);
        let process = trireme_group::Incarnation(Uuid([3; 16]));
        after.forks.choose(12, process, 4);
        for seqno in [3, 5] {
            let mut database = at(seqno, &[]);
            assert!(!database.fitness(&after).is_forked, "no entry was dropped");
            let proof = DatabaseProof::UpTo {
                seqno: seqno as u64,
            };
            assert_eq!(database.proof(&after), proof);
            assert!(database.doubt_if_not_chosen(&after));
            assert!(database.follows(Some(&after)).is_none());
            database.trust();
            assert!(database.follows(Some(&after)).is_some());
            assert!(!database.doubt_if_not_chosen(&after));
            assert!(database.doubt_if_not_chosen(&control(9, &[])));
        }
    }

    #[test]
    fn a_database_is_usable_where_somebody_knows_its_view() {
        let mut control = control(9, &[]);
        for seqno in 4..68 {
            control.views.push(seqno, Configuration::default());
        }
        let mut database = at(3, &[]);
        assert!(!database.fitness(&control).is_usable);
        database.enters(2, Configuration::default());
        assert!(database.fitness(&control).is_usable);
    }

    /// The position belonged to the branch that was given up: a good database counted as corrupt at the next override.
    #[test]
    fn what_a_peer_vouched_for_is_forgotten_with_the_log() {
        let mut database = at(3, &[]);
        database.borrows(9);
        assert!(database.is_doubtful_above(8) && !database.is_doubtful_above(9));
        database.log_begins_anew(None, None, &[]);
        database.borrows(5);
        assert!(database.is_doubtful_above(4) && !database.is_doubtful_above(5));
    }

    #[test]
    fn a_peers_control_state_must_have_every_override_that_is_delivered_here() {
        let id = Uuid([1; 16]);
        let database = at(3, &[]);
        let view = Configuration {
            override_id: Some(id),
            ..Configuration::default()
        };
        let is_of_its_branch = |forks: &[(Uuid, Seqno)], position| {
            let mut control = control(9, forks);
            control.position = position;
            database.is_of_its_branch(&control, [(20, &view)].into_iter())
        };
        assert!(!is_of_its_branch(&[], 20));
        assert!(is_of_its_branch(&[(id, 4)], 20));
        assert!(is_of_its_branch(&[], 19), "it is told of it later");
    }
}
