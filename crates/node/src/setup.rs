//! The inputs of a connection, made from the options: the node's identity, the mesh, the log, the protection of
//! connections, and the engine's settings.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use trireme_engine::{Expected, KeepMark, Start, Thresholds, UNKNOWN_BOOT};
use trireme_group::{Config, Incarnation, Member, Preference, ReplicaId, Uuid};
use trireme_log::{Durability, LogConfig, OsDisk};
use trireme_replicator::{self as replicator, Gtid};
use trireme_tls::{Credentials, Files, TlsError};
use trireme_transport::{
    AllowAddress, Identity, Mesh, MeshConfig, Poller, Security, TransportError,
};

use crate::file_lock::try_lock;
use crate::mark_file::MarkFile;
use crate::options::Options;
use crate::url::{AddressError, ClusterUrl, HostPort};
use crate::votes::{Votes, VotesError};

/// The reason why a connection cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// An invalid address to listen on.
    #[error("the address '{address}' is not usable: {source}")]
    Address {
        /// `gmcast.listen_addr`.
        address: String,
        /// The reason.
        source: AddressError,
    },
    /// The mesh could not be set up.
    #[error("{0}")]
    Transport(#[from] TransportError),
    /// The file of promises is unusable.
    #[error("{0}")]
    Votes(#[from] VotesError),
    /// The files of TLS are unusable.
    #[error("{0}")]
    Tls(#[from] TlsError),
    /// Plaintext is configured although it is forbidden.
    #[error(
        "repl.require_encryption=yes, but {why}; or set repl.require_encryption=no, where the network is trusted"
    )]
    Plaintext {
        /// The option that allows plaintext, and its remedy.
        why: &'static str,
    },
    /// The founders of the cluster are not clear.
    #[error(
        "pc.bootstrap_expect={nodes}, but the cluster address names {listed} nodes: it must name all {nodes} data nodes \
         of the new cluster, this one included, and nobody else (an arbitrator finds them by its own list), on every \
         node alike; nodes that are added later join without the option, or with the address of the first {nodes}"
    )]
    NotAllListed {
        /// `pc.bootstrap_expect`.
        nodes: i64,
        /// Different addresses in the list.
        listed: usize,
    },
    /// Another process has the directory of the write-set log.
    #[error(
        "another server or arbitrator keeps its write-set log in {path} (gcache.dir): each of the two would overwrite \
         the other's; give this one a directory of its own"
    )]
    LogDirectoryInUse {
        /// The directory.
        path: PathBuf,
    },
    /// The system gave no random numbers.
    #[error("no random numbers from the system: {0}")]
    Random(#[from] getrandom::Error),
}

/// Returns a random UUID (version 4).
pub fn random_uuid() -> Result<Uuid, SetupError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(Uuid(bytes))
}

/// Returns the id of this boot of the operating system: when it changes, the page cache was lost.
fn current_boot_id() -> io::Result<Uuid> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?
        .trim()
        .parse()
        .map_err(io::Error::other)
}

/// Checks the options of security. Err: the node could not protect its connections as they demand.
pub fn check(options: &Options) -> Result<(), SetupError> {
    security(options).map(drop)
}

/// The line of a node that has read the files of certificates, or of the secret, again.
pub const SECURITY_IS_READ: &str = "socket.* and repl.secret_file: read anew, with the files that they name; it counts for connections from now on";

/// Returns the protection of connections, from `socket.*` and `repl.secret_file` and the present content of their
/// files.
pub fn security(options: &Options) -> Result<Security, SetupError> {
    let security = configured_security(options)?;
    require_encryption(options, &security)?;
    Ok(security)
}

