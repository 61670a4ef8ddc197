//! What replicators take from others: submissions, peer messages, control states. The first byte of the input says
//! which.
#![no_main]

use bytes::Bytes;
use trireme_replicator::fuzzing;

trireme_fuzz::fuzz!(|bytes| {
    let Some((&which, bytes)) = bytes.split_first() else {
        return;
    };
    match which % 3 {
        0 => fuzzing::message(Bytes::copy_from_slice(bytes)),
        1 => fuzzing::peer_message(Bytes::copy_from_slice(bytes)),
        _ => fuzzing::control(bytes),
    }
});
