//! A small cluster with one lying member: it changes its messages, and makes up messages that look like those of a
//! correct member. No member may panic, and every message and log of a member can be encoded and decoded again. Bytes
//! decide the events: from a fuzzer, or from a seed.

mod counts;
mod dice;
mod liar;
mod lie;
mod world;

pub use counts::Counts;
pub use dice::Dice;
pub use lie::{lie, lie_in_payloads};
pub use world::run;

/// Number of bytes for one seed: these decide about two thousand events.
pub const BYTES_PER_SEED: usize = 8 << 10;

/// Makes bytes from a seed.
pub fn bytes_of_seed(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let words = std::iter::repeat_with(move || next().to_le_bytes());
    words.flatten().take(len).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEDS: u64 = 40;

    /// The example `liar` runs the same for longer.
    #[test]
    fn no_lie_ends_a_member() {
        let mut all = Counts::default();
        for seed in 1..=SEEDS {
            // The test names the seed of a panic.
            let told = std::panic::catch_unwind(|| run(&bytes_of_seed(seed, BYTES_PER_SEED)));
            let Ok(counts) = told else {
                panic!("seed {seed}");
            };
            all += counts;
        }
        assert!(all.lies > all.events / 8, "{all:?}");
        assert!(all.believed >= all.lies / 2, "{all:?}");
        assert!(all.opened > all.damaged / 8, "{all:?}");
        assert!(all.committed > all.events / 200, "{all:?}");
    }
}
