//! Temporary files under a key that only this process has, and only while the file is used.
//!
//! ```text
//! | length u32, top bit: the last chunk | tag 16 | up to 64 KiB, encrypted |  ...
//! ```
//! The nonce is the number of the chunk, and the length with its bit is associated data: chunks
//! cannot be exchanged, and a file that was cut does not end well.

use std::io::{self, Read, Write};

use crate::error::KeyError;
use crate::frame::{Nonce, Opener, Sealer, TAG_LEN};

/// Bytes encrypted at once.
const CHUNK: usize = 64 << 10;
const LAST: u32 = 1 << 31;

/// Encrypts what is written to it.
#[derive(Debug)]
pub struct TemporaryWriter<W> {
    inner: W,
    sealer: Sealer,
    opener: Opener,
    buffer: Vec<u8>,
    next: u64,
}

impl<W: Write> TemporaryWriter<W> {
    /// A writer to `inner` under a new key.
    ///
    /// # Errors
    /// `Random`.
    pub fn new(inner: W) -> Result<TemporaryWriter<W>, KeyError> {
        let (sealer, opener) = Sealer::temporary()?;
        Ok(TemporaryWriter {
            inner,
            sealer,
            opener,
            buffer: Vec::with_capacity(CHUNK),
            next: 0,
        })
    }

    /// What is written to; the last chunk is not in it yet.
    pub fn inner(&self) -> &W {
        &self.inner
    }

    /// Write the rest; returns what was written to, and what opens it.
    ///
    /// # Errors
    /// Those of the inner writer.
    pub fn finish(mut self) -> io::Result<(W, Opener)> {
        self.chunk(LAST)?;
        self.inner.flush()?;
        Ok((self.inner, self.opener))
    }

    fn chunk(&mut self, last: u32) -> io::Result<()> {
        let length = u32::try_from(self.buffer.len()).expect("at most a chunk") | last;
        let head = length.to_le_bytes();
        let nonce = Nonce::at(self.next);
        let tag = self.sealer.encrypt(nonce, &head, &mut self.buffer);
        self.next += 1;
        let written = [&head, &tag[..], &self.buffer]
            .iter()
            .try_for_each(|part| self.inner.write_all(part));
        self.buffer.clear();
        written
    }
}

impl<W: Write> Write for TemporaryWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() == CHUNK {
            self.chunk(0)?;
        }
        let taken = bytes.len().min(CHUNK - self.buffer.len());
        let (front, _) = bytes.split_at(taken);
        self.buffer.extend_from_slice(front);
        Ok(taken)
    }

    /// Does nothing: chunks are written when they are full, and by [`TemporaryWriter::finish`].
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Decrypts what a [`TemporaryWriter`] wrote.
#[derive(Debug)]
pub struct TemporaryReader<R> {
    inner: R,
    opener: Opener,
    buffer: Vec<u8>,
    at: usize,
    next: u64,
    ended: bool,
}

impl<R: Read> TemporaryReader<R> {
    /// A reader from the beginning of `inner`.
    pub fn new(inner: R, opener: Opener) -> TemporaryReader<R> {
        TemporaryReader {
            inner,
            opener,
            buffer: Vec::new(),
            at: 0,
            next: 0,
            ended: false,
        }
    }

    fn chunk(&mut self) -> io::Result<()> {
        let (mut head, mut tag) = ([0; 4], [0; TAG_LEN]);
        let mut read = |bytes: &mut [u8]| self.inner.read_exact(bytes).map_err(cut);
        read(&mut head)?;
        read(&mut tag)?;
        let length = u32::from_le_bytes(head);
        let bytes = usize::try_from(length & !LAST).unwrap_or(usize::MAX);
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "the file was changed");
        if CHUNK < bytes {
            return Err(wrong());
        }
        self.buffer.resize(bytes, 0);
        self.inner.read_exact(&mut self.buffer).map_err(cut)?;
        let nonce = Nonce::at(self.next);
        let opened = self.opener.decrypt(nonce, &head, &mut self.buffer, &tag);
        opened.map_err(|_| wrong())?;
        self.next += 1;
        self.at = 0;
        self.ended = length & LAST != 0;
        Ok(())
    }
}

/// The end of a file before its last chunk is no end that a reader may take for one.
fn cut(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            io::Error::new(io::ErrorKind::InvalidData, "the file was cut")
        }
        _ => error,
    }
}

impl<R: Read> Read for TemporaryReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.buffer.len() {
            if self.ended {
                return Ok(0);
            }
            self.chunk()?;
        }
        let rest = self.buffer.get(self.at..).unwrap_or_default();
        let taken = into.len().min(rest.len());
        let (front, _) = rest.split_at(taken);
        let (room, _) = into.split_at_mut(taken);
        room.copy_from_slice(front);
        self.at += taken;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(pieces: &[&[u8]]) -> (Vec<u8>, Opener) {
        let mut writer = TemporaryWriter::new(Vec::new()).unwrap();
        for piece in pieces {
            writer.write_all(piece).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn what_is_written_is_read_back_and_not_readable() {
        for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5] {
            let text = b"planted text ".repeat(length / 13 + 1);
            let text = &text[..length];
            let (file, opener) = write(&text.chunks(1000).collect::<Vec<_>>());
            assert!(!file.windows(13).any(|at| at == b"planted text "));
            let mut found = Vec::new();
            TemporaryReader::new(&*file, opener)
                .read_to_end(&mut found)
                .unwrap();
            assert!(found == text, "{length} bytes");
        }
    }

    #[test]
    fn a_file_that_was_changed_or_cut_is_an_error() {
        let text = vec![7; 2 * CHUNK + 100];
        let whole = CHUNK + 20;
        let (file, opener) = write(&[&text]);
        let mut changed: Vec<Vec<u8>> = (0..file.len())
            .step_by(997)
            .chain([0, 3, 4, 19, 20, whole, file.len() - 1])
            .map(|at| {
                let mut bad = file.clone();
                bad[at] ^= 1;
                bad
            })
            .collect();
        // Cut between chunks, and two chunks exchanged.
        changed.push(file[..whole].to_vec());
        let (first, rest) = file.split_at(whole);
        let (second, rest) = rest.split_at(whole);
        changed.push([second, first, rest].concat());
        let mut reader = TemporaryReader::new(&*file, opener);
        let mut found = Vec::new();
        reader.read_to_end(&mut found).unwrap();
        for bad in &changed {
            let TemporaryReader { opener, .. } = reader;
            let mut other = TemporaryReader::new(&**bad, opener);
            let mut found = Vec::new();
            // Never `UnexpectedEof`, which readers of records take for the end.
            let error = other.read_to_end(&mut found).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            reader = TemporaryReader::new(&*file, other.opener);
        }
    }
}
