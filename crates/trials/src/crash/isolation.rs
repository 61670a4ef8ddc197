//! Checks the clients' isolation: stale reads, lost updates, and cycles that no order of snapshots allows.

use std::collections::HashMap;
use std::time::Duration;

use super::checker::node;
use super::client::Isolation;
use super::history::{Id, Key, Outcome, Tables, Transaction};
use super::violation::Violation;

/// Checks the promises of `isolation`. `tables` is the final state; the caller has checked that it holds exactly the
/// transactions that the clients know of.
pub fn check(history: &[Transaction], tables: &Tables, isolation: Isolation) -> Vec<Violation> {
    let mut violations = Vec::new();
    if isolation.current {
        violations.extend(stale_reads(history, tables));
    }
    if isolation.snapshot {
        violations.extend(lost_updates(history, tables));
        if violations.is_empty() {
            violations.extend(cycle(history, tables, isolation.current));
        }
    }
    violations
}

/// Finds the reads that lack an append acknowledged before the reading transaction began, each with the last such
/// append.
pub fn stale_reads(history: &[Transaction], tables: &Tables) -> Vec<Violation> {
    let position = positions(tables);
    // For each list, in order of time: (time of the acknowledgement, least length of every later read, the append).
    let mut known: HashMap<Key, Vec<(Duration, usize, Id)>> = HashMap::new();
    for t in history.iter().filter(|t| t.is_committed()) {
        for (key, id) in &t.appends {
            if let Some(at) = position.get(&(*key, *id)) {
                let appends = known.entry(*key).or_default();
                appends.push((t.ended, at + 1, *id));
            }
        }
    }
    for appends in known.values_mut() {
        appends.sort_unstable();
        for i in 1..appends.len() {
            if appends[i - 1].1 > appends[i].1 {
                (appends[i].1, appends[i].2) = (appends[i - 1].1, appends[i - 1].2);
            }
        }
    }
    let mut violations = Vec::new();
    for t in history {
        for read in &t.reads {
            let Some(appends) = known.get(&read.key) else {
                continue;
            };
            let before = appends.partition_point(|(at, ..)| *at < t.began);
            let Some((at, length, id)) = before.checked_sub(1).map(|i| appends[i]) else {
                continue;
            };
            if read.list.len() < length {
                violations.push(Violation::StaleRead {
                    key: read.key,
                    id,
                    node: node(t),
                    began_ms: t.began.as_millis(),
                    at_ms: at.as_millis(),
                });
            }
        }
    }
    violations
}

/// Finds committed transactions that read a list and appended to it, with another append in between.
pub fn lost_updates(history: &[Transaction], tables: &Tables) -> Vec<Violation> {
    let position = positions(tables);
    let mut violations = Vec::new();
    for t in history {
        for read in &t.reads {
            let own = t.appends.iter().find(|(key, _)| *key == read.key);
            let Some((key, id)) = own else { continue };
            match position.get(&(*key, *id)) {
                Some(at) if *at != read.list.len() => violations.push(Violation::LostUpdate {
                    key: *key,
                    id: *id,
                    read: read.list.len(),
                    at: *at,
                }),
                _ => {}
            }
        }
    }
    violations
}

fn positions(tables: &Tables) -> HashMap<(Key, Id), usize> {
    let lists = tables.lists.iter();
    lists
        .flat_map(|(key, list)| list.iter().enumerate().map(|(at, id)| ((*key, *id), at)))
        .collect()
}

/// Finds a cycle of dependencies without two anti-dependencies (read, then overwritten) in a row. Snapshot isolation
/// allows none (Fekete et al. 2005; Cerone and Gotsman 2016). With `real_time`, a transaction that ended before
/// another began also comes before it (strong snapshot isolation).
fn cycle(history: &[Transaction], tables: &Tables, real_time: bool) -> Option<Violation> {
    let position = positions(tables);
    let there = |t: &&Transaction| {
        t.is_committed()
            || (t.outcome == Outcome::Unknown && t.appends.iter().any(|a| position.contains_key(a)))
    };
    let committed: Vec<&Transaction> = history.iter().filter(there).collect();
    let mut graph = Graph::new(committed.len());
    let writer: HashMap<(Key, Id), usize> = committed
        .iter()
        .enumerate()
        .flat_map(|(i, t)| t.appends.iter().map(move |append| (*append, i)))
        .collect();
    for (key, list) in &tables.lists {
        for pair in list.windows(2) {
            if let (Some(a), Some(b)) = (writer.get(&(*key, pair[0])), writer.get(&(*key, pair[1])))
            {
                graph.dependency(*a, *b);
            }
        }
    }
    for (reader, t) in committed.iter().enumerate() {
        for read in &t.reads {
            if let Some(last) = read.list.last() {
                if let Some(writer) = writer.get(&(read.key, *last)) {
                    graph.dependency(*writer, reader);
                }
            }
            let next = tables.lists.get(&read.key);
            let next = next.and_then(|list| list.get(read.list.len()));
            if let Some(writer) = next.and_then(|id| writer.get(&(read.key, *id))) {
                graph.anti_dependency(reader, *writer);
            }
        }
    }
    if real_time {
        graph.add_real_time(&committed);
    }
    graph.cycle().map(|found| {
        let steps = found.iter().filter_map(|i| committed.get(*i));
        let steps: Vec<String> = steps.map(|t| describe(t)).collect();
        Violation::Cycle(steps.join(" -> "))
    })
}

