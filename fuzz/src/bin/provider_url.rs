//! `wsrep_cluster_address`.
#![no_main]

trireme_fuzz::fuzz!(|bytes| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        trireme::fuzzing::cluster_url(text);
    }
});
