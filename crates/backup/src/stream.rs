//! A backup as a stream of messages, from a server to the program that receives it.
//!
//! ```text
//! 0      1        5
//! +------+--------+-------------+
//! | kind | length | payload ... |     u8, u32 little-endian
//! +------+--------+-------------+
//! ```
//!
//! | kind | payload |
//! |---|---|
//! | 1 | a file begins: its path below the directory of the store |
//! | 2 | stored bytes of the file |
//! | 3 | the file is complete: empty |
//! | 4 | the manifest, the last message |
//!
//! - Z1. A stream that ends before its manifest leaves nothing: a backup has a manifest (B1).
//! - Z2. A message takes no more memory than the longest one that is sent, whatever its header
//!   says; a file is created below the directory of the backup only.

use std::path::{Path, PathBuf};

use kv::{Engine, Error, ErrorKind, Flow, Progress, Result};

use crate::codec::Codec;
use crate::directory::DirectoryTarget;
use crate::manifest::{self, FILES_MAX, Manifest};
use crate::name;
use crate::take::{Facts, into};
use crate::target::Target;
use crate::throttle::Throttle;

const BEGIN: u8 = 1;
const DATA: u8 = 2;
const END: u8 = 3;
const MANIFEST: u8 = 4;

/// Bytes before the payload.
const HEADER: usize = 5;

/// Bytes of the payload of a message, but of a manifest.
const PAYLOAD: usize = 1 << 20;

/// Take a backup of an open store, and pass it to `send` as a stream. `staging` is as for
/// [`Engine::backup_to`]; the rest as for [`crate::take()`].
///
/// # Errors
/// Those of `send`, and of [`crate::take()`].
pub fn stream(
    engine: &dyn Engine,
    staging: &Path,
    (codec, throttle): (Codec, Option<Throttle>),
    facts: Facts,
    send: &mut dyn FnMut(Vec<u8>) -> Result<()>,
    watch: &mut dyn FnMut(Progress) -> Flow,
) -> Result<Option<Manifest>> {
    if !engine.capabilities().backup {
        return Err(Error::unsupported(engine.name(), "backup"));
    }
    let staging = staging.to_owned();
    let mut target = StreamTarget { staging, send };
    into(engine, &mut target, (codec, throttle, None), facts, watch)
}

struct StreamTarget<'a> {
    staging: PathBuf,
    send: &'a mut dyn FnMut(Vec<u8>) -> Result<()>,
}

impl StreamTarget<'_> {
    fn message(&mut self, kind: u8, payload: &[u8]) -> Result<()> {
        let length = u32::try_from(payload.len()).expect("a manifest is shorter");
        (self.send)([&[kind][..], &length.to_le_bytes(), payload].concat())
    }
}

impl Target for StreamTarget<'_> {
    fn staging(&self) -> PathBuf {
        self.staging.clone()
    }

    fn begin(&mut self, name: &str, _size: Option<u64>) -> Result<()> {
        self.message(BEGIN, name.as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let mut parts = bytes.chunks(PAYLOAD);
        parts.try_for_each(|part| self.message(DATA, part))
    }

    fn end(&mut self) -> Result<()> {
        self.message(END, &[])
    }

    fn seal(&mut self, manifest: &[u8]) -> Result<()> {
        self.message(MANIFEST, manifest)
    }

    fn discard(&mut self) {}
}

/// Receives a stream into a directory, which becomes a backup. If it is dropped before the
/// manifest has arrived, what was written is removed (Z1).
pub struct Received {
    target: DirectoryTarget,
    /// Bytes of messages that are not complete.
    left: Vec<u8>,
    /// Whether a file was begun.
    open: bool,
    files: usize,
    complete: bool,
}

impl Received {
    /// Create the directory.
    ///
    /// # Errors
    /// `Exists` for a directory that is not empty; `Io`.
    pub fn create(directory: &Path) -> Result<Received> {
        Ok(Received {
            target: DirectoryTarget::create(directory)?,
            left: Vec::new(),
            open: false,
            files: 0,
            complete: false,
        })
    }

    /// Take the next bytes of the stream, which may end anywhere. Returns whether the backup is
    /// complete.
    ///
    /// # Errors
    /// `Corrupt` for bytes that are no stream; `Exists`, `Full`, `Io`. The backup is of no use
    /// then.
    pub fn take(&mut self, bytes: &[u8]) -> Result<bool> {
        self.left.extend_from_slice(bytes);
        let left = std::mem::take(&mut self.left);
        let mut rest = left.as_slice();
        while let Some((kind, payload, later)) = next(rest)? {
            self.message(kind, payload)?;
            rest = later;
        }
        self.left = rest.to_vec();
        Ok(self.complete)
    }

