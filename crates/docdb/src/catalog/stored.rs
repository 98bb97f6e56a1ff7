//! Stored form of the catalog's documents.
//!
//! `{ns, uuid, options, nextIndex, indexes: [{spec, number, ready}]}`; a view has only `ns` and
//! `options`; `temporary: true` marks a collection that is dropped when the store is opened. The
//! trees of a collection are named `c.<uuid>` and `i.<uuid>.<number>`.
//!
//! A multikey bit records that some document has an array at one part of an indexed field's path.
//! It is a key without a value: `m`, UUID, index (4 bytes), field, part. The document's transaction
//! writes it without reading it first, so that such documents do not conflict over the catalog. The
//! bit of the field number after the last field records that the index may hold truncated keys.
//! Stores that keep this record have the key `k`: see `store::cut`.
//!
//! Values that the server keeps in its store have the key `p` followed by their name.

use bson::raw::cstr;
use bson::spec::BinarySubtype;
use bson::{Binary, RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, rawdoc};
use query::{Namespace, Result};

use crate::collection::CollectionOptions;
use crate::error;
use crate::index::IndexSpec;

/// The catalog's document of one collection or view.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) ns: Namespace,
    /// `None` for a view.
    pub(crate) uuid: Option<[u8; 16]>,
    pub(crate) options: CollectionOptions,
    pub(crate) next_index: u32,
    pub(crate) indexes: Vec<StoredIndex>,
    /// Whether the collection is dropped when the store is opened. An operation that did not finish
    /// leaves such a collection.
    pub(crate) temporary: bool,
}

/// Catalog entry of one index.
#[derive(Clone, Debug)]
pub(crate) struct StoredIndex {
    pub(crate) spec: IndexSpec,
    pub(crate) number: u32,
    pub(crate) ready: bool,
}

/// The key of a namespace.
pub(crate) fn key(ns: &Namespace) -> Vec<u8> {
    format!("c{ns}").into_bytes()
}

/// Key without a value: marks a store that records for each index whether it holds truncated keys.
pub(crate) const NOTES_CUTS: &[u8] = b"k";

/// The key of a value that the server keeps in the store.
pub(crate) fn property_key(name: &str) -> Vec<u8> {
    format!("p{name}").into_bytes()
}

/// The first key of a collection's multikey bits, and the first key after them.
pub(crate) fn multikey_range(uuid: &[u8; 16]) -> (Vec<u8>, Vec<u8>) {
    let mut start = b"m".to_vec();
    start.extend_from_slice(uuid);
    let mut end = start.clone();
    end.extend_from_slice(&[0xFF; 8]);
    (start, end)
}

/// The key of a multikey bit.
pub(crate) fn multikey_key(uuid: &[u8; 16], index: u32, field: u8, part: u8) -> Vec<u8> {
    let mut key = b"m".to_vec();
    key.extend_from_slice(uuid);
    key.extend_from_slice(&index.to_be_bytes());
    key.extend_from_slice(&[field, part]);
    key
}

/// Decode index, field and part from the key of a multikey bit.
pub(crate) fn read_multikey(key: &[u8]) -> Option<(u32, u8, u8)> {
    let (rest, [field, part]) = key.split_last_chunk()?;
    let (_, index) = rest.split_last_chunk()?;
    Some((u32::from_be_bytes(*index), *field, *part))
}

impl Stored {
    /// The name of the tree of documents.
    pub(crate) fn records_tree(uuid: &[u8; 16]) -> String {
        format!("c.{}", hex(uuid))
    }

    /// The name of the tree of an index.
    pub(crate) fn index_tree(uuid: &[u8; 16], number: u32) -> String {
        format!("i.{}.{number}", hex(uuid))
    }

    /// The bytes of the document.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut out = rawdoc! { "ns": self.ns.to_string() };
        out.append(cstr!("options"), self.options.to_raw()?);
        if let Some(uuid) = self.uuid {
            let uuid = Binary {
                subtype: BinarySubtype::Uuid,
                bytes: uuid.to_vec(),
            };
            out.append(cstr!("uuid"), uuid);
            out.append(cstr!("nextIndex"), i64::from(self.next_index));
            let mut indexes = RawArrayBuf::new();
            for index in &self.indexes {
                indexes.push(index.to_raw()?);
            }
            out.append(cstr!("indexes"), indexes);
            if self.temporary {
                out.append(cstr!("temporary"), true);
            }
        }
        Ok(out.into_bytes())
    }

    /// Read a document.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Stored> {
        let document = RawDocument::from_bytes(bytes)?;
        read(document)?
            .ok_or_else(|| error::corrupt(format_args!("the catalog's document {document:?}")))
    }
}

impl StoredIndex {
    fn to_raw(&self) -> Result<RawDocumentBuf> {
        let mut out = RawDocumentBuf::new();
        out.append(cstr!("spec"), self.spec.to_raw()?);
        out.append(cstr!("number"), i64::from(self.number));
        out.append(cstr!("ready"), self.ready);
        Ok(out)
    }
}

fn read(document: &RawDocument) -> Result<Option<Stored>> {
    let Some(ns) = document
        .get_str("ns")
        .ok()
        .and_then(|ns| ns.split_once('.'))
    else {
        return Ok(None);
    };
    let Ok(options) = document.get_document("options") else {
        return Ok(None);
    };
    let mut stored = Stored {
        ns: Namespace {
            db: ns.0.to_owned(),
            coll: ns.1.to_owned(),
        },
        uuid: None,
        options: CollectionOptions::parse_raw(options)?,
        next_index: 0,
        indexes: Vec::new(),
        temporary: document.get_bool("temporary").unwrap_or(false),
    };
    if stored.options.view.is_some() {
        return Ok(Some(stored));
    }
    let Some(RawBsonRef::Binary(uuid)) = document.get("uuid")? else {
        return Ok(None);
    };
    stored.uuid = uuid.bytes.try_into().ok();
    stored.next_index = unsigned(document.get("nextIndex")?);
    if let Some(RawBsonRef::Array(indexes)) = document.get("indexes")? {
        for index in indexes {
            let index = index?.as_document().map(read_index).transpose()?.flatten();
            let Some(index) = index else {
                return Ok(None);
            };
            stored.indexes.push(index);
        }
    }
    Ok(stored.uuid.is_some().then_some(stored))
}

fn read_index(document: &RawDocument) -> Result<Option<StoredIndex>> {
    let Ok(spec) = document.get_document("spec") else {
        return Ok(None);
    };
    let mut spec = IndexSpec::parse_raw(spec)?;
    spec.unique |= spec.is_id();
    Ok(Some(StoredIndex {
        spec,
        number: unsigned(document.get("number")?),
        ready: document.get_bool("ready").unwrap_or(false),
    }))
}

fn unsigned(value: Option<RawBsonRef<'_>>) -> u32 {
    let number = value.and_then(RawBsonRef::as_i64);
    number.and_then(|n| u32::try_from(n).ok()).unwrap_or(0)
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut out, byte| {
        write!(out, "{byte:02x}").expect("a string takes all");
        out
    })
}
