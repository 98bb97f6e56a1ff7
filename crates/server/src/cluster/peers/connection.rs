//! A connection to another member, as a client of it.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bson::{Document, RawDocument, RawDocumentBuf, doc};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use wire::{Decoder, Message, OpCode, Parts};

use crate::auth::prover::Prover;
use crate::auth::users::random;
use crate::cluster::key::Key;

/// The user that members are to each other.
pub(crate) const SYSTEM: &str = "__system";

/// Its database.
pub(crate) const SYSTEM_DATABASE: &str = "local";

/// A connection.
pub(super) struct Connection {
    stream: TcpStream,
    decoder: Decoder,
    next: i32,
}

impl Connection {
    /// Connect to `host:port`, and authenticate if there is a key.
    ///
    /// # Errors
    /// The reason in words.
    pub(super) async fn open(
        host: &str,
        key: Option<&Key>,
        limit: Duration,
    ) -> Result<Connection, String> {
        let opening = async {
            let stream = TcpStream::connect(host).await.map_err(|e| e.to_string())?;
            stream.set_nodelay(true).map_err(|e| e.to_string())?;
            let mut connection = Connection {
                stream,
                decoder: Decoder::new(),
                next: 0,
            };
            if let Some(key) = key {
                connection.authenticate(key).await?;
            }
            Ok(connection)
        };
        let opened = tokio::time::timeout(limit, opening).await;
        opened.unwrap_or_else(|_| Err(format!("no connection within {limit:?}")))
    }

    async fn authenticate(&mut self, key: &Key) -> Result<(), String> {
        let nonce = random(24).map_err(|error| error.message)?;
        let prover = Prover::new(SYSTEM, BASE64.encode(nonce));
        let binary = |text: &str| bson::Binary {
            subtype: bson::spec::BinarySubtype::Generic,
            bytes: text.as_bytes().to_vec(),
        };
        let start = doc! {
            "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": binary(&prover.first()),
            "options": {"skipEmptyExchange": true},
        };
        let challenge = payload(&self.command(SYSTEM_DATABASE, start).await?)?;
        let key = key.clone();
        // The digest of the key takes some milliseconds.
        let proof =
            tokio::task::spawn_blocking(move || prover.prove(key.text().as_bytes(), &challenge));
        let proof = proof.await.map_err(|error| error.to_string())?;
        let proof = proof.map_err(|error| error.message)?;
        let proceed = doc! {
            "saslContinue": 1, "conversationId": 1, "payload": binary(&proof.message),
        };
        let last = payload(&self.command(SYSTEM_DATABASE, proceed).await?)?;
        match proof.accepts(&last) {
            true => Ok(()),
            false => Err("the other member does not know the key of this one".to_owned()),
        }
    }

    /// Run a command; the reply is without error.
    ///
    /// # Errors
    /// The reason in words.
    pub(super) async fn command(
        &mut self,
        database: &str,
        mut command: Document,
    ) -> Result<RawDocumentBuf, String> {
        command.insert("$db", database);
        let body = RawDocumentBuf::try_from(&command).map_err(|error| error.to_string())?;
        self.next = self.next.wrapping_add(1) & i32::MAX;
        let parts = Parts {
            request_id: self.next,
            response_to: 0,
            flags: 0,
        };
        let bytes = wire::encode(parts, &body, &[]);
        let sent = self.stream.write_all(&bytes).await;
        sent.map_err(|error| error.to_string())?;
        let reply = self.receive().await?;
        let ok = reply
            .get("ok")
            .ok()
            .flatten()
            .and_then(crate::arguments::integer);
        match ok == Some(1) {
            true => Ok(reply),
            false => {
                let message = reply
                    .get_str("errmsg")
                    .unwrap_or("an error without a message");
                Err(message.to_owned())
            }
        }
    }

    async fn receive(&mut self) -> Result<RawDocumentBuf, String> {
        loop {
            let frame = self.decoder.frame().map_err(|error| error.to_string())?;
            if let Some(frame) = frame {
                if frame.header.op_code != OpCode::Message || frame.header.response_to != self.next
                {
                    return Err("a reply to another request".to_owned());
                }
                let message = Message::decode(frame).map_err(|error| error.to_string())?;
                return Ok(RawDocument::to_owned(message.body()));
            }
            self.decoder.room();
            let read = self.stream.read_buf(self.decoder.buffer()).await;
            if read.map_err(|error| error.to_string())? == 0 {
                return Err("the connection was closed".to_owned());
            }
        }
    }
}

fn payload(reply: &RawDocument) -> Result<String, String> {
    let found = reply.get_binary("payload").ok();
    let text = found.and_then(|binary| std::str::from_utf8(binary.bytes).ok());
    text.map(str::to_owned)
        .ok_or_else(|| "a reply without a payload".to_owned())
}
