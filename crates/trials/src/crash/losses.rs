//! Decides which losses are allowed when nodes forget acknowledged entries: only seqnos from
//! `wsrep_trireme_lost_from` on.
//!
//! A client does not learn the seqno of its commit. So a thread asks each node all the time for its last committed
//! seqno: a commit that was acknowledged before the question is at or below the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::history::Transaction;
use super::load::{Load, Shared};
use super::violation::Violation;
use trireme_testbed::cluster::Cluster;
use trireme_testbed::node::Node;
use trireme_testbed::sql::Sql;

/// Pause between two questions.
const PAUSE: Duration = Duration::from_millis(5);

/// A node's last committed seqno, and when it was asked.
struct Answer {
    asked: Duration,
    last_committed: i64,
}

/// The answers of each node.
pub struct Positions {
    answers: Vec<Vec<Answer>>,
}

/// The threads that ask the nodes until the nodes die, or until they are told to stop.
pub struct Watch {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<Answer>>>,
}

impl Watch {
    /// Starts to ask all nodes of the cluster; the times come from the load's clock.
    pub fn start(cluster: &Cluster, load: &Load) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = cluster.nodes().iter().map(|node| {
            let (stop, clock, sql) = (Arc::clone(&stop), load.shared(), node.sql().ok());
            thread::spawn(move || sql.map_or(Vec::new(), |sql| watch(sql, &stop, &clock)))
        });
        Self {
            threads: threads.collect(),
            stop,
        }
    }

    /// Stops the threads. Later answers of a node may belong to another branch.
    pub fn stop(self) -> Positions {
        self.stop.store(true, Ordering::Relaxed);
        let threads = self.threads.into_iter();
        let answers = threads.map(|t| t.join().expect("a question does not panic"));
        Positions {
            answers: answers.collect(),
        }
    }
}

fn watch(mut sql: Sql, stop: &AtomicBool, clock: &Shared) -> Vec<Answer> {
    let mut answers = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let asked = clock.now();
        let Ok(value) = sql.status("wsrep_last_committed") else {
            break;
        };
        let last_committed = value.and_then(|text| text.parse().ok());
        answers.extend(last_committed.map(|last_committed| Answer {
            asked,
            last_committed,
        }));
        thread::sleep(PAUSE);
    }
    answers
}

impl Positions {
    /// True if an answer shows that the acknowledged transaction lies below this seqno.
    fn show_below(&self, t: &Transaction, seqno: i64) -> bool {
        let mut answers = self.answers.get(t.node).into_iter().flatten();
        answers.any(|a| a.asked > t.ended && a.last_committed < seqno)
    }

    /// Removes the losses that a node has reported, and returns their number. `kept`: the databases keep all
    /// acknowledged commits, so no acknowledged append may be lost.
    pub fn excuse(
        &self,
        violations: &mut Vec<Violation>,
        history: &[Transaction],
        lost_from: Option<i64>,
        kept: bool,
    ) -> usize {
        let Some(lost_from) = lost_from else {
            return 0;
        };
        let before = violations.len();
        violations.retain(|violation| {
            let (Violation::Lost { id, .. } | Violation::SeenAndLost { id, .. }) = violation else {
                return true;
            };
            let appends = |t: &&Transaction| t.appends.iter().any(|(_, of)| of == id);
            match history.iter().find(appends) {
                Some(t) if t.is_committed() => kept || self.show_below(t, lost_from),
                Some(_) => false,
                None => true,
            }
        });
        before - violations.len()
    }
}

/// The lowest `wsrep_trireme_lost_from` that a node reports.
pub fn lost_from(cluster: &Cluster) -> Option<i64> {
    let seqno = |node: &Node| {
        let gtid = node.sql().ok()?.status("wsrep_trireme_lost_from").ok()??;
        gtid.rsplit_once(':')?.1.parse().ok()
    };
    cluster.nodes().iter().filter_map(seqno).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::history::Outcome;

    fn excused(ended_ms: u64, lost_from: Option<i64>, kept: bool) -> usize {
        let answer = |ms, last_committed| Answer {
            asked: Duration::from_millis(ms),
            last_committed,
        };
        let positions = Positions {
            answers: vec![vec![answer(10, 40), answer(20, 50), answer(30, 60)]],
        };
        let ended = Duration::from_millis(ended_ms);
        let history = [Transaction {
            appends: vec![(1, 7)],
            outcome: Outcome::Committed,
            ended,
            ..Transaction::new(0, 0, Duration::ZERO)
        }];
        let mut violations = vec![Violation::Lost {
            key: 1,
            id: 7,
            node: "node1".to_string(),
            at_ms: ended.as_millis(),
        }];
        positions.excuse(&mut violations, &history, lost_from, kept)
    }

    #[test]
    fn only_what_may_lie_above_is_excused() {
        assert_eq!(excused(15, Some(51), false), 0);
        assert_eq!(excused(25, Some(51), false), 1);
        assert_eq!(excused(35, Some(51), false), 1);
    }

    #[test]
    fn nothing_is_excused_that_nobody_told_of_or_that_databases_keep() {
        assert_eq!(excused(25, None, false), 0);
        assert_eq!(excused(25, Some(51), true), 0);
    }
}
