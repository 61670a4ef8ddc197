//! Rule 13 when every database is in doubt: each may hold a total-order action above its position, or comes from before an
//! earlier choice. The members report their positions in the order. When all have, the cluster goes on with the furthest
//! database, which executes the actions again. The others wait for an SST from it.

use std::cmp::Reverse;

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::Incarnation;

use crate::gtid::Gtid;
use crate::last_action::LastAction;
use crate::member_state::{MemberState, NodeState};
use crate::member_states::MemberStates;
use crate::work::Apply;

/// Maximum of a statement's bytes in the log.
const STATEMENT_BYTES: usize = 1000;
/// Minimum length of a statement: shorter texts within an action's data are none.
const SHORTEST_STATEMENT_BYTES: usize = 6;

/// Server errors that say that the object of a statement exists already, or is gone already (numbers of MariaDB's error
/// messages): databases, tables, columns, indexes, routines, views, triggers, users, grants, servers, partitions,
/// constraints, events, sequences.
const DONE_ALREADY: &[u32] = &[
    1007, 1008, 1050, 1051, 1054, 1060, 1061, 1068, 1072, 1091, 1125, 1128, 1141, 1146, 1147, 1176,
    1304, 1305, 1359, 1360, 1396, 1403, 1476, 1477, 1507, 1517, 1537, 1539, 1826, 1959, 4091, 4092,
];

/// The doubts about the database with which this process began.
#[derive(Debug, Default)]
pub(crate) struct InDoubt {
    /// True while nothing may be applied to the database: the order has not decided yet.
    is_open: bool,
    /// The action that may have been interrupted, until the database has passed it.
    action: Option<Gtid>,
    /// True if the database's position covers that action.
    is_covered: bool,
    /// The seqno up to which actions were executed; 0: unknown.
    executed_to: Seqno,
}

/// The order's decision on a member's in-doubt DDL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// Some members have not reported their positions yet, or another database is being brought up to date.
    Open,
    /// The cluster goes on with this member's database.
    Trusted,
    /// Other members have a database.
    OthersHave,
}

impl InDoubt {
    /// Returns the doubts about the database at `local`.
    pub(crate) fn of(local: Gtid, last: LastAction) -> InDoubt {
        let is_open = last.leaves_in_doubt(local);
        InDoubt {
            is_open,
            action: is_open.then_some(last.gtid),
            is_covered: local.seqno >= last.gtid.seqno,
            executed_to: match last.gtid.uuid == local.uuid {
                true => last.executed_to(),
                false => 0,
            },
        }
    }

    /// Returns true if everything that the database holds, certainly or possibly, is at or below `seqno`.
    pub(crate) fn is_within(&self, seqno: Seqno) -> bool {
        self.executed_to <= seqno && self.action.is_none_or(|action| action.seqno <= seqno)
    }

    /// Returns true if an earlier process executed this total-order action to its end.
    pub(crate) fn was_executed(&self, seqno: Seqno) -> bool {
        seqno <= self.executed_to
    }

    /// Returns true if the database began with this total-order action applied, but its outcome is unknown: the server
    /// first sets the position, and then reports success or failure.
    pub(crate) fn hides_outcome(&self, seqno: Seqno) -> bool {
        self.is_covered && self.action.is_some_and(|action| action.seqno == seqno)
    }

    /// Returns true while nothing may be applied to the database: the order has not decided yet.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Puts the database in doubt.
    pub(crate) fn open(&mut self) {
        self.is_open = true;
    }

    /// Notes the order's decision. Returns the action that may have been interrupted.
    pub(crate) fn close(&mut self) -> Option<Gtid> {
        self.is_open = false;
        self.action
    }

    /// Notes that the database has passed that action.
    pub(crate) fn end(&mut self) -> Option<Gtid> {
        self.action.take()
    }

    /// Returns true if this total-order action may have been executed, or begun: then it is executed again.
    fn is_repeated(&self, seqno: Seqno) -> bool {
        self.action.is_some_and(|action| seqno <= action.seqno)
    }

    /// Returns true if this total-order action was executed again, and failed with an error that says that it was done
    /// before.
    pub(crate) fn was_done_before(&self, seqno: Seqno, error: &Bytes) -> bool {
        self.is_repeated(seqno) && says_done(error)
    }

    /// Returns a line for the log about a statement that is about to be executed a second time.
    pub(crate) fn repetition(&self, apply: &Apply) -> Option<String> {
        let is_action = apply.flags & crate::flags::ISOLATION != 0;
        (is_action && self.is_repeated(apply.gtid.seqno)).then(|| {
            let statement = statement(&apply.data);
            format!(
                "the total-order action (DDL) at {} may have been executed, and is executed again: {statement}",
                apply.gtid
            )
        })
    }
}

impl MemberStates {
    /// Returns the decision on the in-doubt database of a joiner.
    pub(crate) fn rules_on(&self, joiner: Incarnation) -> Ruling {
        let member_state_of = |id| self.get(id);
        if member_state_of(joiner).is_some_and(|member_state| member_state.trusted) {
            return Ruling::Trusted;
        }
        match self.has_database() {
            true => Ruling::OthersHave,
            false => Ruling::Open,
        }
    }

    /// Returns true if a data member has its state.
    fn has_database(&self) -> bool {
        self.with_database().next().is_some()
    }

