//! Random numbers as the standard requires them: uniform, non-uniform (NURand), last names, strings. Clauses 2.1.6 and
//! 4.3.2.

/// The constant A of NURand for customers.
const A_CUSTOMER: u32 = 1023;
/// The constant A of NURand for last names.
const A_NAME: u32 = 255;
/// The constant A of NURand for items.
const A_ITEM: u32 = 8191;

/// The constant C of customers and items: the same for all clients.
const C_CUSTOMER: u32 = 259;
const C_ITEM: u32 = 7911;

/// The constant C of last names while the tables are loaded.
const C_NAME_LOAD: u32 = 123;
/// The constant C of last names during the run. By clause 2.1.6.1 the two differ by 65 to 119, but not by 96 or 112.
const C_NAME_RUN: u32 = 208;

const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];

const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// The time at which a last name is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// While the tables are loaded.
    Load,
    /// While transactions run.
    Run,
}

/// A generator of random numbers (splitmix64): the same seed gives the same numbers.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Makes a generator whose sequence depends on the seed.
    pub fn new(seed: u64) -> Self {
        Self {
            // Neighbouring seeds must not give neighbouring sequences.
            state: mix(seed ^ 0x7472_6972_656d_6521),
        }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number from `low` to `high`, both included, all equally likely.
    pub fn uniform(&mut self, low: u32, high: u32) -> u32 {
        debug_assert!(low <= high);
        let span = u64::from(high - low) + 1;
        // The upper 32 bits scaled: the bias is below 1 in 2^32 / span.
        low + (((self.next() >> 32) * span) >> 32) as u32
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.uniform(1, 100) <= percent
    }

    /// NURand(A, x, y) with the constant C.
    fn non_uniform(&mut self, a: u32, c: u32, (x, y): (u32, u32)) -> u32 {
        let mixed = self.uniform(0, a) | self.uniform(x, y);
        (mixed + c) % (y - x + 1) + x
    }

    /// A customer's number from 1 to `customers`.
    pub fn customer(&mut self, customers: u32) -> u32 {
        self.non_uniform(A_CUSTOMER, C_CUSTOMER, (1, customers))
    }

    /// An item's number from 1 to `items`.
    pub fn item(&mut self, items: u32) -> u32 {
        self.non_uniform(A_ITEM, C_ITEM, (1, items))
    }

    /// A customer's last name, from a number up to `largest`.
    pub fn last_name(&mut self, phase: Phase, largest: u32) -> String {
        let c = match phase {
            Phase::Load => C_NAME_LOAD,
            Phase::Run => C_NAME_RUN,
        };
        last_name(self.non_uniform(A_NAME, c, (0, largest)))
    }

    /// A text of letters and digits, with `low` to `high` characters.
    pub fn text(&mut self, low: u32, high: u32) -> String {
        let length = self.uniform(low, high);
        (0..length)
            .map(|_| LETTERS[self.uniform(0, 61) as usize] as char)
            .collect()
    }

    /// A text of `length` digits.
    pub fn digits(&mut self, length: u32) -> String {
        (0..length)
            .map(|_| LETTERS[self.uniform(52, 61) as usize] as char)
            .collect()
    }

    /// The numbers from 1 to `n` in random order.
    pub fn permutation(&mut self, n: u32) -> Vec<u32> {
        let mut all: Vec<u32> = (1..=n).collect();
        for i in (1..all.len()).rev() {
            all.swap(i, self.uniform(0, i as u32) as usize);
        }
        all
    }
}

/// The last name for a number from 0 to 999: a syllable per digit.
pub fn last_name(number: u32) -> String {
    [number / 100, number / 10, number]
        .map(|digit| SYLLABLES[(digit % 10) as usize])
        .concat()
}

fn mix(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_are_the_standards_examples() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(40), "BARPRESBAR");
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(999), "EINGEINGEING");
    }

    #[test]
    fn the_constants_of_last_names_differ_as_they_must() {
        let difference = C_NAME_RUN.abs_diff(C_NAME_LOAD);
        assert!((65..=119).contains(&difference) && ![96, 112].contains(&difference));
        const { assert!(C_NAME_RUN <= A_NAME && C_CUSTOMER <= A_CUSTOMER && C_ITEM <= A_ITEM) };
    }

    #[test]
    fn numbers_stay_within_their_bounds_and_reach_them() {
        let mut random = Random::new(1);
        let drawn: Vec<u32> = (0..10_000).map(|_| random.uniform(5, 15)).collect();
        assert_eq!(drawn.iter().min(), Some(&5));
        assert_eq!(drawn.iter().max(), Some(&15));
        let customers: Vec<u32> = (0..100_000).map(|_| random.customer(3000)).collect();
        assert!(customers.iter().all(|c| (1..=3000).contains(c)));
        let items: Vec<u32> = (0..100_000).map(|_| random.item(100_000)).collect();
        assert!(items.iter().all(|i| (1..=100_000).contains(i)));
    }

    #[test]
    fn non_uniform_numbers_have_favourites() {
        // An OR of two numbers sets a bit in three of four cases: some customers come far more often than one in 3000.
        let mut random = Random::new(2);
        let mut seen = vec![0u32; 3001];
        for _ in 0..300_000 {
            seen[random.customer(3000) as usize] += 1;
        }
        assert!(*seen.iter().max().unwrap() > 500);
        // A uniform generator would give each about 100.
        let mut uniform = vec![0u32; 3001];
        for _ in 0..300_000 {
            uniform[random.uniform(1, 3000) as usize] += 1;
        }
        assert!(*uniform.iter().max().unwrap() < 200);
    }

    #[test]
    fn a_permutation_has_every_number_once() {
        let mut all = Random::new(3).permutation(3000);
        assert_ne!(all[..10], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        all.sort_unstable();
        assert!(all.iter().copied().eq(1..=3000));
    }

    #[test]
    fn the_same_seed_gives_the_same_text() {
        let text = Random::new(7).text(8, 16);
        assert_eq!(text, Random::new(7).text(8, 16));
        assert_ne!(text, Random::new(8).text(8, 16));
        assert!((8..=16).contains(&text.len()));
        assert!(
            Random::new(9)
                .digits(16)
                .bytes()
                .all(|b| b.is_ascii_digit())
        );
    }
}
