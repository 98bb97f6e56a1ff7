//! Operators with named arguments: their signatures and how an operand is read by one.
//!
//! Messages are templates, because every operator words them in its own way: `{op}` stands for the
//! operator, `{field}` for the argument, `{type}` for the type of what was found instead.

use bson::Bson;

use crate::value;
use crate::{Error, Result};

/// A code and the template of a message.
pub(super) type Refusal = (i32, &'static str);

/// Named arguments of an operator.
pub(super) struct Signature {
    /// The operator with its dollar.
    pub(super) name: &'static str,
    /// When the operand is no object.
    pub(super) not_object: Refusal,
    /// When it has a field that is not listed.
    pub(super) unknown: Refusal,
    /// The arguments in the order in which functions get them.
    pub(super) fields: &'static [Field],
}

/// One named argument.
pub(super) struct Field {
    pub(super) name: &'static str,
    /// The refusal of an operand without it; `None` when it may be left out.
    pub(super) missing: Option<Refusal>,
}

impl Field {
    /// One that must be there.
    pub(super) const fn required(name: &'static str, code: i32, template: &'static str) -> Field {
        Field {
            name,
            missing: Some((code, template)),
        }
    }

    /// One that may be left out.
    pub(super) const fn optional(name: &'static str) -> Field {
        Field {
            name,
            missing: None,
        }
    }
}

impl Signature {
    /// The operand's fields in the order of the signature, unparsed.
    pub(super) fn read<'b>(&self, operand: &'b Bson) -> Result<Vec<Option<&'b Bson>>> {
        let Bson::Document(document) = operand else {
            return Err(self.refuse(self.not_object, "", value::type_name(operand)));
        };
        let mut found = vec![None; self.fields.len()];
        for (name, value) in document {
            let at = self.fields.iter().position(|field| field.name == name);
            match at.and_then(|at| found.get_mut(at)) {
                Some(place) => *place = Some(value),
                None => return Err(self.refuse(self.unknown, name, "")),
            }
        }
        for (field, value) in self.fields.iter().zip(&found) {
            if let (Some(refusal), None) = (field.missing, value) {
                return Err(self.refuse(refusal, field.name, ""));
            }
        }
        Ok(found)
    }

    fn refuse(&self, refusal: Refusal, field: &str, found: &str) -> Error {
        let (code, template) = refusal;
        let message = template
            .replace("{op}", self.name)
            .replace("{type}", found)
            .replace("{field}", field);
        Error::location(code, message)
    }
}
