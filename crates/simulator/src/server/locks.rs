//! Row locks and table (metadata) locks.
//!
//! Rows are locked exclusively. All transactions on a table's rows share the table; DDL locks it exclusively.
//! Brute-force threads (appliers, replays) stand before all others in a queue. A released lock goes at once to the
//! first thread of the queue.

use super::ctx::ThreadId;

#[derive(Clone, Debug, Default)]
struct RowLock {
    holder: Option<ThreadId>,
    /// The waiting threads: brute-force ones first, then in the order of arrival: (is brute-force, who).
    queue: Vec<(bool, ThreadId)>,
}

#[derive(Clone, Debug, Default)]
struct TableLock {
    sharing: Vec<ThreadId>,
    exclusive: Option<ThreadId>,
    /// The thread that waits until all sharers release the table; no new thread may share it.
    wants: Option<ThreadId>,
    /// The threads that wait to share it.
    queue: Vec<ThreadId>,
}

/// All locks of a server.
#[derive(Debug, Default)]
pub struct Locks {
    rows: Vec<RowLock>,
    tables: Vec<TableLock>,
    /// By thread: the row for which it waits.
    waits: Vec<Option<u32>>,
    /// The threads that have got the locks for which they waited.
    pub granted: Vec<ThreadId>,
}

impl Locks {
    /// The locks of so many tables, used by so many threads.
    pub fn new(tables: u32, threads: usize) -> Locks {
        Locks {
            tables: vec![TableLock::default(); tables as usize],
            waits: vec![None; threads],
            ..Locks::default()
        }
    }

    /// Locks a row. Err: the thread that holds it; the caller stands in the queue.
    pub fn row(&mut self, key: u32, who: ThreadId, brute_force: bool) -> Result<(), ThreadId> {
        let at = key as usize;
        if at >= self.rows.len() {
            self.rows.resize_with(at + 1, RowLock::default);
        }
        let lock = &mut self.rows[at];
        match lock.holder {
            None => {
                lock.holder = Some(who);
                Ok(())
            }
            Some(holder) if holder == who => Ok(()),
            Some(holder) => {
                let behind = lock.queue.iter().position(|(bf, _)| brute_force && !bf);
                let place = behind.unwrap_or(lock.queue.len());
                lock.queue.insert(place, (brute_force, who));
                self.waits[who] = Some(key);
                Err(holder)
            }
        }
    }

    /// True if `who` holds the lock of the row.
    pub fn holds_row(&self, key: u32, who: ThreadId) -> bool {
        (self.rows.get(key as usize)).is_some_and(|lock| lock.holder == Some(who))
    }

    /// Passes the lock of a row from one thread to another.
    pub fn hand_over(&mut self, key: u32, from: ThreadId, to: ThreadId) {
        if let Some(lock) = self.rows.get_mut(key as usize) {
            if lock.holder == Some(from) {
                lock.holder = Some(to);
            }
        }
    }

    /// True if `who` waits, directly or over other threads, for a lock that `who` itself holds.
    pub fn is_deadlock(&self, who: ThreadId) -> bool {
        let mut at = who;
        for _ in 0..self.waits.len() {
            let Some(holder) = self.waits[at].and_then(|key| self.rows[key as usize].holder) else {
                return false;
            };
            if holder == who {
                return true;
            }
            at = holder;
        }
        false
    }

    /// Releases these rows, and the place in a queue.
    pub fn release_rows(&mut self, keys: impl Iterator<Item = u32>, who: ThreadId) {
        if let Some(key) = self.waits[who].take() {
            self.rows[key as usize]
                .queue
                .retain(|(_, waiter)| *waiter != who);
        }
        for key in keys {
            let Some(lock) = self.rows.get_mut(key as usize) else {
                continue;
            };
            if lock.holder != Some(who) {
                continue;
            }
            lock.holder = None;
            if !lock.queue.is_empty() {
                let (_, next) = lock.queue.remove(0);
                lock.holder = Some(next);
                self.waits[next] = None;
                self.granted.push(next);
            }
        }
    }

