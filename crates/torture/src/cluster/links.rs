//! The network between the members: a proxy in front of each member, which knows by which member a
//! connection was opened, and delays, holds or closes what passes.
//!
//! All members have one configuration, so all of them connect to the same address of a member. The
//! proxy looks for the process that has the other end of a connection.
//!
//! Held bytes are passed on later, as by a network that loses packets and whose hosts send them
//! again. A held direction also holds the end of a connection: a process that is killed behind a
//! cut is not noticed.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use stdx::sync::{Condvar, Mutex};
use stdx::time;

/// How long a read waits before the state of its link is looked at.
const LOOK: Duration = Duration::from_millis(40);

/// What happens to bytes from one member to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Open,
    Late(Duration),
    Held,
    Closed,
}

/// The proxies.
pub(super) struct Links {
    net: Arc<Net>,
    ports: Vec<u16>,
}

struct Net {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// By sender and receiver.
    flows: Vec<Vec<Flow>>,
    /// The process and the port of each member; 0 while it does not run.
    members: Vec<(u32, u16)>,
    ended: bool,
}

impl Links {
    /// Proxies for this number of members, all links open.
    pub(super) fn new(count: usize) -> Result<Links, String> {
        let net = Arc::new(Net {
            state: Mutex::new(State {
                flows: vec![vec![Flow::Open; count]; count],
                members: vec![(0, 0); count],
                ended: false,
            }),
            changed: Condvar::new(),
        });
        let mut ports = Vec::new();
        for to in 0..count {
            let text = |e: std::io::Error| format!("a proxy: {e}");
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(text)?;
            let port = listener.local_addr().map_err(text)?.port();
            let net = Arc::clone(&net);
            let accepting = move || accept(&net, &listener, to, port);
            drop(stdx::sync::spawn("proxy", accepting).map_err(text)?);
            ports.push(port);
        }
        Ok(Links { net, ports })
    }

    /// The port of the proxy in front of a member.
    pub(super) fn port(&self, member: usize) -> u16 {
        self.ports.get(member).copied().unwrap_or(0)
    }

    /// A member runs as this process, and listens on this port.
    pub(super) fn runs(&self, member: usize, process: u32, port: u16) {
        if let Some(place) = self.net.state.lock().members.get_mut(member) {
            *place = (process, port);
        }
    }

    /// Change what happens to bytes from one member to another.
    pub(super) fn set(&self, from: usize, to: usize, flow: Flow) {
        let mut state = self.net.state.lock();
        if let Some(place) = state.flows.get_mut(from).and_then(|row| row.get_mut(to)) {
            *place = flow;
        }
        drop(state);
        self.net.changed.notify_all();
    }

    /// Open all links.
    pub(super) fn heal(&self) {
        let mut state = self.net.state.lock();
        for flow in state.flows.iter_mut().flatten() {
            *flow = Flow::Open;
        }
        drop(state);
        self.net.changed.notify_all();
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.net.state.lock().ended = true;
        self.net.changed.notify_all();
        for port in &self.ports {
            // Wakes the thread that accepts; it does not matter if it has ended.
            let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, *port));
        }
    }
}

impl Net {
    /// Wait until bytes may pass from one member to another; false when the connection ends
    /// instead.
    fn passes(&self, from: usize, to: usize) -> bool {
        let mut state = self.state.lock();
        loop {
            let flow = state.flow(from, to);
            match flow {
                _ if state.ended => return false,
                Flow::Closed => return false,
                Flow::Held => self.changed.wait(&mut state),
                Flow::Open => return true,
                Flow::Late(by) => {
                    drop(state);
                    time::sleep(by);
                    return true;
                }
            }
        }
    }

    fn is_closed(&self, from: usize, to: usize) -> bool {
        let state = self.state.lock();
        state.ended || state.flow(from, to) == Flow::Closed || state.flow(to, from) == Flow::Closed
    }

    /// The member that has opened the connection from `port` to the proxy's port `to`.
    fn owner(&self, port: u16, to: u16) -> Option<usize> {
        let members = self.state.lock().members.clone();
        let owns = |process: u32| owns(process, port, to);
        let found = members.iter().map(|(process, _)| owns(*process));
        let found: Option<Vec<bool>> = found.collect();
        match found {
            Some(found) => found.into_iter().position(|owns| owns),
            None => owner_by_table(&members, port, to),
        }
    }
}

/// Whether a process has a connection between these ports; `None` if the system does not show its
/// sockets, as in some containers.
fn owns(process: u32, port: u16, to: u16) -> Option<bool> {
    let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) else {
        return Some(false);
    };
    // It may just have ended.
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
        return Some(false);
    };
    for file in fs::read_dir(format!("/proc/{process}/fd"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let link = fs::read_link(file.path());
        if !link.is_ok_and(|link| link.to_string_lossy().starts_with("socket:")) {
            continue;
        }
        let Some(number) = file.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let socket = match pidfd_getfd(&handle, number, PidfdGetfdFlags::empty()) {
            Ok(socket) => TcpStream::from(socket),
            Err(Errno::PERM | Errno::NOSYS) => return None,
            // It was closed meanwhile.
            Err(_) => continue,
        };
        let ends = (socket.local_addr(), socket.peer_addr());
        if let (Ok(near), Ok(far)) = ends
            && (near.port(), far.port()) == (port, to)
        {
            return Some(true);
        }
    }
    Some(false)
}

