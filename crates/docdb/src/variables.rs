//! The variables of a command (`let`), and the constants of one of its statements (`c`).
//!
//! - V1. The expressions are evaluated once per command: its statements share the values.

use std::sync::Arc;

use bson::{Bson, RawDocument, RawDocumentBuf};
use query::Result;
use query::expr::Variables;
use query::meter::{self, Held};
use stdx::sync::OnceLock;

/// Variables for the expressions of a command, in bytes. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Let {
    shared: Option<Arc<Shared>>,
    constants: Option<Arc<RawDocumentBuf>>,
}

#[derive(Debug)]
struct Shared {
    expressions: RawDocumentBuf,
    values: OnceLock<Values>,
}

/// The values of variables, and the reservation for their memory.
#[derive(Debug)]
struct Values {
    variables: Variables,
    held: Held,
}

impl Values {
    fn of(expressions: &RawDocument, base: &Variables) -> Result<Values> {
        let variables = Variables::from_let(expressions, base)?;
        let values = variables.names().filter_map(|name| variables.get(name));
        let bytes = values.map(meter::size).sum();
        let mut held = Held::new();
        held.require("let", bytes)?;
        Ok(Values { variables, held })
    }
}

impl Let {
    /// The variables that `expressions` define, each by its name.
    #[must_use]
    pub fn new(expressions: &RawDocument) -> Let {
        let shared = Shared {
            expressions: expressions.to_owned(),
            values: OnceLock::new(),
        };
        Let {
            shared: Some(Arc::new(shared)),
            constants: None,
        }
    }

    /// Returns these variables with constants, whose values are not expressions. A constant hides a
    /// variable of its name.
    #[must_use]
    pub fn with_constants(mut self, constants: &RawDocument) -> Let {
        self.constants = Some(Arc::new(constants.to_owned()));
        self
    }

    /// Bytes of the values that are known. What was parsed with them keeps them.
    pub(crate) fn bytes(&self) -> usize {
        let shared = self.shared.as_ref().and_then(|shared| shared.values.get());
        let constants = self.constants.as_ref();
        shared.map_or(0, |known| known.held.bytes())
            + constants.map_or(0, |constants| constants.as_bytes().len())
    }

    /// Whether it has constants.
    pub(crate) fn has_constants(&self) -> bool {
        self.constants.is_some()
    }

    /// The variables of `base`, those of the operation, and these.
    ///
    /// # Errors
    /// Invalid names and expressions.
    pub(crate) fn over(&self, base: &Variables) -> Result<Variables> {
        let mut variables = match &self.shared {
            None => base.clone(),
            Some(shared) => match shared.values.get() {
                Some(known) => known.variables.clone(),
                None => {
                    let made = Values::of(&shared.expressions, base)?;
                    shared.values.get_or_init(|| made).variables.clone()
                }
            },
        };
        for constant in self.constants.iter().flat_map(|constants| constants.iter()) {
            let (name, value) = constant?;
            variables.set(name.as_str(), Some(Bson::try_from(value)?));
        }
        Ok(variables)
    }
}

#[cfg(test)]
mod tests {
    use bson::{DateTime, rawdoc};

    use super::*;

    #[test]
    fn statements_share_the_values_of_a_command() {
        let given = Let::new(&rawdoc! {"a": {"$rand": {}}, "b": {"$add": [1, 2]}});
        let base = Variables::at(DateTime::from_millis(7));
        let first = given.over(&base).unwrap();
        let second = given.clone().over(&base).unwrap();
        assert_eq!(first.get("a"), second.get("a"), "V1");
        assert_eq!(first.get("b"), Some(&Bson::Int32(3)));
        assert_eq!(first.get("NOW"), base.get("NOW"));
    }

    #[test]
    fn constants_are_no_expressions_and_hide_variables() {
        let given = Let::new(&rawdoc! {"a": 1, "b": 2}).with_constants(&rawdoc! {"b": "$x"});
        let known = given.over(&Variables::default()).unwrap();
        assert_eq!(known.get("a"), Some(&Bson::Int32(1)));
        assert_eq!(known.get("b"), Some(&Bson::String("$x".to_owned())));
        let none = Let::default().over(&Variables::default()).unwrap();
        assert_eq!(none.names().count(), 0);
    }
}
