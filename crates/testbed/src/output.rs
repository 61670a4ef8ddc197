//! Standard output, whose reader may go away.

use std::io::{self, Write};

/// Prints a line. If the reader has gone away (`| head`), the text is lost: servers must not stay half started for
/// that.
pub fn line(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}

/// Prints a piece of a line, at once.
pub fn piece(text: &str) {
    let mut stdout = io::stdout();
    let _ = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
}