/// The same by the system's table of connections, which takes long while it has many.
fn owner_by_table(members: &[(u32, u16)], port: u16, to: u16) -> Option<usize> {
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    let end = |port: u16| format!(":{port:04X}");
    let inode = table.lines().find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let ours = fields.next()?.ends_with(&end(port)) && fields.next()?.ends_with(&end(to));
        fields.nth(6).filter(|_| ours)
    })?;
    let socket = format!("socket:[{inode}]");
    members.iter().position(|(process, _)| {
        let files = fs::read_dir(format!("/proc/{process}/fd"));
        let mut files = files.into_iter().flatten().flatten();
        files.any(|file| fs::read_link(file.path()).is_ok_and(|to| to.as_os_str() == &*socket))
    })
}

impl State {
    fn flow(&self, from: usize, to: usize) -> Flow {
        let row = self.flows.get(from);
        row.and_then(|row| row.get(to))
            .copied()
            .unwrap_or(Flow::Open)
    }
}

fn accept(net: &Arc<Net>, listener: &TcpListener, to: usize, port: u16) {
    for stream in listener.incoming() {
        if net.state.lock().ended {
            return;
        }
        let Ok(stream) = stream else { continue };
        let net = Arc::clone(net);
        // Without a thread the connection is closed, which members bear.
        drop(stdx::sync::spawn("link", move || {
            carry(&net, stream, to, port);
        }));
    }
}

/// Carry one connection until it ends.
fn carry(net: &Arc<Net>, near: TcpStream, to: usize, port: u16) {
    let peer = near.peer_addr().map_or(0, |address| address.port());
    let Some(from) = net.owner(peer, port) else {
        return;
    };
    if !net.passes(from, to) || !net.passes(to, from) {
        return;
    }
    let target = net
        .state
        .lock()
        .members
        .get(to)
        .map_or(0, |(_, port)| *port);
    let Ok(far) = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, target))) else {
        return;
    };
    let (Ok(near_too), Ok(far_too)) = (near.try_clone(), far.try_clone()) else {
        return;
    };
    let other = Arc::clone(net);
    drop(stdx::sync::spawn("link", move || {
        pump(&other, &far_too, &near_too, (to, from));
    }));
    pump(net, &near, &far, (from, to));
}

/// Pass bytes on in one direction; closes both connections at the end.
fn pump(net: &Net, source: &TcpStream, sink: &TcpStream, (from, to): (usize, usize)) {
    let mut chunk = vec![0; 1 << 16];
    let (mut reader, mut writer) = (source, sink);
    let ready = source
        .set_read_timeout(Some(LOOK))
        .and(sink.set_nodelay(true));
    while ready.is_ok() {
        let read = match reader.read(&mut chunk) {
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                match net.is_closed(from, to) {
                    true => break,
                    false => continue,
                }
            }
            read => read.unwrap_or(0),
        };
        // The end of a connection is held, too.
        if !net.passes(from, to) || read == 0 {
            break;
        }
        if writer
            .write_all(chunk.get(..read).unwrap_or_default())
            .is_err()
        {
            break;
        }
    }
    for stream in [source, sink] {
        // It may be closed already.
        let _ = stream.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two members that are this process: the first one owns all connections.
    fn pair() -> (Links, TcpListener, TcpStream, TcpStream) {
        let links = Links::new(2).unwrap();
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        links.runs(0, std::process::id(), 0);
        links.runs(1, 0, server.local_addr().unwrap().port());
        let client = TcpStream::connect((Ipv4Addr::LOCALHOST, links.port(1))).unwrap();
        let (accepted, _) = server.accept().unwrap();
        (links, server, client, accepted)
    }

    #[test]
    fn both_ways_to_find_the_owner_agree() {
        let (links, _server, client, _accepted) = pair();
        let (port, to) = (client.local_addr().unwrap().port(), links.port(1));
        let members = links.net.state.lock().members.clone();
        assert_eq!(links.net.owner(port, to), Some(0));
        assert_eq!(owner_by_table(&members, port, to), Some(0));
        let other = to.wrapping_add(1);
        assert_eq!(links.net.owner(port, other), None);
        assert_eq!(owner_by_table(&members, port, other), None);
    }

    fn read(stream: &mut TcpStream, bytes: usize) -> Vec<u8> {
        let mut read = vec![0; bytes];
        stream.read_exact(&mut read).unwrap();
        read
    }

    #[test]
    fn what_is_held_passes_later() {
        let (links, _server, mut client, mut accepted) = pair();
        client.write_all(b"ab").unwrap();
        assert_eq!(read(&mut accepted, 2), b"ab");
        links.set(0, 1, Flow::Held);
        client.write_all(b"cd").unwrap();
        // The other direction is open.
        accepted.write_all(b"ef").unwrap();
        assert_eq!(read(&mut client, 2), b"ef");
        accepted.set_read_timeout(Some(LOOK * 3)).unwrap();
        assert!(accepted.read(&mut [0; 2]).is_err());
        links.heal();
        accepted.set_read_timeout(None).unwrap();
        assert_eq!(read(&mut accepted, 2), b"cd");
    }

    #[test]
    fn closed_links_end_their_connections() {
        let (links, _server, mut client, mut accepted) = pair();
        links.set(1, 0, Flow::Closed);
        assert_eq!(accepted.read(&mut [0; 2]).unwrap(), 0);
        assert_eq!(client.read(&mut [0; 2]).unwrap_or(0), 0);
        let mut refused = TcpStream::connect((Ipv4Addr::LOCALHOST, links.port(1))).unwrap();
        assert_eq!(refused.read(&mut [0; 2]).unwrap_or(0), 0);
    }
}
