//! `OP_COMPRESSED`: a header, followed by another message in compressed form.
//!
//! ```text
//! int32 original operation | int32 decompressed size | byte compressor | payload
//! ```

use std::io::{Read as _, Write as _};

use zeroize::Zeroize as _;

pub use crate::compressor::Compressor;
use crate::decoder::Frame;
use crate::error::{Error, Result};
use crate::header::{Header, OpCode, read_i32};
use crate::limits::{HEADER, Limits, MAX_MESSAGE, SECRET_MESSAGE};

/// Bytes between header and payload.
const HEAD: usize = 9;

impl Compressor {
    fn number(self) -> u8 {
        match self {
            Compressor::Noop => 0,
            Compressor::Snappy => 1,
            Compressor::Zlib => 2,
            Compressor::Zstd => 3,
        }
    }

    fn of_number(number: u8) -> Result<Compressor> {
        match number {
            0 => Ok(Compressor::Noop),
            1 => Ok(Compressor::Snappy),
            2 => Ok(Compressor::Zlib),
            3 => Ok(Compressor::Zstd),
            other => Err(Error::Compression(format!("unknown compressor {other}"))),
        }
    }

    fn squeeze(self, bytes: &[u8]) -> Result<Vec<u8>> {
        match self {
            Compressor::Noop => Ok(bytes.to_vec()),
            Compressor::Snappy => snap::raw::Encoder::new()
                .compress_vec(bytes)
                .map_err(broken),
            Compressor::Zlib => {
                let level = flate2::Compression::default();
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
                encoder.write_all(bytes).map_err(broken)?;
                encoder.finish().map_err(broken)
            }
            Compressor::Zstd => {
                zstd::bulk::compress(bytes, zstd::DEFAULT_COMPRESSION_LEVEL).map_err(broken)
            }
        }
    }

    /// Decompress `payload` to exactly `size` bytes, which are appended to `out`.
    fn expand(self, payload: &[u8], size: usize, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Compressor::Noop => out.extend_from_slice(payload),
            Compressor::Snappy => {
                // W2: the decoder allocates as much memory as the length in the payload says.
                if snap::raw::decompress_len(payload).map_err(broken)? != size {
                    return Err(Error::Compression(
                        "the size in the snappy data differs".to_owned(),
                    ));
                }
                let mut decoder = snap::raw::Decoder::new();
                decoder
                    .decompress(payload, space(out, size))
                    .map_err(broken)?;
            }
            Compressor::Zlib => {
                // A short message is not copied while it grows.
                out.reserve(size.saturating_add(1).min(SECRET_MESSAGE));
                read_all(flate2::read::ZlibDecoder::new(payload), size, out)?;
            }
            Compressor::Zstd => {
                // Decompressed by one call: a stream decoder would allocate the window that the
                // frame declares, up to 128 MB for a message of a few bytes.
                let space = space(out, size);
                let read = zstd::bulk::decompress_to_buffer(payload, space).map_err(broken)?;
                let unused = size.saturating_sub(read);
                out.truncate(out.len() - unused);
            }
        }
        Ok(())
    }
}

/// `size` bytes of zeros at the end of `out`.
fn space(out: &mut Vec<u8>, size: usize) -> &mut [u8] {
    let begin = out.len();
    out.resize(begin.saturating_add(size), 0);
    out.get_mut(begin..).unwrap_or_default()
}

/// Read to the end, but at most one byte more than `size`: this detects a payload that is larger,
/// without decompressing all of it.
fn read_all(reader: impl std::io::Read, size: usize, out: &mut Vec<u8>) -> Result<()> {
    let limit = u64::try_from(size).unwrap_or(u64::MAX).saturating_add(1);
    reader.take(limit).read_to_end(out).map_err(broken)?;
    Ok(())
}

fn broken(error: impl std::fmt::Display) -> Error {
    Error::Compression(error.to_string())
}

