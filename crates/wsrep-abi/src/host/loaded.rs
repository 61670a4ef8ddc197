//! A loaded library: its table, its start, and the calls of a server's threads to the provider.

use std::ffi::{CString, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::call;
use super::callbacks::{self, Application, Context};
use super::transaction::Transaction;
use crate::{
    ConnId, Gtid, INTERFACE_VERSION, InitArgs, StatsVar, TrxId, VarType, Wsrep, WsrepStatus,
    cstr_to_string,
};

/// The application protocol of MariaDB 10.11 and 11.8: keys have the parts database, table, row.
const APPLICATION_PROTOCOL: c_int = 4;

/// The reason why a library does not serve.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// It cannot be loaded, or has no loader.
    #[error("{path} is no wsrep provider: {reason}", path = path.display())]
    NoProvider {
        /// The library.
        path: PathBuf,
        /// The system's error.
        reason: String,
    },
    /// It speaks another version of the API.
    #[error("{path} has version {found:?} of the wsrep API, not 26", path = path.display())]
    Version {
        /// The library.
        path: PathBuf,
        /// Its version.
        found: String,
    },
    /// It lacks a function.
    #[error("{path} is no whole wsrep provider: it has no {function}()", path = path.display())]
    Incomplete {
        /// The library.
        path: PathBuf,
        /// The function.
        function: &'static str,
    },
    /// A call failed.
    #[error("{call}() returned {status:?}")]
    Call {
        /// The function.
        call: &'static str,
        /// The status that it returned.
        status: WsrepStatus,
    },
    /// A text for the library holds a NUL.
    #[error("a path, name or option holds a NUL character")]
    Nul,
}

impl HostError {
    /// `Ok` for [`WsrepStatus::OK`].
    pub(super) fn check(call: &'static str, status: WsrepStatus) -> Result<(), HostError> {
        match status {
            WsrepStatus::OK => Ok(()),
            status => Err(HostError::Call { call, status }),
        }
    }
}

/// A library's name and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The arguments of `init`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameters {
    /// Name of the node.
    pub name: String,
    /// Its address, with a port.
    pub address: String,
    /// Directory for the provider's files.
    pub data_dir: String,
    /// Provider options.
    pub options: String,
}

/// A library in this process. It stays loaded until the process ends.
pub struct Library {
    table: *mut Wsrep,
    path: PathBuf,
}

// SAFETY: the API lets any thread call the provider, and the table is not written after `open`.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// Loads the library at `path` and takes its table.
    pub fn open(path: &Path) -> Result<Library, HostError> {
        let no_provider = |error: libloading::Error| HostError::NoProvider {
            path: path.to_path_buf(),
            reason: error.to_string(),
        };
        // SAFETY: all-zero is a valid table: NULL pointers and `None`.
        let table: Box<Wsrep> = Box::new(unsafe { std::mem::zeroed() });
        let table = Box::into_raw(table);
        // SAFETY: the user names a library whose code is to run here; the symbol has this type in every version of the API, and
        // the loader fills a table that it may write. The library is never unloaded, since its threads may outlive `free`.
        let result = unsafe {
            let library = libloading::Library::new(path).map_err(no_provider)?;
            let loader = library
                .get::<unsafe extern "C" fn(*mut Wsrep) -> c_int>(b"wsrep_loader\0")
                .map_err(no_provider)?;
            let result = loader(table);
            std::mem::forget(library);
            result
        };
        if result != 0 {
            return Err(HostError::NoProvider {
                path: path.to_path_buf(),
                reason: format!("wsrep_loader() returned {result}"),
            });
        }
        let library = Library {
            table,
            path: path.to_path_buf(),
        };
        library.check_table()?;
        Ok(library)
    }

    fn check_table(&self) -> Result<(), HostError> {
        // SAFETY: the loader has filled it; its texts are literals of the library.
        let (table, version) = unsafe { (&*self.table, cstr_to_string((*self.table).version)) };
        if version.as_bytes() != INTERFACE_VERSION.to_bytes() {
            return Err(HostError::Version {
                path: self.path.clone(),
                found: version,
            });
        }
        let present = [
            ("init", table.init.is_some()),
            ("connect", table.connect.is_some()),
            ("disconnect", table.disconnect.is_some()),
            ("recv", table.recv.is_some()),
            ("append_key", table.append_key.is_some()),
            ("append_data", table.append_data.is_some()),
            ("certify", table.certify.is_some()),
            ("commit_order_enter", table.commit_order_enter.is_some()),
            ("commit_order_leave", table.commit_order_leave.is_some()),
            ("release", table.release.is_some()),
            ("last_committed_id", table.last_committed_id.is_some()),
            ("sst_sent", table.sst_sent.is_some()),
            ("sst_received", table.sst_received.is_some()),
            ("stats_get", table.stats_get.is_some()),
            ("stats_free", table.stats_free.is_some()),
            ("free", table.free.is_some()),
        ];
        match present.iter().find(|(_, is_there)| !is_there) {
            None => Ok(()),
            Some((function, _)) => Err(HostError::Incomplete {
                path: self.path.clone(),
                function,
            }),
        }
    }

    /// Returns the library's name and version.
    pub fn identity(&self) -> Identity {
        // SAFETY: literals of the library, or NULL.
        unsafe {
            Identity {
                name: cstr_to_string((*self.table).provider_name),
                version: cstr_to_string((*self.table).provider_version),
            }
        }
    }

    /// Calls `init`: from now on the library is a provider, and its callbacks go to `application`.
    pub fn start(
        self,
        parameters: &Parameters,
        application: Arc<dyn Application>,
    ) -> Result<Loaded, HostError> {
        let name = c_string(&parameters.name)?;
        let address = c_string(&parameters.address)?;
        let data_dir = c_string(&parameters.data_dir)?;
        let options = c_string(&parameters.options)?;
        // The context lives until the process ends, as long as the library, whose threads use it.
        let context = Box::into_raw(Box::new(Context::new(application, self.table)));
        // SAFETY: all-zero is a valid `InitArgs`: NULL pointers, 0 and `None`.
        let mut args: InitArgs = unsafe { std::mem::zeroed() };
        args.app_ctx = context.cast();
        args.node_name = name.as_ptr();
        args.node_address = address.as_ptr();
        args.node_incoming = address.as_ptr();
        args.data_dir = data_dir.as_ptr();
        args.options = options.as_ptr();
        args.proto_ver = APPLICATION_PROTOCOL;
        args.state_id = &Gtid::UNDEFINED;
        callbacks::enter(&mut args);
        let loaded = Loaded {
            table: self.table,
            context,
        };
        let args = &args;
        HostError::check("init", call!(loaded, init, args)).map(|()| loaded)
    }
}

