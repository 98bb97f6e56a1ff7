//! Backups that leave out the pieces that an earlier one has.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use kv::{BackupSink, Batch, Compaction, Engine, Flow, KeyRange, Piece, PieceId, Progress};

use crate::bench::Bench;
use crate::verbs::{QUICK, all, change, create, fill_numbered, get, numbered, put};

/// The pieces that were sent, by id.
type Pieces = BTreeMap<PieceId, Vec<u8>>;

/// Receives a backup, whose files it puts together from what is sent and from pieces it has.
struct Receiver<'a> {
    has: &'a mut Pieces,
    /// Whether pieces that it has are left out. Otherwise they are compared.
    skips: bool,
    directory: PathBuf,
    name: String,
    file: Vec<u8>,
    /// The piece that is being received: its id, and where it begins and ends in the file.
    piece: Option<(PieceId, usize, usize)>,
    /// Bytes that were sent, and pieces that were announced.
    sent: usize,
    announced: usize,
    /// Calls until one is answered with `Cancel`; `None` for never.
    left: Option<u64>,
    calls: u64,
}

impl<'a> Receiver<'a> {
    fn new(has: &'a mut Pieces, skips: bool, directory: PathBuf) -> Receiver<'a> {
        Receiver {
            has,
            skips,
            directory,
            name: String::new(),
            file: Vec::new(),
            piece: None,
            sent: 0,
            announced: 0,
            left: None,
            calls: 0,
        }
    }

    fn answer(&mut self) -> Flow {
        assert_ne!(self.left, Some(0), "nothing is sent after a refusal");
        self.calls += 1;
        self.left = self.left.map(|left| left - 1);
        match self.left {
            Some(0) => Flow::Cancel,
            _ => Flow::Continue,
        }
    }
}

impl BackupSink for Receiver<'_> {
    fn preparing(&mut self, _: Progress) -> Flow {
        self.answer()
    }

    fn total(&mut self, _: u64) {}

    fn begin(&mut self, path: &str, _: u64) -> Flow {
        path.clone_into(&mut self.name);
        self.file.clear();
        self.answer()
    }

