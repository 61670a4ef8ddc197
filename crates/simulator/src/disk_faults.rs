//! Variations of the disk faults of a plan. They have a stream of random numbers of their own, so that all other draws of
//! a seed stay as they were.

use crate::fault::{Fault, Notes};
use crate::plan::Plan;
use crate::random::Random;

const STREAM: u64 = 17;
/// Percentage of the hangs that last long enough for the node to notice (`engine/src/hang.rs`: 5 s) and to act.
const LONG_HANG_PERCENT: u64 = 40;

impl Plan {
    /// Lets some faults of notes strike one file only, and some flushes hang for long. The faults end later if a hang
    /// does.
    pub(crate) fn vary_disk_faults(&mut self) {
        let random = &mut Random::new(self.seed, STREAM);
        for (at, fault) in &mut self.faults {
            match fault {
                Fault::NotesFail { notes, .. } => {
                    *notes = random.pick(&[
                        Notes::Both,
                        Notes::StateFile,
                        Notes::Promises,
                        Notes::PromisesLackRoom,
                    ]);
                }
                Fault::FlushHangs { for_us, .. } => {
                    let long_us = random.within(6_000_000..=15_000_000);
                    if random.percent(LONG_HANG_PERCENT) {
                        *for_us = long_us;
                        self.calm_us = self.calm_us.max(*at + long_us);
                    }
                }
                _ => {}
            }
        }
    }
}
