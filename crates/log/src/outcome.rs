//! The outcomes of entries: seqno, verdict and dependency, by position.

use std::collections::VecDeque;

/// The outcome of an entry, recorded after its delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The seqno that the server sees; negative: the entry has none.
    pub seqno: i64,
    /// [`Outcome::FAILED`], [`Outcome::SKIPPED`]; the other bits are the caller's.
    pub flags: u8,
    /// Seqno of the last write-set that must be committed before this one.
    pub depends_on: i64,
}

impl Outcome {
    /// The write-set failed certification.
    pub const FAILED: u8 = 1;
    /// The write-set must not be applied (an error vote decided against it, a duplicate, ...).
    pub const SKIPPED: u8 = 2;
    /// Bytes of an outcome record's body.
    pub(crate) const BODY_BYTES: u32 = 16;

    pub(crate) fn body(&self) -> [u8; Self::BODY_BYTES as usize] {
        let mut out = [0; Self::BODY_BYTES as usize];
        out[..8].copy_from_slice(&self.seqno.to_le_bytes());
        out[8..].copy_from_slice(&self.depends_on.to_le_bytes());
        out
    }

    pub(crate) fn decode(flags: u8, body: &[u8; Self::BODY_BYTES as usize]) -> Self {
        let seqno = crate::format::u64_at(body, 0) as i64;
        let depends_on = crate::format::u64_at(body, 8) as i64;
        Outcome {
            seqno,
            flags,
            depends_on,
        }
    }
}

/// All known outcomes, with a map from seqnos to positions.
#[derive(Default)]
pub(crate) struct Outcomes {
    /// In order of position.
    by_position: VecDeque<(u64, Outcome)>,
    /// (seqno, position), growing in both.
    by_seqno: VecDeque<(i64, u64)>,
}

impl Outcomes {
    pub(crate) fn get(&self, position: u64) -> Option<Outcome> {
        Some(self.by_position[self.find(position).ok()?].1)
    }

    /// Finds a position, or the place for it. Most outcomes come in order: their place is the end.
    fn find(&self, position: u64) -> Result<usize, usize> {
        match self.by_position.back() {
            Some((last, _)) if position <= *last => {
                (self.by_position).binary_search_by_key(&position, |(p, _)| *p)
            }
            _ => Err(self.by_position.len()),
        }
    }

    /// Returns the number of seqnos at lower positions.
    fn seqnos_before(&self, position: u64) -> usize {
        match self.by_seqno.back() {
            Some((_, last)) if position <= *last => {
                self.by_seqno.partition_point(|(_, p)| *p < position)
            }
            _ => self.by_seqno.len(),
        }
    }

    pub(crate) fn position_of(&self, seqno: i64) -> Option<u64> {
        let at = self
            .by_seqno
            .binary_search_by_key(&seqno, |(s, _)| *s)
            .ok()?;
        Some(self.by_seqno[at].1)
    }

    /// Returns the lowest seqno at a position of at least `from`.
    pub(crate) fn first_seqno(&self, from: u64) -> Option<i64> {
        let at = self.seqnos_before(from);
        self.by_seqno.get(at).map(|(s, _)| *s)
    }

    pub(crate) fn last_seqno(&self) -> Option<i64> {
        self.by_seqno.back().map(|(s, _)| *s)
    }

    /// Returns the position of the highest seqno; `None`: there is none.
    pub(crate) fn last_position(&self) -> Option<u64> {
        self.by_seqno.back().map(|(_, p)| *p)
    }

    /// Returns true if `outcome` may be recorded for `position`: seqnos grow with positions, and a recorded seqno never
    /// changes.
    pub(crate) fn fits(&self, position: u64, outcome: &Outcome) -> bool {
        if let Some(known) = self.get(position) {
            return known.seqno == outcome.seqno || (known.seqno < 0 && outcome.seqno < 0);
        }
        if outcome.seqno < 0 {
            return true;
        }
        let at = self.seqnos_before(position);
        let above = at == 0 || self.by_seqno[at - 1].0 < outcome.seqno;
        let below = self
            .by_seqno
            .get(at)
            .is_none_or(|(s, _)| outcome.seqno < *s);
        above && below
    }

    /// Records an outcome that [`Outcomes::fits`].
    pub(crate) fn set(&mut self, position: u64, outcome: Outcome) {
        match self.find(position) {
            Ok(at) => self.by_position[at].1 = outcome,
            Err(at) => {
                self.by_position.insert(at, (position, outcome));
                if outcome.seqno >= 0 {
                    let at = self.seqnos_before(position);
                    self.by_seqno.insert(at, (outcome.seqno, position));
                }
            }
        }
    }

    pub(crate) fn truncate_after(&mut self, position: u64) {
        self.by_position
            .truncate(self.by_position.partition_point(|(p, _)| *p <= position));
        self.by_seqno
            .truncate(self.by_seqno.partition_point(|(_, p)| *p <= position));
    }

    pub(crate) fn drop_below(&mut self, position: u64) {
        self.by_position
            .drain(..self.by_position.partition_point(|(p, _)| *p < position));
        self.by_seqno
            .drain(..self.by_seqno.partition_point(|(_, p)| *p < position));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(seqno: i64) -> Outcome {
        Outcome {
            seqno,
            flags: 0,
            depends_on: 0,
        }
    }

    #[test]
    fn seqnos_grow_with_positions_and_stay() {
        let mut outcomes = Outcomes::default();
        outcomes.set(10, outcome(5));
        outcomes.set(12, outcome(9));
        assert!(!outcomes.fits(13, &outcome(9)));
        assert!(!outcomes.fits(11, &outcome(5)));
        assert!(outcomes.fits(11, &outcome(6)));
        assert!(!outcomes.fits(12, &outcome(10)), "a seqno once given stays");
        assert!(outcomes.fits(11, &outcome(-1)));
        outcomes.set(11, outcome(-1));
        assert_eq!(outcomes.position_of(9), Some(12));
        assert_eq!(outcomes.position_of(-1), None);
        assert_eq!(outcomes.first_seqno(11), Some(9));
        outcomes.set(
            12,
            Outcome {
                flags: Outcome::SKIPPED,
                ..outcome(9)
            },
        );
        assert_eq!(outcomes.get(12).map(|o| o.flags), Some(Outcome::SKIPPED));
        outcomes.truncate_after(11);
        assert_eq!((outcomes.last_seqno(), outcomes.get(12)), (Some(5), None));
        outcomes.drop_below(11);
        assert_eq!(
            (outcomes.last_seqno(), outcomes.get(11)),
            (None, Some(outcome(-1)))
        );
    }
}
