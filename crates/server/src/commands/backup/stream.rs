//! `streamBackup`: a backup that the client receives, in replies of some megabytes. The store is
//! copied by a thread of its own, which waits for the client.
//!
//! ```text
//! {streamBackup: 1, compression: "zstd", throttle: 100000000}   -> {stream: ID}
//! {streamBackup: 1, stream: ID}                                  -> {bytes: ..., complete: ...}
//! {streamBackup: 1, stream: ID, end: true}                       -> {}
//! ```
//!
//! - Q1. The server holds at most [`AHEAD`] messages, and a reply: a slow client slows the copy.
//! - Q2. A stream ends when its client does not ask for [`IDLE`], and when the server stops. There
//!   is one at a time, and no other backup meanwhile.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, TryRecvError, TrySendError};
use std::time::Duration;

use backup::{Codec, Facts, Monotonic, Throttle};
use bson::RawBsonRef;
use bson::raw::RawBinaryRef;
use bson::spec::BinarySubtype;
use kv::{Flow, Progress};
use query::{Code, Error, Result};
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wire::Builder;

use crate::auth::users::random;
use crate::long::long;
use crate::request::Call;
use crate::server::Server;
use crate::state::stream::Stream;

/// Messages that wait for the client, of at most 1 MiB, but the manifest.
const AHEAD: usize = 4;

/// Bytes of a reply after which no message is added.
const REPLY: usize = 4 << 20;

/// How long a reply waits for the first message.
const WAIT: Duration = Duration::from_secs(1);

/// Time without a question after which a stream ends.
const IDLE: Duration = Duration::from_secs(60);

/// Time between two looks whether the client has made room.
const LOOK: Duration = Duration::from_millis(2);

/// The folder below the data directory in which an engine copies itself.
const STAGING: &str = "_stream";

/// Whether a stream has ended (Q2).
fn is_over(stream: &Stream, server: &Server) -> bool {
    let stopped = || *server.stopping().borrow();
    let idle = || IDLE < stream.asked.lock().elapsed();
    stream.ended.load(Ordering::Acquire) || stopped() || idle()
}

pub(super) fn run(call: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let arguments = call.arguments();
    let Some(id) = arguments.long("stream")? else {
        return begin(call, reply);
    };
    let found = call.server.backup_stream.lock().clone();
    let found = found.filter(|stream| stream.id == id && stream.user == call.op().user);
    let Some(stream) = found else {
        let message = "no backup is streamed under this number: it has ended, or its client did \
                       not ask for a minute";
        return Err(Error::new(Code::CURSOR_NOT_FOUND, message));
    };
    if arguments.is_on("end")? {
        stream.ended.store(true, Ordering::Release);
        return Ok(());
    }
    *stream.asked.lock() = stdx::time::now();
    if next(&stream, reply)? {
        let mut current = call.server.backup_stream.lock();
        current.take_if(|current| Arc::ptr_eq(current, &stream));
    }
    Ok(())
}

/// A number that others do not guess.
fn number() -> Result<i64> {
    let bytes = random(8)?;
    let bytes = bytes.first_chunk().map(|bytes| i64::from_be_bytes(*bytes));
    Ok(bytes.unwrap_or(0) & i64::MAX)
}

fn begin(call: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let (codec, rate) = super::options(call)?;
    let server = Arc::clone(&call.server);
    let facts = super::facts(&server.store)?;
    let (sender, messages) = sync_channel(AHEAD);
    let stream = Arc::new(Stream {
        id: number()?,
        user: call.op().user.clone(),
        messages: Mutex::new(messages),
        asked: Mutex::new(stdx::time::now()),
        ended: AtomicBool::new(false),
        done: AtomicU64::new(0),
        total: AtomicU64::new(0),
    });
    let (begun, starts) = sync_channel(1);
    let own = Arc::clone(&stream);
    let body = move || {
        let alone = server.backing_up.try_lock_for(Duration::ZERO);
        // The command waits for the answer.
        let _: std::result::Result<(), _> = begun.send(alone.is_some());
        if alone.is_some() {
            copy(&server, &own, &sender, (codec, rate), facts);
        }
    };
    let spawned = stdx::sync::spawn("stream backup", body);
    spawned.map_err(|error| Error::new(Code::OPERATION_FAILED, error.to_string()))?;
    if !starts.recv().unwrap_or(false) {
        return Err(super::busy());
    }
    *call.server.backup_stream.lock() = Some(Arc::clone(&stream));
    reply.long("stream", stream.id);
    Ok(())
}

