//! The `repl.durability` of a cluster on trial.

use std::fmt;

/// `repl.durability`: how strongly a member holds an entry when it acknowledges it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Durability {
    /// A member loses its entries when its process dies
    Memory,
    /// Entries survive the death of the process
    Os,
    /// Entries survive a power loss
    Disk,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Os => "os",
            Self::Disk => "disk",
        })
    }
}
