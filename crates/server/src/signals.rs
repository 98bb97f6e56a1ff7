//! Signals of the operating system: shut down, rotate the certificates, rotate the log.

use std::io;
use std::sync::Arc;

use bson::doc;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::{self, Handle};
use tokio::sync::oneshot;

use crate::server::Server;

/// The signals that a server handles. Signals are caught from the creation of this value and kept
/// until they are handled: create it before the storage is opened, so that no signal ends the
/// process during that.
pub struct Signals(iterator::Signals);

impl Signals {
    /// Catch SIGTERM, SIGINT, SIGHUP and SIGUSR1 from now on.
    ///
    /// # Errors
    /// The error of the system.
    pub fn catch() -> io::Result<Signals> {
        iterator::Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1]).map(Signals)
    }

    /// Handle signals on a thread. Returns a receiver that completes when a signal requests a
    /// shutdown, and a handle that ends the thread.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn handle(self, server: Arc<Server>) -> io::Result<(oneshot::Receiver<()>, Handle)> {
        let Signals(mut signals) = self;
        let handle = signals.handle();
        let (end, ended) = oneshot::channel();
        let serve = move || {
            for signal in signals.forever() {
                match signal {
                    // The outcome is logged.
                    SIGHUP => drop(server.rotate_certificates()),
                    SIGUSR1 => rotate_log(&server),
                    _ => {
                        // Without a receiver the server is shutting down.
                        let _: Result<(), ()> = end.send(());
                        return;
                    }
                }
            }
        };
        stdx::sync::spawn("signals", serve)?;
        Ok((ended, handle))
    }
}

fn rotate_log(server: &Server) {
    if let Err(error) = server.log.rotate() {
        let attributes = doc! {"error": error.to_string()};
        let message = "Log rotation failed";
        server.log.info(
            "CONTROL",
            23_168,
            "SignalProcessingThread",
            message,
            attributes,
        );
    }
}
