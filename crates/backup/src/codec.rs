//! Compression in bounded frames.
//!
//! With the codec `none` a stored file has the bytes of the file. Otherwise it is a sequence of
//! frames:
//!
//! ```text
//! 0                4               8
//! +----------------+---------------+------------------+
//! | content length | stored length | stored bytes ... |    little-endian
//! +----------------+---------------+------------------+
//! ```
//!
//! Each frame holds 1 MiB of the content, the last one less. If the two lengths are equal, the
//! bytes are stored as they are.
//!
//! - C1. A frame takes no more memory than twice 1 MiB, whatever its header says.

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use kv::{Error, ErrorKind};
use serde::{Deserialize, Serialize};

/// Bytes of content in a frame: enough for a codec to find repetitions, little memory.
pub(crate) const FRAME: usize = 1 << 20;

/// Bytes of the header of a frame.
const HEADER: usize = 8;

/// Level of Zstandard: its default, faster than a disk of 300 MB/s.
const LEVEL: i32 = 3;

/// How files are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// Not at all.
    #[default]
    None,
    /// LZ4: fast.
    Lz4,
    /// Zstandard, level 3: smaller.
    Zstd,
}

impl Codec {
    fn name(self) -> &'static str {
        match self {
            Codec::None => "none",
            Codec::Lz4 => "lz4",
            Codec::Zstd => "zstd",
        }
    }

    /// The largest stored size of `content` bytes.
    pub(crate) fn stored_max(self, content: u64) -> u64 {
        match self {
            Codec::None => content,
            _ => content.saturating_add(content.div_ceil(FRAME as u64) * HEADER as u64),
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Codec {
    type Err = String;

    fn from_str(text: &str) -> Result<Codec, String> {
        let all = [Codec::None, Codec::Lz4, Codec::Zstd];
        let found = all.into_iter().find(|codec| codec.name() == text);
        found.ok_or_else(|| format!("unknown compression {text:?}; use none, lz4 or zstd"))
    }
}

/// Turns the content of a file into its stored bytes.
pub(crate) struct Encoder {
    codec: Codec,
    frame: Vec<u8>,
    packed: Vec<u8>,
}

impl Encoder {
    pub(crate) fn new(codec: Codec) -> Encoder {
        let (frame, packed) = (Vec::new(), Vec::new());
        Encoder {
            codec,
            frame,
            packed,
        }
    }

    /// Add content; `store` gets the stored bytes that are complete.
    pub(crate) fn add(
        &mut self,
        mut bytes: &[u8],
        store: &mut dyn FnMut(&[u8]) -> kv::Result<()>,
    ) -> kv::Result<()> {
        if self.codec == Codec::None {
            return store(bytes);
        }
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(FRAME - self.frame.len()));
            self.frame.extend_from_slice(now);
            bytes = later;
            if self.frame.len() == FRAME {
                self.finish(store)?;
            }
        }
        Ok(())
    }

    /// Store the last frame.
    pub(crate) fn finish(
        &mut self,
        store: &mut dyn FnMut(&[u8]) -> kv::Result<()>,
    ) -> kv::Result<()> {
        if self.frame.is_empty() {
            return Ok(());
        }
        let room = HEADER + lz4_flex::block::get_maximum_output_size(FRAME).max(2 * FRAME);
        self.packed.resize(room, 0);
        let (header, body) = self.packed.split_at_mut(HEADER);
        let packed = match self.codec {
            Codec::Zstd => {
                let packed = zstd::bulk::compress_to_buffer(&self.frame, body, LEVEL);
                packed.map_err(|e| Error::new(ErrorKind::Io, format!("Zstandard: {e}")))?
            }
            _ => lz4_flex::block::compress_into(&self.frame, body)
                .expect("there is room for any outcome"),
        };
        let content = self.frame.len();
        let stored = packed.min(content);
        let length = |n: usize| u32::try_from(n).expect("at most a frame").to_le_bytes();
        header.copy_from_slice(&[length(content), length(stored)].concat());
        if packed < content {
            store(self.packed.get(..HEADER + packed).expect("it was written"))?;
        } else {
            store(header)?;
            store(&self.frame)?;
        }
        self.frame.clear();
        Ok(())
    }
}

