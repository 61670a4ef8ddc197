//! The operator's directory: the authority, and the files of each node.
//!
//! `authority.pem`: key and certificate of the authority. `ca.pem`: the authorities that nodes trust, two during a
//! change of authority. `nodes/NAME/`: the files to copy to a node. Only their owner can read the keys. Each file or
//! node directory is replaced as a whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use openssl::pkey::PKey;
use openssl::x509::X509;
use trireme_tls::days_until;

use crate::authority::{self, Pair};
use crate::certificate;
use crate::error::{Result, StoreError, io as io_error};
use crate::name::NodeName;
use crate::private_file::{PRIVATE, PUBLIC, make_dir, remove_dir, replace, write_new};
use crate::snippet::Snippet;

const AUTHORITY: &str = "authority.pem";
/// The name of the trusted authorities' file, here and in a node's directory.
const CA: &str = "ca.pem";
const NODES: &str = "nodes";
/// The file names in a node's directory.
const CERT: &str = "cert.pem";
const KEY: &str = "key.pem";
const CONFIG: &str = "trireme-tls.cnf";

/// The validity of new certificates, in days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Days {
    /// The validity of authorities.
    pub authority: u32,
    /// The validity of nodes' certificates; the authority's own limits it.
    pub node: u32,
}

/// The effect of [`Store::drop_old_authority`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// There was only one authority.
    Nothing,
    /// Nodes are to trust only the new authority.
    Old,
    /// The change had broken off before the new authority signed: nodes are to trust only the authority of before.
    BrokenOff,
}

/// The open directory.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    authority: Pair,
    /// The authorities that nodes trust, the newest first.
    trusted: Vec<X509>,
    days: Days,
    is_new: bool,
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair").finish_non_exhaustive() // the key must not get into a log
    }
}

impl Store {
    /// Opens the directory, or makes an authority in it if it has neither an authority nor nodes: nodes have an
    /// authority already, which the operator may keep elsewhere.
    pub fn open_or_found(dir: &Path, days: Days) -> Result<Store> {
        match Store::open(dir, days) {
            Err(StoreError::NoAuthority { .. }) => {}
            opened => return opened,
        }
        make_dir(dir).map_err(io_error(dir))?;
        let authority = authority::found(days.authority, now_s())?;
        let store = Store {
            dir: dir.to_owned(),
            trusted: vec![authority.cert.clone()],
            authority,
            days,
            is_new: true,
        };
        store.write_trust()?;
        store.write_authority()?;
        Ok(store)
    }