/// Decompress a message, if it is compressed, with the limits of the protocol.
///
/// # Errors
/// The errors of [`expand_within`].
pub fn expand(frame: Frame) -> Result<(Frame, Option<Compressor>)> {
    expand_within(frame, &Limits::PROTOCOL)
}

/// The decompressed size that a compressed message declares; 0 for other messages.
#[must_use]
pub fn claimed(frame: &Frame) -> usize {
    let size = match frame.header.op_code {
        OpCode::Compressed => read_i32(&frame.bytes, HEADER.saturating_add(4)),
        _ => None,
    };
    size.and_then(|size| usize::try_from(size).ok())
        .unwrap_or(0)
}

/// Decompress a message, if it is compressed; also returns its compressor.
///
/// # Errors
/// [`Error::Compression`], also if the compressor is not enabled or the decompressed message would
/// exceed the limit; [`Error::Malformed`], [`Error::OpCode`].
pub fn expand_within(mut frame: Frame, limits: &Limits<'_>) -> Result<(Frame, Option<Compressor>)> {
    if frame.header.op_code != OpCode::Compressed {
        return Ok((frame, None));
    }
    let expanded = expand_bytes(&frame, limits);
    // Short texts, such as passwords, are readable in compressed bytes, too.
    if frame.bytes.len() <= SECRET_MESSAGE {
        frame.bytes.zeroize();
    }
    expanded
}

fn expand_bytes(frame: &Frame, limits: &Limits<'_>) -> Result<(Frame, Option<Compressor>)> {
    let Some((head, payload)) = frame
        .bytes
        .get(HEADER..)
        .and_then(|rest| rest.split_at_checked(HEAD))
    else {
        return Err(Error::Malformed("a compressed message without a head"));
    };
    let original = OpCode::of(read_i32(head, 0).unwrap_or_default())?;
    if original == OpCode::Compressed {
        return Err(Error::Malformed("a compressed compressed message"));
    }
    let most = limits.message.min(MAX_MESSAGE);
    let size = read_i32(head, 4).and_then(|size| usize::try_from(size).ok());
    let size = size.filter(|size| size.saturating_add(HEADER) <= most);
    let size = size.ok_or_else(|| Error::Compression("the size does not fit".to_owned()))?;
    let compressor = Compressor::of_number(head.last().copied().unwrap_or_default())?;
    if compressor != Compressor::Noop && !limits.compressors.contains(&compressor) {
        let name = compressor.name();
        return Err(Error::Compression(format!("{name} is not enabled")));
    }
    let header = Header {
        length: size.saturating_add(HEADER),
        op_code: original,
        ..frame.header
    };
    let mut bytes = header.encode().to_vec();
    compressor.expand(payload, size, &mut bytes)?;
    if bytes.len() != header.length {
        return Err(Error::Compression("expands to another size".to_owned()));
    }
    Ok((Frame { header, bytes }, Some(compressor)))
}

/// Compress a whole message.
///
/// # Errors
/// [`Error::Compression`] from the codec; [`Error::Malformed`] when the bytes are not a message.
pub fn compress(message: &[u8], compressor: Compressor) -> Result<Vec<u8>> {
    let Some((head, rest)) = message.split_first_chunk::<HEADER>() else {
        return Err(Error::Malformed("shorter than a header"));
    };
    let original = Header::decode(head)?;
    let payload = compressor.squeeze(rest)?;
    let size = i32::try_from(rest.len()).map_err(broken)?;
    let header = Header {
        length: payload.len().saturating_add(HEADER).saturating_add(HEAD),
        op_code: OpCode::Compressed,
        ..original
    };
    let mut bytes = Vec::with_capacity(header.length);
    bytes.extend_from_slice(&header.encode());
    bytes.extend_from_slice(&original.op_code.number().to_le_bytes());
    bytes.extend_from_slice(&size.to_le_bytes());
    bytes.push(compressor.number());
    bytes.extend_from_slice(&payload);
    Ok(bytes)
}
