//! Verifying a backup without restoring it: every file is read, decompressed and digested.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Read};

use kv::{Error, Flow, Progress, Result};

use crate::chain;
use crate::codec::{self, Codec};
use crate::directory::FILES;
use crate::entry::Kind;
use crate::manifest::{FileEntry, Manifest};
use crate::source::Source;

/// What is wrong with a file of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// It is in the manifest and not in the backup.
    Missing,
    /// It is in the backup and not in the manifest.
    Surplus,
    /// It is shorter than the manifest states.
    Truncated {
        /// Bytes in the manifest.
        expected: u64,
        /// Bytes in the backup.
        found: u64,
    },
    /// It is longer than the manifest states.
    Longer {
        /// Bytes in the manifest.
        expected: u64,
        /// Bytes in the backup.
        found: u64,
    },
    /// Its bytes are not those that were written.
    Altered,
    /// It is a link or another special file.
    NotAFile,
    /// It cannot be read.
    Unreadable(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Missing => f.write_str("missing"),
            Problem::Surplus => f.write_str("not part of the backup"),
            Problem::Truncated { expected, found } => {
                write!(f, "truncated: {found} of {expected} bytes")
            }
            Problem::Longer { expected, found } => {
                write!(f, "too long: {found} bytes, {expected} were written")
            }
            Problem::Altered => f.write_str("altered: its digest differs"),
            Problem::NotAFile => f.write_str("not a regular file"),
            Problem::Unreadable(why) => write!(f, "cannot be read: {why}"),
        }
    }
}

/// A file of a backup with a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its name in the backup.
    pub name: String,
    /// What is wrong with it.
    pub problem: Problem,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.problem)
    }
}

/// The outcome of a check.
#[derive(Clone, Debug)]
pub struct Report {
    /// The manifest, which is valid.
    pub manifest: Manifest,
    /// The names of the bases of an increment, the newest first.
    pub bases: Vec<String>,
    /// What is wrong; nothing for a good backup.
    pub findings: Vec<Finding>,
}

/// Check a backup, and the bases of an increment. `watch` is called at least once for every 1 MiB.
/// Returns `None` if it cancelled. Findings of a base begin with its name.
///
/// # Errors
/// Those of [`Source::manifest`]; `NotFound` for a base that is missing, `Corrupt` for one that is
/// another backup.
pub fn verify(source: &Source, watch: &mut dyn FnMut(Progress) -> Flow) -> Result<Option<Report>> {
    let manifest = source.manifest()?;
    let bases = chain::bases(source, &manifest)?;
    let own = |manifest: &Manifest| manifest.files.iter().map(FileEntry::own).sum::<u64>();
    let below = bases.iter().map(|base| own(&base.manifest));
    let mut progress = Progress {
        done_bytes: 0,
        total_bytes: below.sum::<u64>() + own(&manifest),
    };
    let mut take = |bytes: &[u8]| {
        progress.done_bytes += bytes.len() as u64;
        match watch(progress) {
            Flow::Continue => Ok(()),
            Flow::Cancel => Err(cancelled()),
        }
    };
    let Some(mut findings) = verify_one(source, &manifest, &mut take)? else {
        return Ok(None);
    };
    for base in &bases {
        let Some(found) = verify_one(&base.source, &base.manifest, &mut take)? else {
            return Ok(None);
        };
        findings.extend(found.into_iter().map(|finding| Finding {
            name: format!("{}/{}", base.name, finding.name),
            ..finding
        }));
    }
    let bases = bases.into_iter().map(|base| base.name).collect();
    Ok(Some(Report {
        manifest,
        bases,
        findings,
    }))
}

/// What is wrong with one member of a chain; `None` if `take` cancelled.
fn verify_one(
    source: &Source,
    manifest: &Manifest,
    take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<Option<Vec<Finding>>> {
    let mut findings = strangers(source, manifest);
    for file in &manifest.files {
        match read_file(source, manifest.codec, file, take) {
            Ok(None) => {}
            Ok(Some(problem)) => findings.push(Finding {
                name: stored_name(file),
                problem,
            }),
            Err(Stop::Cancelled) => return Ok(None),
            Err(Stop::Failed(error)) => return Err(error),
        }
    }
    findings.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Some(findings))
}

