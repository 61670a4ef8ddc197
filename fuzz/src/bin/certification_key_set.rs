//! `KeySet::parse`: the keys of a write-set from another node.
#![no_main]

use trireme_certification::{Certification, DEFAULT_MAX_LENGTH, KeySet, Request};

trireme_fuzz::fuzz!(|bytes| {
    let Ok((keys, consumed)) = KeySet::parse(bytes) else {
        return;
    };
    assert_eq!(keys.as_bytes(), &bytes[..consumed]);
    assert_eq!(keys.iter().count(), keys.len());

    let mut certification = Certification::new(0, DEFAULT_MAX_LENGTH);
    for (seqno, origin) in [(1, [1; 16]), (2, [2; 16])] {
        certification.certify(&Request {
            seqno,
            last_seen: 0,
            origin,
            epoch: 0,
            isolation: false,
            pa_unsafe: false,
            rollback: false,
            keys,
        });
    }
});
