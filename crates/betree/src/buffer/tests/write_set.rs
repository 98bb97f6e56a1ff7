//! Write sets against a map and a list.

use std::collections::BTreeMap;

use stdx::Tape;

use super::*;

fn run(tape: &mut Tape) {
    let mut set = WriteSet::new();
    let mut list = Vec::new();
    let mut map = BTreeMap::new();
    while !tape.is_empty() {
        let key = vec![tape.byte() % 16; tape.index(12)];
        match tape.below(6) {
            0..=3 => {
                let (op, value) = match tape.chance(80) {
                    true => (Op::Delete, Vec::new()),
                    false => (Op::Put, vec![tape.byte(); tape.index(40)]),
                };
                let checked = tape.chance(128);
                set.push(op, &key, &value, checked);
                list.push((op, key.clone(), value.clone(), checked));
                map.insert(key, (op, value));
            }
            4 => {
                let mut value = Vec::new();
                let found = set.get(&key, &mut value).map(|op| (op, value));
                assert_eq!(found.as_ref(), map.get(&key));
            }
            _ => check_window(&set, &map, tape),
        }
    }
    assert_eq!(set.entries(), list.len());
    let writes = set.iter().map(|write| {
        let (key, value) = (write.key.to_vec(), write.value.to_vec());
        (write.op, key, value, write.checked)
    });
    assert!(writes.eq(list));
}

fn check_window(set: &WriteSet, map: &BTreeMap<Vec<u8>, (Op, Vec<u8>)>, tape: &mut Tape) {
    let from = vec![tape.byte() % 16; tape.index(12)];
    let limit = 1 + tape.index(30);
    let mut window = Window::default();
    let backward = tape.chance(128);
    let direction = [Direction::Forward, Direction::Backward][usize::from(backward)];
    let (begin, end) = (Bound::Included(from.as_slice()), Bound::Unbounded);
    set.window(direction, begin, end, limit, &mut window);
    let all = map
        .iter()
        .map(|(key, (op, value))| (key.clone(), *op, value.clone()));
    let expected: Vec<_> = if backward {
        all.rev().filter(|(key, ..)| *key <= from).collect()
    } else {
        all.filter(|(key, ..)| from <= *key).collect()
    };
    assert_eq!(window.exhausted(), expected.len() <= limit);
    let got = entries(&window).into_iter().map(|v| (v.key, v.op, v.value));
    assert!(got.eq(expected.into_iter().take(limit)));
}

#[test]
fn random_write_sets_agree_with_a_map_and_a_list() {
    for seed in 0..300 {
        eprintln!("seed {seed}");
        run(&mut Tape::from_seed(seed, 1500));
    }
}

#[test]
fn an_empty_write_set_holds_no_memory() {
    let set = WriteSet::new();
    assert_eq!((set.bytes(), set.entries()), (0, 0));
    assert_eq!(set.get(b"a", &mut Vec::new()), None);
}
