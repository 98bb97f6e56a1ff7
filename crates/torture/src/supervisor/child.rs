//! A worker process, seen from the supervisor.
//!
//! A thread reads the worker's pipe to the end, so no message is lost when the worker is killed.
//! I1: after [`Child::reap`] the process has ended, and all its complete messages can still be
//! received.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{self, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use stdx::{sync, time};

use crate::protocol::{Event, Order};

/// A message from the worker, with the bytes that follow its line.
pub(super) enum Message {
    /// An event without bytes.
    Event(Event),
    /// An entry: the tree, the key and the value.
    Entry(u8, Vec<u8>, Vec<u8>),
    /// A line that is not a message.
    Noise(String),
}

/// The result of waiting for a message.
pub(super) enum Received {
    /// A message.
    Message(Message),
    /// The deadline passed without a message.
    Nothing,
    /// The pipe was closed: the worker has ended or is ending.
    End,
}

/// A running worker. Dropping it kills it.
pub(super) struct Child {
    child: process::Child,
    orders: ChildStdin,
    messages: Receiver<Message>,
}

impl Child {
    /// Start a worker; its standard error is appended to `log`.
    pub(super) fn start(
        program: &Path,
        environment: &[(&str, &str)],
        log: &Path,
    ) -> Result<Child, String> {
        let stderr = OpenOptions::new().create(true).append(true).open(log);
        let stderr = stderr.map_err(|e| format!("cannot create {}: {e}", log.display()))?;
        let mut child = Command::new(program)
            .arg("worker")
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .map_err(|e| format!("cannot start {}: {e}", program.display()))?;
        let (orders, output) = (child.stdin.take(), child.stdout.take());
        let (Some(orders), Some(output)) = (orders, output) else {
            return Err("the worker has no pipes".to_owned());
        };
        let (send, messages) = channel();
        sync::spawn("torture-pipe", move || {
            let mut pipe = BufReader::with_capacity(1 << 18, output);
            while let Some(message) = read(&mut pipe) {
                if send.send(message).is_err() {
                    return;
                }
            }
        })
        .map_err(|e| format!("cannot start a thread: {e}"))?;
        Ok(Child {
            child,
            orders,
            messages,
        })
    }

    /// Send a request to the worker. A request to a worker that has ended is ignored; the caller
    /// notices the missing messages.
    pub(super) fn ask(&mut self, order: &Order) {
        let mut line = serde_json::to_vec(order).expect("orders are plain data");
        line.push(b'\n');
        // The worker may have ended.
        let _ = self.orders.write_all(&line);
    }

    /// The next message, waiting until `deadline`.
    pub(super) fn receive(&self, deadline: Instant) -> Received {
        let left = deadline.saturating_duration_since(time::now());
        match self.messages.recv_timeout(left) {
            Ok(message) => Received::Message(message),
            Err(RecvTimeoutError::Timeout) => Received::Nothing,
            Err(RecvTimeoutError::Disconnected) => Received::End,
        }
    }

    /// The next message of a worker that has ended.
    pub(super) fn receive_rest(&self) -> Option<Message> {
        self.messages.recv().ok()
    }

    /// Send a signal.
    pub(super) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // The worker may have ended by itself. It is not reaped yet, so its process id is not
            // reused.
            let _ = kill_process(pid, signal);
        }
    }

    /// Wait until the worker ends, for at most `limit`.
    pub(super) fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let end = time::now() + limit;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if time::now() < end => time::sleep(Duration::from_millis(1)),
                Ok(None) | Err(_) => return None,
            }
        }
    }

    /// Kill the worker, and wait until it ends.
    pub(super) fn reap(&mut self) -> Option<ExitStatus> {
        self.signal(Signal::KILL);
        self.child.wait().ok()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.reap();
    }
}

/// The next complete message; `None` when the pipe ends, even in the middle of a message.
fn read(pipe: &mut impl BufRead) -> Option<Message> {
    let mut line = Vec::new();
    pipe.read_until(b'\n', &mut line).ok()?;
    if line.pop() != Some(b'\n') {
        return None;
    }
    let event = serde_json::from_slice(&line);
    let Ok(event) = event else {
        return Some(Message::Noise(String::from_utf8_lossy(&line).into_owned()));
    };
    let Event::Entry { tree, key, value } = event else {
        return Some(Message::Event(event));
    };
    let (mut key, mut value) = (vec![0; key as usize], vec![0; value as usize]);
    pipe.read_exact(&mut key).ok()?;
    pipe.read_exact(&mut value).ok()?;
    Some(Message::Entry(tree, key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_cut_short_is_none() {
        let mut whole = serde_json::to_vec(&Event::Entry {
            tree: 1,
            key: 2,
            value: 3,
        })
        .unwrap();
        whole.extend_from_slice(b"\nkkvvv");
        let read_first = |bytes: &[u8]| read(&mut BufReader::new(bytes));
        assert!(
            matches!(read_first(&whole), Some(Message::Entry(1, k, v)) if k == b"kk" && v == b"vvv")
        );
        for len in 0..whole.len() {
            assert!(read_first(&whole[..len]).is_none(), "{len} bytes");
        }
        assert!(matches!(read_first(b"hello\n"), Some(Message::Noise(_))));
    }
}
