//! Disks that lose all unflushed writes at a power loss.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::journal::{self, Loss};
use super::random::Random;
use super::{CrashError, io_error};
use trireme_testbed::cluster::Cluster;
use trireme_testbed::preload;

/// Name of the library that is loaded into the servers.
const LIBRARY: &str = "power_loss";
const SOURCE: &str = include_str!("power_loss.c");

/// The disks of a cluster's nodes.
pub struct PowerLoss {
    /// For each node: the directory of the journal and the switches.
    dirs: Vec<PathBuf>,
    /// For each node: its data directory.
    roots: Vec<PathBuf>,
    random: Random,
}

impl PowerLoss {
    /// Prepares the nodes of a cluster that is not started yet. `seed` fixes which unflushed writes survive a loss.
    pub fn prepare(cluster: &mut Cluster, seed: u64) -> Result<Self, CrashError> {
        preload::into(cluster, 0..cluster.nodes().len(), LIBRARY, SOURCE)?;
        let mut dirs = Vec::new();
        let mut roots = Vec::new();
        for i in 0..cluster.nodes().len() {
            let (dir, root) = (cluster.node(i).dir.join("disk"), cluster.node(i).datadir());
            fs::create_dir_all(&dir).map_err(io_error(&dir))?;
            cluster.set_environment(i, "TRIREME_POWER_LOSS_ROOT", &root);
            cluster.set_environment(i, "TRIREME_POWER_LOSS_DIR", &dir);
            dirs.push(dir);
            roots.push(root);
        }
        let mut disks = Self {
            dirs,
            roots,
            random: Random::new(seed ^ 0x00d1_5c10_55e5),
        };
        disks.set_lying(false)?;
        disks.boot(&(0..disks.dirs.len()).collect::<Vec<_>>())?;
        Ok(disks)
    }

    /// Makes everything written so far count as flushed.
    pub fn settle(&self) -> Result<(), CrashError> {
        for dir in &self.dirs {
            let path = dir.join("journal");
            // Empties the file in place: the servers append to it.
            File::create(&path).map_err(io_error(&path))?;
        }
        Ok(())
    }

    /// With `lying`, flushes succeed from now on and keep nothing; without, they are honest.
    pub fn set_lying(&self, lying: bool) -> Result<(), CrashError> {
        for dir in &self.dirs {
            let path = dir.join("lies");
            // Written in place: the server has mapped the file.
            let written = File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&path)
                .and_then(|file| file.write_all_at(&[u8::from(lying)], 0));
            written.map_err(io_error(&path))?;
        }
        Ok(())
    }

    /// Takes back the unflushed writes of these nodes and restarts their machines; the servers must be dead already.
    /// With `something_survives`, some of these writes survive.
    pub fn strike(
        &mut self,
        nodes: &[usize],
        something_survives: bool,
    ) -> Result<Loss, CrashError> {
        let mut all = Loss::default();
        for node in nodes {
            let (dir, root) = (&self.dirs[*node], &self.roots[*node]);
            let path = dir.join("journal");
            let survivors = something_survives.then(|| Random::new(self.random.number()));
            let loss = journal::lose(&path, root, survivors).map_err(io_error(&path))?;
            all.changes += loss.changes;
            all.survived += loss.survived;
        }
        self.boot(nodes)?;
        Ok(all)
    }

    /// Gives each machine a new boot id, as the kernel does at every start.
    fn boot(&mut self, nodes: &[usize]) -> Result<(), CrashError> {
        for node in nodes {
            let dir = &self.dirs[*node];
            let (a, b) = (self.random.number(), self.random.number());
            let id = format!(
                "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}\n",
                a >> 32,
                (a >> 16) & 0xffff,
                a & 0xffff,
                b >> 48,
                b & 0xffff_ffff_ffff
            );
            let path = dir.join("boot_id");
            fs::write(&path, id).map_err(io_error(&path))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use trireme_testbed::packages;

    #[test]
    fn a_program_called_as_the_server_loses_what_it_did_not_flush() {
        let (Ok(_), Ok(dd)) = (
            packages::find("cc", "gcc"),
            packages::find("dd", "coreutils"),
        ) else {
            return;
        };
        let temp = tempfile::tempdir().unwrap();
        let path = |name: &str| temp.path().join(name);
        let library = preload::compile(temp.path(), LIBRARY, SOURCE).unwrap();
        fs::copy(dd, path("mariadbd")).unwrap();
        fs::create_dir(path("root")).unwrap();
        fs::write(path("input"), "new").unwrap();
        let disks = PowerLoss {
            dirs: vec![temp.path().to_path_buf()],
            roots: vec![path("root")],
            random: Random::new(1),
        };
        let write = |file: &str, conversion: &str| {
            fs::write(path("root").join(file), "old text").unwrap();
            let status = Command::new(path("mariadbd"))
                .arg(format!("if={}", path("input").display()))
                .arg(format!("of={}", path("root").join(file).display()))
                .args([conversion, "status=none"])
                .env("LD_PRELOAD", &library)
                .env("TRIREME_POWER_LOSS_ROOT", path("root"))
                .env("TRIREME_POWER_LOSS_DIR", temp.path())
                .status();
            assert!(status.unwrap().success());
        };
        let text = |file: &str| fs::read_to_string(path("root").join(file)).unwrap();
        disks.set_lying(false).unwrap();
        write("flushed", "conv=fsync");
        write("part", "conv=notrunc");
        write("whole", "conv=sync");
        disks.set_lying(true).unwrap();
        write("lied", "conv=fsync");
        assert_eq!(
            (text("part"), text("whole").len()),
            ("new text".to_string(), 512)
        );

        let mut disks = disks;
        disks.strike(&[0], false).unwrap();
        let held = ["flushed", "part", "whole", "lied"].map(text);
        assert_eq!(held, ["new", "old text", "old text", "old text"]);
    }
}
