//! `logComponentVerbosity`: how much each component of the log writes.
//!
//! All of MongoDB's components can be set and are shown. Only that of commands has an effect: from
//! 1 on, every command is logged.

use std::collections::BTreeMap;

use bson::{Bson, Document};
use query::{Error, Result};

use crate::config::{COMMAND, COMPONENTS, Config};

/// The name of the parameter.
pub(super) const NAME: &str = "logComponentVerbosity";

/// The level of a component that has none of its own.
const INHERITED: i32 = -1;

/// The highest level.
const MOST: i32 = 5;

/// The levels of components. That of the whole log is the parameter `logLevel`.
#[derive(Debug, Clone, Default)]
pub(super) struct Components(BTreeMap<&'static str, i32>);

impl Components {
    /// The levels of the configuration.
    pub(super) fn new(config: &Config) -> Components {
        Components(config.components.clone())
    }

    fn level(&self, name: &str) -> i32 {
        self.0.get(name).copied().unwrap_or(INHERITED)
    }

    /// The level of commands, where the whole log has `general`.
    pub(super) fn of_commands(&self, general: i64) -> i64 {
        match self.level(COMMAND) {
            INHERITED => general,
            level => i64::from(level),
        }
    }

    /// As the parameter shows them.
    pub(super) fn shown(&self, general: i32) -> Document {
        let mut shown = Document::new();
        shown.insert("verbosity", general);
        for name in COMPONENTS {
            let mut place = &mut shown;
            for part in name.split('.') {
                let below = place.entry(part.to_owned());
                let below = below.or_insert_with(|| Document::new().into());
                let Bson::Document(below) = below else {
                    return shown;
                };
                place = below;
            }
            place.insert("verbosity", self.level(name));
        }
        shown
    }

    /// The levels with the changes of a document, and the level of the whole log if it has one.
    ///
    /// # Errors
    /// `BadValue` for what is no component or no level.
    pub(super) fn changed(&self, value: &Bson) -> Result<(Components, Option<i32>)> {
        let parsed = match value {
            Bson::String(text) => serde_json::from_str::<serde_json::Value>(text)
                .ok()
                .and_then(|value| Bson::try_from(value).ok()),
            other => Some(other.clone()),
        };
        let Some(Bson::Document(changes)) = parsed else {
            let message = format!("{NAME} is not a BSON object");
            return Err(Error::type_mismatch(message));
        };
        let mut changed = self.clone();
        let mut general = None;
        changed.change(&changes, "", &mut general)?;
        Ok((changed, general))
    }

    fn change(&mut self, changes: &Document, at: &str, general: &mut Option<i32>) -> Result<()> {
        for (name, value) in changes {
            let place = match at {
                "" => name.clone(),
                at => format!("{at}.{name}"),
            };
            if name == "verbosity" {
                let level = level(value, &place)?;
                match COMPONENTS.iter().find(|known| **known == at) {
                    Some(known) => {
                        self.0.insert(known, level);
                    }
                    None => *general = Some(level.max(0)),
                }
                continue;
            }
            if !COMPONENTS.contains(&place.as_str()) {
                let message = format!("Invalid component name {place}");
                return Err(Error::bad_value(message));
            }
            match value {
                Bson::Document(below) => self.change(below, &place, general)?,
                other => {
                    let level = level(other, &place)?;
                    self.change(&bson::doc! {"verbosity": level}, &place, general)?;
                }
            }
        }
        Ok(())
    }
}

fn level(value: &Bson, place: &str) -> Result<i32> {
    let number = match value {
        Bson::Int32(number) => Some(i64::from(*number)),
        Bson::Int64(number) => Some(*number),
        #[expect(clippy::cast_possible_truncation, reason = "a level; saturates")]
        Bson::Double(number) => Some(*number as i64),
        _ => None,
    };
    let level = number.and_then(|number| i32::try_from(number).ok());
    level
        .filter(|level| (INHERITED..=MOST).contains(level))
        .ok_or_else(|| {
            let message = format!(
                "{NAME}: the verbosity of {place} is {value}; it must be a number from \
                 {INHERITED} to {MOST}"
            );
            Error::bad_value(message)
        })
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;

    #[test]
    fn levels_are_set_by_component_and_inherited() {
        let first = Components::default();
        assert_eq!(first.of_commands(2), 2);
        let nested = doc! {"command": {"verbosity": 1}, "storage": {"journal": {"verbosity": 2.0}}};
        let (second, general) = first.changed(&nested.into()).unwrap();
        assert_eq!((second.of_commands(0), general), (1, None));
        let shown = second.shown(0);
        let journal = shown.get_document("storage").unwrap();
        assert_eq!(journal.get_i32("verbosity").unwrap(), -1);
        let journal = journal.get_document("journal").unwrap();
        assert_eq!(journal.get_i32("verbosity").unwrap(), 2);
        let text = Bson::from("{\"verbosity\": 3, \"command\": -1}");
        let (third, general) = second.changed(&text).unwrap();
        assert_eq!((third.of_commands(3), general), (3, Some(3)));
    }

    #[test]
    fn what_is_no_component_or_no_level_is_refused_by_name() {
        let refused = |value: Document| {
            let changed = Components::default().changed(&value.into());
            changed.unwrap_err().message
        };
        assert!(refused(doc! {"coffee": {"verbosity": 1}}).contains("coffee"));
        assert!(refused(doc! {"storage": {"coffee": 1}}).contains("storage.coffee"));
        assert!(refused(doc! {"command": {"verbosity": 6}}).contains("command"));
        assert!(Components::default().changed(&Bson::Int32(1)).is_err());
    }
}
