//! `trireme tls` and `trireme secret`: their arguments and messages. `trireme-encryption` does the work.

mod enable;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use trireme_encryption::{
    ChangeOverError, Days, Dropped, Expectation, NodeName, Report, Secret, SecretError, Snippet,
    Store, StoreError, check_files, check_peer,
};
use trireme_testbed::output::line;
use trireme_tls::Files;

use crate::login::PasswordError;
use enable::{EnableArgs, enable};

/// The default directory of a node's TLS files, on the node.
const NODE_DIR: &str = "/etc/mysql/trireme";

/// `trireme tls`.
#[derive(Subcommand)]
pub enum TlsCommand {
    /// Make an authority, and the key, certificate and configuration of each node. Run it again for further nodes.
    Init(InitArgs),
    /// Check a node's files, and the certificates that running peers present; fails if something is wrong.
    Check(CheckArgs),
    /// Make new keys and certificates, or change the authority.
    Renew(RenewArgs),
    /// Change a running cluster from plaintext to TLS, without stopping a node.
    Enable(EnableArgs),
}

/// `trireme secret`.
#[derive(Subcommand)]
pub enum SecretCommand {
    /// Write the file of a new shared secret (repl.secret_file), for clusters without certificates.
    New {
        /// Change the secret of an existing file: a new secret becomes the first line, and the old one stays accepted
        /// as the second.
        #[arg(long)]
        rotate: bool,
        /// The file.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// First of three steps to another secret: add a new secret behind the one in the file; the nodes accept both.
    Stage {
        /// The file.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Second step: swap the two secrets; the nodes send the new one.
    Swap {
        /// The file.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Third step: keep only the first secret.
    DropOld {
        /// The file.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// Arguments of `tls init`.
#[derive(Args)]
pub struct InitArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// The directory of the files on each node.
    #[arg(long, value_name = "DIR", default_value = NODE_DIR)]
    node_dir: PathBuf,
    /// Further options for wsrep_provider_options, such as "gcache.size=1G".
    #[arg(long, value_name = "STR", default_value = "")]
    options: String,
    /// Nodes and arbitrators: NAME, or NAME=ADDRESS,... for a certificate with addresses, too.
    #[arg(value_name = "NODE", required = true)]
    nodes: Vec<NodeName>,
}

/// Arguments of `tls renew`.
#[derive(Args)]
pub struct RenewArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Begin a change of authority: nodes are to trust a new authority beside the old one. Certificates stay.
    #[arg(long, conflicts_with_all = ["drop_old_authority", "nodes"])]
    new_authority: bool,
    /// End a change of authority: nodes are to trust only the new one.
    #[arg(long, conflicts_with = "nodes")]
    drop_old_authority: bool,
    /// Nodes, perhaps with other addresses than before [default: all].
    #[arg(value_name = "NODE")]
    nodes: Vec<NodeName>,
}

/// The directory of the authority, and the validity of its certificates.
#[derive(Args)]
struct StoreArgs {
    /// The directory of the authority's key: keep it safe, and not on a node.
    #[arg(long, value_name = "DIR", default_value = "trireme-tls")]
    dir: PathBuf,
    /// The validity of nodes' certificates.
    #[arg(long, value_name = "DAYS", default_value_t = 1095, value_parser = clap::value_parser!(u32).range(1..=36500))]
    days: u32,
    /// The validity of a new authority.
    #[arg(long, value_name = "DAYS", default_value_t = 3650, value_parser = clap::value_parser!(u32).range(1..=36500))]
    authority_days: u32,
}

impl StoreArgs {
    fn days(&self) -> Days {
        Days {
            authority: self.authority_days,
            node: self.days,
        }
    }
}

/// Arguments of `tls check`.
#[derive(Args)]
pub struct CheckArgs {
    #[command(flatten)]
    files: FileArgs,
    /// A name or address that the node's certificate must have (repeatable).
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,
    /// Complain of certificates with fewer days left.
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    days_left: u32,
    /// Dial this member, host:port of its group traffic, and check its certificate (repeatable).
    #[arg(long = "peer", value_name = "ADDRESS")]
    peers: Vec<String>,
}

/// The files of a node.
#[derive(Args)]
struct FileArgs {
    /// socket.ssl_cert.
    #[arg(long, value_name = "FILE", default_value_t = in_node_dir("cert.pem"))]
    cert: String,
    /// socket.ssl_key.
    #[arg(long, value_name = "FILE", default_value_t = in_node_dir("key.pem"))]
    key: String,
    /// socket.ssl_ca.
    #[arg(long, value_name = "FILE", default_value_t = in_node_dir("ca.pem"))]
    ca: String,
    /// socket.ssl_crl [default: none].
    #[arg(
        long,
        value_name = "FILE",
        default_value = "",
        hide_default_value = true
    )]
    crl: String,
    /// socket.ssl_password_file [default: none].
    #[arg(
        long,
        value_name = "FILE",
        default_value = "",
        hide_default_value = true
    )]
    key_password_file: String,
}

