//! The decoders of the log's segments, groups and records.

use super::{kind_of, kind_of_error};
use crate::log::format::{
    self, BLOCK, GROUP_HEADER, GroupHeader, RECORD_HEADER, SEGMENT_HEADER, SegmentHeader,
    decode_group, decode_record, decode_segment, decompress, encode_group, encode_segment,
    record_fields, seal_records,
};
use crate::types::Seq;

const STORE: u128 = 11;
const SEGMENT: u64 = 5;

/// Decode an input: a segment header followed by a group.
pub(super) fn group(bytes: &[u8]) -> u64 {
    let segment = decode_segment(bytes);
    let seed = format::seed(STORE, SEGMENT);
    let rest = bytes.get(SEGMENT_HEADER..).unwrap_or_default();
    let header = match decode_group(rest, seed, SEGMENT, BLOCK) {
        Err(flaw) => return kind_of_error(&(segment.err(), flaw)),
        Ok(header) => header,
    };
    let length = usize::try_from(header.length).unwrap_or(usize::MAX);
    let Some(stored) = rest.get(GROUP_HEADER..length) else {
        return kind_of(&"a group that is cut off");
    };
    let decompressed = match header.raw {
        0 => None,
        _ => match decompress(&header, stored) {
            Err(flaw) => return kind_of_error(&flaw),
            Ok(records) => Some(records),
        },
    };
    let mut records = decompressed.as_deref().unwrap_or(stored);
    let mut count = 0;
    while count < header.count {
        match decode_record(records, seed) {
            Err(flaw) => return kind_of_error(&(flaw, 1 < count)),
            Ok(record) => {
                records = records
                    .get(record.stored_len()..)
                    .expect("a record lies in its bytes");
                assert_eq!(record.stored_len(), RECORD_HEADER + record.payload.len());
                count += 1;
            }
        }
    }
    let again = decode_group(&encode_group(&header, seed), seed, SEGMENT, BLOCK);
    assert!(again.is_ok_and(|again| again == header), "the same group");
    kind_of(&(segment.is_ok(), header.raw == 0, count.min(9)))
}

/// Correct the checksums of both headers, and of the records whose lengths fit. Compressed records
/// are left as they are.
pub(super) fn repair_group(bytes: &[u8]) -> Vec<u8> {
    let seed = format::seed(STORE, SEGMENT);
    let mut repaired = bytes.to_vec();
    repaired.resize(bytes.len().max(SEGMENT_HEADER + GROUP_HEADER), 0);
    let (segment, group) = repaired.split_at_mut(SEGMENT_HEADER);
    if let Some((head, body)) = segment.split_first_chunk_mut::<12>()
        && let Some(sum) = head.get_mut(8..)
    {
        sum.copy_from_slice(&crc32c::crc32c(body).to_le_bytes());
    }
    let (head, records) = group.split_at_mut(GROUP_HEADER);
    if let Some((head, body)) = head.split_first_chunk_mut::<8>()
        && let Some(sum) = head.get_mut(4..)
    {
        sum.copy_from_slice(&crc32c::crc32c_append(seed, body).to_le_bytes());
    }
    let compressed = head.get(56..60) != Some(&[0; 4]);
    let whole = if compressed {
        0
    } else {
        whole_records(records)
    };
    if let Some(records) = records.get_mut(..whole) {
        seal_records(records, seed);
    }
    repaired
}

/// Length of the leading records whose lengths fit.
fn whole_records(records: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let length = records.get(at + 4..).and_then(|rest| rest.first_chunk());
        let Some(length) = length else { return at };
        let end = at + RECORD_HEADER + u32::from_le_bytes(*length) as usize;
        if records.len() < end {
            return at;
        }
        at = end;
    }
}

pub(super) fn group_seeds() -> Vec<Vec<u8>> {
    let seed = format::seed(STORE, SEGMENT);
    let mut records = Vec::new();
    for number in 0..4_u32 {
        let payload = vec![b'p'; number as usize * 90];
        records.extend([0; 4]);
        records.extend(record_fields(number * 90, Seq(10 + u64::from(number))));
        records.extend(payload);
    }
    let count = seal_records(&mut records, seed);
    let packed = lz4_flex::block::compress(&records);
    vec![
        encode(seed, count, &records, 0),
        encode(seed, count, &packed, records.len()),
    ]
}

/// A segment header and a group; `raw` as in the group's header.
fn encode(seed: u32, count: u32, stored: &[u8], raw: usize) -> Vec<u8> {
    let number = |n: usize| u32::try_from(n).expect("small");
    let header = GroupHeader {
        segment: SEGMENT,
        offset: BLOCK,
        first: Seq(10),
        durable: Seq(8),
        void: Seq(3),
        length: number(GROUP_HEADER + stored.len()),
        count,
        raw: number(raw),
        piece: 0,
    };
    let segment = SegmentHeader {
        store: STORE,
        number: SEGMENT,
        size: 64 << 10,
        seal: None,
    };
    let mut bytes = encode_segment(&segment).to_vec();
    bytes.extend(encode_group(&header, seed));
    bytes.extend(stored);
    bytes
}
