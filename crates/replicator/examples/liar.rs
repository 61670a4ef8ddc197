//! A cluster with a liar, for as long as one likes: `liar group|node SECONDS [FIRST_SEED]`, members of a group or whole
//! nodes. Each place where one panics is told once, with the seed that gets there; at the end, how many events there were.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::AddAssign;
use std::panic::{self, PanicHookInfo};
use std::process::exit;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use trireme_group::fuzzing::{self as group, bytes_of_seed};
use trireme_replicator::fuzzing as node;

const USAGE: &str = "liar group|node SECONDS [FIRST_SEED]";
const BYTES_PER_SEED_OF_NODES: usize = 4 << 10;

static PLACE: Mutex<String> = Mutex::new(String::new());

fn note(info: &PanicHookInfo) {
    if let Ok(mut place) = PLACE.lock() {
        *place = info.to_string();
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default| args.get(at).map_or(Ok(default), |arg| arg.parse());
    let (Ok(seconds), Ok(first)) = (number(1, 60), number(2, 0)) else {
        eprintln!("{USAGE}");
        exit(2);
    };
    let end = Instant::now() + Duration::from_secs(seconds);
    let panics = match args.first().map(String::as_str) {
        Some("group") => play(end, first, group::BYTES_PER_SEED, group::run),
        Some("node") => play(end, first, BYTES_PER_SEED_OF_NODES, node::run),
        _ => {
            eprintln!("{USAGE}");
            exit(2);
        }
    };
    exit(i32::from(panics));
}

/// True if a member has panicked.
fn play<C: Default + Debug + AddAssign>(
    end: Instant,
    first_seed: u64,
    bytes_per_seed: usize,
    run: fn(&[u8]) -> C,
) -> bool {
    panic::set_hook(Box::new(note));
    let mut all = C::default();
    let mut places: BTreeMap<String, u64> = BTreeMap::new();
    let mut seed = first_seed;
    while Instant::now() < end {
        seed += 1;
        match panic::catch_unwind(|| run(&bytes_of_seed(seed, bytes_per_seed))) {
            Ok(counts) => all += counts,
            Err(_) => {
                let panic = PLACE.lock().expect("nobody panics with it").clone();
                let place = panic.lines().take(2).collect::<Vec<_>>().join(" ");
                let count = places.entry(place).or_default();
                *count += 1;
                if *count == 1 {
                    println!("seed {seed}: {panic}");
                }
            }
        }
    }
    println!("{all:?}, up to seed {seed}");
    println!("{} places where a member panics: {places:#?}", places.len());
    !places.is_empty()
}
