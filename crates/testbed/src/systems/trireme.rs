//! Trireme, with plaintext or encryption between its nodes.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::{Durability, System, SystemError, add, innodb};
use crate::packages;
use crate::settings::Settings;

/// The shared secret of an experiment: it protects only servers on this machine, which end with the experiment.
const SECRET: &str = "the secret of an experiment, which nobody need guess";

/// Trireme.
pub(super) struct Trireme {
    library: PathBuf,
    is_encrypted: bool,
}

impl Trireme {
    /// Trireme under the library `provider`, or under the one beside this program.
    pub fn with(provider: Option<&Path>, is_encrypted: bool) -> Result<Self, SystemError> {
        let library = packages::provider(provider)?;
        Ok(Self {
            library,
            is_encrypted,
        })
    }
}

impl System for Trireme {
    fn name(&self) -> &str {
        match self.is_encrypted {
            false => "trireme",
            true => "trireme-encrypted",
        }
    }

    fn about(&self) -> &'static str {
        match self.is_encrypted {
            false => {
                "Trireme with its defaults, and 4 appliers unless an argument says otherwise; in full durability \
                 repl.durability=disk: a majority of the nodes has flushed its log before a commit is acknowledged"
            }
            true => {
                "the same with TLS 1.3 between the nodes, by a shared secret (repl.secret_file); sessions by certificates \
                 encrypt alike"
            }
        }
    }

    fn library(&self) -> Option<&Path> {
        Some(&self.library)
    }

    fn configure(&self, durability: Durability, settings: &mut Settings) {
        settings.provider = Some(self.library.clone());
        let durable = durable(durability);
        let encrypted = match self.is_encrypted {
            false => String::new(),
            true => encryption(&settings.dir),
        };
        // The options in the settings come last, so that they win.
        settings.provider_options = format!("{durable};{encrypted}{}", settings.provider_options);
        add(settings, &[innodb(durability)]);
    }
}

/// The provider's option for this durability.
pub(super) fn durable(durability: Durability) -> &'static str {
    match durability {
        Durability::Lazy | Durability::Origin => "repl.durability=os",
        Durability::Full => "repl.durability=disk",
    }
}

/// Writes a secret into the cluster's directory and returns the options for it. If the write fails, the servers report
/// the file when they start.
fn encryption(dir: &Path) -> String {
    let file = dir.join("secret");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let opened = fs::create_dir_all(dir).and_then(|()| options.open(&file));
    let _ = opened.and_then(|mut file| file.write_all(SECRET.as_bytes()));
    let file = file.display();
    format!("repl.secret_file={file};repl.require_encryption=yes;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encrypted_one_has_a_secret() {
        let dir = tempfile::tempdir().unwrap();
        let system = Trireme {
            library: PathBuf::new(),
            is_encrypted: true,
        };
        let mut settings = Settings::new(dir.path(), 3, None);
        system.configure(Durability::Lazy, &mut settings);
        let file = dir.path().join("secret");
        assert_eq!(fs::read_to_string(&file).unwrap(), SECRET);
        let named = format!("repl.secret_file={};", file.display());
        assert!(settings.provider_options.contains(&named));
    }
}
