//! Hot backups.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use crate::bench::Bench;
use crate::verbs::{
    QUICK, all, all_keys, change, create, fill_keys, fill_numbered, numbered, put, refused,
};
use kv::{BackupSink, Batch, Compaction, Engine, ErrorKind, Flow, Progress};

fn copy(db: &dyn Engine, directory: &Path) {
    let ended = db.backup(directory, &mut |_| Flow::Continue).unwrap();
    assert_eq!(ended, Compaction::Complete);
}

pub(crate) fn copy_opens_and_equals_the_store(lab: &mut Bench<'_>) {
    let db = lab.open();
    let (t, u) = (create(&*db, "t"), create(&*db, "u"));
    fill_numbered(&*db, t, 2000, b"value");
    fill_keys(&*db, u, &["a", "b"]);
    create(&*db, "empty");
    let expected = (all(&*db, t), all(&*db, u));
    copy(&*db, &lab.path("copy"));
    let other = lab.try_open(&lab.path("copy")).unwrap();
    assert_eq!(other.trees().unwrap(), ["empty", "t", "u"]);
    let t = other.open_tree("t").unwrap();
    let u = other.open_tree("u").unwrap();
    assert!((all(&*other, t), all(&*other, u)) == expected);
}

pub(crate) fn copy_opens_after_the_store_is_closed(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b"]);
    copy(&*db, &lab.path("copy"));
    db.close().unwrap();
    fs::remove_dir_all(lab.directory()).unwrap();
    let other = lab.try_open(&lab.path("copy")).unwrap();
    assert_eq!(all_keys(&*other, other.open_tree("t").unwrap()), ["a", "b"]);
}

pub(crate) fn copy_and_store_are_independent(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b"]);
    copy(&*db, &lab.path("copy"));
    put(&*db, t, b"c", b"in the store");
    let other = lab.try_open(&lab.path("copy")).unwrap();
    let in_copy = other.open_tree("t").unwrap();
    assert_eq!(all_keys(&*other, in_copy), ["a", "b"]);
    put(&*other, in_copy, b"d", b"in the copy");
    crate::verbs::delete(&*other, in_copy, b"a");
    assert_eq!(all_keys(&*db, t), ["a", "b", "c"]);
    assert_eq!(all_keys(&*other, in_copy), ["b", "d"]);
}

pub(crate) fn existing_empty_directory_is_taken(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a"]);
    fs::create_dir(lab.path("copy")).unwrap();
    copy(&*db, &lab.path("copy"));
    let other = lab.try_open(&lab.path("copy")).unwrap();
    assert_eq!(all_keys(&*other, other.open_tree("t").unwrap()), ["a"]);
}

pub(crate) fn directory_that_holds_anything_is_exists(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a"]);
    let taken = lab.path("taken");
    fs::create_dir(&taken).unwrap();
    fs::write(taken.join("mine"), b"precious").unwrap();
    let result = db.backup(&taken, &mut |_| Flow::Continue);
    assert_eq!(refused(result), ErrorKind::Exists);
    assert_eq!(fs::read(taken.join("mine")).unwrap(), b"precious");
    assert_eq!(fs::read_dir(&taken).unwrap().count(), 1, "nothing is added");
    let result = db.backup(&lab.directory(), &mut |_| Flow::Continue);
    assert_eq!(refused(result), ErrorKind::Exists, "its own directory");
    assert_eq!(all_keys(&*db, t), ["a"]);
}

pub(crate) fn uncommitted_writes_are_not_copied(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a"]);
    let mut txn = db.begin_write().unwrap();
    txn.put(t, b"b", b"uncommitted").unwrap();
    copy(&*db, &lab.path("copy"));
    txn.commit(QUICK).unwrap();
    let other = lab.try_open(&lab.path("copy")).unwrap();
    assert_eq!(all_keys(&*other, other.open_tree("t").unwrap()), ["a"]);
}

pub(crate) fn copy_taken_while_written_is_one_moment(lab: &mut Bench<'_>) {
    taken_while_written_is_one_moment(lab, copy);
}

