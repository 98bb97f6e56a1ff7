//! Why a connection to another member cannot be used, and what is reported to the driver.

use std::io;

use tokio::sync::mpsc::WeakSender;

use crate::cluster::driver::{Input, Reach};

/// Why a connection cannot be used.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) reason: String,
    /// Whether the machine of the other member has closed or refused it: its process has probably
    /// ended. A machine that does not answer says nothing.
    closed: bool,
}

impl Broken {
    /// The other side has closed the connection.
    pub(super) fn closed() -> Broken {
        Broken {
            reason: "the connection was closed".to_owned(),
            closed: true,
        }
    }
}

impl Broken {
    /// The handshake of TLS failed: that says nothing of the process of the other member.
    pub(super) fn in_handshake(error: &io::Error) -> Broken {
        format!("the TLS handshake failed: {error}").into()
    }
}

impl From<String> for Broken {
    fn from(reason: String) -> Broken {
        Broken {
            reason,
            closed: false,
        }
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Broken {
        let closed = matches!(
            error.kind(),
            io::ErrorKind::ConnectionRefused
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::UnexpectedEof
        );
        Broken {
            reason: error.to_string(),
            closed,
        }
    }
}

/// Reports to the driver how the connections to a member are.
#[derive(Clone)]
pub(super) struct Link {
    /// Weak: the driver ends when no one else has inputs for it.
    pub(super) inputs: WeakSender<Input>,
    pub(super) member: u32,
}

impl Link {
    /// A connection cannot be used.
    pub(super) fn broken(&self, broken: &Broken) {
        self.tell(Reach::Broken {
            closed: broken.closed,
            reason: broken.reason.clone(),
        });
    }

    /// As [`Link::broken`]; returns the reason.
    pub(super) fn reason(&self, broken: Broken) -> String {
        self.broken(&broken);
        broken.reason
    }

    /// The member answers again.
    pub(super) fn works(&self) {
        self.tell(Reach::Works);
    }

    fn tell(&self, what: Reach) {
        if let Some(inputs) = self.inputs.upgrade() {
            // The driver is busy: a line of the log is missing, and an election waits for its
            // timeout.
            let _: Result<(), _> = inputs.try_send(Input::Link(self.member, what));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_other_machine_does_is_a_hint() {
        let is_hint = |kind: io::ErrorKind| Broken::from(io::Error::from(kind)).closed;
        assert!(is_hint(io::ErrorKind::ConnectionRefused));
        assert!(is_hint(io::ErrorKind::ConnectionReset));
        assert!(Broken::closed().closed);
        for silent in [
            io::ErrorKind::TimedOut,
            io::ErrorKind::HostUnreachable,
            io::ErrorKind::NetworkUnreachable,
            io::ErrorKind::InvalidData,
        ] {
            assert!(!is_hint(silent), "{silent}");
        }
        assert!(!Broken::from("an error of a command".to_owned()).closed);
    }
}
