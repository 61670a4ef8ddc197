//! The counts of the clients: transactions by type, conflicts, response times, commits in each second.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::input::Kind;
use super::transactions::Ended;

/// The counts of one type of transactions.
pub struct KindTally {
    /// The committed transactions.
    pub committed: u64,
    /// The transactions that were rolled back because of their input.
    pub rolled_back: u64,
    /// The attempts that met a conflict. Each was retried with the same input.
    pub conflicts: u64,
    /// The time from the first attempt of a transaction until the commit of the last, in microseconds. For a transaction
    /// that was in hand at the end of the measurement: the time until that end.
    pub response_us: Histogram<u64>,
}

impl KindTally {
    fn new() -> Self {
        Self {
            committed: 0,
            rolled_back: 0,
            conflicts: 0,
            // The histogram is from a microsecond to an hour, exact to 1 %.
            response_us: Histogram::new_with_bounds(1, 3_600_000_000, 2)
                .expect("the bounds are in order"),
        }
    }

    fn respond(&mut self, time: Duration) {
        self.response_us.saturating_record(time.as_micros() as u64);
    }

    fn add(&mut self, other: &Self) {
        self.committed += other.committed;
        self.rolled_back += other.rolled_back;
        self.conflicts += other.conflicts;
        // This cannot fail: both histograms have the same bounds.
        let _ = self.response_us.add(&other.response_us);
    }

    /// The share of `part` in all attempts, in percent.
    pub fn percent(&self, part: u64) -> f64 {
        let attempts = self.committed + self.rolled_back + self.conflicts;
        100.0 * part as f64 / attempts.max(1) as f64
    }

    /// The response time, in milliseconds, that the share `share` (0 to 1) of the transactions did not exceed.
    pub fn response_ms(&self, share: f64) -> f64 {
        self.response_us.value_at_quantile(share) as f64 / 1000.0
    }
}

/// The counts of one client or of all, in the measurement without the warm-up.
pub struct Tally {
    kinds: [KindTally; 5],
    per_second: Vec<u64>,
    unfinished: u64,
    oldest_unfinished: Duration,
    orders_in_all: u64,
    payments_in_all: u64,
}

impl Tally {
    /// An empty tally for a measurement of `seconds`.
    pub fn new(seconds: usize) -> Self {
        Self {
            kinds: std::array::from_fn(|_| KindTally::new()),
            per_second: vec![0; seconds],
            unfinished: 0,
            oldest_unfinished: Duration::ZERO,
            orders_in_all: 0,
            payments_in_all: 0,
        }
    }

    /// Counts a transaction that ended after `response`. `at`: the time since the begin of the measurement; `None`
    /// outside it.
    pub fn ended(&mut self, kind: Kind, ended: Ended, at: Option<Duration>, response: Duration) {
        if ended == Ended::Committed {
            match kind {
                Kind::NewOrder => self.orders_in_all += 1,
                Kind::Payment => self.payments_in_all += 1,
                Kind::OrderStatus | Kind::Delivery | Kind::StockLevel => {}
            }
        }
        let Some(at) = at else { return };
        let tally = &mut self.kinds[kind.index()];
        if ended == Ended::RolledBack {
            tally.rolled_back += 1;
            return;
        }
        tally.committed += 1;
        tally.respond(response);
        if let Some(second) = self.per_second.get_mut(at.as_secs() as usize) {
            *second += 1;
        }
    }

    /// Counts an attempt that met a conflict during the measurement.
    pub fn conflict(&mut self, kind: Kind) {
        self.kinds[kind.index()].conflicts += 1;
    }

    /// Counts a transaction that was in hand at the end of the measurement. `age`: the time since its first attempt. It
    /// goes into the response times, because a transaction that waits or is retried without end must not vanish from
    /// the percentiles.
    pub fn left(&mut self, kind: Kind, age: Duration) {
        self.unfinished += 1;
        self.oldest_unfinished = self.oldest_unfinished.max(age);
        self.kinds[kind.index()].respond(age);
    }

    /// Adds the counts of another client.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.add(theirs);
        }
        for (mine, theirs) in self.per_second.iter_mut().zip(&other.per_second) {
            *mine += theirs;
        }
        self.unfinished += other.unfinished;
        self.oldest_unfinished = self.oldest_unfinished.max(other.oldest_unfinished);
        self.orders_in_all += other.orders_in_all;
        self.payments_in_all += other.payments_in_all;
    }

    /// The counts of a type.
    pub fn kind(&self, kind: Kind) -> &KindTally {
        &self.kinds[kind.index()]
    }

    /// The commits of all types.
    pub fn committed(&self) -> u64 {
        self.kinds.iter().map(|tally| tally.committed).sum()
    }

    /// The commits in each second.
    pub fn per_second(&self) -> &[u64] {
        &self.per_second
    }

    /// The transactions that were in hand at the end of the measurement.
    pub fn unfinished(&self) -> u64 {
        self.unfinished
    }

    /// The age of the oldest of them, from its first attempt on; zero if there is none.
    pub fn oldest_unfinished(&self) -> Duration {
        self.oldest_unfinished
    }

    /// The new orders and payments that were committed in all, including the warm-up.
    pub fn acknowledged(&self) -> (u64, u64) {
        (self.orders_in_all, self.payments_in_all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn deliberate_rollbacks_are_apart_from_conflicts() {
        let mut tally = Tally::new(2);
        let at = Some(Duration::from_millis(1500));
        for _ in 0..7 {
            tally.ended(Kind::NewOrder, Ended::Committed, at, MS);
        }
        tally.ended(Kind::NewOrder, Ended::RolledBack, at, MS);
        tally.conflict(Kind::NewOrder);
        tally.conflict(Kind::NewOrder);
        let orders = tally.kind(Kind::NewOrder);
        assert_eq!(orders.percent(orders.conflicts), 20.0);
        assert_eq!(orders.percent(orders.rolled_back), 10.0);
        assert_eq!(tally.per_second(), [0, 7]);
        assert_eq!(tally.committed(), 7);
    }

    #[test]
    fn the_oldest_unfinished_is_that_of_all_clients() {
        let mut all = Tally::new(1);
        for age in [7, 90_000, 30] {
            let mut tally = Tally::new(1);
            tally.left(Kind::Delivery, age * MS);
            all.add(&tally);
        }
        assert_eq!(all.unfinished(), 3);
        assert_eq!(all.oldest_unfinished(), 90_000 * MS);
        // A wait of more than a minute is not cut, and is no commit.
        let delivery = all.kind(Kind::Delivery);
        assert!(delivery.response_ms(0.99) > 89_000.0);
        assert_eq!(delivery.committed, 0);
    }

    #[test]
    fn the_warm_up_counts_only_for_the_rows_that_must_be_there() {
        let mut tally = Tally::new(1);
        tally.ended(Kind::NewOrder, Ended::Committed, None, MS);
        tally.ended(Kind::NewOrder, Ended::RolledBack, None, MS);
        tally.ended(Kind::Payment, Ended::Committed, None, MS);
        let mut all = Tally::new(1);
        all.add(&tally);
        all.add(&tally);
        assert_eq!(all.acknowledged(), (2, 2));
        assert_eq!(all.committed(), 0);
    }
}