fn configured_security(options: &Options) -> Result<Security, SetupError> {
    let text = |key| options.str(key).to_owned();
    let files = Files {
        cert: text("socket.ssl_cert"),
        key: text("socket.ssl_key"),
        ca: text("socket.ssl_ca"),
        crl: text("socket.ssl_crl"),
        password: text("socket.ssl_password_file"),
        cipher: text("socket.ssl_cipher"),
    };
    let (dials_tls, accepts_both) = (options.bool("socket.ssl"), options.bool("socket.dynamic"));
    match options.str("repl.secret_file") {
        "" => {}
        _ if dials_tls => return Err(TlsError::SecretAndCertificate.into()),
        secret => {
            let credentials = Credentials::of_secret(secret)?;
            return Ok(Security::new(credentials, true, accepts_both));
        }
    }
    // Without a certificate there is only one kind of credentials to accept.
    match dials_tls || accepts_both && files.has_certificate() {
        true => Ok(Security::new(
            Credentials::read(&files)?,
            dials_tls,
            accepts_both,
        )),
        false => Ok(Security::default()),
    }
}

/// Checks `repl.require_encryption`.
fn require_encryption(options: &Options, security: &Security) -> Result<(), SetupError> {
    if !options.bool("repl.require_encryption") || !security.accepts_plain() {
        return Ok(());
    }
    let why = match options.bool("socket.dynamic") {
        true => "socket.dynamic=yes accepts plaintext, too: set socket.dynamic=no",
        false => {
            "nothing encrypts this node's group traffic: set socket.ssl_cert, socket.ssl_key and socket.ssl_ca (make the \
             files with: trireme tls init), and not socket.ssl=no; or set repl.secret_file (trireme secret new)"
        }
    };
    Err(SetupError::Plaintext { why })
}

/// Returns true if the result of [`security`] depends on this option.
pub fn is_of_security(key: &str) -> bool {
    let depends = [
        "socket.dynamic",
        "repl.secret_file",
        "repl.require_encryption",
    ];
    depends.contains(&key) || key.starts_with("socket.ssl")
}

/// Opens the votes; the first connect of a data directory gives it its identity (rule 14).
pub fn open_votes(options: &Options) -> Result<Votes, SetupError> {
    let base_dir = PathBuf::from(options.str("base_dir"));
    Ok(Votes::open(&base_dir, SystemTime::now())?)
}

/// Returns an incarnation for a process of a data directory. It begins with the directory's place: members are sorted
/// by their ids, here and in the server's tables. So the oldest data directory comes first. A node keeps its index over
/// restarts, and its server the `auto_increment_offset`.
fn new_incarnation(place: [u8; 8]) -> Result<Incarnation, SetupError> {
    let mut bytes = random_uuid()?.0;
    bytes[..8].copy_from_slice(&place);
    Ok(Incarnation(Uuid(bytes)))
}

/// Returns this node as a member, under a new incarnation; the caller fills in its names and what the server gives.
pub fn this_member(options: &Options, votes: &Votes) -> Result<Member, SetupError> {
    // All fields by name, so that the compiler asks for a new one.
    Ok(Member {
        replica: ReplicaId(votes.replica()),
        incarnation: new_incarnation(votes.place())?,
        weight: 0,
        full_weight: options.int("pc.weight").clamp(0, 255) as u8,
        voter: false,
        name: String::new(),
        incoming: String::new(),
        address: advertised_address(options, &listen_address(options)?),
        segment: options.int("gmcast.segment").clamp(0, 255) as u8,
        arbitrator: false,
        never_donor: options.bool("gcs.stateless"),
        app_protocol: 0,
    })
}

pub(crate) fn listen_address(options: &Options) -> Result<HostPort, SetupError> {
    let address = |source| SetupError::Address {
        address: options.str("gmcast.listen_addr").to_owned(),
        source,
    };
    options.listen_address().map_err(address)
}

