//! The time that a joiner waits for the next message of a member that it has asked. It grows on a slow link: what comes
//! too late has to be sent again.

const SHORTEST_MS: u64 = 1_000;
const LONGEST_MS: u64 = 16_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Patience(u64);

impl Default for Patience {
    fn default() -> Patience {
        Patience(SHORTEST_MS)
    }
}

impl Patience {
    pub(super) fn ms(self) -> u64 {
        self.0
    }

    pub(super) fn grow(&mut self) {
        self.0 = (self.0 * 2).min(LONGEST_MS);
    }

    pub(super) fn shrink(&mut self) {
        self.0 = (self.0 / 2).max(SHORTEST_MS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_between_one_second_and_sixteen() {
        let mut patience = Patience::default();
        let grown = [(); 6].map(|()| {
            patience.grow();
            patience.ms()
        });
        assert_eq!(grown, [2_000, 4_000, 8_000, 16_000, 16_000, 16_000]);
        let shrunk = [(); 5].map(|()| {
            patience.shrink();
            patience.ms()
        });
        assert_eq!(shrunk, [8_000, 4_000, 2_000, 1_000, 1_000]);
    }
}
