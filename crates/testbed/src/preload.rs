//! Builds our small C libraries and preloads them into servers, between the server and its disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cluster::Cluster;
use crate::packages::{self, PackageError};

/// The reason why a library cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PreloadError {
    /// There is no compiler.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The compiler reports an error.
    #[error("cc cannot compile {path}: {reason}", path = path.display())]
    Compile {
        /// The source.
        path: PathBuf,
        /// The first line of the error.
        reason: String,
    },
    /// The loader would split the path, and ignore the parts.
    #[error(
        "{path} has a space or a colon, at which LD_PRELOAD ends a path; choose another directory (TMPDIR or --dir)",
        path = path.display()
    )]
    Path {
        /// The path of the library.
        path: PathBuf,
    },
    /// A file operation failed.
    #[error("cannot write {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// Compiles `source` to `name.so` in the directory of a cluster that has not started yet. These nodes will preload it.
pub fn into(
    cluster: &mut Cluster,
    nodes: impl IntoIterator<Item = usize>,
    name: &str,
    source: &str,
) -> Result<(), PreloadError> {
    let library = compile(&cluster.settings().dir, name, source)?;
    // The library does not see writes that the kernel does asynchronously.
    let arguments = &mut cluster.settings_mut().mariadbd_args;
    arguments.push("--innodb-use-native-aio=OFF".to_string());
    for i in nodes {
        cluster.set_environment(i, "LD_PRELOAD", &library);
    }
    Ok(())
}

/// Compiles `source`; returns the path of the library, which can be preloaded.
pub fn compile(dir: &Path, name: &str, source: &str) -> Result<PathBuf, PreloadError> {
    let [path, library] = ["c", "so"].map(|kind| dir.join(format!("{name}.{kind}")));
    let bytes = library.as_os_str().as_encoded_bytes();
    if bytes.iter().any(|byte| b" :".contains(byte)) {
        return Err(PreloadError::Path { path: library });
    }
    let cc = packages::find("cc", "gcc")?;
    write(&path, source.as_bytes())?;
    let output = Command::new(cc)
        .args(["-O2", "-shared", "-fPIC", "-pthread", "-o"])
        .args([&library, &path])
        .arg("-ldl")
        .output();
    let reason = match output {
        Ok(output) if output.status.success() => return Ok(library),
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    let reason = reason.lines().next().unwrap_or_default().to_string();
    Err(PreloadError::Compile { path, reason })
}

/// Overwrites a file in place, because a server may have mapped it.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), PreloadError> {
    fs::write(path, bytes).map_err(|source| PreloadError::Io {
        path: path.to_path_buf(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_cannot_be_preloaded_is_refused() {
        for name in ["a b", "a:b"] {
            let refused = compile(Path::new("/nonexistent"), name, "");
            assert!(
                matches!(refused, Err(PreloadError::Path { .. })),
                "{name}: {refused:?}"
            );
        }
    }
}
