//! A minimal client: one socket and `OP_MSG`.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use bson::{Bson, Document, RawDocumentBuf, doc};
use server::{Config, Running};
use wire::message::Flags;
use wire::{Decoder, Frame, Message, OpCode, Parts};

/// Maximum duration of any step before a test fails. A correct server never reaches it, even on a
/// slow and busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// Check a condition repeatedly until it holds.
#[track_caller]
pub(crate) fn await_so(what: &str, mut so: impl FnMut() -> bool) {
    let begun = stdx::time::now();
    while !so() {
        assert!(begun.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::yield_now();
    }
}

/// A test server and its data directory.
pub(crate) struct Site {
    pub(crate) server: Running,
    folder: tempfile::TempDir,
}

/// A connection.
pub(crate) struct Client<S = TcpStream> {
    pub(crate) stream: S,
    decoder: Decoder,
    next: i32,
}

impl Site {
    /// A member of a replica set on a free port.
    pub(crate) fn new() -> Site {
        Site::with(|_| {})
    }

    /// A server with changed settings.
    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> Site {
        Site::try_with(change).unwrap()
    }

    /// A server with changed settings, or the reason why it does not start.
    pub(crate) fn try_with(change: impl FnOnce(&mut Config)) -> Result<Site, String> {
        Site::try_in(tempfile::tempdir().unwrap(), change)
    }

    /// A server on an existing data directory.
    pub(crate) fn try_in(
        folder: tempfile::TempDir,
        change: impl FnOnce(&mut Config),
    ) -> Result<Site, String> {
        Site::of(kv_betree::factory(), folder, change)
    }

    /// A server on a data directory of this engine.
    pub(crate) fn of(
        factory: &dyn kv::Factory,
        folder: tempfile::TempDir,
        change: impl FnOnce(&mut Config),
    ) -> Result<Site, String> {
        let opened = factory.open(folder.path(), &kv::EngineOptions::default());
        Site::over(Arc::from(opened.unwrap()), folder, change)
    }

    /// A server over an engine.
    pub(crate) fn over(
        engine: Arc<dyn kv::Engine>,
        folder: tempfile::TempDir,
        change: impl FnOnce(&mut Config),
    ) -> Result<Site, String> {
        let mut config = Config {
            db_path: folder.path().to_owned(),
            port: 0,
            quiet: true,
            parameters: vec![("enableTestCommands".to_owned(), "1".to_owned())],
            ..Config::default()
        };
        change(&mut config);
        let server = Running::start(config, engine).map_err(|error| error.message)?;
        Ok(Site { server, folder })
    }

    /// Shut the server down and return its data directory, in which the store is closed.
    pub(crate) fn stop(self) -> tempfile::TempDir {
        self.server.stop();
        // In this process the last server thread may release the store later.
        await_so("the store to be closed", || {
            vfs::DirLock::acquire(self.folder.path()).is_ok()
        });
        self.folder
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.addresses()[0]
    }

    pub(crate) fn client(&self) -> Client {
        Client::to(self.address())
    }
}

impl Client {
    pub(crate) fn to(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        // A missing reply fails the test instead of blocking it.
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client::over(stream)
    }
}

impl<S: Read + Write> Client<S> {
    pub(crate) fn over(stream: S) -> Client<S> {
        Client {
            stream,
            decoder: Decoder::new(),
            next: 0,
        }
    }

    /// Send a command on a database; returns the message's request id.
    pub(crate) fn send(&mut self, database: &str, command: Document, flags: u32) -> i32 {
        let bytes = self.encode(database, command, flags);
        self.stream.write_all(&bytes).unwrap();
        self.next
    }

    /// The next frame; `None` if the server closed the connection.
    pub(crate) fn frame(&mut self) -> Option<Frame> {
        match self.try_frame() {
            Ok(frame) => frame,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("no reply: {error}"),
        }
    }

    fn try_frame(&mut self) -> io::Result<Option<Frame>> {
        let mut chunk = [0; 4096];
        loop {
            if let Some(frame) = self.decoder.frame().unwrap() {
                return Ok(Some(frame));
            }
            match self.stream.read(&mut chunk)? {
                0 => return Ok(None),
                read => self.decoder.push(&chunk[..read]),
            }
        }
    }

    /// Run a command and return the body of the reply; `None` if the connection ends.
    pub(crate) fn try_run(&mut self, database: &str, command: Document) -> io::Result<Frame> {
        let bytes = self.encode(database, command, 0);
        self.stream.write_all(&bytes)?;
        self.try_frame()?
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Run a command given as bytes, which may contain a field twice; returns the body of the
    /// reply.
    pub(crate) fn run_bytes(&mut self, database: &str, mut command: RawDocumentBuf) -> Document {
        command.append(bson::raw::cstr!("$db"), database);
        let bytes = self.encode_bytes(&command, 0);
        self.stream.write_all(&bytes).unwrap();
        self.receive().expect("a reply").1
    }

    fn encode(&mut self, database: &str, mut command: Document, flags: u32) -> Vec<u8> {
        command.insert("$db", database);
        self.encode_bytes(&RawDocumentBuf::try_from(&command).unwrap(), flags)
    }

    fn encode_bytes(&mut self, body: &RawDocumentBuf, flags: u32) -> Vec<u8> {
        self.next += 1;
        let parts = Parts {
            request_id: self.next,
            response_to: 0,
            flags,
        };
        wire::encode(parts, body, &[])
    }

    /// The next reply message and its body.
    pub(crate) fn receive(&mut self) -> Option<(Message, Document)> {
        let (frame, _) = wire::compress::expand(self.frame()?).unwrap();
        assert_eq!(frame.header.op_code, OpCode::Message);
        let message = Message::decode(frame).unwrap();
        let body = Document::try_from(message.body()).unwrap();
        Some((message, body))
    }

    /// Run a command that may fail.
    pub(crate) fn run(&mut self, database: &str, command: Document) -> Document {
        let id = self.send(database, command, 0);
        let (message, body) = self.receive().expect("a reply");
        assert_eq!(message.header.response_to, id);
        assert!(!message.flags.has(Flags::MORE_TO_COME));
        body
    }

    /// Run a command that must succeed.
    pub(crate) fn ok(&mut self, database: &str, command: Document) -> Document {
        let reply = self.run(database, command.clone());
        assert_eq!(
            reply.get("ok"),
            Some(&Bson::Double(1.0)),
            "{command}: {reply}"
        );
        reply
    }

    /// Run a command that must fail; returns code and message.
    pub(crate) fn fails(&mut self, database: &str, command: Document) -> (i32, String) {
        let reply = self.run(database, command.clone());
        assert_eq!(
            reply.get("ok"),
            Some(&Bson::Double(0.0)),
            "{command}: {reply}"
        );
        let message = reply.get_str("errmsg").unwrap().to_owned();
        (reply.get_i32("code").unwrap(), message)
    }
}

/// The documents of the first batch of a cursor.
pub(crate) fn batch(reply: &Document) -> Vec<Document> {
    let cursor = reply.get_document("cursor").unwrap();
    let name = if cursor.contains_key("firstBatch") {
        "firstBatch"
    } else {
        "nextBatch"
    };
    let documents = cursor.get_array(name).unwrap();
    documents
        .iter()
        .map(|d| d.as_document().unwrap().clone())
        .collect()
}

/// Everything a `find` returns, in one batch.
pub(crate) fn all(client: &mut Client, collection: &str, filter: Document) -> Vec<Document> {
    batch(&client.ok("test", doc! {"find": collection, "filter": filter}))
}
