//! The needs of each part: the programs and rights that this machine must have, and the data of the nodes.

use std::path::PathBuf;

use trireme_testbed::Server;
use trireme_testbed::cpu_share::CpuShare;
use trireme_testbed::network::Network;
use trireme_testbed::packages;

use super::error::LatencyError;
use super::plan::Part;
use super::site::ROWS;
use super::table;
use crate::oltp;

impl Part {
    /// Fails, with the remedy, if this machine lacks a program or a right that the part needs.
    pub(super) fn check(self) -> Result<(), LatencyError> {
        match self {
            Self::Failover | Self::Far | Self::Regions => drop(Network::new(1)?),
            Self::Restart | Self::Large | Self::Away => {}
            Self::Slow => {
                packages::find("cc", "gcc")?;
                drop(CpuShare::new("check")?);
            }
            Self::Durability | Self::Windows => drop(packages::sysbench()?),
            Self::Trace => {
                packages::find("strace", "strace")?;
                if !rustix::process::geteuid().is_root() {
                    return Err(LatencyError::Strace("not root".to_string()));
                }
            }
        }
        Ok(())
    }

    /// Returns a data directory of `server` with the table of all loads.
    pub(super) fn data(self, server: Server) -> Result<PathBuf, LatencyError> {
        match self {
            Self::Durability | Self::Windows => Ok(oltp::template(ROWS, server)?),
            _ => table::template(server),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn a_missing_program_or_right_names_its_remedy() {
        for part in Part::value_variants() {
            if let Err(error) = part.check() {
                let text = error.to_string();
                let remedies = ["apt-get install", "root", "mount", "modprobe"];
                let names_one = remedies.iter().any(|remedy| text.contains(remedy));
                assert!(names_one && !text.contains('\n'), "{text}");
            }
        }
        assert!(Part::Restart.check().is_ok() && Part::Away.check().is_ok());
        let durability = Part::Durability.check().is_ok();
        assert_eq!(durability, packages::sysbench().is_ok());
    }
}
