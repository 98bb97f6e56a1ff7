//! Interleaved pushes, reads at snapshots, and a freeze, against the model.

use stdx::Tape;

use super::model::Model;
use super::*;

/// Keys of one run share `prefix`; the rest is short, so that keys repeat, are prefixes of each
/// other, and have equal heads.
struct Keys {
    prefix: Vec<u8>,
    middle: usize,
}

impl Keys {
    fn new(tape: &mut Tape) -> Keys {
        Keys {
            prefix: vec![7; tape.index(4)],
            middle: *[0, 0, 3, 9, 300].get(tape.index(5)).unwrap(),
        }
    }

    fn next(&self, tape: &mut Tape) -> Vec<u8> {
        let mut key = self.prefix.clone();
        if !tape.chance(30) {
            key.extend(std::iter::repeat_n(1, self.middle));
        }
        let len = tape.index(4);
        key.extend((0..len).map(|_| [0, 1, 2, 255][tape.index(4)]));
        key
    }

    /// Any key, with the prefix or not.
    fn any(&self, tape: &mut Tape) -> Vec<u8> {
        match tape.below(8) {
            0 => vec![6; 3],
            1 => vec![7; tape.index(6)],
            2 => vec![8],
            _ => self.next(tape),
        }
    }

    fn bound(&self, tape: &mut Tape) -> Bound<Vec<u8>> {
        match tape.below(4) {
            0 => Bound::Unbounded,
            1 => Bound::Excluded(self.any(tape)),
            _ => Bound::Included(self.any(tape)),
        }
    }
}

fn push(buffer: &Buffer, model: &mut Model, keys: &Keys, seq: &mut u64, tape: &mut Tape) {
    let count = [1, 1, 3, 20, 200][tape.index(5)];
    let mut guard = buffer.lock();
    for n in 0..count {
        *seq += u64::from(tape.below(2));
        if tape.chance(3) {
            *seq += 1 << 40;
        }
        let value = match tape.below(6) {
            0 => vec![1; 300],
            1..=3 => format!("{seq}.{n}").into_bytes(),
            _ => Vec::new(),
        };
        let delete = tape.chance(60);
        let version = Version {
            key: keys.next(tape),
            seq: Seq(*seq),
            op: if delete { Op::Delete } else { Op::Put },
            value: if delete { Vec::new() } else { value },
        };
        guard.push(version.seq, version.op, &version.key, &version.value);
        model.push(version);
    }
}

fn check_get(buffer: &Buffer, model: &Model, keys: &Keys, snapshot: Seq, tape: &mut Tape) {
    // I2: versions of one seq are pushed, the last one counts.
    let key = keys.any(tape);
    let mut value = b"kept if absent".to_vec();
    let found = buffer.get(&key, snapshot, &mut value);
    match model.get(&key, snapshot) {
        Some(version) => {
            assert_eq!(found, Some((version.seq, version.op)));
            assert_eq!(value, version.value);
        }
        None => {
            assert_eq!(found, None);
            assert_eq!(value, b"kept if absent");
        }
    }
}

fn check_window(buffer: &Buffer, model: &Model, keys: &Keys, snapshot: Seq, tape: &mut Tape) {
    let direction = [Direction::Forward, Direction::Backward][tape.index(2)];
    let mut from = keys.bound(tape);
    let to = keys.bound(tape);
    let limit = [1, 2, 5, 1000][tape.index(4)];
    let expected = model.range(direction, bound(&from), bound(&to), snapshot);
    let mut got = Vec::new();
    let mut window = Window::default();
    loop {
        let (begin, end) = (bound(&from), bound(&to));
        buffer.window(direction, begin, end, snapshot, limit, &mut window);
        assert!(window.len() <= limit);
        got.extend(entries(&window));
        if window.exhausted() {
            break;
        }
        assert!(
            !window.is_empty(),
            "a window that is not exhausted has entries"
        );
        from = Bound::Excluded(got.last().unwrap().key.clone());
    }
    assert_eq!(got, expected);
}

fn check_sorted(buffer: &Buffer, model: &Model, keys: &Keys, tape: &mut Tape) {
    let all = model.all();
    assert_eq!(drain(buffer.sorted()), all);
    let (lo, hi) = (keys.any(tape), tape.chance(128).then(|| keys.any(tape)));
    let part = buffer.sorted().range(&lo, hi.as_deref());
    let mut expected = all;
    expected.retain(|version| lo <= version.key && hi.as_ref().is_none_or(|hi| version.key < *hi));
    let ends = expected.first().zip(expected.last());
    let ends = ends.map(|(a, b)| (a.key.as_slice(), b.key.as_slice()));
    assert_eq!(part.bounds(), ends);
    assert_eq!(part.remaining(), expected.len());
    assert_eq!(drain(part), expected);
}

fn run(tape: &mut Tape) {
    let keys = Keys::new(tape);
    let buffer = Buffer::new(tape.index(keys.prefix.len() + 1));
    let mut model = Model::default();
    let mut seq = 0;
    let mut frozen = false;
    while !tape.is_empty() {
        let snapshot = match tape.below(3) {
            0 => Seq::MAX,
            _ => Seq(u64::from(tape.byte()) * seq / 255),
        };
        match tape.below(10) {
            0..=3 if !frozen => push(&buffer, &mut model, &keys, &mut seq, tape),
            0..=3 => check_sorted(&buffer, &model, &keys, tape),
            4..=6 => check_get(&buffer, &model, &keys, snapshot, tape),
            7..=8 => check_window(&buffer, &model, &keys, snapshot, tape),
            _ if tape.chance(40) => {
                buffer.freeze();
                frozen = true;
            }
            _ => {}
        }
    }
    buffer.freeze();
    check_sorted(&buffer, &model, &keys, tape);
}

#[test]
fn random_buffers_agree_with_the_model() {
    for seed in 0..300 {
        eprintln!("seed {seed}");
        run(&mut Tape::from_seed(seed, 2000));
    }
}
