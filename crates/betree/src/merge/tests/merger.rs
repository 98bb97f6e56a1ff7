//! Versions distributed over sources by age, with duplicates, must be merged into one sorted list.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use stdx::Tape;

use super::*;

/// Key and seq to op and value.
type Sorted = BTreeMap<(Vec<u8>, Reverse<Seq>), (Op, Vec<u8>)>;

fn list(sorted: &Sorted) -> List {
    let versions = sorted.iter().map(|((key, seq), (op, value))| Version {
        key: key.clone(),
        seq: seq.0,
        op: *op,
        value: value.clone(),
    });
    List {
        versions: versions.collect(),
        ..List::default()
    }
}

fn key(tape: &mut Tape) -> Vec<u8> {
    // Short ones, zeros, and equal first 8 bytes.
    let mut key = vec![5; [0, 0, 8][tape.index(3)]];
    let len = tape.index(4);
    key.extend((0..len).map(|_| tape.byte() % 3));
    key
}

/// Random sources from the oldest to the newest; a source may repeat versions of the previous one.
fn run(tape: &mut Tape) {
    let count = tape.index(12);
    let mut sources: Vec<Sorted> = Vec::new();
    let mut model = Sorted::new();
    let mut seq = 0;
    for _ in 0..count {
        let mut source = Sorted::new();
        for _ in 0..tape.index(40) {
            seq += u64::from(tape.below(3));
            let op = [Op::Put, Op::Delete][tape.index(2)];
            let place = (key(tape), Reverse(Seq(seq)));
            source.insert(place, (op, vec![tape.byte()]));
        }
        if let Some(older) = sources.last().filter(|_| tape.chance(100)) {
            // A replay repeats the newest versions.
            let from = Seq(seq.saturating_sub(20));
            let again = older.iter().filter(|((_, seq), _)| from <= seq.0);
            for (place, (op, _)) in again {
                source.entry(place.clone()).or_insert((*op, vec![99]));
            }
        }
        // The newer source takes precedence.
        model.extend(source.clone());
        sources.push(source);
        seq += 1;
    }
    let newest_first: Vec<List> = sources.iter().rev().map(list).collect();
    assert_eq!(drain(Merger::new(newest_first)), list(&model).versions);
}

#[test]
fn random_sources_merge_to_the_model() {
    // I1 is what the model draws, I3 what it expects.
    for seed in 0..2000 {
        eprintln!("seed {seed}");
        run(&mut Tape::from_seed(seed, 800));
    }
}

fn version(key: &[u8], seq: u64) -> Version {
    Version {
        key: key.to_vec(),
        seq: Seq(seq),
        op: Op::Put,
        value: Vec::new(),
    }
}

#[test]
fn a_rewritten_seq_of_a_newer_source_hides_older_sources() {
    // I2.
    let sources = [vec![(b"k", 0)], vec![(b"k", 5)], vec![(b"k", 5), (b"l", 3)]];
    let sources = sources.map(|list| List {
        versions: list
            .into_iter()
            .map(|(key, seq)| version(key, seq))
            .collect(),
        ..List::default()
    });
    let merged = drain(Merger::new(Vec::from(sources)));
    assert_eq!(merged, [version(b"k", 0), version(b"l", 3)]);
}

#[test]
fn an_error_of_a_source_is_passed_on() {
    let failing = List {
        versions: vec![version(b"a", 1)],
        fails: true,
        ..List::default()
    };
    let sound = List {
        versions: vec![version(b"b", 1)],
        ..List::default()
    };
    let mut merger = Merger::new(vec![sound, failing]);
    let error = merger.advance().unwrap_err();
    assert_eq!(error.kind(), crate::error::ErrorKind::Corrupt);
}
