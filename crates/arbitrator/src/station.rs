//! The core of the arbitrator: its engine, its line to the peers, its progress and its log.

use trireme_engine::Engine;
use trireme_node::{Line, Progress, Station};
use trireme_replicator::{Level, Options, Replicator};

use crate::log::Log;
use crate::outlet::Outlet;

/// The state that the arbitrator's thread drives.
pub(crate) struct Core {
    pub engine: Engine,
    pub line: Line,
    pub progress: Progress,
    /// The reason why the process must end, if that is not its disk.
    pub fatal: Option<String>,
    pub log: Log,
}

impl Core {
    /// A core that speaks through `line`, and is not a member yet.
    pub fn new(line: Line, log: Log) -> Core {
        Core {
            engine: Engine::new(Replicator::new(Options::default())),
            line,
            progress: Progress::default(),
            fatal: None,
            log,
        }
    }
}

impl Station for Core {
    type Outlet<'a> = Outlet<'a>;

    fn line(&mut self) -> Option<&mut Line> {
        Some(&mut self.line)
    }

    fn parts(&mut self) -> (&mut Engine, Outlet<'_>) {
        let outlet = Outlet {
            line: &mut self.line,
            progress: &mut self.progress,
            fatal: &mut self.fatal,
            log: &self.log,
        };
        (&mut self.engine, outlet)
    }

    fn log(&self, level: Level, text: &str) {
        self.log.line(level, text);
    }
}
