//! The manifest: what a backup is, in one file that is written last.
//!
//! ```text
//! romanesco-backup 1 <64 hexadecimal digits>\n
//! {"product": ..., "engine": ..., "files": [{"path": ..., "size": ...}, ...]}
//! ```
//!
//! The digits are the BLAKE3 digest of the bytes after the first line. A field that this version
//! does not know is an error.
//!
//! - M1. Every changed, missing or additional byte of a manifest is an error.

use std::collections::BTreeSet;

use kv::identity::Identity;
use kv::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use crate::codec::Codec;
use crate::name;

/// The name of the manifest in a backup.
pub const FILE: &str = "backup.manifest";

/// The version of the format of backups that this program writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

/// The first word.
const MAGIC: &str = "romanesco-backup";

/// Bytes of a manifest: the most files, with long names.
pub(crate) const BYTES_MAX: u64 = 64 << 20;

/// Files of a backup. A store of RocksDB with 10 TB has 160,000.
pub(crate) const FILES_MAX: usize = 1 << 18;

/// What a backup is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    /// The version of the program that made it.
    pub product: String,
    /// The storage engine.
    pub engine: String,
    /// The identity file of the store: the engine, the version of its files, its fixed options.
    pub identity: Identity,
    /// The identifier of the store, where the server has given it one.
    pub store: Option<String>,
    /// When the backup began and ended: seconds since 1970-01-01 UTC.
    pub started: u64,
    /// See `started`.
    pub ended: u64,
    /// Every write up to this time of the oplog is in the backup, and possibly later ones; `None`
    /// without an oplog.
    pub operation_time: Option<OperationTime>,
    /// How the files are compressed.
    pub codec: Codec,
    /// How the backup itself encrypts its files, which no version of this program does yet. Files
    /// of an encrypted store are encrypted as they are in the store.
    pub encryption: Option<serde_json::Value>,
    /// The files, in the order of their paths.
    pub files: Vec<FileEntry>,
}

/// A time of the oplog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationTime {
    /// Seconds since 1970-01-01 UTC.
    pub seconds: u32,
    /// The count within the second.
    pub increment: u32,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileEntry {
    /// Its path below the directory of the store.
    pub path: String,
    /// Its length in the store.
    pub size: u64,
    /// The BLAKE3 digest of these bytes, in hexadecimal.
    pub digest: String,
    /// Its length in the backup.
    pub stored_size: u64,
    /// The digest of these bytes.
    pub stored_digest: String,
}

