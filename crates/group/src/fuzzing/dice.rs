//! Makes decisions from bytes.

use crate::ids::Uuid;

/// The remaining bytes; without any, every decision is 0.
pub struct Dice<'a>(pub &'a [u8]);

impl Dice<'_> {
    /// True if no bytes remain.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Any byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    /// A number below `count`; 0 if `count` is 0.
    pub fn below(&mut self, count: usize) -> usize {
        match count {
            0 | 1 => 0,
            2..=256 => usize::from(self.byte()) % count,
            _ => (usize::from(self.byte()) << 8 | usize::from(self.byte())) % count,
        }
    }

    /// True once in `count` times.
    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// One of these values; None if there are none.
    pub fn pick<'b, T>(&mut self, of: &'b [T]) -> Option<&'b T> {
        match of.is_empty() {
            true => None,
            false => of.get(self.below(of.len())),
        }
    }

    /// One of 256 ids.
    pub fn uuid(&mut self) -> Uuid {
        Uuid([self.byte(); 16])
    }

    /// A number near `number`, or near a limit.
    pub fn near(&mut self, number: u64) -> u64 {
        match self.below(16) {
            0..=3 => number,
            4..=6 => number.saturating_add(1),
            7..=9 => number.saturating_sub(1),
            10 => number.saturating_add(u64::from(self.byte())),
            11 => number.saturating_sub(u64::from(self.byte())),
            12 => number.saturating_add(1 << 32),
            13 => u64::from(self.byte()),
            14 => (1 << 62) - 1,
            _ => match self.below(6) {
                0 => u64::MAX,
                1 => 0,
                2 => number.wrapping_neg(),
                _ => self.number() >> self.below(64),
            },
        }
    }
}
