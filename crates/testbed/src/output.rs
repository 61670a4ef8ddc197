//! Standard output that may go away.

use std::io::{self, Write};

/// Prints a line. A reader that went away (`| head`) is no reason to leave servers half started: the rest is lost.
pub fn line(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}

/// Prints without an end of line, at once.
pub fn piece(text: &str) {
    let mut stdout = io::stdout();
    let _ = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
}