    /// Returns the data members that have their states.
    pub(crate) fn with_database(&self) -> impl Iterator<Item = Incarnation> {
        let is_no_joiner = |member_state: &MemberState| member_state.state != NodeState::Joiner;
        (self.data_members())
            .filter(move |(_, member_state)| is_no_joiner(member_state))
            .map(|(id, _)| id)
    }

    /// Returns true if all data members have reported that they have no usable database.
    pub(crate) fn nobody_has_database(&self) -> bool {
        let has_none = |member_state: &MemberState| member_state.doubt == Some(-1);
        !self.has_database()
            && self
                .data_members()
                .all(|(_, member_state)| has_none(member_state))
    }

    fn data_members(&self) -> impl Iterator<Item = (Incarnation, &MemberState)> {
        let ids = self.configuration().data_members().map(|m| m.incarnation);
        ids.filter_map(|id| Some((id, self.get(id)?)))
    }

    /// Notes the position of a joiner's in-doubt database; -1: it has no usable one.
    pub(crate) fn doubts(&mut self, joiner: Incarnation, seqno: Seqno) {
        let member_state = self.get_mut(joiner);
        if let Some(member_state) =
            member_state.filter(|member_state| member_state.state == NodeState::Joiner)
        {
            member_state.doubt = Some(seqno);
            member_state.trusted &= seqno >= 0;
        }
    }

    /// Chooses the furthest database, when all data members have reported that they are in doubt. Returns its member and
    /// its position, if it was chosen just now.
    pub(crate) fn choose_database(&mut self) -> Option<(Incarnation, Seqno)> {
        let is_any = |holds: fn(&MemberState) -> bool| self.data_members().any(|(_, m)| holds(m));
        if is_any(|member| member.doubt.is_none()) {
            return None; // nearly always: each entry asks
        }
        if is_any(|member| member.trusted) || self.has_database() {
            return None;
        }
        let furthest = self
            .data_members()
            .filter_map(|(id, member_state)| {
                Some((member_state.doubt.filter(|at| *at >= 0)?, Reverse(id)))
            })
            .max();
        let (seqno, Reverse(chosen)) = furthest?;
        self.get_mut(chosen)?.trusted = true;
        Some((chosen, seqno))
    }
}

/// Returns true if every error that the server reports is one of `DONE_ALREADY`.
fn says_done(error: &[u8]) -> bool {
    const MARK: &str = "Error_code: ";
    let text = String::from_utf8_lossy(error);
    let mut codes = text.split(MARK).skip(1).map(|rest| {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
        digits.and_then(|digits| digits.parse().ok())
    });
    let is_done = |code: Option<u32>| code.is_some_and(|code| DONE_ALREADY.contains(&code));
    text.contains(MARK) && codes.all(is_done)
}

/// Returns the statement in the server's bytes of an action: the longest text in them.
fn statement(data: &[u8]) -> String {
    let is_text = |byte: u8| byte >= 0x20 && byte != 0x7f || b"\t\r\n".contains(&byte);
    let texts = data.split(|byte| !is_text(*byte));
    let longest = texts.max_by_key(|text| text.len()).unwrap_or_default();
    match longest.len() < SHORTEST_STATEMENT_BYTES {
        true => "(its statement cannot be read)".to_owned(),
        false => {
            // A checksum may follow the statement.
            let shown = &longest[..longest.len().min(STATEMENT_BYTES)];
            let text = shown.utf8_chunks().next();
            text.map_or("", |chunk| chunk.valid()).to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use trireme_group::Uuid;

    use super::*;

    #[test]
    fn how_an_action_ended_is_hidden_where_the_position_covers_it_and_its_end_was_not_noted() {
        let at = |seqno| Gtid {
            uuid: Uuid([7; 16]),
            seqno,
        };
        let hides = |position, ended, seqno| {
            let last = LastAction {
                gtid: at(5),
                ended,
                same_boot: true,
            };
            InDoubt::of(at(position), last).hides_outcome(seqno)
        };
        assert!(hides(5, false, 5));
        assert!(hides(6, false, 5));
        assert!(!hides(4, false, 5), "it is executed again, by this process");
        assert!(!hides(5, true, 5));
        assert!(!hides(6, false, 6) && !hides(5, false, 4));
    }

    #[test]
    fn only_errors_that_something_is_there_or_not_say_that_it_was_done() {
        for (error, done) in [
            (
                &b" Table 'd.t' already exists, Error_code: 1050;\0"[..],
                true,
            ),
            (b"Duplicate column name 'c', Error_code: 1060;", true),
            (b"a, Error_code: 1060; b, Error_code: 1061;", true),
            (b"a, Error_code: 1060; b, Error_code: 1114;", false),
            (b"The table 't' is full, Error_code: 1114;", false),
            (b"Error_code: ", false),
            (b"1050", false),
            (b"", false),
        ] {
            assert_eq!(says_done(error), done, "{}", String::from_utf8_lossy(error));
        }
    }

    #[test]
    fn the_statement_is_found_in_the_servers_bytes() {
        let data = b"\x01\x02std\0\x00\x04d\0ALTER TABLE t\n ADD COLUMN c INT\x07\xff\x01";
        assert_eq!(statement(data), "ALTER TABLE t\n ADD COLUMN c INT");
        assert_eq!(statement(b"\x01\x02"), "(its statement cannot be read)");
    }
}
