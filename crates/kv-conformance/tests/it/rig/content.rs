//! The file in which the rig stores its content: all trees and their entries; each string follows
//! its length.

use std::fs;
use std::path::Path;

use kv::{Batch, Direction, Durability, Engine, KeyRange, Snapshot, TreeOptions};

/// The name of the file.
pub(crate) const FILE: &str = "content";

fn push(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap().to_be_bytes());
    out.extend_from_slice(bytes);
}

fn pull<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let (length, after) = rest.split_at(4);
    let length = u32::from_be_bytes(length.try_into().unwrap()) as usize;
    let (bytes, after) = after.split_at(length);
    *rest = after;
    bytes
}

/// Write the trees `names`, as `view` reads them, to a file in `directory`; entries for which
/// `keep` is false are omitted.
pub(crate) fn save(
    directory: &Path,
    engine: &dyn Engine,
    view: &dyn Snapshot,
    names: &[String],
    keep: &dyn Fn(&[u8]) -> bool,
) -> kv::Result<()> {
    let mut out = Vec::new();
    for name in names {
        push(&mut out, name.as_bytes());
        if let Ok(tree) = engine.open_tree(name) {
            let mut cursor = view.cursor(tree, KeyRange::ALL, Direction::Forward)?;
            while cursor.advance()? {
                if keep(cursor.key()) {
                    // Each entry follows a mark byte, which the name of a tree does not.
                    out.push(1);
                    push(&mut out, cursor.key());
                    push(&mut out, cursor.value());
                }
            }
        }
        out.push(0);
    }
    fs::write(directory.join(FILE), out).unwrap();
    Ok(())
}

/// Read the file in `directory` into the empty `engine`.
pub(crate) fn load(directory: &Path, engine: &dyn Engine) -> kv::Result<()> {
    let Ok(bytes) = fs::read(directory.join(FILE)) else {
        return Ok(());
    };
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let name = String::from_utf8(pull(&mut rest).to_vec()).unwrap();
        let tree = engine.create_tree(&name, &TreeOptions::default())?;
        let mut batch = Batch::new();
        loop {
            let (mark, after) = rest.split_first().unwrap();
            rest = after;
            if *mark == 0 {
                break;
            }
            let key = pull(&mut rest);
            let value = pull(&mut rest);
            batch.put(tree, key, value);
        }
        engine.write(&batch, Durability::None)?;
    }
    Ok(())
}
