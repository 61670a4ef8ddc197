//! Nodes among which one lies, for as long as one likes: `lying_node SECONDS [FIRST_SEED]`. Each place where a member panics is told
//! once, with the seed that gets there; at the end, how many events there were.

use std::collections::BTreeMap;
use std::panic::{self, PanicHookInfo};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use trireme_group::fuzzing::bytes_of_seed;
use trireme_replicator::fuzzing::{Counts, run};

static PLACE: Mutex<String> = Mutex::new(String::new());

fn note(info: &PanicHookInfo) {
    if let Ok(mut place) = PLACE.lock() {
        *place = info.to_string();
    }
}

fn main() {
    let mut args = std::env::args()
        .skip(1)
        .map(|arg| arg.parse().expect("a number"));
    let seconds = args.next().unwrap_or(60);
    let mut seed = args.next().unwrap_or(0);
    panic::set_hook(Box::new(note));
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut all = Counts::default();
    let mut places: BTreeMap<String, u64> = BTreeMap::new();
    while Instant::now() < end {
        seed += 1;
        match panic::catch_unwind(|| run(&bytes_of_seed(seed, 4 << 10))) {
            Ok(counts) => all += counts,
            Err(_) => {
                let place = PLACE.lock().expect("nobody panics with it").clone();
                let place = place.lines().take(2).collect::<Vec<_>>().join(" ");
                let count = places.entry(place).or_default();
                *count += 1;
                if *count == 1 {
                    println!("seed {seed}: {}", PLACE.lock().expect("as before"));
                }
            }
        }
    }
    println!("{all:?}, up to seed {seed}");
    println!("{} places where a member panics: {places:#?}", places.len());
    std::process::exit(i32::from(!places.is_empty()));
}
