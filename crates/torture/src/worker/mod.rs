//! The worker: a child process that holds the engine and writes until it is killed.
//!
//! It reports on standard output ([`crate::protocol`]) and ends when its standard input closes, on
//! request, at SIGTERM, or with its supervisor. It checks only what the supervisor cannot check:
//! the content of a snapshot while writers write (`reader`).

mod abort;
mod act;
mod reader;
mod store;
mod upkeep;
mod voice;
mod writer;

use std::io::{self, BufRead};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rustix::process::{Signal, set_parent_process_death_signal};
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;
use stdx::sync;

use crate::protocol::{Event, Order, Start};
use store::Store;
use voice::Voice;

/// State shared by the threads of a worker.
struct Shared<'a> {
    start: &'a Start,
    store: &'a Store,
    voice: &'a Voice,
    stop: &'a AtomicBool,
}

impl Shared<'_> {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Report a violation, and stop.
    fn wrong(&self, message: String) {
        self.stop.store(true, Ordering::Relaxed);
        self.voice.say(&Event::Wrong(message));
    }
}

/// Run as a worker. Returns the exit code: 0 after the store was closed, 1 after any error.
#[must_use]
pub fn serve() -> u8 {
    // Without its supervisor a worker must not continue to write.
    if let Err(e) = set_parent_process_death_signal(Some(Signal::KILL)) {
        eprintln!("torture worker: cannot set the parent-death signal: {e}");
    }
    let voice = match Voice::new() {
        Ok(voice) => voice,
        Err(e) => {
            eprintln!("torture worker: no standard output: {e}");
            return 1;
        }
    };
    match listen().and_then(|orders| work(&orders, &voice)) {
        Ok(()) => 0,
        Err(message) => {
            voice.say(&Event::Wrong(message));
            1
        }
    }
}

/// Forward requests from standard input; SIGTERM is forwarded as `close`.
fn listen() -> Result<Receiver<Order>, String> {
    let (send, orders) = channel();
    let text = |e: io::Error| format!("cannot listen: {e}");
    let mut signals = Signals::new([SIGTERM]).map_err(text)?;
    let to_close = send.clone();
    sync::spawn("signals", move || {
        for _ in signals.forever() {
            // The receiver is gone if the worker is ending.
            let _ = to_close.send(Order::Close);
        }
    })
    .map_err(text)?;
    sync::spawn("orders", move || read_orders(&send)).map_err(text)?;
    Ok(orders)
}

fn read_orders(send: &Sender<Order>) {
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let order = match serde_json::from_str(&line) {
            Ok(order) => order,
            Err(e) => {
                eprintln!("torture worker: not an order: {e}: {line}");
                break;
            }
        };
        if send.send(order).is_err() {
            return;
        }
    }
    // The supervisor has closed the pipe, which also means `close`.
    let _ = send.send(Order::Close);
}

fn work(orders: &Receiver<Order>, voice: &Voice) -> Result<(), String> {
    let start = match orders.recv() {
        Ok(Order::Start(start)) => start,
        Ok(Order::Close) => return Ok(()),
        other => return Err(format!("the first order must be start, not {other:?}")),
    };
    let store = Store::open(&start)?;
    voice.say(&Event::Opened);
    voice.say(&Event::Verified(store.verify()?));
    store.dump(voice, &start)?;
    voice.say(&Event::Dumped);
    if let Ok(Order::Go) = orders.recv() {
        write(orders, voice, &start, &store);
    }
    store.close()?;
    voice.say(&Event::Closed);
    Ok(())
}

/// Write until asked to close.
fn write(orders: &Receiver<Order>, voice: &Voice, start: &Start, store: &Store) {
    let stop = AtomicBool::new(false);
    let shared = Shared {
        start,
        store,
        voice,
        stop: &stop,
    };
    let shared = &shared;
    thread::scope(|scope| {
        for number in 0..start.writers {
            scope.spawn(move || writer::run(shared, number));
        }
        scope.spawn(move || reader::run(shared));
        scope.spawn(move || upkeep::run(shared));
        // Any further request ends the writing.
        let _ = orders.recv();
        shared.stop.store(true, Ordering::Relaxed);
    });
}
