//! Messages to the service manager, by the protocol of `sd_notify`: a datagram to the Unix socket
//! that the environment names. Without one there is no service manager, and nothing is sent.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The environment variable that names the socket.
const VARIABLE: &str = "NOTIFY_SOCKET";

/// The server serves.
pub(crate) fn ready() {
    send("READY=1\nSTATUS=Waiting for connections\n");
}

/// The server shuts down.
pub(crate) fn stopping() {
    send("STOPPING=1\nSTATUS=Shutting down\n");
}

/// The server still starts; the service manager waits for at least `more` from now on.
pub(crate) fn still_starting(more: Duration) {
    let micros = more.as_micros();
    send(&format!(
        "STATUS=Opening the storage engine\nEXTEND_TIMEOUT_USEC={micros}\n"
    ));
}

fn send(state: &str) {
    if let Some(place) = env::var_os(VARIABLE) {
        // If the service manager does not receive it, nothing is lost: the log has the same state.
        let _: io::Result<()> = send_to(&place, state);
    }
}

fn send_to(place: &OsString, state: &str) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    let address = match place.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path => SocketAddr::from_pathname(OsStr::from_bytes(path))?,
    };
    socket.send_to_addr(state.as_bytes(), &address).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_arrives_at_a_socket_with_a_path_or_an_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("romanesco-test-{}", std::process::id());
        let named = SocketAddr::from_abstract_name(&name).unwrap();
        let places = [
            (
                UnixDatagram::bind(&path).unwrap(),
                path.clone().into_os_string(),
            ),
            (
                UnixDatagram::bind_addr(&named).unwrap(),
                format!("@{name}").into(),
            ),
        ];
        for (socket, place) in places {
            send_to(&place, "READY=1\n").unwrap();
            let mut bytes = [0; 32];
            let length = socket.recv(&mut bytes).unwrap();
            assert_eq!(&bytes[..length], b"READY=1\n");
        }
        assert!(send_to(&folder.path().join("missing").into(), "READY=1\n").is_err());
    }
}
