//! Refusals of init().

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::*;
use crate::border::tests::settings;

#[test]
fn a_data_directory_whose_path_is_not_text_is_refused_by_that_path() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join(OsStr::from_bytes(b"d\xff"));
    std::fs::create_dir(&dir).unwrap();
    let refused = try_start(settings(&dir), &Logger::new(None));
    let said = refused.map(drop).unwrap_err();
    assert!(
        said.contains(r"d\xFF") && said.contains("datadir"),
        "{said}"
    );
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
}