fn describe(t: &Transaction) -> String {
    let reads: Vec<String> = t
        .reads
        .iter()
        .map(|read| format!("r{}:{}", read.key, read.list.len()))
        .collect();
    format!(
        "[{} {}..{} us {} {:?}]",
        node(t),
        t.began.as_micros(),
        t.ended.as_micros(),
        reads.join(" "),
        t.appends
    )
}

/// The graph of dependencies, with two vertices for each transaction. A dependency enters at vertex 2 i, an
/// anti-dependency at vertex 2 i + 1. No anti-dependency leaves vertex 2 i + 1, so no cycle here has two
/// anti-dependencies in a row.
struct Graph {
    edges: Vec<Vec<usize>>,
}

impl Graph {
    fn new(transactions: usize) -> Self {
        Self {
            edges: vec![Vec::new(); 2 * transactions],
        }
    }

    fn dependency(&mut self, from: usize, to: usize) {
        if from != to {
            self.edges[2 * from].push(2 * to);
            self.edges[2 * from + 1].push(2 * to);
        }
    }

    fn anti_dependency(&mut self, from: usize, to: usize) {
        if from != to {
            self.edges[2 * from].push(2 * to + 1);
        }
    }

    /// Adds a chain of moments: each end of a transaction leads to the next moment, and each moment to the
    /// transactions that begin there.
    fn add_real_time(&mut self, transactions: &[&Transaction]) {
        let mut ends: Vec<(Duration, usize)> = transactions
            .iter()
            .enumerate()
            .filter(|(_, t)| t.is_committed())
            .map(|(i, t)| (t.ended, i))
            .collect();
        ends.sort_unstable();
        let first = self.edges.len();
        self.edges.resize(first + 2 * ends.len(), Vec::new());
        // These edges count as dependencies: a moment needs only the first of the two vertices.
        for (moment, (_, i)) in ends.iter().enumerate() {
            let vertex = first + 2 * moment;
            self.edges[2 * i].push(vertex);
            self.edges[2 * i + 1].push(vertex);
            if moment > 0 {
                self.edges[vertex - 2].push(vertex);
            }
        }
        for (i, t) in transactions.iter().enumerate() {
            let before = ends.partition_point(|(end, _)| *end < t.began);
            if before > 0 {
                self.edges[first + 2 * (before - 1)].push(2 * i);
            }
        }
    }

    /// The transactions of a cycle, if there is one. Numbers beyond the transactions are moments.
    fn cycle(&self) -> Option<Vec<usize>> {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            OnPath,
            Done,
        }
        let mut marks = vec![Mark::New; self.edges.len()];
        for start in 0..self.edges.len() {
            if marks[start] != Mark::New {
                continue;
            }
            marks[start] = Mark::OnPath;
            // The vertices on the path, each with the number of its edges followed so far.
            let mut path = vec![(start, 0)];
            while let Some((vertex, followed)) = path.last_mut() {
                let Some(next) = self.edges[*vertex].get(*followed).copied() else {
                    marks[*vertex] = Mark::Done;
                    path.pop();
                    continue;
                };
                *followed += 1;
                match marks[next] {
                    Mark::New => {
                        marks[next] = Mark::OnPath;
                        path.push((next, 0));
                    }
                    Mark::OnPath => {
                        let from = path.iter().position(|(v, _)| *v == next)?;
                        return Some(path[from..].iter().map(|(v, _)| v / 2).collect());
                    }
                    Mark::Done => {}
                }
            }
        }
        None
    }
}

#[cfg(test)]
#[path = "isolation_tests.rs"]
mod tests;