/// Read the stored bytes of a file of `content` bytes to their end; `take` gets the content.
///
/// # Errors
/// `InvalidData` or `UnexpectedEof` for bytes that the encoder did not write; those of `reader` and
/// `take`.
pub(crate) fn decode(
    codec: Codec,
    content: u64,
    reader: &mut dyn Read,
    take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let (mut stored, mut frame) = (vec![0; FRAME], vec![0; FRAME]);
    let mut left = content;
    while 0 < left {
        let length = usize::try_from(left).unwrap_or(FRAME).min(FRAME);
        let frame = frame.get_mut(..length).expect("C1: at most a frame");
        if codec == Codec::None {
            reader.read_exact(frame)?;
        } else {
            fill(codec, reader, &mut stored, frame)?;
        }
        take(frame)?;
        left -= length as u64;
    }
    match reader.read(&mut [0])? {
        0 => Ok(()),
        _ => Err(damaged()),
    }
}

/// Read a frame, whose content must have the length of `content`.
fn fill(
    codec: Codec,
    reader: &mut dyn Read,
    stored: &mut [u8],
    content: &mut [u8],
) -> io::Result<()> {
    let (mut first, mut second) = ([0; 4], [0; 4]);
    reader.read_exact(&mut first)?;
    reader.read_exact(&mut second)?;
    let number = |bytes| usize::try_from(u32::from_le_bytes(bytes)).unwrap_or(usize::MAX);
    let (length, packed) = (number(first), number(second));
    if length != content.len() || length < packed {
        return Err(damaged());
    }
    if packed == length {
        return reader.read_exact(content);
    }
    let stored = stored.get_mut(..packed).ok_or_else(damaged)?;
    reader.read_exact(stored)?;
    let unpacked = match codec {
        Codec::Zstd => zstd::bulk::decompress_to_buffer(&*stored, content)?,
        _ => lz4_flex::block::decompress_into(stored, content).map_err(|_| damaged())?,
    };
    match unpacked == length {
        true => Ok(()),
        false => Err(damaged()),
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a frame is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(codec: Codec, content: &[u8], piece: usize) -> Vec<u8> {
        let (mut encoder, mut stored) = (Encoder::new(codec), Vec::new());
        let mut store = |bytes: &[u8]| {
            stored.extend_from_slice(bytes);
            Ok(())
        };
        for bytes in content.chunks(piece) {
            encoder.add(bytes, &mut store).unwrap();
        }
        encoder.finish(&mut store).unwrap();
        stored
    }

    fn decoded(codec: Codec, length: usize, stored: &[u8]) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        decode(codec, length as u64, &mut &*stored, &mut |bytes| {
            content.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(content)
    }

    /// Half repeats, half does not.
    fn content(length: usize) -> Vec<u8> {
        let mut rng = stdx::rng::Rng::new(7);
        let mut bytes = vec![b'a'; length];
        for byte in bytes.iter_mut().skip(length / 2) {
            *byte = u8::try_from(rng.below(256)).unwrap();
        }
        bytes
    }

    #[test]
    fn what_is_stored_is_read_back() {
        for length in [0, 1, 1_000, FRAME - 1, FRAME, FRAME + 1, 5 * FRAME / 2] {
            let content = content(length);
            for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
                let stored = encoded(codec, &content, 300_000);
                assert!(stored.len() as u64 <= codec.stored_max(length as u64));
                let back = decoded(codec, length, &stored).unwrap();
                assert!(back == content, "{codec} {length}");
                assert_eq!(codec.name().parse(), Ok(codec));
            }
        }
        let content = content(2 * FRAME);
        assert!(encoded(Codec::Lz4, &content, FRAME).len() < content.len() * 6 / 10);
    }

    #[test]
    fn frames_that_lie_are_errors() {
        for codec in [Codec::Lz4, Codec::Zstd] {
            let content = content(3_000);
            let stored = encoded(codec, &content, 3_000);
            assert!(decoded(codec, 2_999, &stored).is_err(), "C1");
            assert!(decoded(codec, 3_001, &stored).is_err(), "C1");
            assert!(decoded(codec, 3_000, &stored[1..]).is_err());
            for cut in 0..stored.len() {
                assert!(decoded(codec, 3_000, &stored[..cut]).is_err(), "{cut}");
            }
            let mut longer = stored.clone();
            longer.push(0);
            assert!(
                decoded(codec, 3_000, &longer).is_err(),
                "bytes after the end"
            );
            // Whatever a header says, it is an error and no allocation.
            for (at, value) in (0..8).flat_map(|at| [(at, 0), (at, 0xFF)]) {
                let mut other = stored.clone();
                if other[at] != value {
                    other[at] = value;
                    assert!(decoded(codec, 3_000, &other).is_err(), "C1: {at}");
                }
            }
        }
    }
}
