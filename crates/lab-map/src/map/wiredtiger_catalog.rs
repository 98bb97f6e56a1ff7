//! Reads from `WiredTiger.wt` the sizes of the other files and the addresses of their free lists.
//!
//! The catalog is an ordinary tree whose entries are text, `file:NAME` and its configuration. All
//! its blocks are read, old ones too; of several entries for a file, the one with the highest write
//! generation counts. A checkpoint's address is a cookie of packed numbers (after WiredTiger's
//! `block_addr.c` and `intpack.i`): a version, then root, allocated, available and discarded blocks
//! as offset, size and checksum each, in allocation units; then sizes.

use std::collections::BTreeMap;

use lab_report::error::Result;

use super::bytes::Source;
use super::wiredtiger::{Block, block};

/// The first number of a list of extents, which identifies it.
const LIST_MAGIC: u64 = 71_002;
/// Maximum number of extents read from a list, which bounds the memory.
const EXTENTS_MAX: usize = 1 << 22;
/// Maximum size of a list of extents.
const LIST_BYTES_MAX: u64 = 64 << 20;

/// The catalog entry of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// The file name.
    file: String,
    /// The name of the tree in the file.
    pub(super) name: String,
    /// Size of an allocation unit, in bytes.
    pub(super) unit: u64,
    /// Maximum size of a leaf page in memory, in bytes.
    pub(super) leaf_page_max: u64,
    /// The address of the newest checkpoint.
    address: Vec<u8>,
    generation: u64,
}

/// The entries of all files.
#[derive(Default)]
pub(super) struct Catalog(BTreeMap<String, Entry>);

impl Catalog {
    /// The entry of a file.
    pub(super) fn get(&self, name: &str) -> Option<&Entry> {
        self.0.get(name)
    }

    /// Add the entries of a block of `WiredTiger.wt`.
    pub(super) fn learn(&mut self, block: &Block<'_>) {
        let text = String::from_utf8_lossy(block.body);
        let mut rest = text.as_ref();
        while let Some(at) = rest.find("file:") {
            rest = rest.get(at + "file:".len()..).unwrap_or_default();
            // A key ends with a zero byte; its value, the configuration, follows directly.
            let Some((name, after)) = rest.split_once('\0') else {
                return;
            };
            if !name.chars().all(|c| c.is_ascii_graphic()) {
                continue;
            }
            let next = after.find("file:").unwrap_or(after.len());
            let config = after.get(..next).unwrap_or_default();
            if let Some(entry) = entry(name, config, block.generation) {
                let known = self.0.get(&entry.file);
                if known.is_none_or(|k| k.generation <= entry.generation) {
                    self.0.insert(entry.file.clone(), entry);
                }
            }
        }
    }
}

fn entry(name: &str, config: &str, generation: u64) -> Option<Entry> {
    let checkpoints = config.get(config.find("checkpoint=(")?..)?;
    let last = checkpoints.rfind("addr=\"")?;
    let address = checkpoints.get(last + "addr=\"".len()..)?;
    let address = address.get(..address.find('"')?)?;
    let tree = config.find("app_metadata=\"").and_then(|at| {
        let text = config.get(at + "app_metadata=\"".len()..)?;
        text.get(..text.find('"')?)
    });
    Some(Entry {
        file: name.to_owned(),
        name: tree.filter(|t| !t.is_empty()).unwrap_or(name).to_owned(),
        unit: size(config, "allocation_size=").unwrap_or(4096),
        leaf_page_max: size(config, "leaf_page_max=").unwrap_or(32 << 10),
        address: hex(address)?,
        generation,
    })
}

/// Parse a size as WiredTiger writes it: `4KB`, `32768`.
fn size(config: &str, key: &str) -> Option<u64> {
    let text = config.get(config.find(key)? + key.len()..)?;
    let end = text.find([',', ')']).unwrap_or(text.len());
    let text = text.get(..end)?;
    text.parse::<stdx::ByteSize>().ok().map(|size| size.bytes())
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(high)? << 4 | digit(low)?).ok(),
        _ => None,
    };
    pairs.map(byte).collect()
}