    /// Opens a directory that [`Store::open_or_found`] has made.
    pub fn open(dir: &Path, days: Days) -> Result<Store> {
        put_back(dir)?;
        let path = dir.join(AUTHORITY);
        let pem = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let is_new = nodes_in(dir)?.is_empty();
                let dir = dir.to_owned();
                return Err(match is_new {
                    true => StoreError::NoAuthority { dir },
                    false => StoreError::AuthorityMissing { dir },
                });
            }
            read => read.map_err(io_error(&path))?,
        };
        let key = PKey::private_key_from_pem(&pem).map_err(malformed(&path))?;
        let cert = certificates(&path)?.swap_remove(0);
        if !cert.public_key()?.public_eq(&key) {
            return Err(StoreError::WrongKey { path });
        }
        Ok(Store {
            dir: dir.to_owned(),
            trusted: certificates(&dir.join(CA))?,
            authority: Pair { cert, key },
            days,
            is_new: false,
        })
    }

    /// Whether [`Store::open_or_found`] has just made the authority.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Makes key, certificate and configuration of a new node. Returns the node's directory.
    pub fn add(&self, node: &NodeName, snippet: &Snippet) -> Result<PathBuf> {
        let dir = self.node_dir(node.name());
        if dir.exists() {
            return Err(StoreError::NodeExists {
                node: node.to_string(),
                dir: self.dir.clone(),
            });
        }
        self.write_node(node, Some(snippet.text(node.name()).as_bytes()))?;
        Ok(dir)
    }

    /// Makes a new key and certificate for a node, signed by the current authority. The old addresses stay unless new
    /// ones are given.
    pub fn renew(&self, node: &NodeName) -> Result<PathBuf> {
        let dir = self.existing(node.name())?;
        let old = certificates(&dir.join(CERT))?.swap_remove(0);
        let node = match node.has_addresses() {
            true => node.clone(),
            false => node.clone().with_addresses(certificate::names(&old)),
        };
        let config = dir.join(CONFIG);
        let config = match fs::read(&config) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            read => Some(read.map_err(io_error(&config))?),
        };
        self.write_node(&node, config.as_deref())?;
        Ok(dir)
    }

    /// The nodes that have files, sorted by name.
    pub fn nodes(&self) -> Result<Vec<NodeName>> {
        nodes_in(&self.dir)
    }

    /// Begins a change of authority: nodes are to trust the new authority, too, and it signs from now on. A change that
    /// broke off before begins anew: the key of its authority is lost, and has signed nothing.
    pub fn new_authority(&mut self) -> Result<()> {
        if self.trusted.len() > 1 && !self.is_broken_off(&self.trusted) {
            return Err(StoreError::ChangeUnderWay {
                dir: self.dir.clone(),
            });
        }
        let authority = authority::found(self.days.authority, now_s())?;
        self.trusted = vec![authority.cert.clone(), self.authority.cert.clone()];
        self.write_trust()?;
        self.authority = authority;
        self.write_authority()
    }

    /// Ends a change of authority: nodes are to trust only the authority that signs.
    pub fn drop_old_authority(&mut self) -> Result<Dropped> {
        for node in self.nodes()? {
            let cert = certificates(&self.node_dir(node.name()).join(CERT))?.swap_remove(0);
            if !authority::has_signed(&self.authority.cert, &cert)? {
                return Err(StoreError::StillOld {
                    node: node.to_string(),
                    dir: self.dir.clone(),
                });
            }
        }
        let mut dropped = Dropped::Nothing;
        // Each file counts: a change may have broken off when some were written.
        for path in self.trust_files()? {
            // A file that cannot be read is to be replaced, too.
            let trusted = certificates(&path).unwrap_or_default();
            if self.is_broken_off(&trusted) {
                dropped = Dropped::BrokenOff;
                break;
            }
            if trusted.len() != 1 {
                dropped = Dropped::Old;
            }
        }
        if dropped != Dropped::Nothing {
            self.trusted = vec![self.authority.cert.clone()];
            self.write_trust()?;
        }
        Ok(dropped)
    }

    /// Whether these trusted authorities were written by a change that broke off before its authority signed: the newest
    /// is not the one that signs.
    fn is_broken_off(&self, trusted: &[X509]) -> bool {
        trusted
            .first()
            .is_some_and(|newest| *newest != self.authority.cert)
    }

    fn node_dir(&self, name: &str) -> PathBuf {
        self.dir.join(NODES).join(name)
    }

    fn existing(&self, name: &str) -> Result<PathBuf> {
        let dir = self.node_dir(name);
        match dir.join(CERT).exists() {
            true => Ok(dir),
            false => Err(StoreError::NoNode {
                node: name.to_owned(),
                dir: self.dir.clone(),
            }),
        }
    }

    /// Writes the authority's file. Call [`Store::write_trust`] before: all nodes' files must trust an authority before
    /// it signs.
    fn write_authority(&self) -> Result<()> {
        let mut pem = self.authority.key.private_key_to_pem_pkcs8()?;
        pem.extend(self.authority.cert.to_pem()?);
        let path = self.dir.join(AUTHORITY);
        replace(&path, &pem, PRIVATE).map_err(io_error(&path))
    }

    /// Writes the trusted authorities into the files of all nodes.
    fn write_trust(&self) -> Result<()> {
        let pem = self.trusted_pem()?;
        for path in self.trust_files()? {
            replace(&path, &pem, PUBLIC).map_err(io_error(&path))?;
        }
        Ok(())
    }

    /// The files of trusted authorities, in the order of writing. The store's own is the last, so it says what all
    /// nodes' files have.
    fn trust_files(&self) -> Result<Vec<PathBuf>> {
        let nodes = self.nodes()?;
        let nodes = nodes.iter().map(|node| self.node_dir(node.name()));
        let dirs = nodes.chain(std::iter::once(self.dir.clone()));
        Ok(dirs.map(|dir| dir.join(CA)).collect())
    }

    fn trusted_pem(&self) -> Result<Vec<u8>> {
        let mut pem = Vec::new();
        for cert in &self.trusted {
            pem.extend(cert.to_pem()?);
        }
        Ok(pem)
    }

    /// Makes a node's directory, in the place of the old one if there is one.
    fn write_node(&self, node: &NodeName, config: Option<&[u8]>) -> Result<()> {
        if days_until(self.authority.cert.not_after())? < 0 {
            return Err(StoreError::AuthorityExpired {
                dir: self.dir.clone(),
                at: self.authority.cert.not_after().to_string(),
            });
        }
        let pair = authority::issue(&self.authority, node, self.days.node, now_s())?;
        let dir = self.node_dir(node.name());
        let beside = |what: &str| {
            self.dir
                .join(NODES)
                .join(format!(".{}.{what}", node.name()))
        };
        let (new, old) = (beside("new"), beside("old"));
        for left in [&new, &old] {
            remove_dir(left).map_err(io_error(left))?;
        }
        make_dir(&new).map_err(io_error(&new))?;
        let put = |name: &str, bytes: &[u8], mode| {
            let path = new.join(name);
            write_new(&path, bytes, mode).map_err(io_error(&path))
        };
        put(KEY, &pair.key.private_key_to_pem_pkcs8()?, PRIVATE)?;
        put(CERT, &pair.cert.to_pem()?, PUBLIC)?;
        put(CA, &self.trusted_pem()?, PUBLIC)?;
        if let Some(config) = config {
            put(CONFIG, config, PUBLIC)?;
        }
        if dir.exists() {
            fs::rename(&dir, &old).map_err(io_error(&dir))?;
        }
        fs::rename(&new, &dir).map_err(io_error(&dir))?;
        remove_dir(&old).map_err(io_error(&old))
    }
}

