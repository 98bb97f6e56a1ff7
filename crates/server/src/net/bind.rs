//! The sockets that the settings name. They are bound before the storage is opened, so that a
//! server whose address is taken ends at once, and listen only after it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::{TcpListener, UnixListener};

use crate::config::{Config, address};
use crate::limits::BACKLOG;

/// Bound sockets.
pub(crate) struct Sockets {
    tcp: Vec<Socket>,
    unix: Vec<(SocketFile, Socket)>,
    metrics: Vec<Socket>,
}

/// What listens.
pub(crate) struct Listening {
    /// For clients.
    pub(crate) clients: Vec<Listener>,
    /// For Prometheus, on each of its addresses.
    pub(crate) metrics: Vec<TcpListener>,
    /// The files of Unix sockets.
    pub(crate) files: Vec<SocketFile>,
}

/// A socket that listens for clients.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// The file of a Unix socket; removed when dropped.
pub(crate) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It is fine if the file has already been removed.
        let _: io::Result<()> = fs::remove_file(&self.0);
    }
}

impl Sockets {
    /// Bind the sockets of a configuration.
    ///
    /// # Errors
    /// The first address that cannot be bound, and why.
    pub(crate) fn bind(config: &Config) -> Result<Sockets, String> {
        let is_path = |name: &&String| name.starts_with('/');
        let names = config.bind_ip.iter().filter(|name| !is_path(name));
        let names: Vec<&str> = names.map(String::as_str).collect();
        let mut sockets = Sockets {
            tcp: bind_all(&names, config.port, config.ipv6)?,
            unix: Vec::new(),
            metrics: Vec::new(),
        };
        let port = sockets.port().unwrap_or(config.port);
        let named = config.bind_ip.iter().filter(is_path).map(PathBuf::from);
        let usual = config
            .unix_socket
            .prefix
            .join(format!("mongodb-{port}.sock"));
        let usual = config.unix_socket.enabled.then_some(usual);
        for path in named.chain(usual) {
            let bound = bind_unix(&path, config.unix_socket.permissions);
            let bound = bound.map_err(|error| failed(&path.display(), &error))?;
            sockets.unix.push(bound);
        }
        if let Some(port) = config.prometheus_port {
            let names: Vec<&str> = config.prometheus_ip.split(',').map(str::trim).collect();
            sockets.metrics = bind_all(&names, port, config.ipv6)?;
        }
        Ok(sockets)
    }

    /// The port for clients.
    pub(crate) fn port(&self) -> Option<u16> {
        let address = self.tcp.first()?.local_addr().ok()?;
        address.as_socket().map(|address| address.port())
    }

    /// Listen. Must be called on a thread of the async runtime.
    ///
    /// # Errors
    /// When another process has begun to listen on an address since it was bound.
    pub(crate) fn listen(self) -> Result<Listening, String> {
        let begun = |socket: &Socket| {
            let listening = socket
                .listen(BACKLOG)
                .and_then(|()| socket.set_nonblocking(true));
            let address = socket
                .local_addr()
                .ok()
                .and_then(|address| address.as_socket());
            let address = address.map_or_else(String::new, |address| address.to_string());
            listening.map_err(|error| failed(&address, &error))
        };
        let system = |error: io::Error| format!("cannot listen: {error}");
        let mut listening = Listening {
            clients: Vec::new(),
            metrics: Vec::new(),
            files: Vec::new(),
        };
        for socket in self.tcp {
            begun(&socket)?;
            let listener = TcpListener::from_std(socket.into()).map_err(system)?;
            listening.clients.push(Listener::Tcp(listener));
        }
        for (file, socket) in self.unix {
            begun(&socket)?;
            let listener = UnixListener::from_std(socket.into()).map_err(system)?;
            listening.clients.push(Listener::Unix(listener));
            listening.files.push(file);
        }
        for socket in self.metrics {
            begun(&socket)?;
            let listener = TcpListener::from_std(socket.into()).map_err(system)?;
            listening.metrics.push(listener);
        }
        Ok(listening)
    }
}

impl Listener {
    /// Its address, if it is one of TCP.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match self {
            Listener::Tcp(listener) => listener.local_addr().ok(),
            Listener::Unix(_) => None,
        }
    }

    /// Its address as text.
    pub(crate) fn place(&self) -> String {
        let place = match self {
            Listener::Tcp(listener) => listener.local_addr().map(|address| address.to_string()),
            Listener::Unix(listener) => listener.local_addr().map(|address| {
                let path = address.as_pathname().unwrap_or(Path::new(""));
                path.display().to_string()
            }),
        };
        place.unwrap_or_default()
    }
}

