//! One connection: messages in, replies out, in order.
//!
//! - C1. One command of a connection is in work at a time. While it is, the socket is read a little
//!   ahead, so that a client that hangs up is noticed. A brief command ends sooner than that.
//! - C2. A client may be silent for as long as it likes, but it must finish what it began: a
//!   message that stops in its middle and a reply that is not read end the connection.
//! - C3. Where authentication is required, a connection is a guest until it has authenticated: its
//!   messages are small, it may not send ahead, and all guests share one budget of memory.
//! - C4. A greeting that waits for a change holds nothing but its own bytes.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use query::{Code, Error};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use wire::message::Flags;
use wire::{
    Builder, Compressor, Decoder, Frame, Header, Limits, Message, OpCode, Parts, Query, compress,
};

use super::socket::Socket;
use crate::command::{ABANDON, GREETS, Lane, PLAIN, PROVES};
use crate::commands::hello::{self, Awaited};
use crate::dispatch::{self, Answer, Refused};
use crate::limits::{GUEST_AHEAD, GUEST_DOCUMENTS, GUEST_MESSAGE, GUEST_UNSENT, PACE, READ_AHEAD};
use crate::request::{Request, is_secret};
use crate::server::Server;
use crate::state::Client;
use crate::state::guests::Guest;

/// Whether the connection stays open.
enum Next {
    Go,
    End,
}

/// Maximum time to close a connection.
const GOODBYE: Duration = Duration::from_secs(1);

struct Connection<S> {
    server: Arc<Server>,
    client: Arc<Client>,
    stream: S,
    decoder: Decoder,
    ended: bool,
    sent: i32,
    /// Its place among the guests, until it has authenticated (C3).
    guest: Option<Guest>,
    /// Whether the connection must close without answering messages already sent.
    dismissed: bool,
}

/// Serve a connection to its end.
pub(crate) async fn serve<S>(server: Arc<Server>, client: Arc<Client>, stream: S, begun: Vec<u8>)
where
    S: Socket,
{
    let inner = Arc::clone(&server);
    let _listed = inner.clients.begin(&client);
    let mut decoder = Decoder::new();
    decoder.push(&begun);
    let mut connection = Connection {
        server,
        client,
        stream,
        decoder,
        ended: false,
        sent: 0,
        guest: None,
        dismissed: false,
    };
    // The reason why a connection ended matters only to its client.
    while let Ok(Some(frame)) = connection.frame().await {
        match connection.exchange(frame).await {
            Ok(Next::Go) => {}
            Ok(Next::End) | Err(_) => break,
        }
    }
    // TLS sends close_notify, so that the client can tell the end from a truncation.
    let _: Result<io::Result<()>, _> = timeout(GOODBYE, connection.stream.shutdown()).await;
}

/// The result of a call that polls, if it is ready.
async fn at_once<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
    poll_fn(|cx| {
        Poll::Ready(match poll(cx) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        })
    })
    .await
}

/// Wait until a guest must close; pending for ever for a client that is no guest.
pub(super) async fn dismissed(guest: Option<&Guest>) {
    match guest {
        Some(guest) => guest.ended().await,
        None => std::future::pending().await,
    }
}

impl<S: Socket> Connection<S> {
    /// Admit the connection as a guest, or free its place once the client has authenticated.
    fn settle(&mut self) {
        let is_guest = self.server.config.authorization && !self.client.is_authenticated();
        match (is_guest, &self.guest) {
            (true, None) => {
                self.guest = Some(self.server.guests.admit(&self.client));
                self.stream.limit_unsent(GUEST_UNSENT);
            }
            (false, Some(_)) => {
                self.guest = None;
                self.stream.limit_unsent(0);
            }
            _ => {}
        }
    }

