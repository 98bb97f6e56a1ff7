//! Operators with named arguments: their signatures, and parsing an operand by a signature.
//!
//! Messages are templates, because every operator words them in its own way: `{op}` stands for the
//! operator, `{field}` for the argument, `{type}` for the type of what was found instead.

use bson::Bson;

use crate::value;
use crate::{Error, Result};

/// An error code and a template for the message.
pub(super) type Refusal = (i32, &'static str);

/// The named arguments of an operator.
pub(super) struct Signature {
    /// The name of the operator, with its dollar.
    pub(super) name: &'static str,
    /// The error for an operand that is not an object.
    pub(super) not_object: Refusal,
    /// The error for an argument that is not in `fields`.
    pub(super) unknown: Refusal,
    /// The arguments, in the order in which the function gets them.
    pub(super) fields: &'static [Field],
}

/// One named argument.
pub(super) struct Field {
    pub(super) name: &'static str,
    /// The error if the argument is not given; `None` for an optional argument.
    pub(super) missing: Option<Refusal>,
}

impl Field {
    /// A required argument.
    pub(super) const fn required(name: &'static str, code: i32, template: &'static str) -> Field {
        Field {
            name,
            missing: Some((code, template)),
        }
    }

    /// An optional argument.
    pub(super) const fn optional(name: &'static str) -> Field {
        Field {
            name,
            missing: None,
        }
    }
}

impl Signature {
    /// The values of the operand's fields, unparsed, in the order of the signature.
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