/// Checks a copy that `copy` makes in a directory while another thread commits.
fn taken_while_written_is_one_moment(lab: &mut Bench<'_>, copy: fn(&dyn Engine, &Path)) {
    let db = lab.open();
    let (t, u) = (create(&*db, "t"), create(&*db, "u"));
    fill_numbered(&*db, t, 2000, b"ballast");
    let write = |n: u32| {
        let mut batch = Batch::new();
        batch.put(t, b"n", &n.to_be_bytes());
        batch.put(u, &numbered(n), b"v");
        batch.put(u, b"n", &n.to_be_bytes());
        db.write(&batch, QUICK).unwrap();
    };
    (0..50).for_each(write);
    let (begun, has_begun) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 50..400 {
                write(n);
                // The receiver is gone once the copy is complete.
                let _ = begun.send(());
            }
        });
        has_begun.recv().unwrap();
        copy(&*db, &lab.path("copy"));
    });
    let other = lab.try_open(&lab.path("copy")).unwrap();
    let (t, u) = (other.open_tree("t").unwrap(), other.open_tree("u").unwrap());
    let number = |tree| {
        let bytes = crate::verbs::get(&*other, tree, b"n").expect("written before the copy");
        u32::from_be_bytes(bytes.try_into().unwrap())
    };
    let n = number(t);
    assert_eq!(number(u), n, "both trees at one moment");
    assert!(50 <= n, "what was committed before is copied");
    assert_eq!(
        all(&*other, u).len(),
        n as usize + 2,
        "a prefix of the commits"
    );
    assert_eq!(all(&*other, t).len(), 2001);
}

pub(crate) fn cancel_ends_it(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 2000, b"value");
    let ended = db.backup(&lab.path("partial"), &mut |_| Flow::Cancel);
    assert_eq!(ended.unwrap(), Compaction::Cancelled);
    assert_eq!(all(&*db, t).len(), 2000);
    copy(&*db, &lab.path("copy"));
    let other = lab.try_open(&lab.path("copy")).unwrap();
    assert_eq!(all(&*other, other.open_tree("t").unwrap()).len(), 2000);
}

pub(crate) fn watch_is_called(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 2000, b"value");
    let mut reports = Vec::new();
    let ended = db.backup(&lab.path("copy"), &mut |progress| {
        reports.push(progress.done_bytes);
        Flow::Continue
    });
    assert_eq!(ended.unwrap(), Compaction::Complete);
    assert!(!reports.is_empty(), "progress is reported");
    assert!(reports.is_sorted(), "work is not undone: {reports:?}");
}

pub(crate) fn empty_store_is_copied(lab: &mut Bench<'_>) {
    let db = lab.open();
    copy(&*db, &lab.path("copy"));
    let other = lab.try_open(&lab.path("copy")).unwrap();
    assert!(other.trees().unwrap().is_empty());
    create(&*other, "t");
}

pub(crate) fn copy_of_a_copy(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a"]);
    copy(&*db, &lab.path("one"));
    let one = lab.try_open(&lab.path("one")).unwrap();
    put(&*one, one.open_tree("t").unwrap(), b"b", b"added");
    copy(&*one, &lab.path("two"));
    let two = lab.try_open(&lab.path("two")).unwrap();
    assert_eq!(all_keys(&*two, two.open_tree("t").unwrap()), ["a", "b"]);
}

pub(crate) fn store_goes_on_after_a_copy(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    for round in 0..3u8 {
        change(&*db, |txn| txn.put(t, &[round], b"v")).unwrap();
        copy(&*db, &lab.path(&format!("copy {round}")));
    }
    db.drop_tree("t").unwrap();
    for round in 0..3u8 {
        let other = lab.try_open(&lab.path(&format!("copy {round}"))).unwrap();
        let found = all(&*other, other.open_tree("t").unwrap()).len();
        assert_eq!(found, usize::from(round) + 1);
    }
}

/// Puts the files of a stream into a directory, and cancels at a call.
struct Files {
    directory: PathBuf,
    file: Option<fs::File>,
    /// Bytes that are still expected: in all, once they are announced, and of the file.
    total: Option<u64>,
    length: u64,
    /// Calls until one is answered with `Cancel`; `None` for never.
    left: Option<u64>,
    calls: u64,
}

impl Files {
    fn new(directory: PathBuf, left: Option<u64>) -> Files {
        Files {
            directory,
            file: None,
            total: None,
            length: 0,
            left,
            calls: 0,
        }
    }

    /// Whether all that was announced has arrived.
    fn is_whole(&self) -> bool {
        self.file.is_none() && self.total == Some(0)
    }

    fn has_refused(&self) -> bool {
        self.left == Some(0)
    }

    fn answer(&mut self) -> Flow {
        assert!(!self.has_refused(), "nothing is sent after a refusal");
        self.calls += 1;
        self.left = self.left.map(|left| left - 1);
        match self.has_refused() {
            true => Flow::Cancel,
            false => Flow::Continue,
        }
    }
}