/// A provider that this process has loaded and initialised.
pub struct Loaded {
    table: *mut Wsrep,
    context: *mut Context,
}

// SAFETY: the API lets any thread call the provider. `Loaded` only reads what its pointers point to: the table, which nobody writes
// after `open`, and the context, whose application is `Send` and `Sync`. It frees neither.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Loaded {
    pub(super) fn table(&self) -> *mut Wsrep {
        self.table
    }

    /// Founds the cluster `cluster` if `peers` is empty, otherwise joins it at these addresses. Then one thread must
    /// call [`Loaded::receive`] until the node is in step.
    pub fn connect(&self, cluster: &str, peers: &[String]) -> Result<(), HostError> {
        let cluster = c_string(cluster)?;
        let url = c_string(&format!("gcomm://{}", peers.join(",")))?;
        let (cluster, url, donor) = (cluster.as_ptr(), url.as_ptr(), c"".as_ptr());
        let bootstrap = peers.is_empty();
        let status = call!(self, connect, cluster, url, donor, bootstrap);
        HostError::check("connect", status)
    }

    /// Lends the calling thread to the provider, for applying, until the node leaves or fails.
    pub fn receive(&self) -> WsrepStatus {
        let context: *mut c_void = self.context.cast();
        call!(self, recv, context)
    }

    /// Tells that a joiner has its donor's state, at this position. Do not call it on a thread that is in `receive`.
    pub fn state_received(&self, position: Gtid) -> Result<(), HostError> {
        let (position, no_state, succeeded) = (&position, std::ptr::null(), 0);
        let status = call!(self, sst_received, position, no_state, succeeded);
        HostError::check("sst_received", status)
    }

    /// Returns a new local transaction. `id` must be unique among those that live.
    pub fn transaction(&self, connection: ConnId, id: TrxId) -> Transaction<'_> {
        Transaction::new(self, connection, id)
    }

    /// Returns the last position that is visible here.
    pub fn last_committed(&self) -> Result<Gtid, HostError> {
        let mut gtid = Gtid::UNDEFINED;
        let room = &mut gtid;
        let status = call!(self, last_committed_id, room);
        HostError::check("last_committed_id", status).map(|()| gtid)
    }

    /// Returns the status variables, as text.
    pub fn stats(&self) -> Vec<(String, String)> {
        let array = call!(self, stats_get);
        // SAFETY: the array ends with a NULL name and stays until it is freed; each type says which field holds.
        let stats = unsafe {
            let read = |variable: &StatsVar| {
                let value = match variable.var_type {
                    VarType::STRING => cstr_to_string(variable.value.string),
                    VarType::INT64 => variable.value.int64.to_string(),
                    _ => variable.value.double.to_string(),
                };
                (cstr_to_string(variable.name), value)
            };
            StatsVar::array(array).iter().map(read).collect()
        };
        if !array.is_null() {
            call!(self, stats_free, array);
        }
        stats
    }

    /// Leaves the cluster: every [`Loaded::receive`] returns. Local transactions must have ended.
    pub fn disconnect(&self) -> Result<(), HostError> {
        HostError::check("disconnect", call!(self, disconnect))
    }

    /// Ends the provider after [`Loaded::disconnect`], when no thread is in a call any more.
    pub fn end(self) {
        call!(self, free);
    }
}

fn c_string(text: &str) -> Result<CString, HostError> {
    CString::new(text).map_err(|_| HostError::Nul)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_no_provider_is_named() {
        for (path, reason) in [
            ("/nonexistent/libx.so", "/nonexistent/libx.so"),
            ("libc.so.6", "wsrep_loader"),
        ] {
            let error = Library::open(Path::new(path)).err().expect("no provider");
            let text = error.to_string();
            assert!(
                text.starts_with(&format!("{path} is no wsrep provider")) && text.contains(reason),
                "{text}"
            );
        }
    }
}
