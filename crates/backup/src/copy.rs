//! Copying the files of a backup, and of the bases of an increment, into the directory of a store.
//!
//! A file of an increment is put together from each member of its chain in turn. Every byte that a
//! member has of it is read once, also if it is not used, so that its digest is checked again.

use std::io;
use std::path::{Path, PathBuf};

use kv::identity;
use kv::{Error, Flow, Progress, Result};

use crate::chain::{self, Member, Range};
use crate::directory::create_folder;
use crate::manifest::{FileEntry, Manifest};
use crate::mark::{self, Mark};
use crate::name;
use crate::source::Source;
use crate::target::Output;
use crate::verify::{Stop, cancelled, read_file};

/// A copy in progress.
struct Copy<'a> {
    source: &'a Source,
    manifest: &'a Manifest,
    bases: Vec<Member>,
    directory: &'a Path,
    /// The directories that exist, to be synced.
    folders: Vec<PathBuf>,
    progress: Progress,
    watch: &'a mut dyn FnMut(Progress) -> Flow,
}

/// Copy all files of a backup into `directory`; returns false if `watch` cancelled.
///
/// # Errors
/// `Corrupt`; `Full`, `Io`.
pub(crate) fn all(
    source: &Source,
    manifest: &Manifest,
    directory: &Path,
    watch: &mut dyn FnMut(Progress) -> Flow,
) -> Result<bool> {
    let mut copy = Copy {
        source,
        manifest,
        bases: chain::bases(source, manifest)?,
        directory,
        folders: vec![directory.to_owned()],
        progress: Progress {
            done_bytes: 0,
            total_bytes: manifest.files.iter().map(|file| file.size).sum(),
        },
        watch,
    };
    copy.run()
}

impl Copy<'_> {
    fn run(&mut self) -> Result<bool> {
        let (source, manifest, directory) = (self.source, self.manifest, self.directory);
        // The identity file is the last one (`restore`, R2).
        let (last, files): (Vec<_>, Vec<_>) = manifest
            .files
            .iter()
            .partition(|file| file.path == identity::FILE);
        if last.is_empty() {
            let message = format!("the backup has no file {}", identity::FILE);
            return Err(Error::corrupt(message).with_path(source.path()));
        }
        for file in files {
            if !self.file(file)? {
                return Ok(false);
            }
        }
        let mut mark = Output::create(&directory.join(mark::FILE))?;
        mark.write(&Mark::of(manifest).encode())?;
        mark.sync()?;
        self.sync()?;
        for file in last {
            if !self.file(file)? {
                return Ok(false);
            }
        }
        self.sync()?;
        match identity::read(directory)? {
            Some(found) if found == manifest.identity => Ok(true),
            _ => {
                let message = "the identity file of the backup is not that of its manifest";
                Err(Error::corrupt(message).with_path(source.path()))
            }
        }
    }

    fn sync(&self) -> Result<()> {
        for folder in self.folders.iter().rev() {
            vfs::sync_dir(folder).map_err(|e| Error::io("sync the restored store", folder, e))?;
        }
        Ok(())
    }

    /// Create the folders above a file.
    fn folders_of(&mut self, path: &Path) -> Result<()> {
        let mut missing = Vec::new();
        for above in path.ancestors().skip(1) {
            if self.folders.iter().any(|known| known == above) {
                break;
            }
            missing.push(above.to_owned());
        }
        for folder in missing.into_iter().rev() {
            create_folder(&folder).map_err(|e| Error::io("restore", &folder, e))?;
            self.folders.push(folder);
        }
        Ok(())
    }

    fn file(&mut self, file: &FileEntry) -> Result<bool> {
        let path = name::below(self.directory, &file.path);
        self.folders_of(&path)?;
        let mut output = Output::create(&path)?;
        output.reserve(file.size)?;
        let ranges = chain::ranges(file, &self.bases)?;
        let mut ranges = ranges.into_iter();
        let own = ranges.next().unwrap_or_default();
        let below = self.bases.iter().zip(ranges);
        let below = below.map(|(base, ranges)| (&base.source, &base.manifest, ranges));
        let members = std::iter::once((self.source, self.manifest, own)).chain(below);
        let (progress, watch) = (&mut self.progress, &mut *self.watch);
        let mut tick = |bytes: u64| {
            progress.done_bytes += bytes;
            watch(*progress)
        };
        let mut written = 0;
        for (source, manifest, ranges) in members {
            let here = manifest.files.iter().find(|here| here.path == file.path);
            // What a base has of it may be used by none of its increments any more.
            let Some(here) = here.filter(|_| !ranges.is_empty()) else {
                continue;
            };
            let mut part = Part::new(&ranges, &mut output);
            if !part.copy(source, manifest, here, &mut tick)? {
                return Ok(false);
            }
            written += part.written;
        }
        assert_eq!(written, file.size, "the ranges of a file fill it");
        output.sync().map(|()| true)
    }
}

