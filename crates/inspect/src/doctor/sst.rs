//! Whether the server's configuration asks for encrypted snapshots, as `wsrep_sst_rsync` reads it.

use crate::local::output;

/// The arguments of a server that name its option files; the server takes them only as its first ones.
const OPTION_FILES: [&str; 3] = [
    "--defaults-file=",
    "--defaults-extra-file=",
    "--defaults-group-suffix=",
];

/// Reads the option files of a server with these arguments. Files that cannot be read ask for nothing.
pub(super) fn encrypts(arguments: &[String]) -> bool {
    let names_files = |arg: &&str| OPTION_FILES.iter().any(|option| arg.starts_with(option));
    let mut words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    words.retain(|arg| names_files(arg));
    words.extend(["--mysqld", "sst"]);
    output("my_print_defaults", &words).is_some_and(|lines| asks(&lines))
}

/// Judges the lines `--name=value` of the groups `mysqld` and `sst`; the last one of a name counts.
fn asks(lines: &str) -> bool {
    let value = |name: &str| {
        let of = |line: &str| {
            let (key, value) = line.trim_start_matches('-').split_once('=')?;
            let key = key.replace('_', "-");
            let is_it = key.strip_prefix("loose-").unwrap_or(&key) == name;
            is_it.then(|| value.trim().to_owned())
        };
        lines.lines().rev().find_map(of).unwrap_or_default()
    };
    let any = |names: &[&str]| names.iter().any(|name| !value(name).is_empty());
    match value("ssl-mode").to_ascii_uppercase().as_str() {
        "" => {
            any(&["tca", "tcapath", "ssl-ca", "ssl-capath"])
                || any(&["tcert", "ssl-cert"]) && any(&["tkey", "ssl-key"])
        }
        mode => mode != "DISABLED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_ask_for_encryption() {
        for lines in [
            "--ssl-mode=VERIFY_CA\n",
            "--loose_ssl_mode=required\n",
            "--tca=/ca.pem\n",
            "--ssl_cert=/c.pem\n--ssl-key=/k.pem\n",
        ] {
            assert!(asks(lines), "{lines}");
        }
        for lines in [
            "",
            "--ssl-mode=DISABLED\n--tca=/ca.pem\n",
            "--tcert=/c.pem\n",
            "--wsrep_ssl_mode=PROVIDER\n",
            "--ssl-mode=REQUIRED\n--ssl-mode=disabled\n",
        ] {
            assert!(!asks(lines), "{lines}");
        }
    }
}
