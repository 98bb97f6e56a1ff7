//! Interrupts by signals.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that SIGINT and SIGTERM set. The first signal requests a clean stop of the run; the
/// second ends the program.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Install the signal handlers.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn listen() -> std::io::Result<Interrupt> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // The order of registration matters: a second signal must find the flag set, and then
            // ends the program.
            let second = Arc::clone(&flag);
            signal_hook::flag::register_conditional_shutdown(signal, 130, second)?;
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        Ok(Interrupt(flag))
    }

    /// Whether a stop was requested.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
