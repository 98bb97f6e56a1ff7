//! `$merge`: its specification, and the write it makes for one document.

use bson::{Bson, Document, doc};

use super::out::Target;
use crate::expr::{Env, Expr};
use crate::settings::Settings;
use crate::update::{Position, Update};
use crate::value::type_name;
use crate::{Code, Error, Result};

/// `$merge`: writes documents into a collection.
#[derive(Debug, Clone)]
pub struct Merge {
    /// The target collection.
    pub into: Target,
    /// The fields that identify a document in the target, at least one.
    pub on: Vec<String>,
    /// The action for a document that exists in the target.
    pub when_matched: WhenMatched,
    /// The action for a document that does not exist in the target.
    pub when_not_matched: WhenNotMatched,
    variables: Vec<(String, Expr)>,
    settings: Settings,
}

/// The action for a document that exists in the target.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum WhenMatched {
    /// Replaces the document in the target by the new document.
    Replace,
    /// Keeps the document in the target.
    KeepExisting,
    /// Sets the fields of the new document in the document of the target.
    Merge,
    /// Fails the operation.
    Fail,
    /// Applies a pipeline to the document in the target; `$$new` is the new document.
    Pipeline(Vec<Bson>),
}

impl WhenMatched {
    /// The name of the action in a specification.
    fn name(&self) -> &'static str {
        match self {
            WhenMatched::Replace => "replace",
            WhenMatched::KeepExisting => "keepExisting",
            WhenMatched::Merge => "merge",
            WhenMatched::Fail => "fail",
            WhenMatched::Pipeline(_) => "pipeline",
        }
    }
}

/// The action for a document that does not exist in the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenNotMatched {
    /// Inserts the new document.
    Insert,
    /// Discards the new document.
    Discard,
    /// Fails the operation.
    Fail,
}

/// The write for one document.
#[derive(Debug, Clone, PartialEq)]
pub enum MergeOutcome {
    /// No write.
    Nothing,
    /// Inserts this document.
    Insert(Document),
    /// Replaces the document in the target by this one.
    Replace(Document),
}

impl Merge {
    /// Parses the specification.
    ///
    /// # Errors
    /// MongoDB's 51178 to 51191, `BadValue` for unknown modes.
    pub fn parse(spec: &Bson, settings: &Settings) -> Result<Merge> {
        let mut merge = Merge {
            into: Target::local(""),
            on: vec![String::from("_id")],
            when_matched: WhenMatched::Merge,
            when_not_matched: WhenNotMatched::Insert,
            variables: Vec::new(),
            settings: settings.clone(),
        };
        let options = match spec {
            Bson::String(coll) => {
                merge.into = Target::local(coll).within(settings);
                return Ok(merge);
            }
            Bson::Document(options) => options,
            other => {
                return Err(Error::location(
                    51_182,
                    format!(
                        "$merge requires a string or object argument, but found {}",
                        type_name(other)
                    ),
                ));
            }
        };
        let mut has_target = false;
        for (name, value) in options {
            match name.as_str() {
                "into" => {
                    merge.into = into(value)?.within(settings);
                    has_target = true;
                }
                "on" => merge.on = on(value)?,
                "whenMatched" => merge.when_matched = when_matched(value)?,
                "whenNotMatched" => merge.when_not_matched = when_not_matched(value)?,
                "let" => merge.variables = variables(value, settings)?,
                unknown => {
                    return Err(Error::new(
                        Code::IDL_UNKNOWN_FIELD,
                        format!("BSON field '$merge.{unknown}' is an unknown field."),
                    ));
                }
            }
        }
        if !has_target {
            return Err(Error::new(
                Code::IDL_FAILED_TO_PARSE,
                "BSON field '$merge.into' is missing but a required field",
            ));
        }
        merge.check_pipeline(options.contains_key("let"))?;
        Ok(merge)
    }

    fn check_pipeline(&self, has_let: bool) -> Result<()> {
        match &self.when_matched {
            WhenMatched::Pipeline(stages) => {
                let mut settings = self.settings.clone();
                settings.variables.set("new", Some(Bson::Null));
                for (name, _) in &self.variables {
                    settings.variables.set(name, Some(Bson::Null));
                }
                Update::from_pipeline(stages, &[], &settings).map(|_| ())
            }
            mode if has_let => Err(Error::location(
                51_199,
                format!(
                    "Cannot use 'let' variables with 'whenMatched: {}' mode",
                    mode.name()
                ),
            )),
            _ => Ok(()),
        }
    }

