//! `wsrep_provider_options` and `wsrep_node_address`, the latter up to the first line break.
#![no_main]

trireme_fuzz::fuzz!(|bytes| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let (address, options) = text.split_once('\n').unwrap_or(("", text));
        trireme::fuzzing::options(address, options);
    }
});
