//! Kernel files that are read repeatedly.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Maximum bytes read of one file, 64 KiB: the longest files (`memory.stat`, `io.stat` with many
/// disks) have a few KiB.
const LIMIT: usize = 64 << 10;

/// A file kept open, with a buffer for its contents. The kernel generates the contents again
/// whenever the file is read from its start.
#[derive(Debug)]
pub(super) struct Source {
    path: PathBuf,
    file: Option<File>,
    buffer: Vec<u8>,
}

impl Source {
    pub(super) fn new(path: PathBuf) -> Source {
        Source {
            path,
            file: None,
            buffer: Vec::new(),
        }
    }

    pub(super) fn in_dir(directory: &Path, name: &str) -> Source {
        Source::new(directory.join(name))
    }

    /// The current contents of the file; `None` if it cannot be read.
    pub(super) fn read(&mut self) -> Option<&str> {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let file = self.file.as_ref()?;
        let length = match fill(file, &mut self.buffer) {
            Some(length) => length,
            None => {
                // The process or group that the file describes has ended: close the file.
                self.file = None;
                return None;
            }
        };
        std::str::from_utf8(self.buffer.get(..length)?).ok()
    }
}

/// Read a file from its start, growing `buffer` as needed; `None` on failure.
fn fill(file: &File, buffer: &mut Vec<u8>) -> Option<usize> {
    if buffer.is_empty() {
        buffer.resize(4096, 0);
    }
    let mut length = 0;
    loop {
        if length == buffer.len() {
            if length >= LIMIT {
                return Some(length);
            }
            buffer.resize(length * 2, 0);
        }
        let rest = buffer.get_mut(length..)?;
        match file.read_at(rest, length as u64).ok()? {
            0 => return Some(length),
            n => length += n,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_read_again_whole_and_a_missing_one_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let mut source = Source::in_dir(dir.path(), "f");
        assert_eq!(source.read(), None);
        fs::write(&path, "a".repeat(10_000)).unwrap();
        assert_eq!(source.read().unwrap().len(), 10_000);
        fs::write(&path, "b").unwrap();
        assert_eq!(source.read().unwrap(), "b");
    }
}
