//! A private network for each node: a network namespace without a name, which ends with its last process and the last
//! open file of it. So a crash of this program leaves none behind.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::Command;
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use tun_rs::{DeviceBuilder, SyncDevice};

use super::NetworkError;
use crate::packages;

/// The network interface of a node.
const INTERFACE: &str = "wire0";

/// The MTU is large, so that a state transfer needs few packets.
const MTU_BYTES: u16 = 9000;

/// A network namespace, held by an open file.
pub struct Namespace(File);

impl Namespace {
    /// Makes a namespace with only a loopback interface, which is down.
    pub(super) fn new() -> Result<Self, NetworkError> {
        on_a_thread(|| {
            // The call takes flags that could do harm. This flag moves only this thread, which then ends.
            #[expect(deprecated, reason = "the other one is unsafe for flags not used here")]
            rustix::thread::unshare(UnshareFlags::NEWNET).map_err(io::Error::from)?;
            File::open("/proc/thread-self/ns/net").map(Self)
        })
        .map_err(NetworkError::Namespace)
    }

    /// Runs `work` on a thread inside the namespace. Processes that `work` starts stay inside.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NetworkError> {
        on_a_thread(|| {
            move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(work())
        })
        .map_err(NetworkError::Namespace)
    }

    /// Brings loopback up, and adds an interface with `address`. This program reads and writes the packets of that
    /// interface.
    pub(super) fn plug(&self, address: Ipv4Addr) -> Result<SyncDevice, NetworkError> {
        let ip = packages::find("ip", "iproute2")?;
        self.run(|| {
            let device = DeviceBuilder::new().name(INTERFACE).build_sync();
            let device = device.map_err(NetworkError::Device)?;
            device.set_nonblocking(true).map_err(NetworkError::Device)?;
            for arguments in [
                "link set lo up".to_string(),
                format!("addr add {address}/24 dev {INTERFACE}"),
                format!("link set {INTERFACE} up mtu {MTU_BYTES} txqueuelen 10000"),
            ] {
                let output = Command::new(&ip).args(arguments.split(' ')).output();
                let output = output.map_err(NetworkError::Device)?;
                if !output.status.success() {
                    return Err(NetworkError::Ip {
                        arguments,
                        reason: String::from_utf8_lossy(&output.stderr).trim().to_string(),
                    });
                }
            }
            Ok(device)
        })?
    }
}

/// Runs `work` on a separate thread: namespaces belong to threads, and the calling thread must stay in its own.
fn on_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let outcome = scope.spawn(work).join();
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
