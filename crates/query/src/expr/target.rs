//! The arguments `to` and `format` of `$convert`.

use bson::Bson;
use bson::spec::BinarySubtype;

use super::args::{is_nullish, type_of};
use super::arithmetic::number;
use super::env::Value;
use crate::number::Number;
use crate::{Code, Error, Result};

/// Types that values are converted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Double,
    String,
    BinData,
    ObjectId,
    Bool,
    Date,
    Int,
    Long,
    Decimal,
    /// Another BSON type, by its name: no conversion to it is supported.
    Other(&'static str),
}

/// The target type of a conversion.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) kind: Type,
    /// The subtype, if the target is binary data.
    pub(super) subtype: BinarySubtype,
}

/// The text format of binary data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteFormat {
    Base64,
    Base64Url,
    Hex,
    Utf8,
    Uuid,
    /// UUID for binary data of that subtype, otherwise base64.
    Auto,
}

/// Number and name of each BSON type.
const TYPES: &[(i32, &str)] = &[
    (1, "double"),
    (2, "string"),
    (3, "object"),
    (4, "array"),
    (5, "binData"),
    (6, "undefined"),
    (7, "objectId"),
    (8, "bool"),
    (9, "date"),
    (10, "null"),
    (11, "regex"),
    (12, "dbPointer"),
    (13, "javascript"),
    (14, "symbol"),
    (15, "javascriptWithScope"),
    (16, "int"),
    (17, "timestamp"),
    (18, "long"),
    (19, "decimal"),
    (-1, "minKey"),
    (127, "maxKey"),
];

impl Type {
    fn by_name(name: &'static str) -> Type {
        match name {
            "double" => Type::Double,
            "string" => Type::String,
            "binData" => Type::BinData,
            "objectId" => Type::ObjectId,
            "bool" => Type::Bool,
            "date" => Type::Date,
            "int" => Type::Int,
            "long" => Type::Long,
            "decimal" => Type::Decimal,
            other => Type::Other(other),
        }
    }

    /// The name of the type, as `$type` returns it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Type::Double => "double",
            Type::String => "string",
            Type::BinData => "binData",
            Type::ObjectId => "objectId",
            Type::Bool => "bool",
            Type::Date => "date",
            Type::Int => "int",
            Type::Long => "long",
            Type::Decimal => "decimal",
            Type::Other(name) => name,
        }
    }
}

impl Target {
    /// The target for a type; for binary data, with the generic subtype.
    pub(super) fn plain(kind: Type) -> Target {
        Target {
            kind,
            subtype: BinarySubtype::Generic,
        }
    }

    /// Parses `to`: a name, a number, or an object with `type` and `subtype`. `None` when null.
    pub(super) fn read(to: &Value<'_>) -> Result<Option<Target>> {
        match to.as_deref() {
            Some(Bson::Document(spec)) => {
                let value = |name| spec.get(name).map(std::borrow::Cow::Borrowed);
                let Some(mut target) = Target::read(&value("type"))? else {
                    return Ok(None);
                };
                if let Some(subtype) = spec.get("subtype") {
                    target.subtype = read_subtype(subtype)?;
                }
                Ok(Some(target))
            }
            _ => Ok(read_type(to)?.map(Target::plain)),
        }
    }
}

fn read_type(to: &Value<'_>) -> Result<Option<Type>> {
    if is_nullish(to) {
        return Ok(None);
    }
    if let Some(Bson::String(name)) = to.as_deref() {
        let known = TYPES.iter().find(|(_, known)| known == name);
        return match known {
            Some((_, name)) => Ok(Some(Type::by_name(name))),
            None => Err(Error::bad_value(format!("Unknown type name: {name}"))),
        };
    }
    let Some(code) = number(to) else {
        return Err(Error::parse(format!(
            "$convert's 'to' argument must be a string or number, but is {}",
            type_of(to)
        )));
    };
    let Some(code) = code.to_i32_exact() else {
        return Err(Error::parse(
            "In $convert, numeric 'to' argument is not an integer",
        ));
    };
    match TYPES.iter().find(|(known, _)| *known == code) {
        Some((_, name)) => Ok(Some(Type::by_name(name))),
        None => Err(Error::parse(format!(
            "In $convert, numeric value for 'to' does not correspond to a BSON type: {code}"
        ))),
    }
}

fn read_subtype(value: &Bson) -> Result<BinarySubtype> {
    let code = Number::from_bson(value).and_then(Number::to_i32_exact);
    match code.map(u8::try_from) {
        Some(Ok(code)) => Ok(BinarySubtype::from(code)),
        _ => Err(Error::new(
            Code::FAILED_TO_PARSE,
            "In $convert, numeric value for 'subtype' does not correspond to a BinData type",
        )),
    }
}

impl ByteFormat {
    /// Parses `format`; `None` when it is null or not given.
    pub(super) fn read(format: &Value<'_>) -> Result<Option<ByteFormat>> {
        let name = match format.as_deref() {
            _ if is_nullish(format) => return Ok(None),
            Some(Bson::String(name)) => name.as_str(),
            _ => {
                return Err(Error::location(
                    4_341_114,
                    format!(
                        "$convert requires that 'format' be a string, found: {}",
                        type_of(format)
                    ),
                ));
            }
        };
        Ok(Some(match name {
            "base64" => ByteFormat::Base64,
            "base64url" => ByteFormat::Base64Url,
            "hex" => ByteFormat::Hex,
            "utf8" => ByteFormat::Utf8,
            "uuid" => ByteFormat::Uuid,
            "auto" => ByteFormat::Auto,
            other => {
                return Err(Error::location(
                    4_341_115,
                    format!("Invalid 'format' argument for $convert: {other}"),
                ));
            }
        }))
    }
}
