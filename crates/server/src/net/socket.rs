//! The socket of a connection, also under encryption.

use std::io;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

use crate::tls::Prefixed;

/// A connection.
pub(super) trait Socket: AsyncRead + AsyncWrite + Unpin {
    /// Limit the bytes that the kernel buffers before it sends them; 0 restores the kernel's own
    /// limit, which may be megabytes.
    fn limit_unsent(&self, bytes: u32);
}

impl Socket for TcpStream {
    fn limit_unsent(&self, bytes: u32) {
        // Where the system has no such option, its own limit stays.
        let _: io::Result<()> = SockRef::from(self).set_tcp_notsent_lowat(bytes);
    }
}

impl Socket for UnixStream {
    /// Unix sockets have no such option. The kernel's own limit for them is some 200 KB.
    fn limit_unsent(&self, _: u32) {}
}

impl<S: Socket> Socket for Prefixed<S> {
    fn limit_unsent(&self, bytes: u32) {
        self.inner().limit_unsent(bytes);
    }
}

impl<S: Socket> Socket for TlsStream<S> {
    fn limit_unsent(&self, bytes: u32) {
        self.get_ref().0.limit_unsent(bytes);
    }
}