    /// The fields by which `incoming` is found in the target, with their values, in the order of
    /// `on`.
    ///
    /// # Errors
    /// 51132 and 51185 when a field is missing, null or an array.
    pub fn key(&self, incoming: &Document) -> Result<Document> {
        let mut key = Document::new();
        for path in &self.on {
            let value = value_at(incoming, path);
            match value {
                None | Some(Bson::Null | Bson::Undefined) => {
                    return Err(Error::location(
                        51_132,
                        "$merge write error: 'on' field cannot be missing, null, undefined or an \
                         array",
                    ));
                }
                Some(Bson::Array(_)) => {
                    return Err(Error::location(
                        51_185,
                        "$merge write error: 'on' field cannot be missing, null, undefined or an \
                         array",
                    ));
                }
                Some(value) => {
                    key.insert(path.as_str(), value.clone());
                }
            }
        }
        Ok(key)
    }

    /// The write for `incoming`, given the matching document `existing` of the target.
    ///
    /// # Errors
    /// `DuplicateKey` and 13113 where the action is to fail; errors of the pipeline.
    pub fn resolve(&self, existing: Option<&Document>, incoming: Document) -> Result<MergeOutcome> {
        match existing {
            Some(existing) => self.matched(existing, incoming),
            None => match self.when_not_matched {
                WhenNotMatched::Insert => Ok(MergeOutcome::Insert(incoming)),
                WhenNotMatched::Discard => Ok(MergeOutcome::Nothing),
                WhenNotMatched::Fail => Err(Error::new(
                    Code::MERGE_STAGE_NO_MATCHING_DOCUMENT,
                    "$merge could not find a matching document in the target collection for at \
                     least one document in the source collection",
                )),
            },
        }
    }

    fn matched(&self, existing: &Document, incoming: Document) -> Result<MergeOutcome> {
        let at = Position::at(self.settings.now);
        let update = match &self.when_matched {
            WhenMatched::KeepExisting => return Ok(MergeOutcome::Nothing),
            WhenMatched::Fail => {
                let found = self.key(existing)?;
                let pattern: Document = found
                    .keys()
                    .map(|field| (field.clone(), Bson::Int32(1)))
                    .collect();
                return Err(Error::new(
                    Code::DUPLICATE_KEY,
                    "$merge found a document that matches in the target collection, and \
                     whenMatched is 'fail'",
                )
                .with_details(doc! { "keyPattern": pattern, "keyValue": found }));
            }
            WhenMatched::Replace => Update::replacement(incoming, &self.settings),
            WhenMatched::Merge => {
                let mut merged = existing.clone();
                merged.extend(incoming);
                Update::replacement(merged, &self.settings)
            }
            WhenMatched::Pipeline(stages) => {
                let mut settings = self.settings.clone();
                self.bind(&incoming, &mut settings)?;
                settings
                    .variables
                    .set("new", Some(Bson::Document(incoming)));
                Update::from_pipeline(stages, &[], &settings)?
            }
        };
        Ok(match update.apply(existing, &at)? {
            Some(next) => MergeOutcome::Replace(next),
            None => MergeOutcome::Nothing,
        })
    }

    /// Evaluates `let` over the new document.
    fn bind(&self, incoming: &Document, settings: &mut Settings) -> Result<()> {
        let env = Env::new(incoming, &self.settings.variables);
        for (name, expr) in &self.variables {
            let value = expr.evaluate(&env)?;
            settings.variables.set(name, value);
        }
        Ok(())
    }
}

fn value_at<'a>(document: &'a Document, path: &str) -> Option<&'a Bson> {
    let mut names = path.split('.');
    let first = document.get(names.next()?)?;
    names.try_fold(first, |value, name| value.as_document()?.get(name))
}

fn into(value: &Bson) -> Result<Target> {
    match value {
        Bson::String(coll) => Ok(Target::local(coll)),
        Bson::Document(spec) => target(spec),
        other => Err(Error::location(
            51_178,
            format!(
                "$merge 'into' field  must be either a string or an object, but found {}",
                type_name(other)
            ),
        )),
    }
}

