//! The worker's standard output. I1 of [`crate::protocol`]: each message is written whole, under
//! one lock, and before the call returns.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process;

use stdx::sync::Mutex;

use crate::protocol::Event;

/// The worker's output, for messages to the supervisor.
pub(super) struct Voice {
    out: Mutex<File>,
}

impl Voice {
    /// Standard output, without a buffer of its own.
    pub(super) fn new() -> io::Result<Voice> {
        let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Voice {
            out: Mutex::new(out),
        })
    }

    /// Send an event.
    pub(super) fn say(&self, event: &Event) {
        self.say_bytes(&line(event));
    }

    /// Send an entry of tree `tree`.
    pub(super) fn say_entry(&self, tree: u8, key: &[u8], value: &[u8]) {
        let len = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let mut bytes = line(&Event::Entry {
            tree,
            key: len(key),
            value: len(value),
        });
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(value);
        self.say_bytes(&bytes);
    }

    fn say_bytes(&self, bytes: &[u8]) {
        if self.out.lock().write_all(bytes).is_err() {
            // The pipe is closed: the supervisor has ended.
            process::exit(1);
        }
    }
}

fn line(event: &Event) -> Vec<u8> {
    let mut line = serde_json::to_vec(event).expect("events are plain data");
    line.push(b'\n');
    line
}
