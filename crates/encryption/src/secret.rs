//! Writes the file of a shared secret (`repl.secret_file`): at most two lines. A node sends the first and accepts both.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::private_file::{PRIVATE, replace, write_new};

/// The random bytes of a new secret. `repl.secret_file` requires at least 32.
const SECRET_BYTES: usize = 48;
/// The largest secret file, in bytes. A longer file is the wrong file.
const MAX_FILE_BYTES: u64 = 16 << 10;

/// The reason why no secret is made.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file exists already.
    #[error("'{}' is there already: trireme secret new --rotate {0} puts a new secret before the one in it", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The system refuses to read or write the file.
    #[error("'{}': {source}; check path and owner", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file holds no secrets, or not the number of them that the step needs.
    #[error("'{}' does not do ({why}): see trireme secret --help", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The fault of the file.
        why: &'static str,
    },
    /// The system gives no random numbers.
    #[error("no random numbers from the system: {0}")]
    Random(#[from] getrandom::Error),
}

/// The commands that make and change a secret file.
pub struct Secret;

impl Secret {
    /// Writes a new file with one secret.
    pub fn create(path: &Path) -> Result<(), SecretError> {
        let line = new_line()? + "\n";
        match write_new(path, line.as_bytes(), PRIVATE) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(SecretError::Exists {
                    path: path.to_owned(),
                })
            }
            written => written.map_err(io_error(path)),
        }
    }

    /// Puts a new secret into the first line. The old first line becomes the second; an old second line is dropped.
    pub fn rotate(path: &Path) -> Result<(), SecretError> {
        let old = lines(path)?.swap_remove(0);
        write(path, &[new_line()?, old])
    }

    /// Adds a new secret as the second line of a file with one. Nodes accept it, and do not send it yet.
    pub fn stage(path: &Path) -> Result<(), SecretError> {
        match <[String; 1]>::try_from(lines(path)?) {
            Ok([first]) => write(path, &[first, new_line()?]),
            Err(_) => Err(foreign(path, "it has two secrets: a change is under way")),
        }
    }

    /// Swaps the two secrets of a file: from now on nodes send the second.
    pub fn swap(path: &Path) -> Result<(), SecretError> {
        match <[String; 2]>::try_from(lines(path)?) {
            Ok([first, second]) => write(path, &[second, first]),
            Err(_) => Err(foreign(path, "it has one secret: nothing was staged")),
        }
    }

    /// Keeps only the first line: nodes no longer accept the second secret.
    pub fn drop_old(path: &Path) -> Result<(), SecretError> {
        let first = lines(path)?.swap_remove(0);
        write(path, &[first])
    }
}

fn write(path: &Path, lines: &[String]) -> Result<(), SecretError> {
    let text = lines.join("\n") + "\n";
    replace(path, text.as_bytes(), PRIVATE).map_err(io_error(path))
}

/// Makes a random line, as `openssl rand -base64 48` does.
fn new_line() -> Result<String, SecretError> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(openssl::base64::encode_block(&bytes))
}

/// Reads the one or two lines of the file.
fn lines(path: &Path) -> Result<Vec<String>, SecretError> {
    let len = fs::metadata(path).map_err(io_error(path))?.len();
    if len > MAX_FILE_BYTES {
        return Err(foreign(path, "it has more than 16 KiB"));
    }
    let text = fs::read_to_string(path).map_err(io_error(path))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    match lines.len() {
        0 => Err(foreign(path, "it is empty")),
        1 | 2 => Ok(lines),
        _ => Err(foreign(path, "it has more than two lines")),
    }
}

fn foreign(path: &Path, why: &'static str) -> SecretError {
    SecretError::Foreign {
        path: path.to_owned(),
        why,
    }
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> SecretError {
    let path = path.to_owned();
    move |source| SecretError::Io { path, source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    fn lines(path: &Path) -> Vec<String> {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.ends_with('\n'));
        assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o600);
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn three_steps_lead_to_another_secret() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        Secret::create(&path).unwrap();
        assert!(Secret::swap(&path).is_err(), "nothing was staged");
        let before = lines(&path);
        Secret::stage(&path).unwrap();
        let staged = lines(&path);
        assert_eq!((staged.len(), &staged[0]), (2, &before[0]));
        assert!(Secret::stage(&path).is_err(), "a change is under way");
        Secret::swap(&path).unwrap();
        assert_eq!(lines(&path), [staged[1].clone(), staged[0].clone()]);
        Secret::drop_old(&path).unwrap();
        assert_eq!(lines(&path), staged[1..]);
    }

    #[test]
    fn a_secret_is_one_long_line_of_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        Secret::create(&one).unwrap();
        Secret::create(&two).unwrap();
        assert_eq!(fs::metadata(&one).unwrap().mode() & 0o777, 0o600);
        let (one, two) = (lines(&one), lines(&two));
        assert_eq!((one.len(), one[0].len()), (1, 64));
        assert_ne!(one, two);
    }

    #[test]
    fn a_rotation_keeps_the_secret_of_before_as_the_second() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        Secret::create(&path).unwrap();
        let first = lines(&path);
        Secret::rotate(&path).unwrap();
        let second = lines(&path);
        assert_eq!((second.len(), &second[1]), (2, &first[0]));
        assert_ne!(second[0], first[0]);
        Secret::rotate(&path).unwrap();
        let third = lines(&path);
        assert_eq!((third.len(), &third[1]), (2, &second[0]));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        Secret::drop_old(&path).unwrap();
        assert_eq!(lines(&path), third[..1]);
    }

    #[test]
    fn nothing_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        Secret::create(&path).unwrap();
        assert!(matches!(
            Secret::create(&path),
            Err(SecretError::Exists { .. })
        ));
        let (link, aim) = (dir.path().join("link"), dir.path().join("aim"));
        symlink(&aim, &link).unwrap();
        assert!(Secret::create(&link).is_err() && !aim.exists());
        for text in ["", "\n\n", "a\nb\nc\n"] {
            fs::write(&path, text).unwrap();
            assert!(
                matches!(Secret::rotate(&path), Err(SecretError::Foreign { .. })),
                "{text:?}"
            );
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert!(matches!(Secret::rotate(&aim), Err(SecretError::Io { .. })));
    }
}
