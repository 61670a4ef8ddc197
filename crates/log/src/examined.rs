//! A log that was read and not changed. Between the detection of damage and its repair, the owner may save what the log
//! showed.

use crate::config::LogConfig;
use crate::disk::Disk;
use crate::error::LogError;
use crate::log::Log;
use crate::recovery::{self, Reading, Recovered};
use crate::state_file::StateFile;

/// An existing log, read from end to end, no file changed yet ([`Log::examine_on`]).
///
/// The repair removes the signs that tell damage from a log that merely ends. If the process dies within the repair, or
/// after it, the next process finds nothing wrong. So the owner first saves the findings that must outlive the process.
pub struct Examined {
    disk: Box<dyn Disk>,
    config: LogConfig,
    state: StateFile,
    reading: Reading,
}

impl Examined {
    pub(crate) fn new(disk: Box<dyn Disk>, config: LogConfig) -> Result<Examined, LogError> {
        let reading = recovery::read(disk.as_ref(), &config)?;
        let state = StateFile::open(disk.as_ref(), config.identity)?;
        Ok(Examined {
            disk,
            config,
            state,
            reading,
        })
    }

    /// Returns the findings, and the repairs that [`Examined::open`] will make.
    pub fn found(&self) -> &Recovered {
        &self.reading.found
    }

    /// Returns the last saved state, as [`Log::state`].
    pub fn state(&self) -> Option<&[u8]> {
        self.state.get()
    }

    /// Replaces the state, as [`Log::save_state`]: on stable storage on return, with the log itself unchanged.
    pub fn save_state(&mut self, state: &[u8]) -> Result<(), LogError> {
        self.state.save(self.disk.as_ref(), state)
    }

    /// Cuts off a torn tail, sets damaged parts aside, and opens the rest.
    pub fn open(self) -> Result<(Log, Recovered), LogError> {
        let disk = self.disk.as_ref();
        let Reading {
            index,
            active,
            repair,
            found,
        } = self.reading;
        for step in repair {
            step.carry_out(disk)?;
        }
        let active = recovery::open(disk, active)?;
        let (disk, flushed) = (self.disk.into(), found.flushed);
        let log = Log::opened(disk, self.config, self.state, index, active, flushed)?;
        Ok((log, found))
    }
}