/// Copy the store, as the thread of a stream.
fn copy(
    server: &Server,
    stream: &Arc<Stream>,
    sender: &SyncSender<Result<Vec<u8>>>,
    (codec, rate): (Codec, Option<u64>),
    facts: Facts,
) {
    let throttle = rate.map(|rate| Throttle::new(rate, Box::new(Monotonic::default())));
    let staging = server.config.db_path.join(STAGING);
    // What a server that was killed has left.
    let _: std::io::Result<()> = std::fs::remove_dir_all(&staging);
    let mut send = |bytes: Vec<u8>| match pass(server, stream, sender, Ok(bytes)) {
        true => Ok(()),
        false => Err(kv::Error::new(
            kv::ErrorKind::Closed,
            "the stream has ended",
        )),
    };
    let mut watch = |progress: Progress| {
        stream.done.store(progress.done_bytes, Ordering::Relaxed);
        stream.total.store(progress.total_bytes, Ordering::Relaxed);
        match is_over(stream, server) {
            true => Flow::Cancel,
            false => Flow::Continue,
        }
    };
    let engine = server.store.engine();
    let streamed = backup::stream(
        engine,
        &staging,
        (codec, throttle),
        facts,
        &mut send,
        &mut watch,
    );
    let error = match streamed {
        Ok(Some(_)) => None,
        Ok(None) => Some(Error::new(Code::INTERRUPTED, "the backup was cancelled")),
        Err(error) => Some(super::failure(&error)),
    };
    if let Some(error) = error {
        pass(server, stream, sender, Err(error));
    }
    let mut current = server.backup_stream.lock();
    if is_over(stream, server) {
        current.take_if(|current| Arc::ptr_eq(current, stream));
    }
}

/// Wait until there is room for a message; false if the stream is over (Q1, Q2).
fn pass(
    server: &Server,
    stream: &Stream,
    sender: &SyncSender<Result<Vec<u8>>>,
    message: Result<Vec<u8>>,
) -> bool {
    let mut message = message;
    while !is_over(stream, server) {
        message = match sender.try_send(message) {
            Ok(()) => return true,
            Err(TrySendError::Disconnected(_)) => return false,
            Err(TrySendError::Full(message)) => message,
        };
        stdx::time::sleep(LOOK);
    }
    false
}

/// The next messages; returns whether they are the last ones.
fn next(stream: &Stream, reply: &mut Builder) -> Result<bool> {
    let messages = stream.messages.lock();
    let mut bytes = Vec::new();
    let mut complete = false;
    match messages.recv_timeout(WAIT) {
        Ok(message) => bytes = message?,
        Err(RecvTimeoutError::Timeout) => {}
        Err(RecvTimeoutError::Disconnected) => complete = true,
    }
    while !complete && !bytes.is_empty() && bytes.len() < REPLY {
        match messages.try_recv() {
            Ok(message) => bytes.extend(message?),
            Err(TryRecvError::Empty) => break,
            Err(TryRecvError::Disconnected) => complete = true,
        }
    }
    let binary = RawBinaryRef {
        subtype: BinarySubtype::Generic,
        bytes: &bytes,
    };
    reply.raw("bytes", RawBsonRef::Binary(binary));
    reply.boolean("complete", complete);
    reply.long("done", long(stream.done.load(Ordering::Relaxed)));
    reply.long("total", long(stream.total.load(Ordering::Relaxed)));
    Ok(complete)
}