/// The name of a file in the backup.
fn stored_name(file: &FileEntry) -> String {
    format!("{FILES}/{}", file.path)
}

/// Entries that do not belong to the backup.
fn strangers(source: &Source, manifest: &Manifest) -> Vec<Finding> {
    let files: BTreeSet<String> = manifest.files.iter().map(stored_name).collect();
    let mut folders: BTreeSet<&str> = [FILES].into();
    for name in &files {
        folders.extend(name.match_indices('/').filter_map(|(at, _)| name.get(..at)));
    }
    let mut findings = Vec::new();
    for (name, entry) in source.entries() {
        let known = match entry.kind {
            Kind::Directory => folders.contains(name),
            // A listed name that is no regular file is found when it is read.
            _ => files.contains(name),
        };
        if !known {
            findings.push(Finding {
                name: name.to_owned(),
                problem: Problem::Surplus,
            });
        }
    }
    findings
}

/// Why reading a file ended.
pub(crate) enum Stop {
    /// The receiver of its content said so.
    Cancelled,
    /// The receiver failed.
    Failed(Error),
}

/// The error by which a receiver of content ends the reading.
pub(crate) fn cancelled() -> io::Error {
    io::ErrorKind::Interrupted.into()
}

/// Read what a backup has of a file, pass the content to `take`, and compare it with the manifest.
/// If there is a problem, what `take` got is wrong.
pub(crate) fn read_file(
    source: &Source,
    codec: Codec,
    file: &FileEntry,
    take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<Option<Problem>, Stop> {
    let name = stored_name(file);
    let expected = file.stored_size;
    match source.kind(&name) {
        None => return Ok(Some(Problem::Missing)),
        Some(Kind::File { size: found, .. }) if found < expected => {
            return Ok(Some(Problem::Truncated { expected, found }));
        }
        Some(Kind::File { size: found, .. }) if expected < found => {
            return Ok(Some(Problem::Longer { expected, found }));
        }
        Some(Kind::File { .. }) => {}
        Some(_) => return Ok(Some(Problem::NotAFile)),
    }
    let reader = match source.read(&name) {
        Ok(reader) => reader,
        Err(e) => return Ok(Some(Problem::Unreadable(e.to_string()))),
    };
    let mut reader = Digesting {
        inner: reader,
        digest: (codec != Codec::None).then(blake3::Hasher::new),
    };
    let mut content = blake3::Hasher::new();
    let mut ended = None;
    let read = codec::decode(codec, file.own(), &mut reader, &mut |bytes| {
        content.update(bytes);
        take(bytes).map_err(|e| {
            let kind = e.kind();
            ended = Some(e);
            kind.into()
        })
    });
    match (ended, read) {
        (Some(e), _) if e.kind() == io::ErrorKind::Interrupted => Err(Stop::Cancelled),
        (Some(e), _) => Err(Stop::Failed(Error::io("write", source.path(), e))),
        (None, Err(e)) if e.raw_os_error().is_some() => {
            Ok(Some(Problem::Unreadable(e.to_string())))
        }
        (None, Err(_)) => Ok(Some(Problem::Altered)),
        (None, Ok(())) => {
            let digest = content.finalize().to_hex();
            let stored = reader
                .digest
                .map_or(digest, |stored| stored.finalize().to_hex());
            let same = *digest == file.digest && *stored == file.stored_digest;
            Ok((!same).then_some(Problem::Altered))
        }
    }
}

/// Digests what is read.
struct Digesting<R> {
    inner: R,
    digest: Option<blake3::Hasher>,
}

impl<R: Read> Read for Digesting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        if let (Some(digest), Some(bytes)) = (&mut self.digest, buffer.get(..read)) {
            digest.update(bytes);
        }
        Ok(read)
    }
}
