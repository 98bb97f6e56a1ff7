//! One connection: messages in, replies out, in order.
//!
//! - C1. One command of a connection is in work at a time. While it is, the socket is read a little
//!   ahead, so that a client that hangs up is noticed.
//! - C2. A client may be silent for as long as it likes, but what it began it goes on with: a
//!   message that stops in its middle and a reply that is not taken end the connection.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use query::{Code, Error};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};
use wire::message::Flags;
use wire::{Builder, Compressor, Decoder, Frame, Header, Message, OpCode, Parts, Query, compress};

use crate::commands::hello;
use crate::dispatch::{self, Answer, Refused, Request, row};
use crate::limits::{PACE, READ_AHEAD};
use crate::server::Server;
use crate::state::Client;

/// Replies that are never compressed: they carry secrets, and compression tells of what it
/// compresses by its length; or they come before compression is agreed on.
const PLAIN: &[&str] = &[
    "hello",
    "isMaster",
    "saslStart",
    "saslContinue",
    "getnonce",
    "authenticate",
    "createUser",
    "updateUser",
];

/// Whether the connection goes on.
enum Next {
    Go,
    End,
}

/// How long the end of a connection may take.
const GOODBYE: Duration = Duration::from_secs(1);

struct Connection<S> {
    server: Arc<Server>,
    client: Arc<Client>,
    stream: S,
    decoder: Decoder,
    ended: bool,
    sent: i32,
}

/// Serve a connection to its end.
pub(crate) async fn serve<S>(server: Arc<Server>, client: Arc<Client>, stream: S, begun: Vec<u8>)
where
    S: AsyncRead + AsyncWrite + Unpin,
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
    };
    // How a connection ended interests nobody but its client.
    while let Ok(Some(frame)) = connection.frame().await {
        match connection.exchange(frame).await {
            Ok(Next::Go) => {}
            Ok(Next::End) | Err(_) => break,
        }
    }
    // An encrypted connection says that it ends, so that nobody takes a cut for the end.
    let _: Result<io::Result<()>, _> = timeout(GOODBYE, connection.stream.shutdown()).await;
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// The next message; `None` when the client or the server ends the connection.
    async fn frame(&mut self) -> io::Result<Option<Frame>> {
        let stall = self.server.config.stall;
        let mut stopping = self.server.stopping();
        // When the last good piece of an unfinished message was there, and all held by then.
        let mut pace = (Instant::now(), self.decoder.held());
        loop {
            if let Some(frame) = self.decoder.frame().map_err(io::Error::other)? {
                return Ok(Some(frame));
            }
            if self.ended {
                return Ok(None);
            }
            if pace.1 == 0 || pace.1 + PACE <= self.decoder.held() {
                pace = (Instant::now(), self.decoder.held());
            }
            let begun = pace.1 > 0;
            let read = tokio::select! {
                read = self.stream.read_buf(self.decoder.room()) => read?,
                () = sleep_until(pace.0 + stall), if begun => return Ok(None),
                _ = stopping.wait_for(|stopping| *stopping) => return Ok(None),
            };
            self.ended = read == 0;
        }
    }

    /// Wait for something, reading ahead a little. `gone` is called when the client hangs up.
    async fn attend<T>(&mut self, work: impl Future<Output = T>, gone: impl Fn()) -> T {
        let mut work = pin!(work);
        while !self.ended && self.decoder.held() < READ_AHEAD {
            tokio::select! {
                biased;
                done = &mut work => return done,
                read = self.stream.read_buf(self.decoder.room()) => {
                    if !read.is_ok_and(|read| read > 0) {
                        self.ended = true;
                        gone();
                    }
                }
            }
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
        let (frame, compressor) = compress::expand(frame).map_err(io::Error::other)?;
        if let Some(work) = compressor.and_then(|c| metrics.compression.get(c.name())) {
            work.expanded.add(came, frame.bytes.len());
        }
        metrics.bytes_in.size(frame.bytes.len());
        let legacy = frame.header.op_code == OpCode::Query;
        let decoded = match frame.header.op_code {
            OpCode::Query => {
                Query::decode(frame).map(|query| (Some(query.namespace), query.message))
            }
            OpCode::Message => Message::decode(frame).map(|message| (None, message)),
            OpCode::Reply | OpCode::Compressed => return Ok(Next::End),
        };
        let (namespace, message) = match decoded {
            Ok(decoded) => decoded,
            Err(error) => return self.refuse_bytes(header, legacy, &error).await,
        };
        match namespace {
            Some(namespace) => self.legacy(&namespace, message).await,
            None => self.message(message, compressor).await,
        }
    }

    /// Bytes that are no message.
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

    /// The first greeting of many drivers.
    async fn legacy(&mut self, namespace: &str, message: Message) -> io::Result<Next> {
        let id = message.header.request_id;
        let name = message.body().iter_elements().next().and_then(Result::ok);
        let name = name
            .map(|element| element.key().as_str().to_owned())
            .unwrap_or_default();
        let greets = matches!(name.as_str(), "hello" | "isMaster" | "ismaster");
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

    /// A message of today.
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
            let request = match dispatch::prepare(&self.server, &self.client, current, None) {
                Ok(request) => request,
                Err(refused) => {
                    let reply = dispatch::refuse(&self.server, &refused);
                    if !silent {
                        self.send(respond_to, reply, 0, compressor).await?;
                    }
                    return Ok(Next::Go);
                }
            };
            let awaits = match self.await_change(&request, seen).await {
                Ok(awaits) => awaits,
                Err(error) => {
                    let reply = dispatch::refuse(&self.server, &Refused::from(error));
                    self.send(respond_to, reply, 0, compressor).await?;
                    return Ok(Next::Go);
                }
            };
            seen = Some(self.server.topology.counter());
            let compressor = compressor.filter(|_| !PLAIN.contains(&request.row.name));
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

    /// A greeting may ask to wait for a change. Whether it did.
    async fn await_change(&mut self, request: &Request, seen: Option<i64>) -> Result<bool, Error> {
        if request.row.name != "hello" && request.row.name != "isMaster" {
            return Ok(false);
        }
        let Some(awaited) = hello::awaited(request, seen)? else {
            return Ok(false);
        };
        let gone = Notify::new();
        let wait = async {
            tokio::select! {
                () = awaited.wait(request) => {}
                () = gone.notified() => {}
            }
        };
        request.server.metrics.awaiting.one();
        self.attend(wait, || gone.notify_one()).await;
        request.server.metrics.awaiting.add(-1);
        Ok(true)
    }

    async fn work(&mut self, request: Arc<Request>) -> Answer {
        if request.row.lane == row::Lane::Inline {
            return dispatch::run(request).await;
        }
        let abandon = request.row.has(row::ABANDON).then(|| Arc::clone(&request));
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

    /// Send a reply. Its number, which the next of a stream of replies answers.
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

    /// Write it all, as long as the client takes it.
    async fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let stall = self.server.config.stall;
        while !bytes.is_empty() {
            let written = timeout(stall, self.stream.write(bytes)).await??;
            bytes = match bytes.get(written..) {
                Some(rest) if 0 < written => rest,
                _ => return Err(io::ErrorKind::WriteZero.into()),
            };
        }
        timeout(stall, self.stream.flush()).await?
    }
}
