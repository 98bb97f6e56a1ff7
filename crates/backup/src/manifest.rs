//! The manifest: what a backup is, in one file that is written last.
//!
//! ```text
//! romanesco-backup 1 <64 hexadecimal digits>\n
//! {"product": ..., "engine": ..., "files": [{"path": ..., "size": ...}, ...]}
//! ```
//!
//! The digits are the BLAKE3 digest of the bytes after the first line. A field that this version
//! does not know is an error. Format 2 is that of backups with a lineage: their files may have
//! pieces, and they may be increments. Others are written in format 1.
//!
//! - M1. Every changed, missing or additional byte of a manifest is an error.

use std::collections::BTreeSet;

use kv::identity::Identity;
use kv::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use crate::codec::Codec;
use crate::name;
use crate::pieces::Pieces;

/// The name of the manifest in a backup.
pub const FILE: &str = "backup.manifest";

/// The newest version of the format of backups that this program writes and reads.
pub const FORMAT: u32 = 2;

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
    /// The store whose pieces the files have, in hexadecimal (32 digits): only its backups may have
    /// a piece in common.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage: Option<String>,
    /// The backup that has what an increment leaves out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Base>,
    /// The files, in the order of their paths.
    pub files: Vec<FileEntry>,
}

/// The base of an increment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Base {
    /// The name of its directory or archive, beside that of the increment.
    pub name: String,
    /// The digest in the first line of its manifest.
    pub digest: String,
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
    /// The BLAKE3 digest of its bytes, in hexadecimal; without those that are in the base.
    pub digest: String,
    /// Its length in the backup.
    pub stored_size: u64,
    /// The digest of these bytes.
    pub stored_digest: String,
    /// Its pieces, where the engine has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pieces: Option<Pieces>,
}

impl FileEntry {
    /// Bytes of its content that are in the base.
    #[must_use]
    pub fn kept(&self) -> u64 {
        self.pieces.as_ref().map_or(0, Pieces::kept)
    }

    /// Bytes of its content that are in this backup.
    pub(crate) fn own(&self) -> u64 {
        self.size - self.kept()
    }
}

impl Manifest {
    /// Whether format 1 cannot describe it.
    fn is_new(&self) -> bool {
        let pieces = self.files.iter().any(|file| file.pieces.is_some());
        self.lineage.is_some() || self.base.is_some() || pieces
    }

