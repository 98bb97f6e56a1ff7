//! Conversions between binary data and text, for `$convert`.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use bson::Binary;
use bson::spec::BinarySubtype;

use super::convert::failure;
use super::target::ByteFormat;
use crate::Result;

/// Size of a UUID in bytes.
const UUID: usize = 16;

/// Converts binary data to text.
pub(super) fn encode(binary: &Binary, format: ByteFormat) -> Result<String> {
    let is_uuid = binary.subtype == BinarySubtype::Uuid && binary.bytes.len() == UUID;
    match format {
        ByteFormat::Auto if is_uuid => Ok(uuid(&binary.bytes)),
        ByteFormat::Base64 | ByteFormat::Auto => Ok(BASE64_STANDARD.encode(&binary.bytes)),
        ByteFormat::Base64Url => Ok(BASE64_URL_SAFE_NO_PAD.encode(&binary.bytes)),
        ByteFormat::Hex => Ok(hex(&binary.bytes).to_ascii_uppercase()),
        ByteFormat::Utf8 => String::from_utf8(binary.bytes.clone())
            .map_err(|_| failure("BinData does not represent a valid UTF-8 string", "")),
        ByteFormat::Uuid if is_uuid => Ok(uuid(&binary.bytes)),
        ByteFormat::Uuid => Err(failure("Input is not a valid UUID", "")),
    }
}

/// Converts text to bytes.
pub(super) fn decode(text: &str, format: ByteFormat) -> Result<Vec<u8>> {
    let bytes = match format {
        ByteFormat::Base64 | ByteFormat::Auto => BASE64_STANDARD.decode(text).ok(),
        ByteFormat::Base64Url => BASE64_URL_SAFE_NO_PAD
            .decode(text.trim_end_matches('='))
            .ok(),
        ByteFormat::Hex => unhex(text),
        ByteFormat::Utf8 => Some(text.as_bytes().to_vec()),
        ByteFormat::Uuid => from_uuid(text),
    };
    bytes.ok_or_else(|| {
        failure(
            format_args!("Input '{text}' is not in the given format"),
            "",
        )
    })
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(text, "{byte:02x}").expect("strings take all that is written");
    }
    text
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    pairs
        .iter()
        .map(|pair| {
            let digits = std::str::from_utf8(pair).ok()?;
            let signed = digits.starts_with(['+', '-']);
            u8::from_str_radix(digits, 16).ok().filter(|_| !signed)
        })
        .collect()
}

fn uuid(bytes: &[u8]) -> String {
    let mut text = hex(bytes);
    for at in [20, 16, 12, 8] {
        text.insert(at, '-');
    }
    text
}

fn from_uuid(text: &str) -> Option<Vec<u8>> {
    let dashes = [8, 13, 18, 23];
    let placed = |(at, byte): (usize, u8)| (byte == b'-') == dashes.contains(&at);
    if text.len() != 36 || !text.bytes().enumerate().all(placed) {
        return None;
    }
    unhex(&text.replace('-', ""))
}
