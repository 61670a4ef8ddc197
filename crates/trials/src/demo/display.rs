//! The output of the demo: events on lines of their own, and one line per second that a terminal overwrites.

use std::io::{self, IsTerminal};
use std::time::Instant;

use trireme_testbed::output;

/// Events and the live line.
pub struct Display {
    began: Instant,
    /// Columns of the terminal; `None` if the output is no terminal and every line stays.
    columns: Option<usize>,
    live: bool,
}

impl Display {
    /// On standard output.
    pub fn new() -> Self {
        let stdout = io::stdout();
        let columns = stdout.is_terminal().then(|| {
            let size =
                rustix::termios::tcgetwinsize(&stdout).map_or(0, |size| usize::from(size.ws_col));
            if size == 0 { 80 } else { size }
        });
        Self {
            began: Instant::now(),
            columns,
            live: false,
        }
    }

    /// True if the live line has few columns.
    pub fn is_narrow(&self) -> bool {
        self.columns.is_some_and(|columns| columns < 120)
    }

    /// Prints a line that stays.
    pub fn event(&mut self, text: &str) {
        self.end();
        output::line(&format!("{} {text}", self.clock()));
    }

    /// Prints the line of this second, over the last one's if possible.
    pub fn live(&mut self, text: &str) {
        let line = format!("{}  {text}", self.clock());
        match self.columns {
            None => output::line(&line),
            Some(columns) => {
                // A line that wraps could not be overwritten.
                let fitting: String = line.chars().take(columns.saturating_sub(1)).collect();
                output::piece(&format!("\r\x1b[K{fitting}"));
                self.live = true;
            }
        }
    }

    /// Ends the live line, so that the next text begins on a line of its own.
    pub fn end(&mut self) {
        if self.live {
            output::line("");
            self.live = false;
        }
    }

    fn clock(&self) -> String {
        format!("{:>3} s", self.began.elapsed().as_secs())
    }
}