    /// The bytes of the manifest file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let body = serde_json::to_vec_pretty(self).expect("plain data serialises");
        let digest = blake3::hash(&body).to_hex();
        let format = if self.is_new() { FORMAT } else { 1 };
        [format!("{MAGIC} {format} {digest}\n").as_bytes(), &body].concat()
    }

    /// Read the bytes of a manifest file. Also returns the digest in its first line.
    ///
    /// # Errors
    /// `Unsupported` for a newer version or an encrypted backup; `Corrupt`.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Manifest, String)> {
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
        let number = version.parse::<u32>().unwrap_or(0);
        if FORMAT < number {
            let version = number;
            let message = format!(
                "the backup has format {version}, this program knows up to {FORMAT}; use a newer \
                 program"
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        if *version != number.to_string() || number == 0 {
            return damaged("its version is no number of a version");
        }
        if *blake3::hash(body).to_hex() != **digest {
            return damaged("its digest differs");
        }
        let manifest: Manifest = match serde_json::from_slice(body) {
            Ok(manifest) => manifest,
            Err(e) => return damaged(&e.to_string()),
        };
        match manifest.check(number) {
            None => Ok((manifest, (*digest).to_owned())),
            Some(what) => damaged(&what),
        }
    }

    /// What is wrong with a manifest whose digest is right.
    fn check(&self, format: u32) -> Option<String> {
        if (1 < format) != self.is_new() {
            return Some("its fields are those of another format".into());
        }
        if let Some(what) = self.fault_of_base() {
            return Some(what.into());
        }
        if self.encryption.is_some() {
            return Some("it describes an encrypted backup, which no format has yet".into());
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

    fn fault_of_base(&self) -> Option<&'static str> {
        let digits = |text: &String| text.len() == 32 && is_hexadecimal(text);
        if !self.lineage.iter().all(digits) {
            return Some("its lineage is no number of a store");
        }
        let base = self.base.as_ref()?;
        if base.name.contains('/') || name::check(&base.name).is_err() {
            return Some("the name of its base is not one");
        }
        if !is_digest(&base.digest) {
            return Some("the digest of its base is not one");
        }
        self.lineage
            .is_none()
            .then_some("an increment has a lineage")
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
        if let Some(pieces) = &file.pieces {
            if let Some(what) = pieces.fault(file.size) {
                return Some(what.to_owned());
            }
            if self.lineage.is_none() {
                return Some("it has pieces of no store".into());
            }
            if self.base.is_none() && pieces.kept() != 0 {
                return Some("a part of it is in a base, which the backup does not have".into());
            }
        }
        if self.codec.stored_max(file.own()) < file.stored_size {
            return Some("it is larger than compression can make it".into());
        }
        let same = file.stored_size == file.own() && file.stored_digest == file.digest;
        (self.codec == Codec::None && !same)
            .then(|| "it is stored as it is, and its sizes or digests differ".into())
    }
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && is_hexadecimal(text)
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::pieces::Piece;

    pub(crate) fn manifest(files: &[&str]) -> Manifest {
        let entry = |path: &&str| FileEntry {
            path: (*path).to_owned(),
            size: 5,
            digest: blake3::hash(b"bytes").to_hex().to_string(),
            stored_size: 5,
            stored_digest: blake3::hash(b"bytes").to_hex().to_string(),
            pieces: None,
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
            lineage: None,
            base: None,
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
        assert_eq!(Manifest::decode(&one.encode()).unwrap().0, one);
        assert!(one.encode().starts_with(b"romanesco-backup 1 "));
        let (two, digest) = Manifest::decode(&increment().encode()).unwrap();
        assert_eq!(two, increment());
        let head = format!("romanesco-backup 2 {digest}\n");
        assert!(two.encode().starts_with(head.as_bytes()));
    }

    /// A manifest of an increment: of 5 bytes it has 3.
    fn increment() -> Manifest {
        let mut manifest = manifest(&["a"]);
        manifest.lineage = Some("ab".repeat(16));
        manifest.base = Some(Base {
            name: "monday".into(),
            digest: "0".repeat(64),
        });
        let piece = |id, kept, length| Piece {
            id: [id; 16],
            gap: 1,
            length,
            kept,
        };
        let file = &mut manifest.files[0];
        file.pieces = Some(Pieces(vec![piece(1, true, 2), piece(2, false, 1)]));
        file.stored_size = 3;
        manifest
    }

    #[test]
    fn an_increment_that_is_inconsistent_is_refused() {
        let wrong = |change: &dyn Fn(&mut Manifest)| {
            let mut other = increment();
            change(&mut other);
            refused(&other)
        };
        let missing = wrong(&|m| m.base = None);
        assert!(missing.contains("does not have"), "{missing}");
        assert!(wrong(&|m| m.lineage = None).contains("lineage"));
        assert!(wrong(&|m| m.lineage = Some("x".into())).contains("lineage"));
        for name in ["../monday", "a/b", "", ".."] {
            let change = |m: &mut Manifest| m.base.as_mut().unwrap().name = name.into();
            assert!(wrong(&change).contains("name of its base"), "B4: {name:?}");
        }
        let digest = |m: &mut Manifest| m.base.as_mut().unwrap().digest = "1".into();
        assert!(wrong(&digest).contains("digest of its base"));
        let size = |m: &mut Manifest| m.files[0].size = 4;
        assert!(wrong(&size).contains("larger than it is"), "B4");
        let stored = |m: &mut Manifest| m.files[0].stored_size = 4;
        assert!(wrong(&stored).contains("larger than compression"), "B4");
        // The fields of one format under the number of the other.
        for (manifest, from, to) in [
            (increment(), " 2 ", " 1 "),
            (manifest(&["a"]), " 1 ", " 2 "),
        ] {
            let text = String::from_utf8(manifest.encode()).unwrap();
            let other = text.replacen(from, to, 1);
            let error = Manifest::decode(other.as_bytes()).unwrap_err();
            assert!(error.to_string().contains("another format"), "{error}");
        }
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
