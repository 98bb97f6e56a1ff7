//! The other end of a connection.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Where a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// At an address.
    Network(SocketAddr),
    /// On this machine, connected by a Unix socket.
    Local,
}

impl Peer {
    /// Its address and port; a client of a Unix socket has none.
    pub(crate) fn address(self) -> Option<SocketAddr> {
        match self {
            Peer::Network(address) => Some(address),
            Peer::Local => None,
        }
    }

    /// Its address; that of this machine for a client of a Unix socket.
    pub(crate) fn ip(self) -> IpAddr {
        match self {
            Peer::Network(address) => address.ip(),
            Peer::Local => IpAddr::V4(Ipv4Addr::LOCALHOST),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Network(address) => address.fmt(f),
            // MongoDB's words.
            Peer::Local => f.write_str("anonymous unix socket"),
        }
    }
}
