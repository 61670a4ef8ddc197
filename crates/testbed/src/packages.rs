//! Finds the programs and libraries that a local cluster needs, and names the Debian package of a missing one.

use std::env;
use std::path::{Path, PathBuf};

use crate::settings::SstMethod;

/// The path of Galera's provider in Debian's and Ubuntu's `galera-4`.
pub const GALERA_PROVIDER: &str = "/usr/lib/galera/libgalera_smm.so";

/// The path of our library in the package `trireme-provider`.
const INSTALLED_PROVIDER: &str = "/usr/lib/trireme/libtrireme.so";

/// The directory of roots with programs of other releases; `TRIREME_ROOTS` replaces it.
const ROOTS: &str = "/var/cache/trireme";

/// Whether the library at this path is Galera's.
pub fn is_galera(provider: &Path) -> bool {
    provider.ends_with("libgalera_smm.so")
}

/// A program or library is missing.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackageError {
    /// A program is not installed.
    #[error("{program} not found; install it: apt-get install {package}")]
    Program {
        /// The program's name.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// Galera's library is not installed.
    #[error("{GALERA_PROVIDER} not found; install it: apt-get install galera-4")]
    Galera,
    /// The root with MySQL does not exist.
    #[error("no MySQL server at {}; make it: scripts/mysql-root.sh", .0.display())]
    MySql(PathBuf),
    /// Our own library is not in its place.
    #[error(
        "no provider at {}; build it (make build), install the package trireme-provider, or give --provider PATH", .0.display()
    )]
    Provider(PathBuf),
}

/// Returns the full path of `program`. It is searched in `PATH` and in the directories of system programs, which an
/// ordinary user's `PATH` lacks.
pub fn find(program: &'static str, package: &'static str) -> Result<PathBuf, PackageError> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"].map(PathBuf::from))
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
        .ok_or(PackageError::Program { program, package })
}

/// The path of MariaDB's server.
pub fn mariadbd() -> Result<PathBuf, PackageError> {
    find("mariadbd", "mariadb-server")
}

/// The path of MySQL's server, in the root that `scripts/mysql-root.sh` makes. `TRIREME_ROOTS` is the directory of such
/// roots.
pub fn mysqld() -> Result<PathBuf, PackageError> {
    let roots = env::var_os("TRIREME_ROOTS").unwrap_or_else(|| ROOTS.into());
    let program = Path::new(&roots).join("root-mysql/mysqld");
    match program.is_file() {
        true => Ok(program),
        false => Err(PackageError::MySql(program)),
    }
}

/// The path of the program that makes an empty data directory.
pub fn install_db() -> Result<PathBuf, PackageError> {
    find("mariadb-install-db", "mariadb-server")
}

/// The path of the load generator.
pub fn sysbench() -> Result<PathBuf, PackageError> {
    find("sysbench", "sysbench")
}

/// Checks that all programs are there which the state transfer scripts of `method` call.
pub fn check_sst(method: SstMethod) -> Result<(), PackageError> {
    // The scripts find the port's owner with either of these.
    find("lsof", "lsof").or_else(|_| find("ss", "iproute2"))?;
    match method {
        SstMethod::Rsync => find("rsync", "rsync")?,
        SstMethod::Mariabackup => {
            find("mariabackup", "mariadb-backup")?;
            find("socat", "socat")?
        }
    };
    Ok(())
}

/// Returns `chosen`, or else `libtrireme.so` beside this executable, or else the library of the package
/// `trireme-provider`. The path is absolute, and the file exists.
pub fn provider(chosen: Option<&Path>) -> Result<PathBuf, PackageError> {
    let built = beside_executable("libtrireme.so");
    let path = match chosen {
        Some(path) => path.to_path_buf(),
        None if !built.is_file() && Path::new(INSTALLED_PROVIDER).is_file() => {
            INSTALLED_PROVIDER.into()
        }
        None => built,
    };
    match std::path::absolute(&path) {
        Ok(path) if path.is_file() => Ok(path),
        _ if path == Path::new(GALERA_PROVIDER) => Err(PackageError::Galera),
        _ => Err(PackageError::Provider(path)),
    }
}

fn beside_executable(name: &str) -> PathBuf {
    let exe = env::current_exe().unwrap_or_default();
    let dir = exe.parent().unwrap_or(Path::new("."));
    // Test programs are one directory below the library.
    let dir = match dir.file_name() {
        Some(last) if last == "deps" => dir.parent().unwrap_or(dir),
        _ => dir,
    };
    dir.join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_names_its_package() {
        let error = find("no-such-program-trireme", "some-package").unwrap_err();
        assert_eq!(
            error.to_string(),
            "no-such-program-trireme not found; install it: apt-get install some-package"
        );
    }

    #[test]
    fn system_programs_are_found() {
        assert!(find("sh", "dash").unwrap().is_absolute());
    }

    #[test]
    fn a_missing_provider_is_named() {
        let path = Path::new("/nonexistent/libx.so");
        assert_eq!(
            provider(Some(path)),
            Err(PackageError::Provider(path.to_path_buf()))
        );
    }
}
