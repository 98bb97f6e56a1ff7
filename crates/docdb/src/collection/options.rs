//! Options of a collection, in the forms of `create` and `listCollections`.

use bson::{Bson, Document, RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use query::value::type_name;
use query::{Code, Error, Result};

use super::View;
use crate::definition::{options as given, with_definitions};
use crate::index::number;

/// The options that a collection or view was created with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectionOptions {
    /// Bounds of a capped collection.
    pub capped: Option<Capped>,
    /// The validator that documents must match.
    pub validator: Option<RawDocumentBuf>,
    /// Which writes the validator checks.
    pub validation_level: Level,
    /// What happens to documents that do not match the validator.
    pub validation_action: Action,
    /// The default collation; `None` is byte order.
    pub collation: Option<Document>,
    /// The view's source and pipeline, for views.
    pub view: Option<View>,
    /// The clustered index's name, for clustered collections.
    pub clustered: Option<String>,
    /// Seconds after which documents of a clustered collection expire.
    pub expire_after: Option<Bson>,
    /// Whether pre-images for change streams are kept.
    pub pre_images: bool,
    /// `autoIndexId` as given: stored and shown, without effect. The index on `_id` exists in any
    /// case.
    pub auto_index_id: Option<bool>,
    /// Options for engines: stored and shown.
    pub storage_engine: Option<Document>,
    /// Options for the engines of indexes: stored and shown.
    pub index_defaults: Option<Document>,
}

/// Bounds of a capped collection: the oldest documents beyond either bound are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capped {
    /// Bytes of documents.
    pub size: i64,
    /// Documents; `None` is no bound.
    pub max: Option<i64>,
}

/// Which writes a validator checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// No writes.
    Off,
    /// All writes.
    #[default]
    Strict,
    /// All writes except updates of documents that already failed the validator.
    Moderate,
}

/// The action for documents that fail the validator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// The write fails.
    #[default]
    Error,
    /// The write succeeds.
    Warn,
}

/// The options that are kept as bytes.
pub(crate) const DEFINITIONS: [&str; 2] = ["validator", "pipeline"];

/// The largest size of a capped collection: 1 PiB (MongoDB's limit).
const CAPPED_MAX: i64 = 1 << 50;

impl CollectionOptions {
    /// Parse the options of a `create` command.
    ///
    /// # Errors
    /// `TypeMismatch`, `InvalidOptions`, `BadValue`; `IDLUnknownField` for unknown options.
    pub fn parse(fields: &Document) -> Result<CollectionOptions> {
        let mut options = CollectionOptions::default();
        let (mut capped, mut size, mut max) = (false, None, None);
        let (mut on, mut pipeline) = (None, None);
        for (name, value) in fields {
            match name.as_str() {
                "capped" => capped = truth(name, value)?,
                "size" => size = Some(amount(name, value)?),
                "max" => max = Some(amount(name, value)?),
                "validator" => options.validator = Some(document(name, value)?.try_into()?),
                "validationLevel" => options.validation_level = Level::parse(text(name, value)?)?,
                "validationAction" => {
                    options.validation_action = Action::parse(text(name, value)?)?;
                }
                "collation" => options.collation = simple(document(name, value)?),
                "viewOn" => on = Some(text(name, value)?.to_owned()),
                "pipeline" => match value {
                    Bson::Array(stages) => pipeline = Some(RawArrayBuf::try_from(stages)?),
                    other => return Err(wrong(name, "array", other)),
                },
                "clusteredIndex" => options.clustered = clustered(value)?,
                "expireAfterSeconds" => options.expire_after = Some(value.clone()),
                "changeStreamPreAndPostImages" => {
                    options.pre_images = images(name, &document(name, value)?)?;
                }
                "storageEngine" => options.storage_engine = Some(document(name, value)?),
                "indexOptionDefaults" => options.index_defaults = Some(document(name, value)?),
                "autoIndexId" => options.auto_index_id = Some(truth(name, value)?),
                "uuid" | "idIndex" | "temp" | "flags" | "recordIdsReplicated" => {}
                "timeseries" => {
                    return Err(invalid("time-series collections are not supported"));
                }
                "encryptedFields" => {
                    return Err(invalid("encrypted fields are not supported"));
                }
                other => {
                    let message = format!("BSON field 'create.{other}' is an unknown field.");
                    return Err(Error::new(Code::IDL_UNKNOWN_FIELD, message));
                }
            }
        }
        options.capped = bounds(capped, size, max)?;
        options.view = match (on, pipeline) {
            (None, Some(_)) => {
                return Err(invalid("'pipeline' cannot be specified without 'viewOn'"));
            }
            (None, None) => None,
            (Some(on), pipeline) => Some(View::new(on, pipeline.unwrap_or_default())),
        };
        options.check()?;
        Ok(options)
    }

