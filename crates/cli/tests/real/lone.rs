//! A server on its own that is told something wrong, and what it says before it gives up.

use std::path::Path;
use std::time::Duration;

use trireme_testbed::{Settings, StartMode};

use super::trial::{Trial, await_true};

/// A server that starts wrongly configured.
pub struct Lone {
    trial: Trial,
}

impl Lone {
    /// Starts a server under the provider at `path`, after `adapt` has spoilt its settings.
    pub fn start(path: &Path, adapt: impl FnOnce(&mut Settings)) -> Self {
        Self::start_in_mode(path, StartMode::Bootstrap, adapt)
    }

    /// The same for one that shall join the cluster at `address`; it need not wait for long.
    pub fn join(path: &Path, address: &str, adapt: impl FnOnce(&mut Settings)) -> Self {
        Self::start_in_mode(path, StartMode::Join, |settings| {
            settings
                .mariadbd_args
                .push(format!("--wsrep-cluster-address={address}"));
            settings.provider_options =
                "pc.wait_prim_timeout=PT4S;pc.announce_timeout=PT2S".to_string();
            adapt(settings);
        })
    }

    fn start_in_mode(path: &Path, mode: StartMode, adapt: impl FnOnce(&mut Settings)) -> Self {
        let mut trial = Trial::prepare(path.to_path_buf(), 1, adapt);
        if let Err(error) = trial.spawn_node(0, mode) {
            panic!("the server cannot be started: {error}");
        }
        Self { trial }
    }

    /// The server must end by itself within `timeout`, with an error in its log that has all of `words`.
    pub fn must_give_up(&self, timeout: Duration, words: &[&str]) {
        let ended = await_true(timeout, || self.trial.node(0).pid().is_none());
        assert!(ended, "the server still runs after {timeout:?}");
        self.must_say(words);
    }

    /// A line of its log, error or warning, must have all of `words`.
    pub fn must_say(&self, words: &[&str]) {
        let log = self.trial.node(0).log_text();
        let said = log
            .lines()
            .any(|line| is_complaint(line) && words.iter().all(|word| line.contains(word)));
        assert!(said, "no complaint in the log has the words {words:?}");
    }
}

fn is_complaint(line: &str) -> bool {
    line.contains("[ERROR]") || line.contains("[Warning]")
}