    fn piece(&mut self, id: PieceId, bytes: u64) -> Piece {
        assert_eq!(self.piece, None, "the piece before is complete");
        self.announced += 1;
        let (start, length) = (self.file.len(), usize::try_from(bytes).unwrap());
        let known = self.has.get(&id);
        if let Some(known) = known {
            assert_eq!(known.len(), length, "a piece has one length");
        }
        let skipped = known.filter(|_| self.skips).cloned();
        if let Some(known) = &skipped {
            self.file.extend_from_slice(known);
        } else {
            self.piece = Some((id, start, start + length));
        }
        match self.answer() {
            Flow::Cancel => Piece::Cancel,
            Flow::Continue if skipped.is_some() => Piece::Skip,
            Flow::Continue => Piece::Send,
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Flow {
        self.sent += bytes.len();
        self.file.extend_from_slice(bytes);
        if let Some((id, start, end)) = self.piece
            && end <= self.file.len()
        {
            assert_eq!(end, self.file.len(), "what follows a piece is sent apart");
            let piece = self.file[start..].to_vec();
            let before = self.has.insert(id, piece);
            let same = before.is_none_or(|before| before == self.file[start..]);
            assert!(same, "pieces with one id have one content");
            self.piece = None;
        }
        self.answer()
    }

    fn finish(&mut self) -> Flow {
        assert_eq!(self.piece, None, "the last piece is complete");
        let path = self.directory.join(&self.name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &self.file).unwrap();
        self.answer()
    }
}

/// Back up into `directory` without the pieces in `has`, which gets the new ones; the bytes sent.
fn increment(db: &dyn Engine, has: &mut Pieces, directory: &Path) -> usize {
    stream(db, Receiver::new(has, true, directory.to_owned())).0
}

/// Back up everything, and compare the pieces with those in `has`.
fn full(db: &dyn Engine, has: &mut Pieces, directory: &Path) -> usize {
    stream(db, Receiver::new(has, false, directory.to_owned())).0
}

/// The bytes sent, the pieces announced and the calls of a backup.
fn stream(db: &dyn Engine, mut receiver: Receiver<'_>) -> (usize, usize, u64) {
    let staging = receiver.directory.with_extension("staging");
    let ended = db.backup_to(&staging, &mut receiver).unwrap();
    assert_eq!(ended, Compaction::Complete);
    (receiver.sent, receiver.announced, receiver.calls)
}

fn settle(db: &dyn Engine) {
    db.settle(Duration::from_secs(60)).unwrap();
}

pub(crate) fn chain_opens_and_equals_the_store(lab: &mut Bench<'_>) {
    let db = lab.open();
    let (t, u) = (create(&*db, "t"), create(&*db, "u"));
    fill_numbered(&*db, t, 2000, b"value");
    fill_numbered(&*db, u, 50, b"of another tree");
    let mut has = Pieces::new();
    full(&*db, &mut has, &lab.path("full"));
    for round in 0..4_u32 {
        for n in 0..20 {
            put(&*db, t, &numbered(round * 100 + n), &round.to_be_bytes());
        }
        match round {
            1 => change(&*db, |txn| txn.delete(t, &numbered(1999)).map(drop)).unwrap(),
            2 => db.drop_tree("u").unwrap(),
            3 => fill_numbered(&*db, create(&*db, "u"), 5, b"again"),
            _ => {}
        }
        let copy = lab.path(&format!("increment {round}"));
        increment(&*db, &mut has, &copy);
        let other = lab.try_open(&copy).unwrap();
        assert_eq!(other.trees().unwrap(), db.trees().unwrap());
        for name in db.trees().unwrap() {
            let (of_copy, of_store) = (other.open_tree(&name), db.open_tree(&name));
            assert!(all(&*other, of_copy.unwrap()) == all(&*db, of_store.unwrap()));
        }
        other.verify().unwrap();
    }
}

pub(crate) fn chain_taken_while_written_is_a_moment_each(lab: &mut Bench<'_>) {
    let db = lab.open();
    let (t, u) = (create(&*db, "t"), create(&*db, "u"));
    fill_numbered(&*db, t, 2000, b"ballast");
    let write = |n: u32| {
        let mut batch = Batch::new();
        batch.put(t, b"n", &n.to_be_bytes());
        batch.put(t, &numbered(n * 7919 % 2000), &n.to_be_bytes());
        batch.put(u, &numbered(n), b"v");
        batch.put(u, b"n", &n.to_be_bytes());
        db.write(&batch, QUICK).unwrap();
    };
    (0..50).for_each(write);
    let (begun, has_begun) = mpsc::channel();
    let paths: Vec<PathBuf> = (0..4).map(|i| lab.path(&format!("copy {i}"))).collect();
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 50..600 {
                write(n);
                // The receiver is gone once all copies are complete.
                let _ = begun.send(());
            }
        });
        has_begun.recv().unwrap();
        let mut has = Pieces::new();
        for path in &paths {
            increment(&*db, &mut has, path);
        }
    });
    let mut before = 49;
    for path in &paths {
        let other = lab.try_open(path).unwrap();
        let (t, u) = (other.open_tree("t").unwrap(), other.open_tree("u").unwrap());
        let number = |tree| {
            let bytes = get(&*other, tree, b"n").expect("written before the copy");
            u32::from_be_bytes(bytes.try_into().unwrap())
        };
        let n = number(t);
        assert_eq!(number(u), n, "both trees at one moment");
        assert!(before <= n, "later than the base");
        before = n;
        assert_eq!(
            all(&*other, u).len(),
            n as usize + 2,
            "a prefix of the commits"
        );
        assert_eq!(all(&*other, t).len(), 2001);
        assert_eq!(
            get(&*other, t, &numbered(n * 7919 % 2000)),
            Some(n.to_be_bytes().to_vec())
        );
    }
}

