//! A small cluster of group cores, one of which lies: nobody panics, and all that they say and write can be encoded.
#![no_main]

trireme_fuzz::fuzz!(|bytes| {
    trireme_group::fuzzing::run(bytes);
});
