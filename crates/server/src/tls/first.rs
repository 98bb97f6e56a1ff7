//! The first bytes of a connection, which distinguish TLS from plain messages on the same port.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use wire::Header;

use super::Allowance;

/// Bytes needed to decide: those of a message's header. A handshake's first record is longer.
const HEAD: usize = 16;

/// The protocol of a connection, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum First {
    /// A handshake of TLS.
    Handshake,
    /// Messages, or neither of both, which the decoder of messages refuses.
    Plain,
    /// Nothing: the client disconnected.
    Nothing,
}

/// A connection with bytes that were read before and are delivered first.
pub(crate) struct Prefixed<S> {
    bytes: Vec<u8>,
    stream: S,
    /// The allowance that reads are charged to until the handshake is over.
    allowance: Option<Allowance>,
}

/// Read the first bytes and determine the protocol.
///
/// # Errors
/// Those of the socket.
pub(crate) async fn first<S>(mut stream: S) -> io::Result<(First, Prefixed<S>)>
where
    S: AsyncRead + Unpin,
{
    let mut bytes = Vec::with_capacity(HEAD);
    while bytes.len() < HEAD {
        let missing = u64::try_from(HEAD - bytes.len()).unwrap_or(0);
        let read = (&mut stream).take(missing).read_buf(&mut bytes).await?;
        if read == 0 {
            break;
        }
    }
    let first = kind_of(&bytes);
    let prefixed = Prefixed {
        bytes,
        stream,
        allowance: None,
    };
    Ok((first, prefixed))
}

fn kind_of(bytes: &[u8]) -> First {
    let handshake = bytes.starts_with(&[22, 3]);
    match bytes.first_chunk() {
        // The length of a long message may look like the start of a handshake, but a valid opcode
        // follows where a handshake has random bytes.
        Some(header) if handshake && Header::decode(header).is_err() => First::Handshake,
        _ if bytes.is_empty() => First::Nothing,
        _ => First::Plain,
    }
}

impl<S> Prefixed<S> {
    /// The underlying stream.
    pub(crate) fn inner(&self) -> &S {
        &self.stream
    }

    /// Charge reads to `allowance` from now on, or to none.
    pub(crate) fn limit(&mut self, allowance: Option<Allowance>) {
        self.allowance = allowance;
    }

    /// The bytes that were read, and the rest.
    pub(crate) fn into_parts(self) -> (Vec<u8>, S) {
        (self.bytes, self.stream)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Prefixed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.bytes.is_empty() {
            let before = buffer.filled().len();
            ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
            let read = buffer.filled().len().saturating_sub(before);
            let charged = self.allowance.as_mut().map(|left| left.charge(read));
            return Poll::Ready(charged.unwrap_or(Ok(())));
        }
        let count = self.bytes.len().min(buffer.remaining());
        let rest = self.bytes.split_off(count);
        buffer.put_slice(&std::mem::replace(&mut self.bytes, rest));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Prefixed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::OpCode;

    #[test]
    fn a_message_as_long_as_a_handshake_looks_is_a_message() {
        let header = Header {
            length: 0x01_0316,
            request_id: 1,
            response_to: 0,
            op_code: OpCode::Message,
        };
        let bytes = header.encode();
        assert_eq!(bytes[..2], [22, 3]);
        assert_eq!(kind_of(&bytes), First::Plain);
        let hello = [22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3, 9, 9, 9, 9, 9];
        assert_eq!(kind_of(&hello), First::Handshake);
        assert_eq!(kind_of(b"GET / HTTP/1.1\r\n"), First::Plain);
        assert_eq!(kind_of(&hello[..5]), First::Plain);
        assert_eq!(kind_of(&[]), First::Nothing);
    }
}