    /// As [`CollectionOptions::parse`]; the validator and the pipeline may name a field twice.
    ///
    /// # Errors
    /// As [`CollectionOptions::parse`].
    pub fn parse_raw(fields: &RawDocument) -> Result<CollectionOptions> {
        let mut options = CollectionOptions::parse(&given("create", fields, &DEFINITIONS)?)?;
        if let Some(RawBsonRef::Document(validator)) = fields.get("validator")? {
            options.validator = Some(validator.to_owned());
        }
        if let Some(RawBsonRef::Array(pipeline)) = fields.get("pipeline")?
            && let Some(view) = options.view.take()
        {
            options.view = Some(View::new(view.on(), pipeline.to_owned()));
        }
        Ok(options)
    }

    fn check(&self) -> Result<()> {
        if self.view.is_some() && (self.capped.is_some() || self.clustered.is_some()) {
            return Err(invalid("a view cannot be capped or clustered"));
        }
        if self.view.is_some() && self.validator.is_some() {
            return Err(invalid("a view cannot have a validator"));
        }
        if self.capped.is_some() && self.clustered.is_some() {
            return Err(Error::location(
                6_049_200,
                "clusteredIndex and capped are not compatible",
            ));
        }
        if self.expire_after.is_some() && self.clustered.is_none() {
            return Err(invalid(
                "'expireAfterSeconds' is only supported on time-series collections or when \
                 'clusteredIndex' is specified",
            ));
        }
        Ok(())
    }

    /// As `listCollections` shows them in `options`.
    ///
    /// # Errors
    /// Invalid bytes in a definition.
    pub fn to_raw(&self) -> Result<RawDocumentBuf> {
        let mut definitions = Vec::new();
        if let Some(validator) = &self.validator {
            definitions.push(("validator", RawBsonRef::Document(validator)));
        }
        if let Some(view) = &self.view {
            definitions.push(("pipeline", RawBsonRef::Array(view.pipeline())));
        }
        with_definitions(&self.to_document(), &definitions)
    }

    /// The options with empty definitions.
    pub(crate) fn to_document(&self) -> Document {
        let mut out = Document::new();
        if let Some(capped) = self.capped {
            out.insert("capped", true);
            out.insert("size", whole(capped.size));
            if let Some(max) = capped.max {
                out.insert("max", whole(max));
            }
        }
        if self.validator.is_some() {
            out.insert("validator", Document::new());
            out.insert("validationLevel", self.validation_level.name());
            out.insert("validationAction", self.validation_action.name());
        }
        if let Some(on) = self.auto_index_id {
            out.insert("autoIndexId", on);
        }
        if let Some(name) = &self.clustered {
            let index = doc! { "v": 2, "key": { "_id": 1 }, "name": name, "unique": true };
            out.insert("clusteredIndex", index);
        }
        if let Some(seconds) = &self.expire_after {
            out.insert("expireAfterSeconds", seconds.clone());
        }
        if self.pre_images {
            out.insert("changeStreamPreAndPostImages", doc! { "enabled": true });
        }
        for (name, value) in [
            ("collation", &self.collation),
            ("storageEngine", &self.storage_engine),
            ("indexOptionDefaults", &self.index_defaults),
        ] {
            if let Some(value) = value {
                out.insert(name, value.clone());
            }
        }
        if let Some(view) = &self.view {
            out.insert("viewOn", view.on());
            out.insert("pipeline", Vec::<Bson>::new());
        }
        out
    }
}

impl Level {
    /// Parse the name of a level.
    ///
    /// # Errors
    /// `BadValue`.
    pub fn parse(name: &str) -> Result<Level> {
        Ok(match name {
            "off" => Level::Off,
            "strict" => Level::Strict,
            "moderate" => Level::Moderate,
            other => {
                return Err(Error::bad_value(format!(
                    "Enumeration value '{other}' for field 'create.validationLevel' is not a \
                     valid value."
                )));
            }
        })
    }

    /// The name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Level::Off => "off",
            Level::Strict => "strict",
            Level::Moderate => "moderate",
        }
    }
}

impl Action {
    /// Parse the name of an action.
    ///
    /// # Errors
    /// `BadValue`.
    pub fn parse(name: &str) -> Result<Action> {
        Ok(match name {
            "error" => Action::Error,
            "warn" => Action::Warn,
            other => {
                return Err(Error::bad_value(format!(
                    "Enumeration value '{other}' for field 'create.validationAction' is not a \
                     valid value."
                )));
            }
        })
    }

