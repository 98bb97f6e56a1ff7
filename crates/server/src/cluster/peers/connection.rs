//! A connection to another member, as a client of it.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bson::{Document, RawDocument, RawDocumentBuf, doc};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use wire::{Decoder, Message, OpCode, Parts};

use crate::auth::prover::Prover;
use crate::auth::users::random;
use crate::auth::{EXTERNAL, SYSTEM, SYSTEM_DATABASE, X509};
use crate::cluster::key::Key;
use crate::cluster::rules::split_host;
use crate::tls::Tls;

use super::broken::Broken;

/// How this member connects to others.
#[derive(Clone)]
pub(crate) struct Dial {
    pub(crate) key: Option<Arc<Key>>,
    /// The encryption of the connections, if they are encrypted.
    pub(crate) tls: Option<Arc<Tls>>,
    /// Whether it authenticates by its certificate instead of the key.
    pub(crate) shows_certificate: bool,
}

/// A plain or an encrypted stream.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    decoder: Decoder,
    next: i32,
}

impl Connection {
    /// Connect to `host:port`, and authenticate if there is a key or certificates are for that.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn open(
        host: &str,
        dial: &Dial,
        limit: Duration,
    ) -> Result<Connection, Broken> {
        let opening = async {
            let stream = TcpStream::connect(host).await?;
            stream.set_nodelay(true)?;
            let stream: Box<dyn Stream> = match &dial.tls {
                None => Box::new(stream),
                Some(tls) => {
                    let name = split_host(host).map_or(host, |(name, _)| name);
                    let name = name.trim_start_matches('[').trim_end_matches(']');
                    let secured = tls.connect(name, stream).await;
                    Box::new(secured.map_err(|error| Broken::in_handshake(&error))?)
                }
            };
            let mut connection = Connection {
                stream,
                decoder: Decoder::new(),
                next: 0,
            };
            if dial.shows_certificate {
                let name = doc! {"authenticate": 1, "mechanism": X509};
                connection.command(EXTERNAL, name).await?;
            } else if let Some(key) = &dial.key {
                connection.authenticate(key).await?;
            }
            Ok(connection)
        };
        let opened = tokio::time::timeout(limit, opening).await;
        opened.unwrap_or_else(|_| Err(format!("no connection within {limit:?}").into()))
    }

    /// Wait until the other side closes a connection on which it owes no reply.
    pub(super) async fn closed(&mut self) -> Broken {
        self.decoder.room();
        match self.stream.read_buf(self.decoder.buffer()).await {
            Ok(0) => Broken::closed(),
            Ok(_) => "bytes that no request asked for".to_owned().into(),
            Err(error) => error.into(),
        }
    }

    async fn authenticate(&mut self, key: &Key) -> Result<(), Broken> {
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
            false => {
                let reason = "the other member does not know the key of this one";
                Err(reason.to_owned().into())
            }
        }
    }

    /// Run a command; the reply is without error.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn command(
        &mut self,
        database: &str,
        mut command: Document,
    ) -> Result<RawDocumentBuf, Broken> {
        command.insert("$db", database);
        let body = RawDocumentBuf::try_from(&command).map_err(|error| error.to_string())?;
        self.next = self.next.wrapping_add(1) & i32::MAX;
        let parts = Parts {
            request_id: self.next,
            response_to: 0,
            flags: 0,
        };
        let bytes = wire::encode(parts, &body, &[]);
        self.stream.write_all(&bytes).await?;
        // TLS may keep the end of a message otherwise.
        self.stream.flush().await?;
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
                Err(message.to_owned().into())
            }
        }
    }

    async fn receive(&mut self) -> Result<RawDocumentBuf, Broken> {
        loop {
            let frame = self.decoder.frame().map_err(|error| error.to_string())?;
            if let Some(frame) = frame {
                if frame.header.op_code != OpCode::Message || frame.header.response_to != self.next
                {
                    return Err("a reply to another request".to_owned().into());
                }
                let message = Message::decode(frame).map_err(|error| error.to_string())?;
                return Ok(RawDocument::to_owned(message.body()));
            }
            self.decoder.room();
            if self.stream.read_buf(self.decoder.buffer()).await? == 0 {
                return Err(Broken::closed());
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