/// Opens the mesh: listens, and looks for the other nodes. `votes`: the votes of this node, which is `me`. `allow`:
/// decides who may connect.
pub fn open_mesh(
    group_name: &str,
    cluster: &ClusterUrl,
    options: &Options,
    me: &Member,
    votes: &Votes,
    allow: Option<AllowAddress>,
) -> Result<(Mesh, Poller), SetupError> {
    let identity = Identity {
        replica: me.replica.0.0,
        incarnation: me.incarnation.0.0,
        name: me.name.clone(),
        group_name: group_name.to_owned(),
        listen_addr: me.address.clone(),
        history: [0; 16],
        segment: me.segment,
        extra: Vec::new(),
    };
    let at = |address: &HostPort| mesh_address(address, options);
    let listen = at(&listen_address(options)?);
    let config = MeshConfig {
        allow,
        security: security(options)?,
        key: Some(votes.key()?),
        ..MeshConfig::new(listen, cluster.peers.iter().map(at).collect())
    };
    let (mut mesh, poller) = Mesh::bind(config, identity)?;
    if options.int("gmcast.isolate") != 0 {
        mesh.set_isolated(true);
    }
    Ok((mesh, poller))
}

/// Returns an address as the mesh takes it: with `base_port` if it names no port.
pub fn mesh_address(address: &HostPort, options: &Options) -> trireme_transport::HostPort {
    trireme_transport::HostPort {
        host: address.host.clone(),
        port: address.port_or(options.base_port()),
    }
}

/// Returns the addresses of the other nodes in the mesh's spelling.
pub fn peer_addresses(cluster: &ClusterUrl, options: &Options) -> Vec<String> {
    let base_port = options.base_port();
    let spelled = |peer: &HostPort| {
        let port = peer.port_or(base_port);
        format!("{}:{port}", peer.bracketed_host())
    };
    cluster.peers.iter().map(spelled).collect()
}

/// Returns the address that peers are told: the host that this node listens on, or else the host of
/// `wsrep_node_address`. An unspecified host stands for the address that a peer sees.
pub(crate) fn advertised_address(options: &Options, listen: &HostPort) -> String {
    let port = listen.port_or(options.base_port());
    let unspecified = matches!(listen.host.as_str(), "0.0.0.0" | "::" | "*" | "");
    let host = match unspecified && options.is_shown("base_host") {
        true => in_brackets(options.str("base_host")),
        false => listen.bracketed_host(),
    };
    format!("{host}:{port}")
}

/// Returns a host with the brackets of an IPv6 address, if it lacks them. Any other text stays: binding refuses it.
fn in_brackets(host: &str) -> String {
    let parsed: Option<HostPort> = host.parse().ok();
    let host_alone = parsed.filter(|address| address.port.is_none());
    host_alone.map_or_else(|| host.to_owned(), |address| address.bracketed_host())
}

/// The least suspect timeout. A shorter silence, of less than five heartbeats, proves nothing: the node would never
/// stay primary for long.
const LEAST_SUSPECT_TIMEOUT_MS: u64 = 500;

/// Returns how long a member may be silent: `evs.suspect_timeout`, or `evs.inactive_timeout` if that is less, and at
/// least 500 ms.
pub fn suspect_timeout_ms(options: &Options) -> u64 {
    options
        .duration_ms("evs.suspect_timeout")
        .min(options.duration_ms("evs.inactive_timeout"))
        .max(LEAST_SUSPECT_TIMEOUT_MS)
}

fn group_config(options: &Options, me: Member) -> Config {
    Config {
        suspect_timeout_ms: suspect_timeout_ms(options),
        ignore_split_brain: options.bool("pc.ignore_sb"),
        ignore_quorum: options.bool("pc.ignore_quorum"),
        wait_evidence_ms: options.duration_ms("pc.wait_evidence"),
        preference: leadership_preference(options),
        ..Config::new(me)
    }
}

/// Returns this node's preference for leadership (`repl.leader`).
pub fn leadership_preference(options: &Options) -> Preference {
    match options.choice("repl.leader") {
        "prefer" => Preference::Prefer,
        "never" => Preference::Never,
        _ => Preference::Auto,
    }
}

