//! Writes the configuration that turns encryption on at a node.

use std::path::{Path, PathBuf};

use crate::error::{Result, StoreError};

/// Makes the configuration of nodes whose TLS files lie in one directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    dir: PathBuf,
    options: String,
}

impl Snippet {
    /// `dir`: the directory of the files on the node. `options`: further options for `wsrep_provider_options`.
    pub fn new(dir: &Path, options: &str) -> Result<Snippet> {
        let text = dir.to_string_lossy();
        let allowed = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        if !dir.is_absolute() || !text.chars().all(allowed) {
            return Err(StoreError::Path(text.into_owned()));
        }
        Ok(Snippet {
            dir: dir.to_owned(),
            options: options.trim().trim_end_matches(';').to_owned(),
        })
    }

    /// The node's options, in the form of `wsrep_provider_options`.
    pub fn provider_options(&self) -> String {
        let own = format!(
            "socket.ssl_cert={0}/cert.pem; socket.ssl_key={0}/key.pem; socket.ssl_ca={0}/ca.pem; repl.require_encryption=yes",
            self.dir.display()
        );
        match self.options.is_empty() {
            true => own,
            false => format!("{}; {own}", self.options),
        }
    }

    /// The option file of `node`.
    pub fn text(&self, node: &str) -> String {
        let (dir, options) = (self.dir.display(), self.provider_options());
        format!(
            "# {node}: encrypted replication, and encrypted full copies of the data. Written by trireme tls; docs/security.md of the\n\
             # package trireme has the whole procedure.\n\
             #\n\
             #   1. cert.pem, key.pem and ca.pem belong into {dir}, readable by the server's user only:\n\
             #        install -d -m 0750 -o root -g mysql {dir}\n\
             #        install -m 0640 -o root -g mysql cert.pem key.pem ca.pem {dir}\n\
             #   2. This file belongs into /etc/mysql/mariadb.conf.d, under a name after that of the other files of the cluster.\n\
             #   3. A new cluster: start it. A cluster that runs: trireme tls enable, before any node is started with this file.\n\
             #\n\
             # An arbitrator takes the same line in --options.\n\
             \n\
             [galera]\n\
             # The server takes one line of this name, the last that it reads: options of other files belong into this one.\n\
             wsrep_provider_options = \"{options}\"\n\
             # Servers that can encrypt in place of the library leave it to the library.\n\
             loose_wsrep_ssl_mode = PROVIDER\n\
             \n\
             [sst]\n\
             # Full copies. rsync needs the program stunnel for it, mariabackup needs socat.\n\
             ssl-mode = VERIFY_CA\n\
             tca = {dir}/ca.pem\n\
             tcert = {dir}/cert.pem\n\
             tkey = {dir}/key.pem\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_before_stay() {
        let snippet = Snippet::new(Path::new("/etc/mysql/trireme"), "gcache.size=1G; ").unwrap();
        let text = snippet.text("node1");
        assert!(text.contains(
            "wsrep_provider_options = \"gcache.size=1G; socket.ssl_cert=/etc/mysql/trireme/cert.pem; socket.ssl_key="
        ));
        assert!(
            text.contains("repl.require_encryption=yes\"\n")
                && text.contains("\ntkey = /etc/mysql/trireme/key.pem\n")
        );
    }

    #[test]
    fn paths_that_would_break_the_line_are_refused() {
        for dir in [
            "etc/mysql",
            "/etc/my sql",
            "/etc/\"",
            "/a;b",
            "/a=b",
            "/a\nb",
        ] {
            assert!(Snippet::new(Path::new(dir), "").is_err(), "{dir}");
        }
    }
}