/// The nodes that have files in a store, sorted by name. Other files and directories among them are none, such as a
/// half-made directory that a crash has left.
fn nodes_in(store: &Path) -> Result<Vec<NodeName>> {
    let mut nodes: Vec<NodeName> = entries(store)?
        .iter()
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    nodes.sort_by(|a, b| a.name().cmp(b.name()));
    Ok(nodes)
}

/// Puts the old files of a node back, if its renewal broke off after it had moved them away.
fn put_back(store: &Path) -> Result<()> {
    for entry in entries(store)? {
        let (old, name) = (entry.path(), entry.file_name());
        let name = name.to_str().and_then(|name| name.strip_prefix('.'));
        let Some(name) = name.and_then(|name| name.strip_suffix(".old")) else {
            continue;
        };
        let dir = store.join(NODES).join(name);
        if old.is_dir() && !dir.exists() {
            fs::rename(&old, &dir).map_err(io_error(&dir))?;
        }
    }
    Ok(())
}

/// The entries of the nodes' directory; none if there is none.
fn entries(store: &Path) -> Result<Vec<fs::DirEntry>> {
    let dir = store.join(NODES);
    let entries = match fs::read_dir(&dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(io_error(&dir))?,
    };
    entries.collect::<io::Result<_>>().map_err(io_error(&dir))
}

/// Reads the certificates of a file; at least one.
fn certificates(path: &Path) -> Result<Vec<X509>> {
    let pem = fs::read(path).map_err(io_error(path))?;
    let found = X509::stack_from_pem(&pem).map_err(malformed(path))?;
    match found.is_empty() {
        true => {
            let source = io::Error::other("it holds no certificate");
            Err(io_error(path)(source))
        }
        false => Ok(found),
    }
}

fn malformed(path: &Path) -> impl FnOnce(openssl::error::ErrorStack) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Malformed { path, source }
}

fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() as i64)
}
