//! A few nodes, one of which lies in the order and beside it: nobody panics, and what they say can be read.
#![no_main]

trireme_fuzz::fuzz!(|bytes| {
    trireme_replicator::fuzzing::run(bytes);
});
