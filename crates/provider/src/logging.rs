//! Log lines to the server's error log, through the callback that `init` gave.

use std::ffi::CString;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use trireme_node::state_file::{Event, Events};
use trireme_node::{LINE_BYTES_MAX, one_line, unix_ms};
use trireme_replicator::Level;
use trireme_wsrep_abi::{LogCb, LogLevel};

/// A provider's log. Clones share the debug switch; loggers of different providers share nothing.
#[derive(Clone, Debug)]
pub struct Logger {
    callback: Option<LogCb>,
    debug: Arc<AtomicBool>,
    /// The last lines, for the state-and-event file.
    events: Arc<Mutex<Events>>,
}

impl Logger {
    /// Returns a log that goes to `callback`, or to standard error without one. Debug lines are off.
    pub fn new(callback: Option<LogCb>) -> Logger {
        Logger {
            callback,
            debug: Arc::new(AtomicBool::new(false)),
            events: Arc::default(),
        }
    }

    /// Turns debug lines on or off (option `debug`), in all clones.
    pub fn set_debug(&self, on: bool) {
        self.debug.store(on, Ordering::Relaxed);
    }

    /// Returns true if debug lines are on: for messages that are costly to make.
    pub fn is_debug(&self) -> bool {
        self.debug.load(Ordering::Relaxed)
    }

    /// Logs that an operation failed.
    pub fn error(&self, message: impl Display) {
        let message = message.to_string();
        self.keep("error", &message);
        self.log(LogLevel::ERROR, message);
    }

    /// Logs information that the reader may also need while the server does not answer.
    pub fn note(&self, message: &str) {
        self.keep("info", message);
        self.log(LogLevel::INFO, message);
    }

    /// Returns the last warnings, errors and notes, the oldest first.
    pub fn events(&self) -> Vec<Event> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.all()
    }

    fn keep(&self, level: &str, text: &str) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.add(unix_ms(), level, text);
    }

    /// Logs something unexpected. Use sparingly: the suites fail on warnings that they do not know.
    pub fn warn(&self, message: impl Display) {
        let message = message.to_string();
        self.keep("warn", &message);
        self.log(LogLevel::WARN, message);
    }

    /// Logs information for the reader.
    pub fn info(&self, message: impl Display) {
        self.log(LogLevel::INFO, message);
    }

    /// Logs for developers; the line is dropped, and not even formatted, unless debug lines are on.
    pub fn debug(&self, message: impl Display) {
        self.log(LogLevel::DEBUG, message);
    }

    /// Logs a line of the node.
    pub fn log_at(&self, level: Level, text: &str) {
        match level {
            Level::Error => self.error(text),
            Level::Warn => self.warn(text),
            Level::Info => self.info(text),
            Level::Debug => self.debug(text),
        }
    }

    /// Logs at any level. Pass `format_args!(...)` to format only lines that are logged.
    pub fn log(&self, level: LogLevel, message: impl Display) {
        if level == LogLevel::DEBUG && !self.is_debug() {
            return;
        }
        let text = c_message(&message.to_string());
        match self.callback {
            // SAFETY: the API lets any thread call the logger; the text is NUL-terminated and outlives the call.
            Some(callback) => unsafe { callback(level, text.as_ptr()) },
            None => eprintln!("trireme {level:?}: {}", text.to_string_lossy()),
        }
    }
}

/// Returns the message as C text, in one line.
fn c_message(message: &str) -> CString {
    // No NUL is left, so the alternative, an empty line, does not happen.
    CString::new(one_line(message, LINE_BYTES_MAX)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ffi::{CStr, c_char};
    use std::sync::Mutex;

    /// A callback that records what it gets, and its record.
    macro_rules! recorder {
        ($record:ident, $callback:ident) => {
            static $record: Mutex<Vec<(LogLevel, String)>> = Mutex::new(Vec::new());
            unsafe extern "C" fn $callback(level: LogLevel, message: *const c_char) {
                // SAFETY: the logger passes NUL-terminated text.
                let text = unsafe { CStr::from_ptr(message) }
                    .to_str()
                    .unwrap()
                    .to_string();
                $record.lock().unwrap().push((level, text));
            }
        };
    }

    #[test]
    fn loggers_are_independent_and_debug_is_off_at_first() {
        recorder!(ONE, one);
        recorder!(TWO, two);
        let (first, second) = (Logger::new(Some(one)), Logger::new(Some(two)));
        let clone = first.clone();
        first.debug("unseen");
        clone.set_debug(true);
        first.debug(format_args!("seen {}", 1));
        second.debug("unseen");
        second.info("two");
        first.warn("w");
        first.error("e");
        let expected = [
            (LogLevel::DEBUG, "seen 1"),
            (LogLevel::WARN, "w"),
            (LogLevel::ERROR, "e"),
        ];
        assert_eq!(
            *ONE.lock().unwrap(),
            expected.map(|(level, text)| (level, text.to_string()))
        );
        assert_eq!(*TWO.lock().unwrap(), [(LogLevel::INFO, "two".to_string())]);
        second.note("waiting");
        let kept = |logger: &Logger| logger.events().into_iter().map(|event| event.text);
        assert!(kept(&clone).eq(["w", "e"]), "clones share them");
        assert!(kept(&second).eq(["waiting"]));
    }

    #[test]
    fn many_threads_may_log() {
        recorder!(LINES, record);
        let logger = Logger::new(Some(record));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let logger = logger.clone();
                scope.spawn(move || {
                    (0..100).for_each(|line| logger.info(format_args!("{thread}:{line}")))
                });
            }
        });
        assert_eq!(LINES.lock().unwrap().len(), 400);
    }

    #[test]
    fn a_message_is_one_line_without_a_nul() {
        let text = |message: &str| c_message(message).into_string().unwrap();
        assert_eq!(text("a\0b\nc"), "a?b c");
        assert_eq!(text(&"x".repeat(2 * LINE_BYTES_MAX)).len(), LINE_BYTES_MAX);
    }

    proptest! {
        #[test]
        fn any_message_can_be_logged(message in any::<String>()) {
            prop_assert!(c_message(&message).as_bytes().len() <= LINE_BYTES_MAX);
        }
    }
}