/// What is copied from one member of a chain.
struct Part<'a> {
    /// Those that are left, in the order of the bytes of the member.
    ranges: &'a [Range],
    /// The offset of the next byte in what the member has.
    at: u64,
    written: u64,
    output: &'a mut Output,
}

impl<'a> Part<'a> {
    fn new(ranges: &'a [Range], output: &'a mut Output) -> Part<'a> {
        Part {
            ranges,
            at: 0,
            written: 0,
            output,
        }
    }

    /// Returns false if `tick` cancelled.
    fn copy(
        &mut self,
        source: &Source,
        manifest: &Manifest,
        file: &FileEntry,
        tick: &mut dyn FnMut(u64) -> Flow,
    ) -> Result<bool> {
        let mut failed = None;
        let read = read_file(source, manifest.codec, file, &mut |bytes| {
            let before = self.written;
            if let Err(error) = self.put(bytes) {
                failed = Some(error);
                return Err(cancelled());
            }
            match tick(self.written - before) {
                Flow::Continue => Ok(()),
                Flow::Cancel => Err::<(), io::Error>(cancelled()),
            }
        });
        match (failed, read) {
            (Some(error), _) | (None, Err(Stop::Failed(error))) => Err(error),
            (None, Err(Stop::Cancelled)) => Ok(false),
            (None, Ok(None)) => Ok(true),
            // It was right when it was verified.
            (None, Ok(Some(problem))) => {
                let message = format!(
                    "the backup changed while it was restored: {}: {problem}",
                    file.path
                );
                Err(Error::corrupt(message).with_path(source.path()))
            }
        }
    }

    /// Write what belongs to a range of the next bytes of the member.
    fn put(&mut self, mut bytes: &[u8]) -> Result<()> {
        while let Some((range, later)) = self.ranges.split_first() {
            let skip = usize::try_from(range.from.saturating_sub(self.at)).unwrap_or(usize::MAX);
            let Some((skipped, rest)) = bytes.split_at_checked(skip) else {
                break;
            };
            self.at += skipped.len() as u64;
            let within = self.at - range.from;
            let left = usize::try_from(range.length - within).unwrap_or(usize::MAX);
            let (now, next) = rest.split_at(left.min(rest.len()));
            self.output.write_at(now, range.to + within)?;
            self.at += now.len() as u64;
            self.written += now.len() as u64;
            bytes = next;
            if now.len() < left {
                break;
            }
            self.ranges = later;
        }
        self.at += bytes.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// In pieces of any length, the same is written.
    #[test]
    fn ranges_are_put_where_they_belong() {
        let range = |(from, to, length)| Range { from, to, length };
        let ranges = [(1, 6, 2), (3, 0, 4), (9, 4, 2)].map(range);
        for piece in 1..=12 {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("file");
            let mut output = Output::create(&path).unwrap();
            let mut part = Part::new(&ranges, &mut output);
            for bytes in b"abcdefghijkl".chunks(piece) {
                part.put(bytes).unwrap();
            }
            assert_eq!((part.written, part.at), (8, 12), "{piece}");
            assert_eq!(fs::read(&path).unwrap(), b"defgjkbc", "{piece}");
        }
    }
}
