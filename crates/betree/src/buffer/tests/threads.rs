//! Readers while a writer pushes, and while the buffer is frozen.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stdx::sync::spawn;

use super::*;

const KEYS: u64 = 50;
const COMMITS: u64 = 3_000;

fn key(n: u64) -> [u8; 8] {
    (n.wrapping_mul(0x9E37_79B9_7F4A_7C15)).to_be_bytes()
}

/// Check a reader at a snapshot: for key `n` it must see the last commit that wrote it, which is a
/// number congruent to `n` modulo `KEYS`. The value names the commit.
fn check(buffer: &Buffer, snapshot: u64, direction: Direction) {
    let wanted = |n: u64| (1..=snapshot).rev().find(|seq| seq % KEYS == n);
    let mut value = Vec::new();
    let n = snapshot % KEYS;
    let found = buffer.get(&key(n), Seq(snapshot), &mut value);
    assert_eq!(found.map(|(seq, _)| seq.0), wanted(n));
    if let Some((seq, _)) = found {
        assert_eq!(value, seq.0.to_be_bytes());
    }
    let mut window = Window::default();
    let all = Bound::Unbounded;
    buffer.window(direction, all, all, Seq(snapshot), usize::MAX, &mut window);
    assert!(window.exhausted());
    assert_eq!(window.len() as u64, snapshot.min(KEYS));
    for version in entries(&window) {
        let n = version.seq.0 % KEYS;
        assert_eq!(version.key, key(n));
        assert_eq!(Some(version.seq.0), wanted(n));
    }
}

#[test]
fn readers_see_their_snapshot_while_a_writer_pushes_and_freezes() {
    let buffer = Arc::new(Buffer::new(0));
    let published = Arc::new(AtomicU64::new(0));
    let readers: Vec<_> = [Direction::Forward, Direction::Backward]
        .into_iter()
        .map(|direction| {
            let (buffer, published) = (Arc::clone(&buffer), Arc::clone(&published));
            spawn("reader", move || {
                loop {
                    let snapshot = published.load(Ordering::Acquire);
                    check(&buffer, snapshot, direction);
                    if snapshot == COMMITS && buffer.is_frozen() {
                        check(&buffer, snapshot, direction);
                        return;
                    }
                }
            })
            .unwrap()
        })
        .collect();
    for seq in 1..=COMMITS {
        buffer.push(Seq(seq), Op::Put, &key(seq % KEYS), &seq.to_be_bytes());
        published.store(seq, Ordering::Release);
    }
    buffer.freeze();
    assert_eq!(drain(buffer.sorted()).len() as u64, COMMITS);
    for reader in readers {
        reader.join().unwrap();
    }
}