/// Returns the directory of the write-set log.
pub fn log_disk(options: &Options) -> OsDisk {
    OsDisk::new(&PathBuf::from(options.str("gcache.dir")))
}

/// Keeps other servers and arbitrators out of the directory of the write-set log until the result is dropped.
/// `gcache.dir` may be shared where the data directories differ. None: the directory cannot be locked; if the log cannot
/// be opened there either, the connection says so.
pub fn claim_log_directory(options: &Options) -> Result<Option<File>, SetupError> {
    let path = PathBuf::from(options.str("gcache.dir"));
    let Ok(directory) = File::open(&path) else {
        return Ok(None);
    };
    match try_lock(&directory) {
        Ok(true) => Ok(Some(directory)),
        Ok(false) => Err(SetupError::LogDirectoryInUse { path }),
        Err(_) => Ok(None),
    }
}

/// Returns the cluster that nodes found together by `pc.bootstrap_expect`, for a node with a database.
pub fn expected(options: &Options) -> Result<Option<Expected>, SetupError> {
    let nodes = options.int("pc.bootstrap_expect").clamp(0, 1_024) as u32;
    match nodes {
        0 => Ok(None),
        nodes => Ok(Some(Expected {
            nodes,
            history: random_uuid()?,
        })),
    }
}

/// Checks that the list of addresses names all founders; otherwise nodes cannot found a cluster together.
pub fn check_expected(options: &Options, cluster: &ClusterUrl) -> Result<(), SetupError> {
    let base_port = options.base_port();
    let at = |address: &HostPort| (address.host.clone(), address.port_or(base_port));
    let listed: BTreeSet<_> = cluster.peers.iter().map(at).collect();
    let nodes = options.int("pc.bootstrap_expect");
    match i64::try_from(listed.len()) == Ok(nodes) {
        true => Ok(()),
        false => Err(SetupError::NotAllListed {
            nodes,
            listed: listed.len(),
        }),
    }
}

/// Returns the mark of the log's end, in `repl.mark_dir`; None if marks are switched off.
fn mark(options: &Options, votes: &Votes) -> Option<Box<dyn KeepMark>> {
    let dir = Some(options.str("repl.mark_dir")).filter(|dir| !dir.is_empty());
    dir.map(|dir| -> Box<dyn KeepMark> { Box::new(MarkFile::new(Path::new(dir), votes.replica())) })
}

