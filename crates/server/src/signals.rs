//! What the system tells a server to do: end, rotate its certificates, rotate its log.

use std::io;
use std::sync::Arc;

use bson::doc;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::{self, Handle};
use tokio::sync::oneshot;

use crate::server::Server;

/// The signals that a server heeds. They are caught from the moment this exists, and what came
/// before anybody listened is not lost: make it before the storage is opened, so that no signal
/// ends the process half-way.
pub struct Signals(iterator::Signals);

impl Signals {
    /// Catch SIGTERM, SIGINT, SIGHUP and SIGUSR1 from now on.
    ///
    /// # Errors
    /// When the system does not let it.
    pub fn catch() -> io::Result<Signals> {
        iterator::Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1]).map(Signals)
    }

    /// Do what signals ask for in a thread of its own. What comes back tells that one asked for
    /// the end, and ends the thread.
    ///
    /// # Errors
    /// When there can be no thread.
    pub(crate) fn heed(self, server: Arc<Server>) -> io::Result<(oneshot::Receiver<()>, Handle)> {
        let Signals(mut signals) = self;
        let handle = signals.handle();
        let (end, ended) = oneshot::channel();
        let heed = move || {
            for signal in signals.forever() {
                match signal {
                    // What comes of it is in the log.
                    SIGHUP => drop(server.rotate_certificates()),
                    SIGUSR1 => rotate_log(&server),
                    _ => {
                        // Without a receiver the end has begun.
                        let _: Result<(), ()> = end.send(());
                        return;
                    }
                }
            }
        };
        stdx::sync::spawn("signals", heed)?;
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
