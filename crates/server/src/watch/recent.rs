//! The slow commands of the recent past, as the log shows them.
//!
//! - Z3. At most [`KEPT`] commands of at most [`SHOWN_VALUE`] bytes of text each are kept.

use std::collections::VecDeque;
use std::sync::Arc;

use bson::{Bson, Document};
use serde_json::{Value, json};

use crate::limits::SHOWN_VALUE;
use crate::state::brief::cut;
use crate::state::{clock, log};

/// Maximum number of commands: what fits on a page.
const KEPT: usize = 50;

/// Fields that drivers add to every command.
const NOISE: &[&str] = &[
    "lsid",
    "txnNumber",
    "$clusterTime",
    "$db",
    "$readPreference",
];

/// Slow commands, the last one at the end.
#[derive(Default)]
pub(crate) struct Recent(VecDeque<Arc<Value>>);

/// A slow command, for [`Recent::keep`].
pub(crate) struct Slow(Value);

impl Slow {
    /// The command by the attributes of its line in the log, which are without secrets and cut.
    pub(crate) fn of(attributes: &Document) -> Slow {
        let text = |name: &str| attributes.get_str(name).unwrap_or_default().to_owned();
        let number = |name: &str| attributes.get(name).and_then(Bson::as_i64);
        let mut command = attributes
            .get_document("command")
            .cloned()
            .unwrap_or_default();
        for name in NOISE {
            command.remove(name);
        }
        let command = log::text(&command);
        Slow(json!({
            "at": clock::now().timestamp_millis(),
            "ns": text("ns"),
            "application": text("appName"),
            "millis": attributes.get_i64("durationMillis").ok(),
            "plan": attributes.get_str("planSummary").ok(),
            "keysExamined": number("keysExamined"),
            "docsExamined": number("docsExamined"),
            "failed": attributes.get_str("errName").ok(),
            "command": cut(&command, SHOWN_VALUE),
        }))
    }
}

impl Recent {
    /// Keep a command.
    pub(crate) fn keep(&mut self, slow: Slow) {
        self.0.push_back(Arc::new(slow.0));
        while KEPT < self.0.len() {
            self.0.pop_front();
        }
        assert!(
            self.0.len() <= KEPT,
            "Z3: the number of commands is bounded"
        );
    }

    /// The commands, the last one first.
    pub(crate) fn list(&self) -> Vec<Arc<Value>> {
        self.0.iter().rev().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;

    /// Z3: of many long commands the last ones are kept, and cut.
    #[test]
    fn the_last_commands_are_kept_and_cut() {
        let mut recent = Recent::default();
        for n in 0..1_000_i64 {
            let text = "x".repeat(10_000);
            let command = doc! {"find": "c", "$db": "a", "a": text};
            let attributes = doc! {"ns": "a.b", "durationMillis": n, "command": command};
            recent.keep(Slow::of(&attributes));
        }
        let kept = recent.list();
        assert_eq!(kept.len(), KEPT);
        assert_eq!(kept[0]["millis"], 999);
        let command = kept[0]["command"].as_str().unwrap();
        assert!(command.len() < SHOWN_VALUE + 10, "{}", command.len());
        assert!(command.starts_with(r#"{"find":"c","a":"xxx"#), "{command}");
    }
}
