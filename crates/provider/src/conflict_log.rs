//! The last own transactions that lost, each with the winner and the key of the conflict.
//!
//! In: losses from the replicator, with the facts that the transaction's thread knows. Out: lines for the
//! state-and-event file and the log.

use std::collections::VecDeque;

use trireme_node::state_file::ConflictLine;
use trireme_replicator::{ConflictKind, Loss};

use crate::key_log::NamedKey;

/// Maximum of lines.
const KEPT: usize = 1_000;

/// A ring of lines, the oldest first.
#[derive(Default)]
pub struct ConflictLog(VecDeque<ConflictLine>);

impl ConflictLog {
    pub fn add(&mut self, line: ConflictLine) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(line);
    }

    /// Returns at most `most` lines, the newest first.
    pub fn newest(&self, most: usize) -> Vec<ConflictLine> {
        self.0.iter().rev().take(most).cloned().collect()
    }
}

/// Returns the line about a loss.
pub fn line(
    at_unix_ms: u64,
    loss: Loss,
    key: Option<NamedKey>,
    connection: Option<u64>,
) -> ConflictLine {
    let kind = match loss.kind {
        ConflictKind::Certification => "certification",
        ConflictKind::BruteForceAbort => "brute-force-abort",
        ConflictKind::Replay => "replay",
    };
    let (table, key) = match key {
        Some(NamedKey { table, key }) => (table, Some(key)),
        None => (None, None),
    };
    let winner_seqno = loss.winner.as_ref().map(|winner| winner.seqno);
    let member = loss.winner.and_then(|winner| winner.member);
    let (winner_member_id, winner) = match member {
        Some((id, name)) => (Some(id.to_string()), Some(name)),
        None => (None, None),
    };
    ConflictLine {
        at_unix_ms,
        kind: kind.to_owned(),
        seqno: loss.seqno,
        table,
        key,
        winner_seqno,
        winner,
        winner_member_id,
        connection,
    }
}

/// Returns the line as text for the error log (`cert.log_conflicts`).
pub fn text(line: &ConflictLine) -> String {
    let known = |number: Option<i64>| number.map_or("not ordered".to_owned(), |n| n.to_string());
    let of_connection = line.connection.map(|id| format!(" of connection {id}"));
    let on = match (&line.table, line.key.as_deref()) {
        (Some(table), Some("") | None) => format!(" on {table}"),
        (Some(table), Some(key)) => format!(" on {table}, key {key}"),
        (None, _) => String::new(),
    };
    let against = match (line.winner_seqno, &line.winner) {
        (Some(seqno), Some(name)) => format!("write-set {seqno} of {name} came first"),
        (Some(seqno), None) => {
            format!(
                "{seqno} came first (a view, or a write-set of a node that is not known any more)"
            )
        }
        (None, _) => "a local statement, or one that is not known any more, came first".to_owned(),
    };
    format!(
        "conflict ({}): the transaction{} ({}) lost{on}: {against}",
        line.kind,
        of_connection.unwrap_or_default(),
        known(line.seqno),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use trireme_group::{Incarnation, Uuid};
    use trireme_replicator::Winner;

    #[test]
    fn a_loss_is_a_line_for_the_file_and_one_for_the_log() {
        let id = Incarnation(Uuid([2; 16]));
        let loss = Loss {
            kind: ConflictKind::Certification,
            seqno: Some(5),
            winner: Some(Winner {
                seqno: 4,
                member: Some((id, "n2".to_owned())),
            }),
        };
        let key = NamedKey {
            table: Some("shop.orders".to_owned()),
            key: "80000001".to_owned(),
        };
        let known = line(7, loss.clone(), Some(key), Some(12));
        assert_eq!(
            (known.winner_seqno, known.winner.as_deref()),
            (Some(4), Some("n2"))
        );
        assert_eq!(
            text(&known),
            "conflict (certification): the transaction of connection 12 (5) lost on shop.orders, key 80000001: write-set 4 of n2 \
             came first"
        );
        let unknown = Loss {
            kind: ConflictKind::BruteForceAbort,
            seqno: None,
            winner: None,
        };
        assert_eq!(
            text(&line(7, unknown, None, None)),
            "conflict (brute-force-abort): the transaction (not ordered) lost: a local statement, or one that is not known any \
             more, came first"
        );
        let mut log = ConflictLog::default();
        for at in 0..1_500 {
            log.add(line(at, loss.clone(), None, None));
        }
        assert_eq!(log.0.len(), KEPT);
        let newest: Vec<_> = log.newest(2).iter().map(|line| line.at_unix_ms).collect();
        assert_eq!(newest, [1_499, 1_498]);
    }
}
