//! Galera 4, as the distribution packages it.

use std::path::{Path, PathBuf};

use super::{Durability, System, SystemError, add, innodb};
use crate::packages::{self, GALERA_PROVIDER};
use crate::settings::Settings;

/// Galera 4.
pub(super) struct Galera {
    library: PathBuf,
}

impl Galera {
    /// The library of the distribution.
    pub fn installed() -> Result<Self, SystemError> {
        let library = packages::provider(Some(Path::new(GALERA_PROVIDER)))?;
        Ok(Self { library })
    }
}

impl System for Galera {
    fn name(&self) -> &str {
        "galera"
    }

    fn about(&self) -> &'static str {
        "Galera 4 with its defaults, and 4 appliers unless an argument says otherwise; it has no setting by which the \
         other nodes flush before a commit is acknowledged, so its full durability is that of the client's node alone"
    }

    fn library(&self) -> Option<&Path> {
        Some(&self.library)
    }

    fn configure(&self, durability: Durability, settings: &mut Settings) {
        settings.provider = Some(self.library.clone());
        add(settings, &[innodb(durability)]);
    }
}