fn in_node_dir(file: &str) -> String {
    format!("{NODE_DIR}/{file}")
}

impl FileArgs {
    fn files(self) -> Files {
        Files {
            cert: self.cert,
            key: self.key,
            ca: self.ca,
            crl: self.crl,
            password: self.key_password_file,
            cipher: String::new(),
        }
    }
}

/// The reason why a command fails.
#[derive(Debug, thiserror::Error)]
pub enum TlsCommandError {
    /// An error of the operator's directory.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An error of the change to TLS.
    #[error(transparent)]
    ChangeOver(#[from] ChangeOverError),
    /// An error of the secret's file.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The password's file cannot be read.
    #[error(transparent)]
    Password(#[from] PasswordError),
    /// Some checks failed.
    #[error("{0} of the checks failed")]
    Found(usize),
}

/// Runs `trireme tls`.
pub fn run(command: TlsCommand) -> Result<(), TlsCommandError> {
    match command {
        TlsCommand::Init(args) => init(&args),
        TlsCommand::Check(args) => check(args),
        TlsCommand::Renew(args) => renew(&args),
        TlsCommand::Enable(args) => enable(args),
    }
}

/// Runs `trireme secret`.
pub fn run_secret(command: SecretCommand) -> Result<(), TlsCommandError> {
    let (file, done) = match &command {
        SecretCommand::New { rotate: true, file } => (file, Secret::rotate(file)),
        SecretCommand::New { file, .. } => (file, Secret::create(file)),
        SecretCommand::Stage { file } => (file, Secret::stage(file)),
        SecretCommand::Swap { file } => (file, Secret::swap(file)),
        SecretCommand::DropOld { file } => (file, Secret::drop_old(file)),
    };
    done?;
    line(&format!(
        "{}: copy it to every node, readable by the server's user only; a new one is named in repl.secret_file, another one is read \
         by SET GLOBAL wsrep_provider_options='socket.ssl_reload=1'",
        file.display()
    ));
    Ok(())
}

fn init(args: &InitArgs) -> Result<(), TlsCommandError> {
    let snippet = Snippet::new(&args.node_dir, &args.options)?;
    let store = Store::open_or_found(&args.store.dir, args.store.days())?;
    if store.is_new() {
        line(&format!(
            "{}: made a new authority",
            args.store.dir.display()
        ));
    }
    for node in &args.nodes {
        let dir = store.add(node, &snippet)?;
        line(&format!(
            "{}: for {node}; trireme-tls.cnf there says where the files belong",
            dir.display()
        ));
    }
    line(&format!(
        "{}: the authority's key, which makes further nodes and renews these: keep it safe, and not on a node",
        args.store.dir.join("authority.pem").display()
    ));
    line("a new cluster: start it with these files; one that runs: trireme tls enable SERVER...");
    Ok(())
}

fn renew(args: &RenewArgs) -> Result<(), TlsCommandError> {
    let mut store = Store::open(&args.store.dir, args.store.days())?;
    let nodes_dir = args.store.dir.join("nodes");
    let reload = "then on each: SET GLOBAL wsrep_provider_options='socket.ssl_reload=1'";
    let again = format!("trireme tls renew --dir {}", args.store.dir.display());
    if args.new_authority {
        store.new_authority()?;
        line(&format!(
            "{}: copy ca.pem of each to its node, {reload}; then: {again}",
            nodes_dir.display()
        ));
        return Ok(());
    }
    if args.drop_old_authority {
        let copy = format!(
            "{}: copy ca.pem of each to its node, {reload}",
            nodes_dir.display()
        );
        line(&match store.drop_old_authority()? {
            Dropped::Nothing => "there is one authority only: nothing to do".to_owned(),
            Dropped::Old => copy,
            Dropped::BrokenOff => format!(
                "the change of authority had broken off and is taken back: the old authority stays, and signs; to change it: \
                 {again} --new-authority\n{copy}"
            ),
        });
        return Ok(());
    }
    let nodes = match args.nodes.is_empty() {
        true => store.nodes()?,
        false => args.nodes.clone(),
    };
    for node in &nodes {
        line(&format!("{}: made anew", store.renew(node)?.display()));
    }
    line(&format!(
        "copy cert.pem and key.pem to their nodes, {reload}"
    ));
    Ok(())
}

fn check(args: CheckArgs) -> Result<(), TlsCommandError> {
    let files = args.files.files();
    let expected = Expectation {
        names: args.names,
        days_left: args.days_left,
    };
    let mut found = tell(&check_files(&files, &expected));
    for peer in &args.peers {
        found += tell(&check_peer(peer, &files, &expected));
    }
    match found {
        0 => Ok(()),
        found => Err(TlsCommandError::Found(found)),
    }
}

/// Prints the report, and returns the number of failed checks.
fn tell(report: &Report) -> usize {
    report
        .good()
        .iter()
        .for_each(|good| line(&format!("ok    {good}")));
    report
        .bad()
        .iter()
        .for_each(|bad| line(&format!("WRONG {bad}")));
    report.bad().len()
}