impl Manifest {
    /// The bytes of the manifest file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let body = serde_json::to_vec_pretty(self).expect("plain data serialises");
        let digest = blake3::hash(&body).to_hex();
        [format!("{MAGIC} {FORMAT} {digest}\n").as_bytes(), &body].concat()
    }

    /// Read the bytes of a manifest file.
    ///
    /// # Errors
    /// `Unsupported` for a newer version or an encrypted backup; `Corrupt`.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Manifest> {
        let damaged = |what: &str| {
            Err(Error::corrupt(format!(
                "{FILE} is damaged: {what}; use another backup"
            )))
        };
        let end = bytes.iter().take(128).position(|byte| *byte == b'\n');
        let (head, body) = match end.and_then(|end| bytes.split_at_checked(end)) {
            Some((head, [_, body @ ..])) => (String::from_utf8_lossy(head), body),
            _ => return damaged("it has no first line"),
        };
        let words: Vec<&str> = head.split(' ').collect();
        let [MAGIC, version, digest] = words.as_slice() else {
            return damaged("its first line is not that of a manifest");
        };
        if let Ok(version @ 2..) = version.parse::<u32>() {
            let message = format!(
                "the backup has format {version}, this program knows up to {FORMAT}; use a newer \
                 program"
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        if *version != FORMAT.to_string() {
            return damaged("its version is no number of a version");
        }
        if *blake3::hash(body).to_hex() != **digest {
            return damaged("its digest differs");
        }
        let manifest: Manifest = match serde_json::from_slice(body) {
            Ok(manifest) => manifest,
            Err(e) => return damaged(&e.to_string()),
        };
        manifest.check().map_or(Ok(manifest), |what| damaged(&what))
    }

    /// What is wrong with a manifest whose digest is right.
    fn check(&self) -> Option<String> {
        if self.encryption.is_some() {
            return Some("it describes an encrypted backup, which format 1 does not have".into());
        }
        if self.identity.engine != self.engine {
            let (store, backup) = (&self.identity.engine, &self.engine);
            return Some(format!("the store is of {store}, the backup of {backup}"));
        }
        if FILES_MAX < self.files.len() {
            return Some(format!("it has more than {FILES_MAX} files"));
        }
        let mut before: BTreeSet<&str> = BTreeSet::new();
        let mut total = 0_u64;
        for file in &self.files {
            let fault = self.fault_of(file, &before);
            if let Some(fault) = fault {
                return Some(format!("file {:?}: {fault}", file.path));
            }
            match total.checked_add(file.size.max(file.stored_size)) {
                Some(sum) => total = sum,
                None => return Some("the sum of its sizes is too large".into()),
            }
            before.insert(&file.path);
        }
        None
    }

    fn fault_of(&self, file: &FileEntry, before: &BTreeSet<&str>) -> Option<String> {
        if let Err(what) = name::check(&file.path) {
            return Some(what.to_owned());
        }
        if before
            .last()
            .is_some_and(|last| file.path.as_str() <= *last)
        {
            return Some("it is not in the order of the paths".into());
        }
        let mut above = file.path.match_indices('/').map(|(at, _)| at);
        if above.any(|at| file.path.get(..at).is_some_and(|dir| before.contains(dir))) {
            return Some("it is below another file".into());
        }
        if !is_digest(&file.digest) || !is_digest(&file.stored_digest) {
            return Some("its digest is not one".into());
        }
        if self.codec.stored_max(file.size) < file.stored_size {
            return Some("it is larger than compression can make it".into());
        }
        let same = file.stored_size == file.size && file.stored_digest == file.digest;
        (self.codec == Codec::None && !same)
            .then(|| "it is stored as it is, and its sizes or digests differ".into())
    }
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn manifest(files: &[&str]) -> Manifest {
        let entry = |path: &&str| FileEntry {
            path: (*path).to_owned(),
            size: 5,
            digest: blake3::hash(b"bytes").to_hex().to_string(),
            stored_size: 5,
            stored_digest: blake3::hash(b"bytes").to_hex().to_string(),
        };
        Manifest {
            product: "0.1.0".into(),
            engine: "betree".into(),
            identity: Identity {
                engine: "betree".into(),
                format: 1,
                created: 1,
                options: String::new(),
            },
            store: Some("ab".into()),
            started: 1,
            ended: 2,
            operation_time: Some(OperationTime {
                seconds: 3,
                increment: 4,
            }),
            codec: Codec::None,
            encryption: None,
            files: files.iter().map(entry).collect(),
        }
    }

    fn refused(manifest: &Manifest) -> String {
        Manifest::decode(&manifest.encode())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_manifest_is_read_back() {
        let one = manifest(&["a", "b/c", "b/d"]);
        assert_eq!(Manifest::decode(&one.encode()).unwrap(), one);
    }

    #[test]
    fn every_flipped_or_missing_byte_is_an_error() {
        let bytes = manifest(&["a", "b/c"]).encode();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut other = bytes.clone();
                other[at] ^= 1 << bit;
                assert!(
                    Manifest::decode(&other).is_err(),
                    "M1: byte {at}, bit {bit}"
                );
            }
            assert!(Manifest::decode(&bytes[..at]).is_err(), "M1: cut at {at}");
            assert!(Manifest::decode(&bytes[at + 1..]).is_err(), "M1: from {at}");
        }
        let longer = [&bytes[..], b"\n"].concat();
        assert!(Manifest::decode(&longer).is_err(), "M1: one more");
    }

    #[test]
    fn a_newer_version_is_refused_by_its_number() {
        let text = String::from_utf8(manifest(&["a"]).encode()).unwrap();
        let newer = text.replacen("backup 1 ", "backup 7 ", 1);
        let error = Manifest::decode(newer.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("format 7"), "{error}");
    }

    #[test]
    fn a_manifest_with_a_right_digest_is_not_trusted_either() {
        for bad in ["../x", "/etc/x", "a/../../b", ""] {
            assert!(
                refused(&manifest(&[bad])).contains("path below"),
                "B4: {bad:?}"
            );
        }
        assert!(refused(&manifest(&["b", "a"])).contains("order"));
        assert!(refused(&manifest(&["a", "a"])).contains("order"));
        assert!(refused(&manifest(&["a", "a-b", "a/b"])).contains("below another"));
        let mut other = manifest(&["a"]);
        other.files[0].stored_size = 6;
        assert!(refused(&other).contains("larger"), "B4");
        other.files[0].stored_size = 4;
        assert!(refused(&other).contains("as it is"));
        other.files[0].digest = "x".into();
        assert!(refused(&other).contains("digest"));
        let mut other = manifest(&["a", "b"]);
        for file in &mut other.files {
            (file.size, file.stored_size) = (u64::MAX, u64::MAX);
        }
        assert!(refused(&other).contains("sum"), "B4");
        let mut other = manifest(&["a"]);
        other.engine = "lmdb".into();
        assert!(refused(&other).contains("betree"), "{}", refused(&other));
        let mut other = manifest(&["a"]);
        other.encryption = Some("aes".into());
        assert!(refused(&other).contains("encrypted"));
        let text = String::from_utf8(manifest(&["a"]).encode()).unwrap();
        let (_, body) = text.split_once('\n').unwrap();
        let body = body.replacen('{', "{\"later\": 1,", 1);
        let head = format!("{MAGIC} 1 {}\n", blake3::hash(body.as_bytes()).to_hex());
        let error = Manifest::decode((head + &body).as_bytes()).unwrap_err();
        assert!(error.to_string().contains("later"), "{error}");
    }
}
