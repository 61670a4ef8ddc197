//! Facts about the disk that holds the servers' data: its file system, and the time of a flush.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use crate::stats::median;

/// The flushes of which the median is taken.
const FLUSHES: usize = 100;

/// The bytes that each flush writes.
const BLOCK: [u8; 4096] = [1; 4096];

/// The directory, and the type of its file system.
pub fn place(dir: &Path) -> String {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    // A link to a directory may lead to another file system.
    let real = fs::canonicalize(dir).unwrap_or(dir.to_path_buf());
    let file_system = file_system(&mounts, &real).unwrap_or("an unknown file system");
    format!("{}, {file_system}", real.display())
}

/// The type of the file system that holds `path`: that of the longest mount point above it, and of several mounts there
/// the last one.
fn file_system<'a>(mounts: &'a str, path: &Path) -> Option<&'a str> {
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let above = mounts.filter(|(point, _)| path.starts_with(point));
    let nearest = above.max_by_key(|(point, _)| point.len());
    nearest.map(|(_, file_system)| file_system)
}

/// The median time of a flush of 4 KiB in the directory, or why there is none.
pub fn flush(dir: &Path) -> String {
    match flush_us(&dir.join(format!("fdatasync-{}", std::process::id()))) {
        Ok(us) => format!("{us:.0} µs (median of {FLUSHES})"),
        Err(error) => error.to_string(),
    }
}

/// The median time of a flush, in microseconds. The file is removed afterwards.
fn flush_us(path: &Path) -> io::Result<f64> {
    let measure = |file: &File| -> io::Result<f64> {
        let began = Instant::now();
        file.write_all_at(&BLOCK, 0)?;
        file.sync_data()?;
        Ok(began.elapsed().as_secs_f64() * 1e6)
    };
    let file = File::create(path)?;
    let all: io::Result<Vec<f64>> = (0..FLUSHES).map(|_| measure(&file)).collect();
    let removed = fs::remove_file(path);
    let median = median(&all?).unwrap_or(0.0);
    removed.map(|()| median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_mount_point_holds_the_data() {
        let mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\nx /tmp/a xfs rw 0 0\ny /tmp/a btrfs rw 0 0\n";
        let of = |path: &str| file_system(mounts, Path::new(path));
        assert_eq!(of("/var/lib"), Some("ext4"));
        assert_eq!(of("/tmp/b"), Some("tmpfs"));
        // The last mount hides the earlier one.
        assert_eq!(of("/tmp/a/b"), Some("btrfs"));
        assert_eq!(of("/tmp/ab"), Some("tmpfs"));
        assert_eq!(file_system("", Path::new("/")), None);
    }

    #[test]
    fn a_flush_takes_time_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let text = flush(dir.path());
        assert!(text.ends_with(" µs (median of 100)"), "{text}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let missing = flush(&dir.path().join("missing"));
        assert!(!missing.contains("µs"), "{missing}");
    }
}
