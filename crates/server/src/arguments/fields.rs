//! The fields of a command or of a subdocument of it, with MongoDB's errors for wrong types.
//!
//! Any numeric type is accepted for a number, and a number for a switch, as in MongoDB: drivers
//! send the types of their languages.

use bson::{Document, RawArray, RawBsonRef, RawDocument};
use query::repeated::{duplicate, repeated, tree};
use query::{Code, Error, Result};
use yoke::Yokeable;

use crate::limits::FIELDS;

/// The fields of one document. Errors name them by their path.
#[derive(Yokeable)]
pub(crate) struct Arguments<'a> {
    place: &'a str,
    fields: Vec<(&'a str, RawBsonRef<'a>)>,
}

/// The name of a type in error messages.
pub(crate) fn type_name(value: RawBsonRef<'_>) -> &'static str {
    match value {
        RawBsonRef::Double(_) => "double",
        RawBsonRef::String(_) => "string",
        RawBsonRef::Document(_) => "object",
        RawBsonRef::Array(_) => "array",
        RawBsonRef::Binary(_) => "binData",
        RawBsonRef::Undefined => "undefined",
        RawBsonRef::ObjectId(_) => "objectId",
        RawBsonRef::Boolean(_) => "bool",
        RawBsonRef::DateTime(_) => "date",
        RawBsonRef::Null => "null",
        RawBsonRef::RegularExpression(_) => "regex",
        RawBsonRef::DbPointer(_) => "dbPointer",
        RawBsonRef::JavaScriptCode(_) => "javascript",
        RawBsonRef::Symbol(_) => "symbol",
        RawBsonRef::JavaScriptCodeWithScope(_) => "javascriptWithScope",
        RawBsonRef::Int32(_) => "int",
        RawBsonRef::Timestamp(_) => "timestamp",
        RawBsonRef::Int64(_) => "long",
        RawBsonRef::Decimal128(_) => "decimal",
        RawBsonRef::MinKey => "minKey",
        RawBsonRef::MaxKey => "maxKey",
    }
}

/// A number as an integer; `None` if it is not integral.
pub(crate) fn integer(value: RawBsonRef<'_>) -> Option<i64> {
    match value {
        RawBsonRef::Int32(n) => Some(i64::from(n)),
        RawBsonRef::Int64(n) => Some(n),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "checked to be whole and in range"
        )]
        RawBsonRef::Double(n) if n.trunc() == n && n.abs() < 9.2e18 => Some(n as i64),
        RawBsonRef::Decimal128(n) => n.to_string().parse().ok(),
        _ => None,
    }
}

/// A boolean, which may also be given as a number.
pub(crate) fn switch(value: RawBsonRef<'_>) -> Option<bool> {
    match value {
        RawBsonRef::Boolean(b) => Some(b),
        RawBsonRef::Double(n) => Some(n != 0.0),
        other => integer(other).map(|n| n != 0),
    }
}