    /// Shares a table. False: the caller stands in the queue.
    pub fn share_table(&mut self, table: u32, who: ThreadId, brute_force: bool) -> bool {
        let lock = &mut self.tables[table as usize];
        if lock.sharing.contains(&who) {
            return true;
        }
        let is_closed = lock.exclusive.is_some() || (lock.wants.is_some() && !brute_force);
        if is_closed {
            assert!(
                !brute_force,
                "a write-set is applied during a total-order action"
            );
            if !lock.queue.contains(&who) {
                lock.queue.push(who);
            }
        } else {
            lock.sharing.push(who);
        }
        !is_closed
    }

    /// Locks a table for DDL. False: the lock will be in [`Locks::granted`] when all sharers have released the table.
    pub fn take_table(&mut self, table: u32, who: ThreadId) -> bool {
        let lock = &mut self.tables[table as usize];
        let taken = lock.exclusive.or(lock.wants);
        assert!(
            taken.is_none_or(|other| other == who),
            "two total-order actions at once"
        );
        if lock.sharing.is_empty() {
            (lock.exclusive, lock.wants) = (Some(who), None);
        } else {
            lock.wants = Some(who);
        }
        lock.exclusive == Some(who)
    }

    /// The threads that share a table.
    pub fn sharing(&self, table: u32) -> &[ThreadId] {
        &self.tables[table as usize].sharing
    }

    /// Releases all tables that the thread holds or for which it waits.
    pub fn release_tables(&mut self, who: ThreadId) {
        for lock in &mut self.tables {
            lock.queue.retain(|waiter| *waiter != who);
            lock.sharing.retain(|sharer| *sharer != who);
            if lock.exclusive == Some(who) || lock.wants == Some(who) {
                (lock.exclusive, lock.wants) = (None, None);
            }
            if let (true, Some(next)) = (lock.sharing.is_empty(), lock.wants) {
                (lock.exclusive, lock.wants) = (Some(next), None);
                self.granted.push(next);
            }
            if lock.exclusive.is_none() && lock.wants.is_none() {
                for waiter in lock.queue.drain(..) {
                    lock.sharing.push(waiter);
                    self.granted.push(waiter);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brute_force_stands_first_and_gets_the_lock_at_once() {
        let mut locks = Locks::new(1, 5);
        assert_eq!(locks.row(7, 0, false), Ok(()));
        assert_eq!(locks.row(7, 0, false), Ok(()));
        assert_eq!(locks.row(7, 1, false), Err(0));
        assert_eq!(locks.row(7, 2, true), Err(0));
        assert_eq!(locks.row(7, 3, true), Err(0));
        locks.release_rows([7].into_iter(), 0);
        assert_eq!(std::mem::take(&mut locks.granted), [2]);
        assert!(locks.holds_row(7, 2));
        locks.release_rows([].into_iter(), 3); // has left the queue
        locks.release_rows([7].into_iter(), 2);
        assert_eq!(locks.granted, [1]);
    }

    #[test]
    fn a_circle_is_a_deadlock() {
        let mut locks = Locks::new(1, 3);
        for (key, who) in [(0, 0), (1, 1), (2, 2)] {
            assert_eq!(locks.row(key, who, false), Ok(()));
        }
        assert_eq!(locks.row(1, 0, false), Err(1));
        assert_eq!(locks.row(2, 1, false), Err(2));
        assert!(!locks.is_deadlock(1));
        assert_eq!(locks.row(0, 2, false), Err(0));
        assert!(locks.is_deadlock(2));
    }

    #[test]
    fn ddl_waits_for_all_and_keeps_out_the_next() {
        let mut locks = Locks::new(2, 5);
        assert!(locks.share_table(1, 0, false) && locks.share_table(1, 1, false));
        assert!(!locks.take_table(1, 2));
        assert!(!locks.share_table(1, 3, false));
        assert!(locks.share_table(0, 3, false), "another table");
        locks.release_tables(0);
        assert!(locks.granted.is_empty());
        locks.release_tables(1);
        assert_eq!(std::mem::take(&mut locks.granted), [2]);
        locks.release_tables(2);
        assert_eq!(locks.granted, [3]);
        assert!(locks.share_table(1, 4, false));
    }
}
