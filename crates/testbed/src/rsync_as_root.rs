//! Makes state transfers by rsync work between servers that run as root.
//!
//! `wsrep_sst_rsync` starts an rsync daemon on the joiner and names no user for it. Started by root, the daemon becomes
//! `nobody`, who may not write to the data directory, so every transfer fails. The script runs in bash, which first
//! reads the file in `BASH_ENV`: ours makes `rsync --daemon` stay root. (A wrapper in `PATH` would not help, because
//! the server puts its own directory of programs first.) Nothing outside the cluster's directory is changed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The environment variable that bash reads.
pub const VARIABLE: &str = "BASH_ENV";

/// The script runs this function in the background, as a process of its own. `exec` replaces that process, so the
/// daemon has the process id that the script expects.
const TEXT: &str = "\
# Keeps the rsync daemon of wsrep_sst_rsync root; by itself it would become nobody.
rsync() {
    case \" $* \" in
    *' --daemon '*) exec rsync --dparam=uid=0 --dparam=gid=0 \"$@\" ;;
    *) command rsync \"$@\" ;;
    esac
}
# Encrypted, stunnel starts the daemon, by a name that the script has asked bash for: the function's.
[ -z \"$(type -P stunnel)\" ] || stunnel() {
    sed -i -e \"s|^exec = rsync\\$|exec = $(type -P rsync)|\" \\
        -e 's|^execargs = rsync --server --daemon |&--dparam=uid=0 --dparam=gid=0 |' \"$1\"
    exec \"$(type -P stunnel)\" \"$@\"
}
";

/// The path of the file for the cluster in `dir`.
pub fn file(dir: &Path) -> PathBuf {
    dir.join("rsync-as-root.bash")
}

/// Writes the file for the cluster in `dir`.
pub fn install(dir: &Path) -> io::Result<()> {
    fs::write(file(dir), TEXT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    #[test]
    fn only_the_daemon_gets_more_arguments() {
        let dir = tempfile::tempdir().unwrap();
        install(dir.path()).unwrap();
        // A stand-in that prints its process id and arguments.
        let stand_in = dir.path().join("rsync");
        fs::write(&stand_in, "#!/bin/sh\necho \"$$ $*\"\n").unwrap();
        fs::set_permissions(&stand_in, fs::Permissions::from_mode(0o700)).unwrap();
        let script = "PATH=$1:$PATH; rsync -a 'x y' | cut -d' ' -f2-; rsync --daemon --port 7 & echo $!; wait";
        let output = Command::new("bash")
            .args(["-c", script, "-"])
            .arg(dir.path())
            .env(VARIABLE, file(dir.path()))
            .output()
            .unwrap();
        let output = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = output.lines().collect();
        assert!(lines.contains(&"-a x y"), "{output}");
        let pid = lines
            .iter()
            .find(|line| line.parse::<u32>().is_ok())
            .unwrap();
        let daemon = format!("{pid} --dparam=uid=0 --dparam=gid=0 --daemon --port 7");
        assert!(lines.contains(&daemon.as_str()), "{output}");
    }
}