pub(crate) fn sink_that_fails_anywhere_harms_nothing(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 2000, b"value");
    let mut has = Pieces::new();
    full(&*db, &mut has, &lab.path("full"));
    put(&*db, t, b"n", b"before");
    let mut call = 0;
    loop {
        call += 1;
        // What a failed increment was sent is not kept.
        let mut lost = has.clone();
        let part = lab.path("part");
        let mut receiver = Receiver::new(&mut lost, true, part.clone());
        receiver.left = Some(call);
        let ended = db.backup_to(&lab.path("staging"), &mut receiver).unwrap();
        let refused = receiver.left == Some(0);
        if part.exists() {
            fs::remove_dir_all(&part).unwrap();
        }
        put(&*db, t, b"n", &call.to_be_bytes());
        if !refused {
            assert_eq!(ended, Compaction::Complete, "call {call}");
            break;
        }
    }
    assert!(3 < call, "an increment has some calls");
    increment(&*db, &mut has, &lab.path("copy"));
    let other = lab.try_open(&lab.path("copy")).unwrap();
    let tree = other.open_tree("t").unwrap();
    assert!(all(&*other, tree) == all(&*db, t));
}

pub(crate) fn equal_ids_are_equal_bytes(lab: &mut Bench<'_>) {
    let mut has = Pieces::new();
    let mut db = lab.open();
    create(&*db, "t");
    for round in 0..8_u32 {
        let t = db.open_tree("t").unwrap();
        // The values of all rounds are of one length.
        let value = format!("value of round {round}");
        fill_numbered(&*db, t, 300, value.as_bytes());
        match round % 4 {
            0 => db.checkpoint().unwrap(),
            1 => settle(&*db),
            2 if lab.capabilities().compaction => {
                let ended = db.compact(t, KeyRange::ALL, &mut |_| Flow::Continue);
                ended.unwrap();
            }
            _ => {}
        }
        let sent = full(&*db, &mut has, &lab.path(&format!("copy {round}")));
        assert_ne!(sent, 0);
        // Whatever was not durable by now is lost, and written again with other values.
        drop(db);
        db = lab.open();
    }
}

/// A directory that is put back to an older state continues another history.
pub(crate) fn stores_with_one_past_give_other_pieces(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 300, b"shared");
    db.close().unwrap();
    for name in ["one", "two"] {
        copy(&lab.directory(), &lab.path(name));
    }
    let mut has = Pieces::new();
    for (name, value) in [("one", b"of the one"), ("two", b"of the two")] {
        let db = lab.try_open(&lab.path(name)).unwrap();
        let t = db.open_tree("t").unwrap();
        for part in 0..4 {
            for n in 0..50 {
                put(&*db, t, &numbered(part * 50 + n), value);
            }
            settle(&*db);
            full(&*db, &mut has, &lab.path(&format!("copy {part} of {name}")));
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

pub(crate) fn unchanged_store_sends_little(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    for n in 0..2000 {
        let mut value = vec![0; 500];
        stdx::rng::Rng::new(u64::from(n)).fill(&mut value);
        put(&*db, t, &numbered(n), &value);
    }
    settle(&*db);
    let mut has = Pieces::new();
    let whole = full(&*db, &mut has, &lab.path("full"));
    let sent = increment(&*db, &mut has, &lab.path("increment"));
    assert!(sent < whole / 10, "{sent} of {whole} bytes");
    let other = lab.try_open(&lab.path("increment")).unwrap();
    assert_eq!(all(&*other, other.open_tree("t").unwrap()).len(), 2000);
}

pub(crate) fn lineage_is_of_one_store(lab: &mut Bench<'_>) {
    let db = lab.open();
    let lineage = db.lineage();
    assert!(lineage.is_some());
    full(&*db, &mut Pieces::new(), &lab.path("copy"));
    db.close().unwrap();
    assert_eq!(lab.open().lineage(), lineage, "after reopening");
    let other = lab.try_open(&lab.path("copy")).unwrap();
    assert_ne!(other.lineage(), lineage, "of a copy");
}

pub(crate) fn no_pieces_without_the_capability(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 10, b"value");
    assert_eq!(db.lineage(), None);
    let mut has = Pieces::new();
    let receiver = Receiver::new(&mut has, true, lab.path("copy"));
    let (_, announced, _) = stream(&*db, receiver);
    assert_eq!(announced, 0);
}