fn failed(place: &dyn std::fmt::Display, error: &io::Error) -> String {
    format!("cannot listen on {place}: {error}")
}

/// Bind each address of the names once. A free port (0) is chosen once, for all of them.
fn bind_all(names: &[&str], port: u16, ipv6: bool) -> Result<Vec<Socket>, String> {
    let mut port = port;
    let mut seen = BTreeSet::new();
    let mut sockets = Vec::new();
    for name in names {
        let addresses = resolve(name, ipv6).map_err(|error| failed(name, &error))?;
        for ip in addresses {
            if !seen.insert(ip) {
                continue;
            }
            let address = SocketAddr::new(ip, port);
            let socket = bind_tcp(address).map_err(|error| failed(&address, &error))?;
            let bound = socket.local_addr().ok().and_then(|bound| bound.as_socket());
            port = bound.map_or(port, |bound| bound.port());
            sockets.push(socket);
        }
    }
    Ok(sockets)
}

/// The addresses of a name: those of IPv6 only if `ipv6`, or if the name is one of them.
fn resolve(name: &str, ipv6: bool) -> io::Result<Vec<IpAddr>> {
    let both = |four, six| {
        let mut addresses = vec![IpAddr::V4(four)];
        addresses.extend(ipv6.then_some(IpAddr::V6(six)));
        addresses
    };
    match name {
        "localhost" => return Ok(both(Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST)),
        "*" => return Ok(both(Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED)),
        _ => {}
    }
    if let Some(address) = address(name) {
        return Ok(vec![address]);
    }
    let found: Vec<IpAddr> = (name, 0)
        .to_socket_addrs()?
        .map(|address| address.ip())
        .filter(|address| ipv6 || address.is_ipv4())
        .collect();
    match found.is_empty() {
        true => Err(io::Error::other("the name has no address; see net.ipv6")),
        false => Ok(found),
    }
}

fn bind_tcp(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    // Connections of an earlier process may still be closing.
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // So that `::` does not take the port of `0.0.0.0`.
        socket.set_only_v6(true)?;
    }
    socket.bind(&SockAddr::from(address))?;
    Ok(socket)
}

/// Bind a Unix socket, and replace the file of a process that has ended.
fn bind_unix(path: &Path, permissions: u32) -> io::Result<(SocketFile, Socket)> {
    if let Ok(found) = fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(io::Error::other("the file exists and is no socket"));
        }
        match std::os::unix::net::UnixStream::connect(path) {
            Ok(_) => return Err(io::ErrorKind::AddrInUse.into()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(path)?;
            }
            Err(error) => return Err(error),
        }
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let file = SocketFile(path.to_owned());
    fs::set_permissions(path, fs::Permissions::from_mode(permissions))?;
    Ok((file, socket))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(config: &Config) -> Result<Vec<SocketAddr>, String> {
        let sockets = Sockets::bind(config)?;
        let addresses = sockets.tcp.iter().map(|s| s.local_addr().unwrap());
        Ok(addresses.map(|a| a.as_socket().unwrap()).collect())
    }

    fn bound_to(bind_ip: &str) -> Config {
        let mut config = Config {
            port: 0,
            ..Config::default()
        };
        config.set("net.bindIp", bind_ip).unwrap();
        config
    }

    #[test]
    fn an_address_that_is_named_twice_is_bound_once() {
        let found = ports(&bound_to("localhost,127.0.0.1,127.0.0.1,127.0.0.2")).unwrap();
        let ips: Vec<String> = found.iter().map(|a| a.ip().to_string()).collect();
        assert_eq!(ips, ["127.0.0.1", "127.0.0.2"]);
        assert_eq!(found[0].port(), found[1].port());
    }

    #[test]
    fn ipv6_is_opt_in_for_names_and_not_for_addresses() {
        assert_eq!(resolve("localhost", true).unwrap().len(), 2);
        assert_eq!(resolve("*", false).unwrap(), [Ipv4Addr::UNSPECIFIED]);
        assert_eq!(resolve("[::1]", false).unwrap(), [Ipv6Addr::LOCALHOST]);
        assert!(resolve("no such host", false).is_err());
    }

    #[test]
    fn the_socket_of_a_process_that_ended_is_replaced_and_one_in_use_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let (file, socket) = bind_unix(&path, 0o770).unwrap();
        socket.listen(1).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o770
        );
        let taken = bind_unix(&path, 0o700).err().unwrap();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        drop(file);
        assert!(!path.exists());
        fs::write(&path, "a file").unwrap();
        let other = bind_unix(&path, 0o700).err().unwrap().to_string();
        assert!(other.contains("no socket"), "{other}");
    }
}