    /// The limits of its messages at this moment.
    fn limits(&self) -> Limits<'_> {
        let compressors = &self.server.config.compressors;
        match self.guest {
            Some(_) => Limits {
                message: GUEST_MESSAGE,
                documents: GUEST_DOCUMENTS,
                compressors,
            },
            None => Limits {
                compressors,
                ..Limits::PROTOCOL
            },
        }
    }

    /// Charge a guest for the memory it holds: the buffer, and `more` bytes.
    ///
    /// # Errors
    /// That guests hold too much memory together; then the connection ends.
    fn hold(&mut self, more: usize) -> io::Result<()> {
        let bytes = self.decoder.capacity().saturating_add(more);
        let held = self.guest.as_mut().is_none_or(|guest| guest.hold(bytes));
        match held {
            true => Ok(()),
            false => Err(io::ErrorKind::OutOfMemory.into()),
        }
    }

    /// Make room in the buffer for the next read.
    fn make_room(&mut self) {
        match self.guest {
            Some(_) => self.decoder.room_ahead(GUEST_AHEAD),
            None => self.decoder.room(),
        };
    }

    /// The next message; `None` when the client or the server ends the connection.
    async fn frame(&mut self) -> io::Result<Option<Frame>> {
        if self.dismissed {
            return Ok(None);
        }
        self.settle();
        let longest = self.limits().message;
        let stall = self.server.config.stall;
        let mut stopping = self.server.stopping();
        // When the last piece of [`PACE`] bytes of an unfinished message arrived, and the bytes
        // held by then.
        let mut pace = (Instant::now(), self.decoder.held());
        loop {
            let frame = self.decoder.frame_within(longest);
            if let Some(frame) = frame.map_err(io::Error::other)? {
                return Ok(Some(frame));
            }
            if self.ended {
                return Ok(None);
            }
            if pace.1 == 0 || pace.1 + PACE <= self.decoder.held() {
                pace = (Instant::now(), self.decoder.held());
            }
            let begun = pace.1 > 0;
            self.make_room();
            self.hold(0)?;
            let read = tokio::select! {
                read = self.stream.read_buf(self.decoder.buffer()) => read?,
                () = sleep_until(pace.0 + stall), if begun => return Ok(None),
                () = dismissed(self.guest.as_ref()) => return Ok(None),
                _ = stopping.wait_for(|stopping| *stopping) => return Ok(None),
            };
            self.ended = read == 0;
        }
    }

    /// Wait for `work` and read ahead a little meanwhile. `gone` is called when the client hangs
    /// up.
    async fn attend<T>(&mut self, work: impl Future<Output = T>, gone: impl Fn()) -> T {
        let mut work = pin!(work);
        let ahead = match self.guest {
            Some(_) => GUEST_AHEAD,
            None => READ_AHEAD,
        };
        while !self.ended && self.decoder.held() < ahead {
            self.make_room();
            tokio::select! {
                biased;
                done = &mut work => return done,
                read = self.stream.read_buf(self.decoder.buffer()) => {
                    if !read.is_ok_and(|read| read > 0) {
                        self.ended = true;
                        gone();
                    }
                }
                () = dismissed(self.guest.as_ref()) => {
                    (self.ended, self.dismissed) = (true, true);
                    gone();
                }
            }
        }
        // Bytes that a guest sends ahead would fill megabytes of buffers in the kernel.
        if self.guest.is_some() && !self.ended {
            (self.ended, self.dismissed) = (true, true);
            gone();
        }
        work.await
    }

    /// Answer one message.
    async fn exchange(&mut self, frame: Frame) -> io::Result<Next> {
        let header = frame.header;
        let metrics = &self.server.metrics;
        metrics.requests.one();
        let came = frame.bytes.len();
        metrics.physical_in.size(came);
        // The message as it arrived, the expanded message, and a reply of the same size.
        let claimed = compress::claimed(&frame);
        let held = frame.bytes.capacity().saturating_add(claimed);
        self.hold(held.saturating_add(came.max(claimed)))?;
        let limits = self.limits();
        let documents = limits.documents;
        let expanded = compress::expand_within(frame, &limits);
        let (frame, compressor) = expanded.map_err(io::Error::other)?;
        let metrics = &self.server.metrics;
        if let Some(work) = compressor.and_then(|c| metrics.compression.get(c.name())) {
            work.expanded.add(came, frame.bytes.len());
        }
        metrics.bytes_in.size(frame.bytes.len());
        let legacy = frame.header.op_code == OpCode::Query;
        let decoded = match frame.header.op_code {
            OpCode::Query => {
                Query::decode(frame).map(|query| (Some(query.namespace), query.message))
            }
            OpCode::Message => {
                Message::decode_within(frame, documents).map(|message| (None, message))
            }
            OpCode::Reply | OpCode::Compressed => return Ok(Next::End),
        };
        let (namespace, mut message) = match decoded {
            Ok(decoded) => decoded,
            Err(error) => return self.refuse_bytes(header, legacy, &error).await,
        };
        if is_secret(&self.server.commands, message.body()) {
            message.set_secret();
        }
        match namespace {
            Some(namespace) => self.legacy(&namespace, message).await,
            None => self.message(message, compressor).await,
        }
    }

    /// Answer bytes that are not a valid message; close the connection if the next message cannot
    /// be found.
    async fn refuse_bytes(
        &mut self,
        header: Header,
        legacy: bool,
        error: &wire::Error,
    ) -> io::Result<Next> {
        if error.answers() {
            let refused = Refused::from(Error::new(Code(error.code()), error.to_string()));
            let reply = dispatch::refuse(&self.server, &refused);
            match legacy {
                true => self.send_legacy(header.request_id, reply).await?,
                false => {
                    self.send(header.request_id, reply, 0, None).await?;
                }
            }
        }
        Ok(if error.closes() { Next::End } else { Next::Go })
    }

    /// Answer an `OP_QUERY`: the first greeting of many drivers.
    async fn legacy(&mut self, namespace: &str, message: Message) -> io::Result<Next> {
        let id = message.header.request_id;
        let name = message.body().iter_elements().next().and_then(Result::ok);
        let name = name
            .map(|element| element.key().as_str().to_owned())
            .unwrap_or_default();
        let command = self.server.commands.find(&name);
        let greets = command.is_some_and(|command| command.has(GREETS));
        let database = namespace.strip_suffix(".$cmd").filter(|_| greets);
        let prepared = match database {
            Some(database) => {
                dispatch::prepare(&self.server, &self.client, message, Some(database))
            }
            None => Err(Refused::from(Error::new(
                Code::UNSUPPORTED_OP_QUERY_COMMAND,
                format!(
                    "Unsupported OP_QUERY command: {name}. The client driver may require an \
                     upgrade. For more details see \
                     https://dochub.mongodb.org/core/legacy-opcode-removal"
                ),
            ))),
        };
        let reply = match prepared {
            Ok(request) => match self.work(request).await {
                Answer::Reply(reply) => reply,
                Answer::Close => return Ok(Next::End),
            },
            Err(refused) => dispatch::refuse(&self.server, &refused),
        };
        self.send_legacy(id, reply).await?;
        Ok(Next::Go)
    }

    /// Answer an `OP_MSG`, with a stream of replies if the client accepts one.
    async fn message(
        &mut self,
        message: Message,
        compressor: Option<Compressor>,
    ) -> io::Result<Next> {
        let silent = message.flags.has(Flags::MORE_TO_COME);
        let exhaust = message.flags.has(Flags::EXHAUST_ALLOWED);
        let mut respond_to = message.header.request_id;
        let mut again = exhaust.then(|| message.clone());
        let mut seen = None;
        let mut message = Some(message);
        while let Some(current) = message.take() {
            let (request, awaits) = match self.ready(current, seen).await {
                Ok(ready) => ready,
                Err(refused) => {
                    let reply = dispatch::refuse(&self.server, &refused);
                    if !silent {
                        self.send(respond_to, reply, 0, compressor).await?;
                    }
                    return Ok(Next::Go);
                }
            };
            seen = Some(self.server.topology.counter());
            self.slow_down(&request).await;
            let compressor = compressor.filter(|_| !request.command.has(PLAIN));
            let Answer::Reply(reply) = self.work(Arc::clone(&request)).await else {
                return Ok(Next::End);
            };
            if silent {
                return Ok(Next::Go);
            }
            let more = exhaust && !self.ended && (awaits || request.has_more());
            let flags = if more { Flags::MORE_TO_COME } else { 0 };
            respond_to = self.send(respond_to, reply, flags, compressor).await?;
            if more {
                let stopping = *self.server.stopping().borrow();
                message = if stopping {
                    again.take()
                } else {
                    again.clone()
                };
            }
        }
        Ok(Next::Go)
    }

    /// Make a request of a message, and wait first if it is a greeting that awaits a change.
    /// Returns whether it waited.
    async fn ready(
        &mut self,
        message: Message,
        seen: Option<i64>,
    ) -> Result<(Arc<Request>, bool), Refused> {
        let request = dispatch::prepare(&self.server, &self.client, message, None)?;
        let awaited = match request.command.has(GREETS) {
            true => hello::awaited(&request, seen)?,
            false => None,
        };
        let Some(awaited) = awaited else {
            return Ok((request, false));
        };
        // A copy of exactly the message's size: the receive buffer may be larger (C4).
        let message = request.message().clone();
        drop(request);
        // This is less than before, so the budget allows it.
        let _: io::Result<()> = self.hold(message.size());
        self.await_change(awaited).await;
        let request = dispatch::prepare(&self.server, &self.client, message, None)?;
        Ok((request, true))
    }

    async fn await_change(&mut self, awaited: Awaited) {
        // The client has disconnected: do not wait.
        if self.ended {
            return;
        }
        let server = Arc::clone(&self.server);
        let gone = Notify::new();
        let wait = async {
            tokio::select! {
                () = awaited.wait(&server) => {}
                () = gone.notified() => {}
            }
        };
        server.metrics.awaiting.one();
        self.attend(wait, || gone.notify_one()).await;
        server.metrics.awaiting.add(-1);
    }

    /// Delay an attempt to log in after failed ones from the same address.
    async fn slow_down(&mut self, request: &Request) {
        if !request.command.has(PROVES) {
            return;
        }
        let server = Arc::clone(&self.server);
        let delay = server.logins.delay(self.client.source(), stdx::time::now());
        if delay.is_zero() {
            return;
        }
        server.logins.delayed.one();
        let gone = Notify::new();
        let wait = async {
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = gone.notified() => {}
            }
        };
        self.attend(wait, || gone.notify_one()).await;
    }

    async fn work(&mut self, request: Arc<Request>) -> Answer {
        if request.command.lane == Lane::Inline {
            return dispatch::run(request).await;
        }
        let abandon = request.command.has(ABANDON).then(|| Arc::clone(&request));
        let gone = || {
            if let Some(request) = &abandon {
                request.kill();
            }
        };
        self.attend(dispatch::run(request), gone).await
    }

    fn number(&mut self) -> i32 {
        self.sent = self.sent.wrapping_add(1) & i32::MAX;
        self.sent
    }

    /// Send a reply. Returns its request id, which the next reply of a stream responds to.
    async fn send(
        &mut self,
        response_to: i32,
        reply: Builder,
        flags: u32,
        compressor: Option<Compressor>,
    ) -> io::Result<i32> {
        let request_id = self.number();
        let mut bytes = reply.finish(Parts {
            request_id,
            response_to,
            flags,
        });
        let metrics = &self.server.metrics;
        metrics.bytes_out.size(bytes.len());
        if let Some(compressor) = compressor {
            let before = bytes.len();
            bytes = compress::compress(&bytes, compressor).map_err(io::Error::other)?;
            if let Some(work) = metrics.compression.get(compressor.name()) {
                work.compressed.add(before, bytes.len());
            }
        }
        metrics.physical_out.size(bytes.len());
        self.write(&bytes).await?;
        Ok(request_id)
    }

    async fn send_legacy(&mut self, response_to: i32, reply: Builder) -> io::Result<()> {
        let id = self.number();
        let bytes = wire::query::reply(id, response_to, &reply.into_document());
        self.server.metrics.bytes_out.size(bytes.len());
        self.server.metrics.physical_out.size(bytes.len());
        self.write(&bytes).await
    }

    /// Write all bytes, as long as the client reads them. A guest must read all of them within the
    /// time in which other clients must read some.
    async fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        // What does not wait needs no limit of time, so no clock is read and no timer made.
        let stream = &mut self.stream;
        let written = at_once(|cx| Pin::new(&mut *stream).poll_write(cx, bytes)).await;
        if let Some(written) = written.transpose()?.filter(|written| 0 < *written) {
            bytes = bytes.get(written..).unwrap_or_default();
        }
        if bytes.is_empty()
            && let Some(flushed) = at_once(|cx| Pin::new(&mut *stream).poll_flush(cx)).await
        {
            return flushed;
        }
        let stall = self.server.config.stall;
        let begun = Instant::now();
        while !bytes.is_empty() {
            let since = match self.guest {
                Some(_) => begun,
                None => Instant::now(),
            };
            let written = timeout_at(since + stall, self.stream.write(bytes)).await??;
            bytes = match bytes.get(written..) {
                Some(rest) if 0 < written => rest,
                _ => return Err(io::ErrorKind::WriteZero.into()),
            };
        }
        timeout(stall, self.stream.flush()).await?
    }
}