    /// The name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Action::Error => "error",
            Action::Warn => "warn",
        }
    }
}

fn bounds(capped: bool, size: Option<f64>, max: Option<f64>) -> Result<Option<Capped>> {
    if !capped {
        if size.is_some() || max.is_some() {
            return Err(invalid(
                "the 'capped' field needs to be true when either the 'size' or 'max' fields are \
                 present",
            ));
        }
        return Ok(None);
    }
    let Some(size) = size else {
        return Err(invalid(
            "the 'size' field is required when 'capped' is true",
        ));
    };
    let max = max.map(integer).filter(|max| 0 < *max);
    let size = capped_size(integer(size))?;
    Ok(Some(Capped { size, max }))
}

/// The size of a capped collection, in bytes, rounded up to a multiple of 256 as MongoDB does.
///
/// # Errors
/// `BadValue` below 1 byte and above 1 PiB.
pub(crate) fn capped_size(size: i64) -> Result<i64> {
    if !(1..=CAPPED_MAX).contains(&size) {
        return Err(Error::bad_value(format!(
            "BSON field 'size' value must be within 1 and {CAPPED_MAX}, actual value '{size}'"
        )));
    }
    Ok((size + 255) / 256 * 256)
}

fn clustered(value: &Bson) -> Result<Option<String>> {
    let spec = match value {
        Bson::Boolean(false) => return Ok(None),
        Bson::Boolean(true) => doc! { "key": { "_id": 1 }, "unique": true },
        Bson::Document(spec) => spec.clone(),
        other => return Err(wrong("clusteredIndex", "object", other)),
    };
    let key = spec.get_document("key").ok();
    let on_id = key.is_some_and(|k| k.len() == 1 && k.get("_id").and_then(number) == Some(1.0));
    if !on_id {
        return Err(Error::new(
            Code::INVALID_INDEX_SPECIFICATION_OPTION,
            "The clusteredIndex option is only supported for key: {_id: 1}",
        ));
    }
    if spec.get_bool("unique").ok() != Some(true) {
        return Err(Error::location(
            5_979_700,
            "The clusteredIndex option requires unique: true to be specified",
        ));
    }
    let name = spec.get_str("name").unwrap_or("_id_").to_owned();
    Ok(Some(name))
}

fn simple(collation: Document) -> Option<Document> {
    (collation.get_str("locale").ok() != Some("simple")).then_some(collation)
}

/// Whether `changeStreamPreAndPostImages` enables them.
fn images(name: &str, fields: &Document) -> Result<bool> {
    let mut enabled = None;
    for (field, value) in fields {
        match (field.as_str(), value) {
            ("enabled", Bson::Boolean(on)) => enabled = Some(*on),
            ("enabled", other) => return Err(wrong(&format!("{name}.enabled"), "bool", other)),
            (other, _) => {
                let message = format!("BSON field 'create.{name}.{other}' is an unknown field.");
                return Err(Error::new(Code::IDL_UNKNOWN_FIELD, message));
            }
        }
    }
    enabled.ok_or_else(|| {
        let message = format!("BSON field 'create.{name}.enabled' is missing but a required field");
        Error::location(40_414, message)
    })
}

/// An integer as the shell shows it: an int32 where it fits.
fn whole(value: i64) -> Bson {
    i32::try_from(value).map_or(Bson::Int64(value), Bson::Int32)
}

fn document(name: &str, value: &Bson) -> Result<Document> {
    match value {
        Bson::Document(value) => Ok(value.clone()),
        other => Err(wrong(name, "object", other)),
    }
}

fn text<'v>(name: &str, value: &'v Bson) -> Result<&'v str> {
    match value {
        Bson::String(value) => Ok(value),
        other => Err(wrong(name, "string", other)),
    }
}

fn truth(name: &str, value: &Bson) -> Result<bool> {
    match value {
        Bson::Boolean(value) => Ok(*value),
        Bson::Null => Ok(false),
        other => match number(other) {
            Some(value) => Ok(value != 0.0),
            None => Err(wrong(name, "bool", other)),
        },
    }
}

fn amount(name: &str, value: &Bson) -> Result<f64> {
    number(value).ok_or_else(|| wrong(name, "long", value))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the cast saturates, which is meant"
)]
fn integer(value: f64) -> i64 {
    value as i64
}

fn wrong(name: &str, wanted: &str, found: &Bson) -> Error {
    Error::type_mismatch(format!(
        "BSON field 'create.{name}' is the wrong type '{}', expected type '{wanted}'",
        type_name(found)
    ))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::INVALID_OPTIONS, message)
}
