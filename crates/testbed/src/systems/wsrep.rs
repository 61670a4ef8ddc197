//! A server under a given wsrep provider, or under none: crash trials and `trireme bench provider` compare these.

use std::path::{Path, PathBuf};

use super::SystemError;
use crate::packages::{self, GALERA_PROVIDER};

/// A server under a given wsrep provider, or under none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wsrep {
    /// The name in the report.
    pub name: String,
    /// The provider; `None` for a plain server.
    pub provider: Option<PathBuf>,
}

impl Wsrep {
    /// Reads `trireme`, `galera`, `plain` or `NAME=PATH`. The provider of `trireme` is `trireme_provider`, or the
    /// library beside this program.
    pub fn parse(text: &str, trireme_provider: Option<&Path>) -> Result<Self, SystemError> {
        let (name, provider) = match text.split_once('=') {
            Some((name, path)) if !name.is_empty() => {
                (name, Some(packages::provider(Some(Path::new(path)))?))
            }
            None if text == "plain" => (text, None),
            None if text == "galera" => (
                text,
                Some(packages::provider(Some(Path::new(GALERA_PROVIDER)))?),
            ),
            None if text == "trireme" => (text, Some(packages::provider(trireme_provider)?)),
            _ => return Err(SystemError::NoProvider(text.to_string())),
        };
        Ok(Self {
            name: name.to_string(),
            provider,
        })
    }

    /// Whether the provider is Galera.
    pub fn is_galera(&self) -> bool {
        self.provider.as_deref().is_some_and(packages::is_galera)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_read_by_name_or_path() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().canonicalize().unwrap();
        let own = Wsrep::parse(&format!("mine={}", path.display()), None).unwrap();
        assert_eq!(
            (own.name.as_str(), own.provider.as_deref()),
            ("mine", Some(path.as_path()))
        );
        assert_eq!(
            Wsrep::parse("trireme", Some(&path)).unwrap().provider,
            Some(path)
        );
        assert_eq!(Wsrep::parse("plain", None).unwrap().provider, None);
    }

    #[test]
    fn unknown_systems_are_refused() {
        assert_eq!(
            Wsrep::parse("oracle", None),
            Err(SystemError::NoProvider("oracle".to_string()))
        );
        assert!(Wsrep::parse("=x", None).is_err());
        assert!(matches!(
            Wsrep::parse("a=/nonexistent", None),
            Err(SystemError::Package(_))
        ));
    }
}
