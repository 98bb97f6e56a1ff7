//! How many bytes a client may send for a handshake. The TLS library keeps a message of the
//! handshake until it is whole, so what is read is charged to the guest as if all of it were kept.

use std::io;

use crate::limits::HANDSHAKE;
use crate::state::guests::Guest;

/// The remaining bytes of a handshake. Dropping it frees the guest's place.
pub(crate) struct Allowance {
    /// The place among the guests, where authentication is required.
    guest: Option<Guest>,
    read: usize,
}

impl Allowance {
    /// An allowance of [`HANDSHAKE`] bytes, charged to the guest.
    pub(crate) fn new(guest: Option<Guest>) -> Allowance {
        Allowance { guest, read: 0 }
    }

    /// Charge bytes that were read.
    ///
    /// # Errors
    /// The handshake is too long, or guests hold too much memory together; the connection must end.
    pub(crate) fn charge(&mut self, bytes: usize) -> io::Result<()> {
        self.read = self.read.saturating_add(bytes);
        if HANDSHAKE < self.read {
            let message = format!("the handshake is longer than {HANDSHAKE} bytes");
            return Err(io::Error::other(message));
        }
        let held = self
            .guest
            .as_mut()
            .is_none_or(|guest| guest.hold(self.read));
        if held {
            return Ok(());
        }
        let message = "connections that have not authenticated hold too much memory";
        Err(io::Error::other(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_without_end_is_refused() {
        let mut allowance = Allowance::new(None);
        assert!(allowance.charge(HANDSHAKE).is_ok());
        assert!(allowance.charge(1).is_err());
    }
}
