//! The document that specifies a collation: parsed, checked, and shown with all options.

use bson::{Bson, Document, RawBsonRef, RawDocument};

use super::locale;
use crate::kind::type_name_raw;
use crate::number::Number;
use crate::{Code, Error, Result};

/// The collation version that is reported; the same as in MongoDB's `listIndexes`.
const VERSION: &str = "57.1";

/// Whether upper or lower case comes first when all else is equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseFirst {
    /// The order of the language: lower case first.
    Off,
    /// Upper case first.
    Upper,
    /// Lower case first.
    Lower,
}

/// Whether spaces and punctuation are compared like letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alternate {
    /// They are.
    NonIgnorable,
    /// They are compared only at strength 4 and above.
    Shifted,
}

/// The characters to which `alternate: "shifted"` applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxVariable {
    /// Spaces and punctuation.
    Punctuation,
    /// Spaces.
    Space,
}

/// A collation with all options set. The simple collation (by bytes) has no `Collation`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collation {
    /// The language, as ICU writes locales.
    pub locale: String,
    /// Whether case is compared on a level of its own, after accents. Default false.
    pub case_level: bool,
    /// Which case comes first. Default off.
    pub case_first: CaseFirst,
    /// The strength: how many levels are compared, 1 (letters only) to 5 (everything). Default 3
    /// (letters, accents, case).
    pub strength: u8,
    /// Whether sequences of digits are compared as numbers. Default false.
    pub numeric_ordering: bool,
    /// Whether spaces and punctuation are compared. Default: they are.
    pub alternate: Alternate,
    /// The characters to which `alternate: "shifted"` applies. Default: spaces and punctuation.
    pub max_variable: MaxVariable,
    /// Whether accents are compared from the end of the string. Default false, true in Canadian
    /// French.
    pub backwards: bool,
    /// Whether to normalise text first. Text always is; the option is only stored and shown.
    pub normalization: bool,
}

impl Collation {
    /// The collation of `locale` with default options.
    #[must_use]
    pub fn of_locale(locale: &str) -> Collation {
        Collation {
            locale: locale.to_owned(),
            case_level: false,
            case_first: CaseFirst::Off,
            strength: 3,
            numeric_ordering: false,
            alternate: Alternate::NonIgnorable,
            max_variable: MaxVariable::Punctuation,
            backwards: locale.starts_with("fr_CA"),
            normalization: false,
        }
    }

    /// Parses a specification; `None` for `{locale: "simple"}` and `{}`.
    ///
    /// # Errors
    /// `BadValue`, `TypeMismatch`, 40414 (no locale) or 40415 (an unknown field), as MongoDB.
    pub fn parse(spec: &RawDocument) -> Result<Option<Collation>> {
        let Some(locale) = spec.get("locale")? else {
            if spec.is_empty() {
                return Ok(None);
            }
            return Err(Error::location(
                40414,
                "BSON field 'collation.locale' is missing but a required field",
            ));
        };
        let locale = text("locale", locale)?;
        if locale == "simple" {
            if spec.iter_elements().count() > 1 {
                return Err(Error::bad_value(
                    "If 'locale' is 'simple', no other fields may be specified",
                ));
            }
            return Ok(None);
        }
        if !locale::is_known(locale) {
            return Err(Error::bad_value(format!(
                "Field 'locale' is invalid in: {{ locale: \"{locale}\" }}"
            )));
        }
        let mut collation = Collation::of_locale(locale);
        for field in spec {
            let (name, value) = field?;
            collation.set(name.as_str(), value)?;
        }
        if collation.backwards && collation.strength == 1 {
            return Err(Error::bad_value(
                "'backwards' is invalid with 'strength' of 1",
            ));
        }
        Ok(Some(collation))
    }

    fn set(&mut self, name: &str, value: RawBsonRef<'_>) -> Result<()> {
        match name {
            "locale" | "version" => {
                text(name, value)?;
            }
            "caseLevel" => self.case_level = boolean(name, value)?,
            "numericOrdering" => self.numeric_ordering = boolean(name, value)?,
            "backwards" => self.backwards = boolean(name, value)?,
            "normalization" => self.normalization = boolean(name, value)?,
            "strength" => self.strength = strength(value)?,
            "caseFirst" => {
                self.case_first = match text(name, value)? {
                    "off" => CaseFirst::Off,
                    "upper" => CaseFirst::Upper,
                    "lower" => CaseFirst::Lower,
                    other => return Err(no_enumerator(name, other)),
                }
            }
            "alternate" => {
                self.alternate = match text(name, value)? {
                    "non-ignorable" => Alternate::NonIgnorable,
                    "shifted" => Alternate::Shifted,
                    other => return Err(no_enumerator(name, other)),
                }
            }
            "maxVariable" => {
                self.max_variable = match text(name, value)? {
                    "punct" => MaxVariable::Punctuation,
                    "space" => MaxVariable::Space,
                    other => return Err(no_enumerator(name, other)),
                }
            }
            _ => {
                return Err(Error::new(
                    Code::IDL_UNKNOWN_FIELD,
                    format!("BSON field 'collation.{name}' is an unknown field."),
                ));
            }
        }
        Ok(())
    }

    /// The specification with all options, as `listIndexes` and `listCollections` show it.
    #[must_use]
    pub fn to_document(&self) -> Document {
        let case_first = match self.case_first {
            CaseFirst::Off => "off",
            CaseFirst::Upper => "upper",
            CaseFirst::Lower => "lower",
        };
        let alternate = match self.alternate {
            Alternate::NonIgnorable => "non-ignorable",
            Alternate::Shifted => "shifted",
        };
        let max_variable = match self.max_variable {
            MaxVariable::Punctuation => "punct",
            MaxVariable::Space => "space",
        };
        let mut document = Document::new();
        document.insert("locale", self.locale.as_str());
        document.insert("caseLevel", self.case_level);
        document.insert("caseFirst", case_first);
        document.insert("strength", Bson::Int32(i32::from(self.strength)));
        document.insert("numericOrdering", self.numeric_ordering);
        document.insert("alternate", alternate);
        document.insert("maxVariable", max_variable);
        document.insert("normalization", self.normalization);
        document.insert("backwards", self.backwards);
        document.insert("version", VERSION);
        document
    }
}

fn wrong_type(name: &str, value: RawBsonRef<'_>, expected: &str) -> Error {
    let found = type_name_raw(value);
    Error::type_mismatch(format!(
        "BSON field 'collation.{name}' is the wrong type '{found}', expected type '{expected}'"
    ))
}

fn text<'a>(name: &str, value: RawBsonRef<'a>) -> Result<&'a str> {
    value
        .as_str()
        .ok_or_else(|| wrong_type(name, value, "string"))
}

fn boolean(name: &str, value: RawBsonRef<'_>) -> Result<bool> {
    value
        .as_bool()
        .ok_or_else(|| wrong_type(name, value, "bool"))
}

fn strength(value: RawBsonRef<'_>) -> Result<u8> {
    let number = Number::from_raw(value).ok_or_else(|| wrong_type("strength", value, "int"))?;
    match number.to_i32_exact() {
        Some(level @ 1..=5) => Ok(u8::try_from(level).expect("1 to 5")),
        _ => Err(Error::new(
            Code(51024),
            format!("BSON field 'strength' value must be >= 1 and <= 5, actual value '{number}'"),
        )),
    }
}

fn no_enumerator(name: &str, value: &str) -> Error {
    Error::bad_value(format!(
        "Enumeration value '{value}' for field 'collation.{name}' is not a valid value."
    ))
}