impl<'a> Arguments<'a> {
    /// The fields of a document. `place` is the name of the command, or the path of the argument.
    ///
    /// # Errors
    /// 40413 for a field that is given twice: code that takes the first and code that takes the
    /// last would see different commands. `IDLUnknownField` when there are more than [`FIELDS`];
    /// `InvalidBSON`, which the decoder of messages rules out.
    pub(crate) fn of(place: &'a str, document: &'a RawDocument) -> Result<Arguments<'a>> {
        let mut fields = Vec::with_capacity(16);
        for element in document.iter_elements() {
            let element = element?;
            if FIELDS <= fields.len() {
                let message = format!("BSON document '{place}' has more than {FIELDS} fields");
                return Err(Error::new(Code::IDL_UNKNOWN_FIELD, message));
            }
            fields.push((element.key().as_str(), element.value()?));
        }
        match repeated(fields.iter().map(|(name, _)| *name)) {
            None => Ok(Arguments { place, fields }),
            Some(name) => Err(duplicate(place, name)),
        }
    }

    /// The name of the command, or the path of the argument, that these are fields of.
    pub(crate) fn name(&self) -> &'a str {
        self.place
    }

    /// The value of the first field: for many commands the name of a collection.
    pub(crate) fn target(&self) -> RawBsonRef<'a> {
        self.fields
            .first()
            .map_or(RawBsonRef::Null, |(_, value)| *value)
    }

    /// The value of a field. `null` counts as missing, as in MongoDB's parsers.
    pub(crate) fn get(&self, name: &str) -> Option<RawBsonRef<'a>> {
        let found = self.fields.iter().find(|(key, _)| *key == name);
        found
            .map(|(_, value)| *value)
            .filter(|value| !matches!(value, RawBsonRef::Null | RawBsonRef::Undefined))
    }

    /// Whether a field of this name exists, `null` included.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(key, _)| *key == name)
    }

    /// The fields in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, RawBsonRef<'a>)> {
        self.fields.iter().copied()
    }

    fn wrong<T>(&self, name: &str, value: RawBsonRef<'_>, expected: &str) -> Result<T> {
        let Arguments { place, .. } = self;
        let found = type_name(value);
        Err(Error::type_mismatch(format!(
            "BSON field '{place}.{name}' is the wrong type '{found}', expected type {expected}"
        )))
    }

    fn missing(&self, name: &str) -> Error {
        let place = self.place;
        let message = format!("BSON field '{place}.{name}' is missing but a required field");
        Error::location(40_414, message)
    }

    /// A string.
    ///
    /// # Errors
    /// `TypeMismatch`.
    pub(crate) fn string(&self, name: &str) -> Result<Option<&'a str>> {
        match self.get(name) {
            None => Ok(None),
            Some(RawBsonRef::String(text)) => Ok(Some(text)),
            Some(other) => self.wrong(name, other, "'string'"),
        }
    }

    /// A required string.
    ///
    /// # Errors
    /// `TypeMismatch`, or 40414 when it is missing.
    pub(crate) fn need_string(&self, name: &str) -> Result<&'a str> {
        self.string(name)?.ok_or_else(|| self.missing(name))
    }

    /// A boolean; false if missing.
    ///
    /// # Errors
    /// `TypeMismatch`.
    pub(crate) fn is_on(&self, name: &str) -> Result<bool> {
        Ok(self.boolean(name)?.unwrap_or(false))
    }

    /// A boolean.
    ///
    /// # Errors
    /// `TypeMismatch`.
    pub(crate) fn boolean(&self, name: &str) -> Result<Option<bool>> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match switch(value) {
            Some(on) => Ok(Some(on)),
            None => self.wrong(name, value, "'[bool, long, int, decimal, double]'"),
        }
    }

    /// An integer.
    ///
    /// # Errors
    /// `TypeMismatch`.
    pub(crate) fn long(&self, name: &str) -> Result<Option<i64>> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match (integer(value), value) {
            (Some(n), _) => Ok(Some(n)),
            // Fractions are cut, as MongoDB cuts them.
            #[expect(
                clippy::cast_possible_truncation,
                reason = "saturates; limits are checked"
            )]
            (None, RawBsonRef::Double(n)) => Ok(Some(n as i64)),
            _ => self.wrong(name, value, "'[long, int, decimal, double]'"),
        }
    }

    /// An integer that is not negative.
    ///
    /// # Errors
    /// `TypeMismatch`, or 51024 with MongoDB's message when it is negative.
    pub(crate) fn count(&self, name: &str) -> Result<Option<u64>> {
        let Some(n) = self.long(name)? else {
            return Ok(None);
        };
        u64::try_from(n).map(Some).map_err(|_| {
            let message = format!("BSON field '{name}' value must be >= 0, actual value '{n}'");
            Error::location(51_024, message)
        })
    }

    /// A document.
    ///
    /// # Errors
    /// `TypeMismatch`.
    pub(crate) fn document(&self, name: &str) -> Result<Option<&'a RawDocument>> {
        match self.get(name) {
            None => Ok(None),
            Some(RawBsonRef::Document(document)) => Ok(Some(document)),
            Some(other) => self.wrong(name, other, "'object'"),
        }
    }

    /// A required document.
    ///
    /// # Errors
    /// `TypeMismatch`, or 40414 when it is missing.
    pub(crate) fn need_document(&self, name: &str) -> Result<&'a RawDocument> {
        self.document(name)?.ok_or_else(|| self.missing(name))
    }

    /// A document as owned values.
    ///
    /// # Errors
    /// `TypeMismatch`; 40413 for a field that it, or a document in it, has twice.
    pub(crate) fn tree(&self, name: &str) -> Result<Option<Document>> {
        let document = self.document(name)?;
        let place = || format!("{}.{name}", self.place);
        document.map(|given| tree(&place(), given)).transpose()
    }

    /// An array.
    ///
    /// # Errors
    /// `TypeMismatch`.
    pub(crate) fn array(&self, name: &str) -> Result<Option<&'a RawArray>> {
        match self.get(name) {
            None => Ok(None),
            Some(RawBsonRef::Array(array)) => Ok(Some(array)),
            Some(other) => self.wrong(name, other, "'array'"),
        }
    }

    /// A required array.
    ///
    /// # Errors
    /// `TypeMismatch`, or 40414 when it is missing.
    pub(crate) fn need_array(&self, name: &str) -> Result<&'a RawArray> {
        self.array(name)?.ok_or_else(|| self.missing(name))
    }

    /// An array of documents.
    ///
    /// # Errors
    /// `TypeMismatch`.
    pub(crate) fn documents(&self, name: &str) -> Result<Option<Vec<&'a RawDocument>>> {
        let Some(array) = self.array(name)? else {
            return Ok(None);
        };
        let mut documents = Vec::new();
        for (i, element) in array.into_iter().enumerate() {
            match element? {
                RawBsonRef::Document(document) => documents.push(document),
                other => return self.wrong(&format!("{name}.{i}"), other, "'object'"),
            }
        }
        Ok(Some(documents))
    }

    /// A required value.
    ///
    /// # Errors
    /// 40414 when it is missing.
    pub(crate) fn need(&self, name: &str) -> Result<RawBsonRef<'a>> {
        self.get(name).ok_or_else(|| self.missing(name))
    }

    /// Refuse fields that are not listed.
    ///
    /// # Errors
    /// `IDLUnknownField`.
    pub(crate) fn only(&self, known: &[&str]) -> Result<()> {
        let place = self.place;
        for (name, _) in &self.fields {
            if !known.contains(name) {
                let message = format!("BSON field '{place}.{name}' is an unknown field.");
                return Err(Error::new(Code::IDL_UNKNOWN_FIELD, message));
            }
        }
        Ok(())
    }
}
