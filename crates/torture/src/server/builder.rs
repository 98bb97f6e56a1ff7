//! Repeatedly builds and drops an index while clients write, and records the server's replies.

use bson::{Document, doc};
use stdx::Rng;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::client::is_ending;
use super::cycle::Lie;
use super::link::{Link, Lost, code, is_ok};
use super::model::Side;
use super::operation::DATABASE;

/// The name of the index; its field varies.
const NAME: &str = "passing";

/// Builds and drops an index; continues after a restart of the server.
pub(super) struct Builder {
    rng: Rng,
    side: Side,
    /// Whether the index exists; `None` when the server ended before it replied.
    there: Option<bool>,
    /// Number of acknowledged builds.
    pub(super) built: u64,
    /// Number of builds and drops without a reply.
    pub(super) cut: u64,
    lie: Option<Lie>,
}

impl Builder {
    /// The builder of a run.
    pub(super) fn new(seed: u64, lie: Option<Lie>) -> Builder {
        Builder {
            rng: Rng::new(seed ^ 0xB1D5),
            side: Side::Left,
            there: Some(false),
            built: 0,
            cut: 0,
            lie,
        }
    }

    /// Build and drop the index until stopped or until the server ends; `answers` counts
    /// acknowledged commands.
    pub(super) fn operate(
        &mut self,
        port: u16,
        stop: &AtomicBool,
        answers: &AtomicU64,
    ) -> Result<(), String> {
        let Ok(mut link) = Link::to(port) else {
            return Ok(());
        };
        while !stop.load(Ordering::Relaxed) {
            let Some(there) = self.there else {
                return Ok(());
            };
            let command = if there { self.drop() } else { self.create() };
            if !there && self.lie == Some(Lie::Unbuilt) {
                self.there = Some(true);
                return Ok(());
            }
            self.there = None;
            match link.command(DATABASE, &command) {
                Ok(reply) if is_ok(&reply) => {
                    self.there = Some(!there);
                    self.built += u64::from(!there);
                    answers.fetch_add(1, Ordering::Relaxed);
                }
                Ok(reply) if is_ending(code(&reply)) => self.cut += 1,
                Ok(reply) => return Err(format!("{command} was answered {reply}")),
                Err(Lost::Gone) => self.cut += 1,
                Err(Lost::Nonsense(what)) => return Err(format!("{command}: {what}")),
            }
        }
        Ok(())
    }

    fn create(&mut self) -> Document {
        self.side = match self.rng.chance(0.5) {
            true => Side::Left,
            false => Side::Right,
        };
        let index = match self.rng.below(3) {
            0 => doc! { "key": { "tag": 1, "v": -1 }, "name": NAME },
            1 => doc! { "key": { "v": -1 }, "name": NAME, "unique": true },
            _ => doc! { "key": { "n": "hashed" }, "name": NAME },
        };
        doc! { "createIndexes": self.side.name(), "indexes": [index] }
    }

    fn drop(&self) -> Document {
        doc! { "dropIndexes": self.side.name(), "index": NAME }
    }

    /// After a restart: check that the existing index agrees with the replies.
    pub(super) fn resolve(&mut self, link: &mut Link) -> Result<(), String> {
        let side = self.side.name();
        let there = names(link, self.side)?.iter().any(|name| name == NAME);
        match self.there.replace(there) {
            Some(expected) if expected != there => Err(format!(
                "of index {NAME} of {side} was acknowledged that it is {}, and it is {}",
                state(expected),
                state(there)
            )),
            _ => Ok(()),
        }
    }
}

fn state(there: bool) -> &'static str {
    if there { "built" } else { "dropped" }
}

/// The names of the indexes of a collection.
pub(crate) fn names(link: &mut Link, side: Side) -> Result<Vec<String>, String> {
    let command = doc! { "listIndexes": side.name() };
    let reply = link.command(DATABASE, &command);
    let reply = reply.map_err(|lost| format!("{command}: {lost}"))?;
    let batch = reply
        .get_document("cursor")
        .and_then(|c| c.get_array("firstBatch"));
    let batch = batch.map_err(|_| format!("{command} was answered {reply}"))?;
    let name = |index: &bson::Bson| index.as_document()?.get_str("name").ok().map(str::to_owned);
    Ok(batch.iter().filter_map(name).collect())
}
