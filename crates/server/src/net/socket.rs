//! The TCP socket of a connection, also under encryption.

use std::io;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::tls::Prefixed;

/// A connection over TCP.
pub(super) trait Socket: AsyncRead + AsyncWrite + Unpin {
    /// Its socket.
    fn tcp(&self) -> &TcpStream;

    /// Limit the bytes that the kernel buffers before it sends them; 0 restores the kernel's own
    /// limit, which may be megabytes.
    fn limit_unsent(&self, bytes: u32) {
        // Where the system has no such option, its own limit stays.
        let _: io::Result<()> = SockRef::from(self.tcp()).set_tcp_notsent_lowat(bytes);
    }
}

impl Socket for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl<S: Socket> Socket for Prefixed<S> {
    fn tcp(&self) -> &TcpStream {
        self.inner().tcp()
    }
}

impl<S: Socket> Socket for TlsStream<S> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0.tcp()
    }
}
