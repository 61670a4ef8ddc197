//! Queues, indexes and buffers stay within their limits, whatever happens (rules 8, 12, 16).
//!
//! The world samples sizes, each with the limit that the design gives it.

use super::Invariant;
use super::logs::name;
use crate::seen::{Seen, Sight};

/// The invariant of this module.
pub struct Bounded;

impl Invariant for Bounded {
    fn name(&self) -> &'static str {
        "bounded"
    }

    fn see(&mut self, sight: &Sight) -> Result<(), String> {
        match sight.what {
            Seen::Size {
                name: what,
                value,
                limit,
            } if value > limit => Err(format!(
                "{what} of {} has grown to {value}, its limit is {limit}",
                name(sight.node)
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::invariants::story::Story;
    use crate::seen::Seen;

    #[test]
    fn up_to_the_limit() {
        let mut story = Story::logs();
        let (name, limit) = ("apply queue", 10);
        story.see(
            1,
            Seen::Size {
                name,
                value: 10,
                limit,
            },
        );
        story.is_clean();
        story.see(
            1,
            Seen::Size {
                name,
                value: 11,
                limit,
            },
        );
        story.violates("bounded");
    }
}