impl Entry {
    /// The free extents of the file, ascending, as its newest checkpoint lists them; `None` if the
    /// checkpoint has no such list.
    pub(super) fn free(&self, source: &Source) -> Result<Option<Vec<(u64, u64)>>> {
        let Some((offset, length)) = self.list() else {
            return Ok(None);
        };
        if length == 0 {
            return Ok(Some(Vec::new()));
        }
        let fits = length <= LIST_BYTES_MAX
            && offset
                .checked_add(length)
                .is_some_and(|end| end <= source.length);
        if !fits {
            return Ok(None);
        }
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        source.read(&mut bytes, offset)?;
        Ok(block(&bytes, offset).and_then(|block| extents(block.body, source.length)))
    }

    /// The address of the list of available blocks.
    fn list(&self) -> Option<(u64, u64)> {
        let mut packed = Packed(self.address.get(1..)?);
        let mut available = (0, 0);
        // The addresses of the root and of the allocated blocks come first; they are skipped.
        for _ in 0..3 {
            let (offset, size) = (packed.next()?, packed.next()?);
            packed.next()?;
            available = (offset, size);
        }
        let (offset, size) = available;
        let place = (offset.checked_add(1)?).checked_mul(self.unit)?;
        Some((place, size.checked_mul(self.unit)?))
    }
}

fn extents(body: &[u8], file: u64) -> Option<Vec<(u64, u64)>> {
    let mut packed = Packed(body);
    if packed.next()? != LIST_MAGIC || packed.next()? != 0 {
        return None;
    }
    let mut all = Vec::new();
    while all.len() < EXTENTS_MAX {
        let (offset, size) = (packed.next()?, packed.next()?);
        if offset == 0 {
            break;
        }
        if file < offset.checked_add(size)? {
            return None;
        }
        all.push((offset, size));
    }
    all.sort_unstable();
    Some(all)
}

/// Numbers in WiredTiger's packed encoding, whose byte order is the order of the numbers.
struct Packed<'a>(&'a [u8]);

impl Packed<'_> {
    fn next(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        match first {
            0x80..=0xbf => Some(u64::from(first & 0x3f)),
            0xc0..=0xdf => {
                let (low, rest) = self.0.split_first()?;
                self.0 = rest;
                Some((u64::from(first & 0x1f) << 8 | u64::from(*low)) + 64)
            }
            0xe0..=0xff => {
                let length = usize::from(first & 0x1f);
                let (bytes, rest) = self.0.split_at_checked(length).filter(|_| length <= 8)?;
                self.0 = rest;
                let value = bytes.iter().fold(0_u64, |sum, b| sum << 8 | u64::from(*b));
                value.checked_add(64 + 8192)
            }
            // Negative numbers do not occur here.
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_numbers() {
        let all = |bytes: &[u8]| {
            let mut packed = Packed(bytes);
            std::iter::from_fn(move || packed.next()).collect::<Vec<_>>()
        };
        assert_eq!(all(&[0x80, 0xbf, 0xc0, 0, 0xc0, 1]), [0, 63, 64, 65]);
        assert_eq!(all(&[0xdf, 0xff, 0xe1, 0]), [8255, 8256]);
        assert_eq!(all(&[0xe9, 1, 2, 3]), [0_u64; 0]);
        assert_eq!(hex("0180e4"), Some(vec![1, 0x80, 0xe4]));
        assert_eq!(hex("018"), None);
    }

    #[test]
    fn a_list_of_extents_must_fit_the_file() {
        let magic = [0xe2, ((71_002_u32 - 8256) >> 8).to_le_bytes()[0], 0];
        assert_eq!(extents(&magic, 1 << 20), None);
        assert_eq!(extents(&[], 0), None);
    }

    #[test]
    fn sizes_in_a_configuration() {
        let config = "allocation_size=4KB,leaf_page_max=32768,x=(y=1)";
        assert_eq!(size(config, "allocation_size="), Some(4096));
        assert_eq!(size(config, "leaf_page_max="), Some(32768));
        assert_eq!(size(config, "nothing="), None);
    }
}
