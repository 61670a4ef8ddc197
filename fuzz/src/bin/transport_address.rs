//! Addresses from `wsrep_cluster_address`, and those that peers tell each other.
#![no_main]

use trireme_transport::HostPort;

trireme_fuzz::fuzz!(|bytes| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        for default_port in [None, Some(4567)] {
            if let Ok(address) = HostPort::parse(text, default_port) {
                let _ = address.literal();
                let _ = address.is_unspecified();
            }
        }
    }
});
