//! `$unwind`.

use bson::{Bson, Document};

use crate::expr::FieldPath;
use crate::value::type_name;
use crate::{Error, Result};

/// `$unwind`: returns one document for each element of an array.
#[derive(Debug, Clone)]
pub struct Unwind {
    /// The path of the array.
    pub path: FieldPath,
    /// The field that receives the index of the element.
    pub index: Option<FieldPath>,
    /// Whether documents without elements are returned, too.
    pub preserve: bool,
}

impl Unwind {
    /// Parses the specification.
    ///
    /// # Errors
    /// MongoDB's 15981 and 28808 to 28822.
    pub fn parse(spec: &Bson) -> Result<Unwind> {
        let empty = Document::new();
        let (path, options) = match spec {
            Bson::String(_) => (Some(spec), &empty),
            Bson::Document(options) => (options.get("path"), options),
            other => {
                return Err(Error::location(
                    15_981,
                    format!(
                        "expected either a string or an object as specification for $unwind \
                         stage, got {}",
                        type_name(other)
                    ),
                ));
            }
        };
        let mut unwind = Unwind {
            path: parse_path(path)?,
            index: None,
            preserve: false,
        };
        for (name, value) in options {
            match (name.as_str(), value) {
                ("path", _) => {}
                ("preserveNullAndEmptyArrays", Bson::Boolean(flag)) => unwind.preserve = *flag,
                ("preserveNullAndEmptyArrays", other) => {
                    return Err(Error::location(
                        28_809,
                        format!(
                            "expected a boolean for the preserveNullAndEmptyArrays option to \
                             $unwind stage, got {}",
                            type_name(other)
                        ),
                    ));
                }
                ("includeArrayIndex", value) => unwind.index = Some(parse_index(value)?),
                _ => {
                    return Err(Error::location(
                        28_811,
                        format!("unrecognized option to $unwind stage: {name}"),
                    ));
                }
            }
        }
        Ok(unwind)
    }
}

fn parse_path(path: Option<&Bson>) -> Result<FieldPath> {
    let path = match path {
        Some(Bson::String(path)) if !path.is_empty() => path,
        None | Some(Bson::String(_)) => {
            return Err(Error::location(
                28_812,
                "no path specified to $unwind stage",
            ));
        }
        Some(other) => {
            return Err(Error::location(
                28_808,
                format!(
                    "expected a string as the path for $unwind stage, got {}",
                    type_name(other)
                ),
            ));
        }
    };
    match path.strip_prefix('$') {
        Some(path) => FieldPath::parse(path),
        None => Err(Error::location(
            28_818,
            format!("path option to $unwind stage should be prefixed with a '$': {path}"),
        )),
    }
}

fn parse_index(value: &Bson) -> Result<FieldPath> {
    match value {
        Bson::String(path) if path.starts_with('$') => Err(Error::location(
            28_822,
            format!(
                "includeArrayIndex option to $unwind stage should not be prefixed with a '$': \
                 {path}"
            ),
        )),
        Bson::String(path) if !path.is_empty() => FieldPath::parse(path),
        other => Err(Error::location(
            28_810,
            format!(
                "expected a non-empty string for the includeArrayIndex  option to $unwind stage, \
                 got {}",
                type_name(other)
            ),
        )),
    }
}
