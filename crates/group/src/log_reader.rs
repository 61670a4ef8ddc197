//! The log as the core reads it back.

use crate::entry::Entry;
use crate::ids::Position;

/// The log cannot be read at the moment, by a lack that passes: the same is to be asked again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotNow;

/// The part of the log that the core does not hold in memory.
pub trait LogReader {
    /// The entry at `position`, None if the log does not reach back to it.
    fn read(&self, position: Position) -> Result<Option<Entry>, NotNow>;

    /// Entries from `from` to `last` at most, in order, until they exceed `max_bytes`; at least one if the log
    /// reaches back to `from`.
    fn read_run(
        &self,
        from: Position,
        last: Position,
        max_bytes: usize,
    ) -> Result<Vec<Entry>, NotNow> {
        let (mut run, mut bytes) = (Vec::new(), 0);
        for position in from..=last {
            let entry = match self.read(position) {
                Ok(Some(entry)) => entry,
                Err(NotNow) if run.is_empty() => return Err(NotNow),
                _ => break,
            };
            bytes += entry.size_bytes();
            if bytes > max_bytes && !run.is_empty() {
                break;
            }
            run.push(entry);
        }
        Ok(run)
    }
}
