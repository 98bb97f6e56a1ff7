//! Collation and variables of a query.

use std::sync::Arc;

use bson::{Document, RawDocument};
use query::collation::{Collation, Collator};
use query::settings::Settings;
use query::{Error, Result};

use crate::plan::Space;
use crate::txn::Op;
use crate::variables::Let;

/// The collation of a query.
#[derive(Clone, Default)]
pub(crate) struct Collated {
    /// The full collation; `None` is byte order.
    pub(crate) collation: Option<Document>,
    /// The collator for strings.
    pub(crate) collator: Option<Arc<Collator>>,
}

impl Collated {
    /// The collation that the command requests, or else the collection's default.
    ///
    /// # Errors
    /// An invalid collation.
    pub(crate) fn of(asked: Option<&RawDocument>, space: Option<&Space>) -> Result<Collated> {
        let Some(asked) = asked.filter(|asked| !asked.is_empty()) else {
            return Ok(space.map_or_else(Collated::default, |space| Collated {
                collation: space.id_collation.clone(),
                collator: space.collator.clone(),
            }));
        };
        let Some(collation) = Collation::parse(asked)? else {
            return Ok(Collated::default());
        };
        let full = collation.to_document();
        if let Some(space) = space
            && space.id_collation.as_ref() == Some(&full)
        {
            return Ok(Collated {
                collation: Some(full),
                collator: space.collator.clone(),
            });
        }
        Ok(Collated {
            collation: Some(full),
            collator: Some(Arc::new(Collator::new(collation)?)),
        })
    }

    /// Settings for parsing.
    ///
    /// # Errors
    /// Invalid variables.
    pub(crate) fn settings(&self, op: &Op<'_>, variables: Option<&Let>) -> Result<Settings> {
        let mut settings = op.settings();
        settings.collator.clone_from(&self.collator);
        if let Some(variables) = variables {
            settings.variables = variables.over(&settings.variables)?;
        }
        Ok(settings)
    }
}

/// Parse the hint of a command.
///
/// # Errors
/// `FailedToParse`.
pub(crate) fn hint(value: Option<&bson::Bson>) -> Result<Option<crate::plan::Hint>> {
    use crate::plan::Hint;
    use bson::Bson;
    match value {
        None => Ok(None),
        Some(Bson::String(name)) if name.is_empty() => Ok(None),
        Some(Bson::String(name)) => Ok(Some(Hint::Name(name.clone()))),
        Some(Bson::Document(pattern)) if pattern.is_empty() => Ok(None),
        Some(Bson::Document(pattern)) => match pattern.get("$natural") {
            Some(_) if 1 < pattern.len() => {
                let message = "Cannot include '$natural' in compound hint";
                Err(Error::bad_value(message))
            }
            None => Ok(Some(Hint::Pattern(pattern.clone()))),
            Some(direction) => Ok(Some(Hint::Natural {
                backward: natural(direction)?,
            })),
        },
        Some(_) => Err(Error::parse("Hint must be a string or an object")),
    }
}

/// The direction of `$natural`; true if it is -1.
///
/// # Errors
/// `BadValue`.
pub(crate) fn natural(direction: &bson::Bson) -> Result<bool> {
    match query::number::Number::from_bson(direction).and_then(|n| n.to_i64_exact()) {
        Some(1) => Ok(false),
        Some(-1) => Ok(true),
        _ => Err(Error::bad_value(
            "$natural sort cannot be set to a value other than -1 or 1.",
        )),
    }
}
