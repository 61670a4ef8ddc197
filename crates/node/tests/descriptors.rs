//! A process that has no descriptor left keeps its promises all the same. Alone in its process: it takes all descriptors.

use std::fs::File;
use std::time::SystemTime;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use trireme_group::{ReplicaId, Term, Uuid};
use trireme_node::votes::Votes;

#[test]
fn promises_need_no_free_descriptor() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut votes = Votes::open(dir.path(), SystemTime::now()).expect("new");
    let term = |number| Term {
        number,
        replica: ReplicaId(Uuid([1; 16])),
    };
    votes.promise(term(1)).expect("there are descriptors");
    let before = getrlimit(Resource::Nofile);
    let few = Rlimit {
        current: Some(64),
        ..before
    };
    setrlimit(Resource::Nofile, few).expect("a lower limit");
    let mut taken = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        taken.push(file);
    }
    for number in 2..=20 {
        votes.promise(term(number)).expect("kept");
    }
    votes.set_log(Uuid([9; 16])).expect("kept");
    assert!(File::open("/dev/null").is_err(), "none is free");
    drop(taken);
    let read = Votes::open(dir.path(), SystemTime::now()).expect("whole");
    assert_eq!(read.promised(), term(20));
    assert_eq!(read.log(), Uuid([9; 16]));
}
