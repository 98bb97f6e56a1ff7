//! Why a server does not start, with the exit code that `mongod` has for it.

use std::fmt;

/// The exit code for an error that has none of its own: the log or the process ID file.
pub const OTHER: u8 = 1;

/// The exit code for a configuration or a command line that is wrong.
pub const CONFIGURATION: u8 = 2;

/// The exit code for an address that cannot be listened on.
pub const ADDRESS: u8 = 48;

/// The exit code for data that cannot be opened: a missing directory, another process at work, an
/// error of the storage engine.
pub const DATA: u8 = 100;

/// Why a server does not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The exit code of the program.
    pub code: u8,
    /// What happened, and what to do. Several errors have a line each.
    pub message: String,
}

impl Failure {
    /// A failure with an exit code.
    pub fn new(code: u8, message: impl Into<String>) -> Failure {
        Failure {
            code,
            message: message.into(),
        }
    }

    /// A configuration with errors, all of them at once.
    #[must_use]
    pub fn configuration(errors: &[String]) -> Failure {
        let message = match errors {
            [one] => one.clone(),
            many => {
                let count = many.len();
                let lines: Vec<String> = many.iter().map(|error| format!("  {error}")).collect();
                format!(
                    "the configuration has {count} errors:\n{}",
                    lines.join("\n")
                )
            }
        };
        Failure::new(CONFIGURATION, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