impl BackupSink for Files {
    fn preparing(&mut self, _: Progress) -> Flow {
        self.answer()
    }

    fn total(&mut self, bytes: u64) {
        self.total = Some(bytes);
    }

    fn begin(&mut self, path: &str, length: u64) -> Flow {
        assert!(self.file.is_none(), "the file before is finished");
        let path = self.directory.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        self.file = Some(fs::File::create_new(path).unwrap());
        self.length = length;
        self.answer()
    }

    fn write(&mut self, bytes: &[u8]) -> Flow {
        self.length -= bytes.len() as u64;
        *self.total.as_mut().unwrap() -= bytes.len() as u64;
        self.file.as_mut().unwrap().write_all(bytes).unwrap();
        self.answer()
    }

    fn finish(&mut self) -> Flow {
        assert_eq!(self.length, 0, "the file has the length that was announced");
        self.file = None;
        self.answer()
    }
}

/// Copy through a stream into `directory`. The number of calls of the sink.
fn stream(db: &dyn Engine, directory: &Path) -> u64 {
    let mut files = Files::new(directory.to_owned(), None);
    let staging = directory.with_extension("staging");
    let ended = db.backup_to(&staging, &mut files).unwrap();
    assert_eq!(ended, Compaction::Complete);
    assert!(files.is_whole(), "all that was announced has arrived");
    assert!(!staging.exists(), "nothing is left of the preparation");
    files.calls
}

pub(crate) fn stream_opens_and_equals_the_store(lab: &mut Bench<'_>) {
    let db = lab.open();
    let (t, u) = (create(&*db, "t"), create(&*db, "u"));
    fill_numbered(&*db, t, 2000, b"value");
    fill_keys(&*db, u, &["a", "b"]);
    create(&*db, "empty");
    let expected = (all(&*db, t), all(&*db, u));
    stream(&*db, &lab.path("copy"));
    let other = lab.try_open(&lab.path("copy")).unwrap();
    assert_eq!(other.trees().unwrap(), ["empty", "t", "u"]);
    let t = other.open_tree("t").unwrap();
    let u = other.open_tree("u").unwrap();
    assert!((all(&*other, t), all(&*other, u)) == expected);
}

pub(crate) fn stream_taken_while_written_is_one_moment(lab: &mut Bench<'_>) {
    taken_while_written_is_one_moment(lab, |db, directory| {
        stream(db, directory);
    });
}

pub(crate) fn stream_that_fails_anywhere_harms_nothing(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 2000, b"value");
    let calls = stream(&*db, &lab.path("whole"));
    for call in 1..=calls {
        let part = lab.path("part");
        let mut files = Files::new(part.clone(), Some(call));
        let staging = lab.path("staging");
        let ended = db.backup_to(&staging, &mut files).unwrap();
        // Background work may leave fewer calls to a later copy than to the first one, but not
        // fewer than those of one file.
        assert!(files.has_refused() || 3 < call, "call {call}: not refused");
        if ended == Compaction::Complete {
            assert!(files.is_whole(), "call {call}: cut short");
        } else {
            assert!(files.has_refused(), "call {call}: not refused");
        }
        assert!(!staging.exists(), "call {call}: the preparation is left");
        if part.exists() {
            fs::remove_dir_all(&part).unwrap();
        }
        put(&*db, t, b"n", &call.to_be_bytes());
    }
    assert_eq!(all(&*db, t).len(), 2001);
    stream(&*db, &lab.path("copy"));
    let other = lab.try_open(&lab.path("copy")).unwrap();
    assert_eq!(all(&*other, other.open_tree("t").unwrap()).len(), 2001);
}

pub(crate) fn stream_is_unsupported_without_the_capability(lab: &mut Bench<'_>) {
    let db = lab.open();
    create(&*db, "t");
    let mut files = Files::new(lab.path("copy"), None);
    let result = db.backup_to(&lab.path("staging"), &mut files);
    assert_eq!(refused(result), ErrorKind::Unsupported);
    assert!(!lab.path("staging").exists());
}

pub(crate) fn is_unsupported_without_the_capability(lab: &mut Bench<'_>) {
    let db = lab.open();
    create(&*db, "t");
    let result = db.backup(&lab.path("copy"), &mut |_| Flow::Continue);
    assert_eq!(refused(result), ErrorKind::Unsupported);
}
