//! The open store and what the workload knows is in it.

use kv::{Durability, Engine, ErrorKind, TreeId, TreeOptions};

use super::protocol::Open;
use crate::target;
use crate::workload::iibench::{Generator, TREES};

/// Which rows are in the store: those numbered `low..high`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Live {
    pub low: u64,
    pub high: u64,
    /// Whether the index trees are maintained.
    pub indexed: bool,
}

impl Live {
    pub(super) fn rows(self) -> u64 {
        self.high.saturating_sub(self.low)
    }
}

pub(super) struct Session {
    pub engine: Box<dyn Engine>,
    pub generator: Generator,
    pub durability: Durability,
    pub rows: TreeId,
    pub indexes: Option<[TreeId; 3]>,
    pub live: Live,
    /// Whether the target keeps what it is given (`null` does not).
    pub keeps: bool,
}

impl Session {
    /// Open the store; a fresh one has no rows.
    pub(super) fn open(request: &Open) -> Result<Session, String> {
        let factory = target::factory(&request.engine)?;
        let engine = factory
            .open(&request.directory, &request.options)
            .map_err(text)?;
        let options = TreeOptions {
            ascending: true,
            point_lookups: true,
        };
        let [rows, ..] = TREES;
        Ok(Session {
            rows: tree(engine.as_ref(), rows, &options)?,
            indexes: None,
            generator: Generator::new(request.rows),
            durability: request.durability,
            live: Live::default(),
            keeps: request.engine != "null",
            engine,
        })
    }

    /// The index trees, created at the first call.
    pub(super) fn indexes(&mut self) -> Result<[TreeId; 3], String> {
        if let Some(trees) = self.indexes {
            return Ok(trees);
        }
        let [_, one, two, three] = TREES;
        let options = TreeOptions::default();
        let make = |name| tree(self.engine.as_ref(), name, &options);
        let trees = [make(one)?, make(two)?, make(three)?];
        self.indexes = Some(trees);
        Ok(trees)
    }

    /// Bytes of live keys and values.
    pub(super) fn live_bytes(&self) -> u64 {
        let each = self.generator.logical_bytes(self.live.indexed);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive"
        )]
        let bytes = (each * self.live.rows() as f64) as u64;
        bytes
    }
}

fn tree(engine: &dyn Engine, name: &str, options: &TreeOptions) -> Result<TreeId, String> {
    match engine.create_tree(name, options) {
        Err(e) if e.kind() == ErrorKind::Exists => engine.open_tree(name).map_err(text),
        other => other.map_err(text),
    }
}

/// An engine's error as a sentence, with what is underneath.
#[expect(clippy::needless_pass_by_value, reason = "made for map_err")]
pub(super) fn text(error: kv::Error) -> String {
    let mut text = error.to_string();
    let mut below = std::error::Error::source(&error);
    while let Some(source) = below {
        let more = source.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        below = source.source();
    }
    if error.kind() == ErrorKind::Full && !text.contains("make room") {
        text.push_str("; free some space or choose a smaller --preset or --scale");
    }
    text
}
