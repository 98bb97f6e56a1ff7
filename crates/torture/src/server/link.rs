//! A minimal client: one socket, one command at a time.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use bson::{Bson, Document, RawDocumentBuf, doc};
use socket2::SockRef;
use wire::{Decoder, Message, Parts};

/// Maximum time for a reply; after that the server counts as hanging.
const REPLY_MAX: Duration = Duration::from_secs(120);

/// The reason why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The connection ended: it is unknown whether the command was executed.
    Gone,
    /// The received bytes are not a reply.
    Nonsense(String),
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Lost::Gone => "the server went away while it was asked",
            Lost::Nonsense(what) => what,
        })
    }
}

/// A reply of the server, which may report an error.
pub(crate) type Reply = Result<Document, Lost>;

/// A connection.
pub(crate) struct Link {
    stream: TcpStream,
    decoder: Decoder,
    next: i32,
    /// Whether a server that does not reply in time counts as gone instead of as hanging.
    leaves: bool,
    /// Whether reads are sent to secondaries, too.
    secondary: bool,
    /// Whether a reply is still to come, or the connection ended: it cannot be used any more.
    dead: bool,
}

impl Link {
    /// Connect to a server on this machine.
    pub(crate) fn to(port: u16) -> Result<Link, Lost> {
        Link::open(port, REPLY_MAX, false)
    }

    /// As [`Link::to`], to a server that may be stopped or cut off: without a reply within
    /// `patience` it counts as gone.
    pub(crate) fn within(port: u16, patience: Duration) -> Result<Link, Lost> {
        Link::open(port, patience, true)
    }

    fn open(port: u16, patience: Duration, leaves: bool) -> Result<Link, Lost> {
        let gone = |_| Lost::Gone;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let stream = TcpStream::connect_timeout(&address, patience).map_err(gone)?;
        stream.set_read_timeout(Some(patience)).map_err(gone)?;
        stream.set_nodelay(true).map_err(gone)?;
        if leaves {
            // Clients that look for a primary connect hundreds of times a second: the system would
            // keep tens of thousands of closed connections.
            SockRef::from(&stream)
                .set_linger(Some(Duration::ZERO))
                .map_err(gone)?;
        }
        Ok(Link {
            stream,
            decoder: Decoder::new(),
            next: 0,
            leaves,
            secondary: false,
            dead: false,
        })
    }

    /// The same connection, whose commands may also be served by a secondary.
    pub(crate) fn on_secondaries(mut self) -> Link {
        self.secondary = true;
        self
    }

    /// Send a command to a database and wait for the reply.
    pub(crate) fn command(&mut self, database: &str, command: &Document) -> Reply {
        if self.dead {
            return Err(Lost::Gone);
        }
        self.dead = true;
        let reply = self.exchange(database, command)?;
        self.dead = false;
        Ok(reply)
    }

    /// Whether no command was lost.
    pub(crate) fn lives(&self) -> bool {
        !self.dead
    }

    fn exchange(&mut self, database: &str, command: &Document) -> Reply {
        let mut command = command.clone();
        command.insert("$db", database);
        if self.secondary {
            command.insert("$readPreference", doc! { "mode": "secondaryPreferred" });
        }
        let body = RawDocumentBuf::try_from(&command).map_err(|e| nonsense(&e))?;
        self.next = self.next.wrapping_add(1);
        let parts = Parts {
            request_id: self.next,
            response_to: 0,
            flags: 0,
        };
        let bytes = wire::encode(parts, &body, &[]);
        self.stream.write_all(&bytes).map_err(|_| Lost::Gone)?;
        self.reply()
    }

    fn reply(&mut self) -> Reply {
        let mut chunk = [0; 1 << 14];
        loop {
            if let Some(frame) = self.decoder.frame().map_err(|e| nonsense(&e))? {
                let (frame, _) = wire::compress::expand(frame).map_err(|e| nonsense(&e))?;
                let message = Message::decode(frame).map_err(|e| nonsense(&e))?;
                return Document::try_from(message.body()).map_err(|e| nonsense(&e));
            }
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(Lost::Gone),
                Ok(read) => self.decoder.push(chunk.get(..read).unwrap_or_default()),
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock && !self.leaves => {
                    let seconds = REPLY_MAX.as_secs();
                    return Err(Lost::Nonsense(format!("no reply after {seconds} s")));
                }
                Err(_) => return Err(Lost::Gone),
            }
        }
    }

    /// All documents that a `find` returns, batch by batch.
    pub(crate) fn all(&mut self, database: &str, find: &Document) -> Result<Vec<Document>, Lost> {
        let mut found = Vec::new();
        let mut reply = self.command(database, find)?;
        loop {
            let Ok(cursor) = reply.get_document("cursor") else {
                return Err(Lost::Nonsense(format!("{find} was answered {reply}")));
            };
            let batch = cursor
                .get_array("firstBatch")
                .or(cursor.get_array("nextBatch"));
            let batch = batch.map_err(|e| nonsense(&e))?;
            found.extend(batch.iter().filter_map(Bson::as_document).cloned());
            let id = cursor.get_i64("id").map_err(|e| nonsense(&e))?;
            if id == 0 {
                return Ok(found);
            }
            let collection = find.get_str("find").unwrap_or_default();
            let more = doc! { "getMore": id, "collection": collection, "batchSize": 1000 };
            reply = self.command(database, &more)?;
        }
    }
}

fn nonsense(error: &dyn std::fmt::Display) -> Lost {
    Lost::Nonsense(error.to_string())
}

/// Whether a reply reports success: `ok: 1` and no write error.
pub(crate) fn is_ok(reply: &Document) -> bool {
    let ok = matches!(reply.get("ok"), Some(Bson::Double(n)) if *n > 0.5)
        || matches!(reply.get("ok"), Some(Bson::Int32(1)));
    ok && !reply.contains_key("writeErrors") && !reply.contains_key("writeConcernError")
}

/// The error code of a reply.
pub(crate) fn code(reply: &Document) -> i32 {
    reply.get_i32("code").unwrap_or(0)
}

/// Whether the error of a reply has this label.
pub(crate) fn has_label(reply: &Document, label: &str) -> bool {
    let labels = reply.get_array("errorLabels").into_iter().flatten();
    labels.into_iter().any(|l| l.as_str() == Some(label))
}
