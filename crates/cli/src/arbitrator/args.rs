//! The command line: garbd's, but some options have longer names.

use std::path::PathBuf;

use clap::Args;
use trireme_arbitrator::Settings;

use super::config_file;
use super::error::CommandError;

/// The default name: garbd's, because monitoring may know it.
const NAME: &str = "garb";

/// Arguments of `trireme arbitrator` and of `garbd`.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct ArbitratorArgs {
    /// The nodes of the cluster, as in wsrep_cluster_address: gcomm://host[:port],...
    #[arg(short = 'a', long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// The cluster's name (wsrep_cluster_name).
    #[arg(short = 'g', long, value_name = "NAME")]
    pub group: Option<String>,
    /// Options as in wsrep_provider_options: "key=value; ..." (base_port, gcache.size, repl.durability, pc.weight, ...).
    #[arg(short = 'o', long, value_name = "OPTIONS")]
    pub options: Option<String>,
    /// Its name among the members [default: garb].
    #[arg(short = 'n', long, value_name = "NAME")]
    pub name: Option<String>,
    /// The directory of the log [default: a new directory, removed at the end: the arbitrator comes back with an empty
    /// log].
    #[arg(short = 'w', long, visible_alias = "workdir", value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Write messages to this file [default: standard error; of a daemon, the system's log].
    #[arg(short = 'l', long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Run in the background; the command returns when the arbitrator listens.
    #[arg(short = 'd', long)]
    pub daemon: bool,
    /// Read the options that are not given here from this file: lines of option=value.
    #[arg(short = 'c', long, value_name = "FILE")]
    pub cfg: Option<PathBuf>,
    /// The same as --address.
    #[arg(value_name = "GROUP_ADDRESS", conflicts_with = "address", hide = true)]
    pub group_address: Option<String>,
    /// garbd's dump of a node's data: not implemented.
    #[arg(long, value_name = "REQUEST", hide = true)]
    pub sst: Option<String>,
    /// garbd's option for the dump: not implemented.
    #[arg(long, value_name = "NAME", hide = true)]
    pub donor: Option<String>,
    /// garbd's option for the dump: not implemented.
    #[arg(long, value_name = "SCRIPT", hide = true)]
    pub recv_script: Option<String>,
}

impl ArbitratorArgs {
    /// Fills in the options of the configuration file that are not on the command line.
    pub(super) fn completed(mut self) -> Result<ArbitratorArgs, CommandError> {
        self.address = self.address.take().or(self.group_address.take());
        if let Some(path) = self.cfg.take() {
            let source = |source| CommandError::Unreadable {
                path: path.clone(),
                source,
            };
            let text = std::fs::read_to_string(&path).map_err(source)?;
            config_file::complete(&mut self, &text).map_err(|(line, reason)| {
                CommandError::Line {
                    path: path.clone(),
                    line,
                    reason,
                }
            })?;
        }
        Ok(self)
    }

    /// The settings for the arbitrator.
    pub(super) fn settings(&self) -> Result<Settings, CommandError> {
        let dump = [
            ("--sst", &self.sst),
            ("--donor", &self.donor),
            ("--recv-script", &self.recv_script),
        ];
        if let Some((option, _)) = dump.into_iter().find(|(_, value)| value.is_some()) {
            return Err(CommandError::NoDump(option));
        }
        let missing = |what, how| CommandError::Missing { what, how };
        let address = self.address.clone();
        let group = self.group.clone();
        Ok(Settings {
            address: address.ok_or(missing(
                "the address of the cluster",
                "--address gcomm://host[:port],...",
            ))?,
            group: group.ok_or(missing("the name of the cluster", "--group NAME"))?,
            options: self.options.clone().unwrap_or_default(),
            name: self.name.clone().unwrap_or(NAME.to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: ArbitratorArgs,
    }

    fn parse(line: &str) -> Result<ArbitratorArgs, clap::Error> {
        let words = std::iter::once("garbd").chain(line.split(' '));
        Command::try_parse_from(words).map(|command| command.args)
    }

    #[test]
    fn the_command_lines_of_the_suites_and_of_garbs_service_are_taken() {
        let line =
            "--address gcomm://127.0.0.1:19000 --group my_wsrep_cluster --options base_port=19006";
        let settings = parse(line)
            .unwrap()
            .completed()
            .unwrap()
            .settings()
            .unwrap();
        let expected = Settings {
            address: "gcomm://127.0.0.1:19000".into(),
            group: "my_wsrep_cluster".into(),
            options: "base_port=19006".into(),
            name: "garb".into(),
        };
        assert_eq!(settings, expected);
        let args = parse("-a gcomm://a,b -g c -o x=1 -n d -l /log -w /dir -d").unwrap();
        assert_eq!(args.dir, Some("/dir".into()));
        assert_eq!(args.log, Some("/log".into()));
        assert!(args.daemon);
        let positional = parse("-g c gcomm://a").unwrap().completed().unwrap();
        assert_eq!(positional.settings().unwrap().address, "gcomm://a");
        assert!(parse("-a gcomm://a gcomm://b").is_err());
    }

    #[test]
    fn what_is_missing_or_not_there_is_said() {
        let refused = |line| {
            parse(line)
                .unwrap()
                .completed()
                .unwrap()
                .settings()
                .unwrap_err()
        };
        assert!(refused("-g c").to_string().contains("--address"));
        assert!(refused("-a gcomm://a").to_string().contains("--group"));
        let dump = "--address gcomm://a --group c --donor node1 --sst backup";
        assert!(
            refused(dump)
                .to_string()
                .starts_with("--sst is not implemented")
        );
    }
}
