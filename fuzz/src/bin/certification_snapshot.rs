//! `Certification::decode`: the index that a donor sends to a joiner.
#![no_main]

use trireme_certification::Certification;

trireme_fuzz::fuzz!(|bytes| {
    let Ok(mut certification) = Certification::decode(bytes) else {
        return;
    };
    let mut again = Vec::new();
    certification.encode(&mut again);
    let copy = Certification::decode(&again).expect("what was encoded is a snapshot");
    assert_eq!(copy.digest(), certification.digest());

    for _ in 0..2 {
        if certification.position() < i64::MAX - 2 {
            certification.view(certification.position() + 1);
        }
    }
    certification.cut(certification.position());
});
