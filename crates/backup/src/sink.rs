//! What an engine passes its files to: throttle, digest, codec, target. Pieces that the base of an
//! increment has are left out.

use kv::identity::{self, Identity};
use kv::{BackupSink, Error, ErrorKind, Flow, PieceId, Progress, Result};

use crate::codec::{Codec, Encoder};
use crate::increment::Known;
use crate::manifest::{FILES_MAX, FileEntry};
use crate::name;
use crate::pieces::{PIECES_MAX, Piece, Pieces};
use crate::target::Target;
use crate::throttle::Throttle;

/// Bytes of an identity file that are kept: it has some hundred.
const IDENTITY_MAX: usize = 64 << 10;

/// Receives the files of a backup.
pub(crate) struct Sink<'a> {
    pub(crate) target: &'a mut dyn Target,
    pub(crate) codec: Codec,
    encoder: Encoder,
    throttle: Option<Throttle>,
    /// The base of an increment.
    pub(crate) known: Option<Known>,
    /// Whether a file has too many pieces to list them.
    pub(crate) unlisted: bool,
    watch: &'a mut dyn FnMut(Progress) -> Flow,
    progress: Progress,
    current: Option<Current>,
    pub(crate) files: Vec<FileEntry>,
    /// The content of the identity file of the store.
    identity: Vec<u8>,
    /// Why it refuses to continue.
    pub(crate) failed: Option<Error>,
}

/// The file that is being received.
struct Current {
    path: String,
    length: u64,
    size: u64,
    /// Its pieces; `None` once they are too many to be listed.
    pieces: Option<Vec<Piece>>,
    /// The end of the last piece.
    listed: u64,
    content: blake3::Hasher,
    stored_size: u64,
    stored: blake3::Hasher,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(
        target: &'a mut dyn Target,
        codec: Codec,
        throttle: Option<Throttle>,
        known: Option<Known>,
        watch: &'a mut dyn FnMut(Progress) -> Flow,
    ) -> Sink<'a> {
        Sink {
            target,
            codec,
            encoder: Encoder::new(codec),
            throttle,
            known,
            unlisted: false,
            watch,
            progress: Progress::default(),
            current: None,
            files: Vec::new(),
            identity: Vec::new(),
            failed: None,
        }
    }

    /// The identity of the store, once its file was received.
    pub(crate) fn identity(&self) -> Result<Identity> {
        serde_json::from_slice(&self.identity).map_err(|e| {
            let message = "the engine passed no identity file on";
            Error::corrupt(message).with_source(e)
        })
    }

    fn answer(&mut self, done: Result<()>) -> Flow {
        match done {
            Ok(()) => Flow::Continue,
            Err(error) => {
                self.failed = Some(error);
                Flow::Cancel
            }
        }
    }

    fn begin_file(&mut self, path: &str, length: u64) -> Result<()> {
        name::check(path).map_err(|what| Error::invalid(format!("file {path:?}: {what}")))?;
        if FILES_MAX <= self.files.len() {
            let message = format!("the store has more than {FILES_MAX} files");
            return Err(Error::invalid(message));
        }
        // That of an increment is not known yet.
        let whole = self.codec == Codec::None && self.known.is_none();
        let size = whole.then_some(length);
        self.target.begin(path, size)?;
        self.current = Some(Current {
            path: path.to_owned(),
            length,
            size: 0,
            pieces: Some(Vec::new()),
            listed: 0,
            content: blake3::Hasher::new(),
            stored_size: 0,
            stored: blake3::Hasher::new(),
        });
        Ok(())
    }

    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let current = self.current.as_mut().expect("a file was begun");
        current.size += bytes.len() as u64;
        current.content.update(bytes);
        if current.path == identity::FILE && self.identity.len() + bytes.len() <= IDENTITY_MAX {
            self.identity.extend_from_slice(bytes);
        }
        let raw = self.codec == Codec::None;
        let (target, encoder) = (&mut *self.target, &mut self.encoder);
        encoder.add(bytes, &mut |bytes| current.store(target, raw, bytes))
    }

    /// List a piece, and return whether it is left out.
    fn add_piece(&mut self, id: PieceId, length: u64) -> Result<bool> {
        let current = self.current.as_mut().expect("a file was begun");
        let known = self.known.as_ref();
        let kept = known.is_some_and(|known| known.has(&current.path, &id, length));
        let Some(pieces) = &mut current.pieces else {
            return Ok(false);
        };
        if PIECES_MAX <= pieces.len() {
            if known.is_some() {
                let message = format!(
                    "the store has more than {PIECES_MAX} pieces, which is too many for an \
                     increment; take a full backup"
                );
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
            // It cannot be a base, and is a backup.
            current.pieces = None;
            self.unlisted = true;
            return Ok(false);
        }
        let gap = current.size.checked_sub(current.listed);
        pieces.push(Piece {
            id,
            gap: gap.expect("a piece begins where the one before has ended, or later"),
            length,
            kept,
        });
        current.listed = current.size + length;
        if kept {
            current.size += length;
        }
        Ok(kept)
    }

    fn end_file(&mut self) -> Result<()> {
        let mut current = self.current.take().expect("a file was begun");
        let raw = self.codec == Codec::None;
        let (target, encoder) = (&mut *self.target, &mut self.encoder);
        encoder.finish(&mut |bytes| current.store(target, raw, bytes))?;
        target.end()?;
        if current.size != current.length {
            let Current {
                path, size, length, ..
            } = current;
            let message = format!("file {path:?} has {size} bytes; {length} were announced");
            return Err(Error::invalid(message));
        }
        let digest = current.content.finalize().to_hex().to_string();
        let stored_digest = match raw {
            true => digest.clone(),
            false => current.stored.finalize().to_hex().to_string(),
        };
        self.files.push(FileEntry {
            path: current.path,
            size: current.size,
            digest,
            stored_size: current.stored_size,
            stored_digest,
            pieces: current.pieces.filter(|list| !list.is_empty()).map(Pieces),
        });
        Ok(())
    }
}

