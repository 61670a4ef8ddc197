//! A wsrep provider that the user names by its path, such as another version of ours.

use std::path::{Path, PathBuf};

use super::trireme::durable;
use super::{Durability, System, SystemError, add, innodb};
use crate::packages;
use crate::settings::Settings;

/// A wsrep provider by its path.
pub(super) struct Provider {
    name: String,
    library: PathBuf,
}

impl Provider {
    /// Reads `NAME=PATH`; `None` for a text of another form.
    pub fn parse(text: &str) -> Option<Result<Self, SystemError>> {
        let (name, path) = text.split_once('=')?;
        let library = packages::provider(Some(Path::new(path)));
        (!name.is_empty()).then(|| {
            Ok(Self {
                name: text.to_string(),
                library: library?,
            })
        })
    }
}

impl System for Provider {
    /// The whole text, so that a report shows the path of the library.
    fn name(&self) -> &str {
        &self.name
    }

    fn about(&self) -> &'static str {
        "a wsrep provider named by its path, with its defaults and 4 appliers; in full durability repl.durability=disk, \
         unless it is Galera's"
    }

    fn library(&self) -> Option<&Path> {
        Some(&self.library)
    }

    fn configure(&self, durability: Durability, settings: &mut Settings) {
        settings.provider = Some(self.library.clone());
        // Beside `trireme` in full durability, another version of ours must flush as well.
        if !packages::is_galera(&self.library) {
            let durable = durable(durability);
            settings.provider_options = format!("{durable};{}", settings.provider_options);
        }
        add(settings, &[innodb(durability)]);
    }
}