/// Parses `{db: .., coll: ..}`.
fn target(spec: &Document) -> Result<Target> {
    let mut target = Target::local("");
    for (name, value) in spec {
        let text = || match value {
            Bson::String(text) => Ok(text.clone()),
            other => Err(Error::type_mismatch(format!(
                "BSON field 'into.{name}' is the wrong type '{}', expected type 'string'",
                type_name(other)
            ))),
        };
        match name.as_str() {
            "db" => target.db = Some(text()?),
            "coll" => target.coll = text()?,
            unknown => {
                return Err(Error::new(
                    Code::IDL_UNKNOWN_FIELD,
                    format!("BSON field 'into.{unknown}' is an unknown field."),
                ));
            }
        }
    }
    if target.coll.is_empty() {
        let db = target.db.as_deref().unwrap_or_default();
        let message = format!("Invalid $merge target namespace, {db}.");
        return Err(Error::new(Code::INVALID_NAMESPACE, message));
    }
    Ok(target)
}

fn on(value: &Bson) -> Result<Vec<String>> {
    let fields = match value {
        Bson::String(field) => vec![field.clone()],
        Bson::Array(fields) if fields.is_empty() => {
            return Err(Error::location(
                51_187,
                "If explicitly specifying $merge 'on', must include at least one field",
            ));
        }
        Bson::Array(fields) => {
            let names = fields.iter().map(|field| match field {
                Bson::String(field) => Ok(field.clone()),
                other => Err(Error::location(
                    51_134,
                    format!(
                        "$merge 'on' array elements must be strings, but found {}",
                        type_name(other)
                    ),
                )),
            });
            names.collect::<Result<_>>()?
        }
        other => {
            return Err(Error::location(
                51_186,
                format!(
                    "$merge 'on' field  must be either a string or an array of strings, but found \
                     {}",
                    type_name(other)
                ),
            ));
        }
    };
    for (at, field) in fields.iter().enumerate() {
        crate::expr::FieldPath::parse(field)?;
        if fields.iter().take(at).any(|known| known == field) {
            return Err(Error::location(
                31_465,
                format!("Found a duplicate field '{field}'"),
            ));
        }
    }
    Ok(fields)
}

fn when_matched(value: &Bson) -> Result<WhenMatched> {
    match value {
        Bson::Array(stages) => Ok(WhenMatched::Pipeline(stages.clone())),
        Bson::String(mode) => match mode.as_str() {
            "replace" => Ok(WhenMatched::Replace),
            "keepExisting" => Ok(WhenMatched::KeepExisting),
            "merge" => Ok(WhenMatched::Merge),
            "fail" => Ok(WhenMatched::Fail),
            _ => Err(unknown_mode("whenMatched", mode)),
        },
        other => Err(Error::location(
            51_191,
            format!(
                "$merge 'whenMatched' field  must be either a string or an array, but found {}",
                type_name(other)
            ),
        )),
    }
}

fn when_not_matched(value: &Bson) -> Result<WhenNotMatched> {
    match value.as_str() {
        Some("insert") => Ok(WhenNotMatched::Insert),
        Some("discard") => Ok(WhenNotMatched::Discard),
        Some("fail") => Ok(WhenNotMatched::Fail),
        Some(mode) => Err(unknown_mode("whenNotMatched", mode)),
        None => Err(Error::type_mismatch(format!(
            "BSON field '$merge.whenNotMatched' is the wrong type '{}', expected type 'string'",
            type_name(value)
        ))),
    }
}

fn unknown_mode(field: &str, mode: &str) -> Error {
    Error::bad_value(format!(
        "Enumeration value '{mode}' for field '$merge.{field}' is not a valid value."
    ))
}

fn variables(value: &Bson, settings: &Settings) -> Result<Vec<(String, Expr)>> {
    let Bson::Document(spec) = value else {
        return Err(Error::type_mismatch(format!(
            "BSON field '$merge.let' is the wrong type '{}', expected type 'object'",
            type_name(value)
        )));
    };
    if spec
        .get("new")
        .is_some_and(|new| new.as_str() != Some("$$ROOT"))
    {
        return Err(Error::location(
            51_273,
            "'let' may not define a value for the reserved 'new' variable other than '$$ROOT'",
        ));
    }
    let scope = settings.scope();
    let parse = |(name, value): (&String, &Bson)| {
        crate::expr::check_variable(name)?;
        Ok((name.clone(), Expr::parse(value, &scope)?))
    };
    spec.iter().map(parse).collect()
}