impl Current {
    fn store(&mut self, target: &mut dyn Target, raw: bool, bytes: &[u8]) -> Result<()> {
        self.stored_size += bytes.len() as u64;
        if !raw {
            self.stored.update(bytes);
        }
        target.write(bytes)
    }
}

impl BackupSink for Sink<'_> {
    fn preparing(&mut self, progress: Progress) -> Flow {
        // Nothing of the backup is written yet.
        (self.watch)(Progress {
            done_bytes: 0,
            ..progress
        })
    }

    fn total(&mut self, bytes: u64) {
        self.progress.total_bytes = bytes;
    }

    fn begin(&mut self, path: &str, length: u64) -> Flow {
        let done = self.begin_file(path, length);
        self.answer(done)
    }

    fn piece(&mut self, id: PieceId, bytes: u64) -> kv::Piece {
        match self.add_piece(id, bytes) {
            Ok(false) => kv::Piece::Send,
            Ok(true) => {
                self.progress.done_bytes += bytes;
                match (self.watch)(self.progress) {
                    Flow::Continue => kv::Piece::Skip,
                    Flow::Cancel => kv::Piece::Cancel,
                }
            }
            Err(error) => {
                self.failed = Some(error);
                kv::Piece::Cancel
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Flow {
        let (watch, progress) = (&mut self.watch, self.progress);
        if let Some(throttle) = &mut self.throttle
            && throttle.pass(bytes.len(), &mut || watch(progress)) == Flow::Cancel
        {
            return Flow::Cancel;
        }
        let done = self.add(bytes);
        if self.answer(done) == Flow::Cancel {
            return Flow::Cancel;
        }
        self.progress.done_bytes += bytes.len() as u64;
        (self.watch)(self.progress)
    }

    fn finish(&mut self) -> Flow {
        let done = self.end_file();
        self.answer(done)
    }
}