/// Returns the engine's inputs for a node that has no database and founds nothing.
pub fn start(options: &Options, votes: &Votes, me: Member) -> Start {
    let durability = match options.choice("repl.durability") {
        "memory" => Durability::Memory,
        "disk" => Durability::Disk,
        _ => Durability::Os,
    };
    let dir = PathBuf::from(options.str("gcache.dir"));
    Start {
        config: group_config(options, me),
        promised: votes.promised(),
        last_log: votes.log(),
        recover: options.bool("gcache.recover") && options.bool("pc.recovery"),
        boot_id: current_boot_id().map_or(UNKNOWN_BOOT, |id| id.0),
        log: LogConfig::new(
            dir.clone(),
            options.int("gcache.size").max(1) as u64,
            [0; 16],
            durability,
        ),
        disk: Box::new(move || Box::new(OsDisk::new(&dir))),
        mark: mark(options, votes),
        flushes_apart: false,
        local: Gtid::UNDEFINED,
        bootstrap: None,
        expect: None,
        untouched: false,
        server_running: false,
        apply_again: options.int("repl.apply_again"),
        options: replicator::Options::default(),
        thresholds: Thresholds::default(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use trireme_tls::testing::{NOW, Party};

    use super::*;

    #[test]
    fn this_boot_has_an_id() {
        assert!(!current_boot_id().unwrap().is_nil());
    }

    #[test]
    fn plaintext_is_refused_where_encryption_is_required() {
        let dir = tempfile::tempdir().unwrap();
        let ca = Party::authority("ca");
        let files = ca.issue("node", NOW).files(&ca, dir.path(), "node");
        let files = format!(
            "socket.ssl_cert={};socket.ssl_key={};socket.ssl_ca={}",
            files.cert, files.key, files.ca
        );
        let security = |text: &str| {
            let text = format!("repl.require_encryption=yes;{text}");
            security(&Options::new("", "", &text).unwrap())
        };
        security(&files).unwrap();
        let secret = dir.path().join("secret");
        std::fs::write(&secret, format!("{}\n", "s".repeat(64))).unwrap();
        std::fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
        let secret = format!("repl.secret_file={}", secret.display());
        security(&secret).unwrap();
        for (text, remedy) in [
            (String::new(), "socket.ssl_cert"),
            ("socket.dynamic=yes".to_owned(), "socket.dynamic=no"),
            (format!("{secret};socket.dynamic=yes"), "socket.dynamic=no"),
            (format!("{files};socket.ssl=no"), "socket.ssl=no"),
            (format!("{files};socket.dynamic=yes"), "socket.dynamic=no"),
        ] {
            let said = security(&text).unwrap_err().to_string();
            assert!(said.contains(remedy), "{text}: {said}");
            assert!(said.contains("repl.require_encryption=no"), "{said}");
        }
        assert!(is_of_security("repl.require_encryption"));
    }

    #[test]
    fn processes_of_a_data_directory_are_different_and_in_its_place() {
        let places = [[1; 8], [1, 1, 1, 1, 1, 2, 1, 1]];
        let [first, second] = places.map(|at| [(); 50].map(|()| new_incarnation(at).unwrap()));
        assert_ne!(first[0], first[1]);
        assert!(first.iter().max() < second.iter().min());
    }

    #[test]
    fn a_host_is_advertised_as_an_address_is_written() {
        for (option, advertised) in [
            ("base_host=2001:db8::5", "[2001:db8::5]:4567"),
            ("base_host=[2001:db8::5]", "[2001:db8::5]:4567"),
            ("base_host=db1", "db1:4567"),
            ("base_host=192.0.2.1;base_port=5000", "192.0.2.1:5000"),
            ("gmcast.listen_addr=tcp://[::1]:5000", "[::1]:5000"),
        ] {
            let options = Options::new("", "", option).unwrap();
            let listen = listen_address(&options).unwrap();
            assert_eq!(advertised_address(&options, &listen), advertised);
        }
    }

    #[test]
    fn a_secret_takes_the_place_of_certificates() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("secret");
        std::fs::write(&file, [b'x'; 32]).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let with = |more: &str| {
            let text = format!("repl.secret_file={};{more}", file.display());
            check(&Options::new("", "", &text).unwrap()).map_err(|error| error.to_string())
        };
        assert_eq!(with("socket.dynamic=yes"), Ok(()));
        for both in ["socket.ssl=yes", "socket.ssl_cert=/c;socket.ssl_key=/k"] {
            let text = with(both).unwrap_err();
            assert!(text.contains("exclude each other"), "{text}");
        }
        let files = "socket.ssl=no;socket.ssl_cert=/c;socket.ssl_key=/k";
        assert_eq!(with(files), Ok(()), "files alone do nothing");
        assert!(is_of_security("repl.secret_file"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(with("").unwrap_err().contains("chmod 0600"));
    }

    #[test]
    fn durability_is_what_was_asked_for_in_any_case() {
        let dir = tempfile::tempdir().unwrap();
        let votes = Votes::open(dir.path(), SystemTime::now()).unwrap();
        for (word, durability) in [
            ("memory", Durability::Memory),
            ("Os", Durability::Os),
            ("DISK", Durability::Disk),
        ] {
            let options = Options::new("", "", &format!("repl.durability={word}")).unwrap();
            let start = start(&options, &votes, Member::default());
            assert_eq!(start.log.durability, durability);
        }
    }
}