    fn message(&mut self, kind: u8, payload: &[u8]) -> Result<()> {
        let wrong = |what: &str| Err(Error::corrupt(format!("the stream is damaged: {what}")));
        if self.complete {
            return wrong("it continues after its manifest");
        }
        match (kind, self.open) {
            (BEGIN, false) => {
                let Ok(path) = std::str::from_utf8(payload) else {
                    return wrong("the name of a file is not UTF-8");
                };
                if let Err(what) = name::check(path) {
                    return wrong(what);
                }
                self.files += 1;
                if FILES_MAX < self.files {
                    return wrong("it has too many files");
                }
                self.open = true;
                self.target.begin(path, None)
            }
            (DATA, true) => self.target.write(payload),
            (END, true) if payload.is_empty() => {
                self.open = false;
                self.target.end()
            }
            (MANIFEST, false) => {
                Manifest::decode(payload)?;
                self.target.seal(payload)?;
                self.complete = true;
                Ok(())
            }
            _ => wrong("its messages are not in order"),
        }
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        if !self.complete {
            self.target.discard();
        }
    }
}

/// A message: its kind, its payload, and what follows it.
type Parts<'b> = (u8, &'b [u8], &'b [u8]);

/// The first message of these bytes; `None` if it is not complete.
fn next(bytes: &[u8]) -> Result<Option<Parts<'_>>> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else {
        return Ok(None);
    };
    let [kind, length @ ..] = *header;
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    let most = match kind {
        MANIFEST => usize::try_from(manifest::BYTES_MAX).unwrap_or(usize::MAX),
        _ => PAYLOAD,
    };
    if most < length {
        // Z2.
        let message = "the stream is damaged: a message is too long";
        return Err(Error::new(ErrorKind::Corrupt, message));
    }
    let parts = rest.split_at_checked(length);
    Ok(parts.map(|(payload, later)| (kind, payload, later)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use kv::{Durability, EngineOptions, Factory, TreeOptions};

    use super::*;
    use crate::source::Source;
    use crate::verify::verify;

    fn engine(factory: &dyn Factory, directory: &Path) -> Box<dyn Engine> {
        let engine = factory.open(directory, &EngineOptions::default()).unwrap();
        let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
        let mut txn = engine.begin_write().unwrap();
        for key in 0..2_000_u32 {
            txn.put(tree, &key.to_be_bytes(), &[7; 500]).unwrap();
        }
        txn.commit(Durability::Sync).unwrap();
        engine
    }

    /// A stream of a store, in one piece.
    fn bytes(factory: &dyn Factory, codec: Codec) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let engine = engine(factory, &folder.path().join("db"));
        let mut all = Vec::new();
        let sent = stream(
            &*engine,
            &folder.path().join("staging"),
            (codec, None),
            Facts::default(),
            &mut |bytes| {
                all.extend(bytes);
                Ok(())
            },
            &mut |_| Flow::Continue,
        );
        sent.unwrap().expect("nothing cancels it");
        all
    }

    fn factories() -> [&'static dyn Factory; 2] {
        [kv_betree::factory(), kv_lmdb::factory()]
    }

    #[test]
    fn a_stream_becomes_a_backup() {
        for factory in factories() {
            for codec in [Codec::None, Codec::Zstd] {
                let all = bytes(factory, codec);
                let folder = tempfile::tempdir().unwrap();
                let place = folder.path().join("copy");
                let mut received = Received::create(&place).unwrap();
                let mut parts = all.chunks(70_001).peekable();
                while let Some(part) = parts.next() {
                    let complete = received.take(part).unwrap();
                    assert_eq!(complete, parts.peek().is_none(), "Z1");
                }
                drop(received);
                let source = Source::open(&place).unwrap();
                let report = verify(&source, &mut |_| Flow::Continue).unwrap().unwrap();
                assert_eq!(report.findings, []);
                assert_eq!(report.manifest.codec, codec);
                assert_eq!(report.manifest.engine, factory.name());
            }
        }
    }

    /// Z1, Z2.
    #[test]
    fn what_is_no_stream_leaves_nothing() {
        let all = bytes(kv_betree::factory(), Codec::Lz4);
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("copy");
        let message = |kind: u8, payload: &[u8]| {
            let length = u32::try_from(payload.len()).unwrap();
            [&[kind][..], &length.to_le_bytes(), payload].concat()
        };
        let wrong = [
            message(DATA, b"x"),
            message(END, b""),
            message(9, b""),
            message(BEGIN, b"../outside"),
            message(BEGIN, b"\xff"),
            message(BEGIN, &[b'a'; 600]),
            message(MANIFEST, b"none"),
            [&[DATA][..], &[0xff; 4]].concat(),
            [message(BEGIN, b"a"), message(BEGIN, b"b")].concat(),
            [message(BEGIN, b"a"), message(END, b"x")].concat(),
            [&all[..], &message(BEGIN, b"a")].concat(),
        ];
        for stream in wrong.iter().take(10) {
            let mut received = Received::create(&place).unwrap();
            assert!(received.take(stream).is_err(), "{stream:?}");
            drop(received);
            assert!(!place.exists());
        }
        for end in [0, 1, 100, all.len() / 2, all.len() - 1] {
            let mut received = Received::create(&place).unwrap();
            assert!(!received.take(&all[..end]).unwrap());
            drop(received);
            assert!(!place.exists(), "{end}");
        }
        let mut received = Received::create(&place).unwrap();
        assert!(received.take(&wrong[10]).is_err());
        fs::remove_dir_all(&place).unwrap();
    }
}
