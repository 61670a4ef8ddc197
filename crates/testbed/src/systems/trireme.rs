//! Trireme.

use std::path::{Path, PathBuf};

use super::{Durability, System, SystemError, add, innodb};
use crate::packages;
use crate::settings::Settings;

/// Trireme.
pub(super) struct Trireme {
    library: PathBuf,
}

impl Trireme {
    /// Under the library `provider`, or the one beside this program.
    pub fn with(provider: Option<&Path>) -> Result<Self, SystemError> {
        let library = packages::provider(provider)?;
        Ok(Self { library })
    }
}

impl System for Trireme {
    fn name(&self) -> &str {
        "trireme"
    }

    fn about(&self) -> &'static str {
        "Trireme with its defaults, and 4 appliers unless an argument says otherwise; in full durability \
         repl.durability=disk: a majority of the nodes has flushed its log before a commit is acknowledged"
    }

    fn configure(&self, durability: Durability, settings: &mut Settings) {
        settings.provider = Some(self.library.clone());
        let durable = match durability {
            Durability::Lazy | Durability::Origin => "repl.durability=os",
            Durability::Full => "repl.durability=disk",
        };
        // What the settings hold already comes later, and wins.
        settings.provider_options = format!("{durable};{}", settings.provider_options);
        add(settings, &[innodb(durability)]);
    }
}
