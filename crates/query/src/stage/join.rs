//! Stages that contain pipelines: `$lookup`, `$graphLookup`, `$unionWith`, `$facet`.
//!
//! The pipeline inside a `$lookup` is checked when the `$lookup` is parsed, with null for its
//! variables. It is parsed again for each document, with the values of the variables: then every
//! part of it has these values, also its filters, which can therefore use an index.

use std::sync::Arc;

use bson::{Bson, Document, RawArray, RawArrayBuf, RawBsonRef, RawDocument};

use super::out::Target;
use super::{Stage, Unwind};
use crate::expr::{Dependencies, Expr, FieldPath, Variables, no_sort_key};
use crate::filter::Filter;
use crate::number::Number;
use crate::path::Path;
use crate::pipeline::{Pipeline, distinct};
use crate::settings::Settings;
use crate::value::type_name;
use crate::{Code, Error, Result, show};

/// A pipeline on another collection.
#[derive(Debug, Clone)]
pub struct SubPipeline {
    stages: RawArrayBuf,
    settings: Settings,
    /// The stages, parsed with null for the variables.
    parsed: Arc<Pipeline>,
}

impl SubPipeline {
    /// Checks the stages; `variables` are defined in them.
    fn parse(
        stage: &str,
        stages: &RawArray,
        variables: &[(String, Expr)],
        settings: &Settings,
    ) -> Result<SubPipeline> {
        let mut with = settings.clone();
        for (name, _) in variables {
            with.variables.set(name, Some(Bson::Null));
        }
        let code = if stage == "$unionWith" {
            31_441
        } else {
            51_047
        };
        let parsed = Pipeline::parse_nested(stages, &with, &|inner| {
            let refused = inner.writes() || matches!(inner, Stage::ChangeStream(_));
            let name = inner.name();
            refused.then(|| {
                let message = format!("{name} is not allowed within a {stage}'s sub-pipeline");
                Error::location(code, message)
            })
        })?;
        Ok(SubPipeline {
            stages: stages.to_owned(),
            settings: settings.clone(),
            parsed: Arc::new(parsed),
        })
    }

    /// The pipeline with null for its variables, for checks that do not depend on their values.
    #[must_use]
    pub fn parsed(&self) -> &Pipeline {
        &self.parsed
    }

    /// Parses the pipeline with the values of its variables.
    ///
    /// # Errors
    /// Errors of parsing.
    pub fn bind(&self, variables: &[(String, Option<Bson>)]) -> Result<Pipeline> {
        let mut settings = self.settings.clone();
        for (name, value) in variables {
            settings.variables.set(name, value.clone());
        }
        Pipeline::parse_checked(&self.stages, &settings)
    }

    /// Whether the first stage produces documents itself and reads no collection.
    #[must_use]
    pub fn has_source(&self) -> bool {
        let first = self.stages.get_document(0);
        first.is_ok_and(|stage| matches!(stage.get("$documents"), Ok(Some(_))))
    }

    /// The stages as they were written.
    #[must_use]
    pub fn stages(&self) -> &RawArray {
        &self.stages
    }
}

/// `$lookup`: puts matching documents of another collection into an array.
#[derive(Debug, Clone)]
pub struct Lookup {
    /// The foreign collection; `None` when the pipeline produces its own documents.
    pub from: Option<Target>,
    /// The field that receives the array.
    pub r#as: FieldPath,
    /// The local field, and the foreign field to which it must be equal.
    pub on: Option<(FieldPath, Path)>,
    /// Variables of the pipeline, with the expressions of their values.
    pub variables: Vec<(String, Expr)>,
    /// The pipeline that is applied to the documents of the foreign collection.
    pub pipeline: Option<SubPipeline>,
    /// A following `$unwind` of the array, which the optimizer has merged into this stage.
    pub unwind: Option<Unwind>,
    /// The operation's settings, for collation and variables.
    pub settings: Settings,
}

impl Lookup {
    /// Parses the specification.
    ///
    /// # Errors
    /// `FailedToParse` for arguments that are missing, unknown or of a wrong type, and the errors
    /// of the pipeline.
    pub fn parse(spec: RawBsonRef<'_>, settings: &Settings) -> Result<Lookup> {
        let RawBsonRef::Document(raw) = spec else {
            return Err(Error::parse(format!(
                "the $lookup stage specification must be an object, but found {}",
                type_name(&Bson::try_from(spec)?)
            )));
        };
        let spec = &options("$lookup", raw)?;
        let known = [
            "from",
            "as",
            "localField",
            "foreignField",
            "let",
            "pipeline",
        ];
        if let Some(name) = spec.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(Error::parse(format!("unknown argument to $lookup: {name}")));
        }
        let variables = match spec.get("let") {
            None => Vec::new(),
            Some(Bson::Document(variables)) => parse_let(variables, settings)?,
            Some(other) => return Err(wrong_type("let", "an object", other)),
        };
        let from = parse_from(spec)?.map(|from| from.within(settings));
        let pipeline = match raw.get("pipeline")? {
            None => None,
            Some(RawBsonRef::Array(stages)) => {
                let own = inner_settings(from.as_ref(), settings);
                Some(SubPipeline::parse("$lookup", stages, &variables, &own)?)
            }
            Some(_) => {
                return Err(Error::type_mismatch(
                    "'pipeline' option must be specified as an array",
                ));
            }
        };
        let on = parse_on(spec, pipeline.is_some())?;
        if on.is_some() && pipeline.is_none() && !variables.is_empty() {
            return Err(Error::parse(
                "$lookup with 'let' requires 'pipeline' to be specified",
            ));
        }
        let Some(r#as) = text(spec, "as")? else {
            return Err(Error::parse("must specify 'as' field for a $lookup"));
        };
        if from.is_none() && !pipeline.as_ref().is_some_and(SubPipeline::has_source) {
            return Err(Error::parse("must specify 'from' field for a $lookup"));
        }
        Ok(Lookup {
            from,
            r#as: FieldPath::parse(r#as)?,
            on,
            variables,
            pipeline,
            unwind: None,
            settings: settings.clone(),
        })
    }

    /// Whether every document gets the same array.
    #[must_use]
    pub fn is_uncorrelated(&self) -> bool {
        self.on.is_none() && self.variables.is_empty()
    }

    /// Adds what the stage reads of its input documents.
    pub fn dependencies(&self, found: &mut Dependencies) {
        if let Some((local, _)) = &self.on {
            found.fields.insert(local.to_string());
        }
        for (_, expr) in &self.variables {
            expr.dependencies(found);
        }
    }
}

/// The options of a stage as an owned document. A pipeline or filter among them is parsed from
/// bytes, so no option may occur twice.
///
/// # Errors
/// 40413 for an option that is given twice.
fn options(stage: &str, raw: &RawDocument) -> Result<Document> {
    distinct(stage, raw)?;
    Ok(Document::try_from(raw)?)
}

fn parse_on(spec: &Document, has_pipeline: bool) -> Result<Option<(FieldPath, Path)>> {
    let message = if has_pipeline {
        "$lookup with a 'pipeline' needs both or neither of 'localField' and 'foreignField'"
    } else {
        "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified"
    };
    match (text(spec, "localField")?, text(spec, "foreignField")?) {
        (Some(local), Some(foreign)) => {
            FieldPath::parse(foreign)?;
            Ok(Some((FieldPath::parse(local)?, Path::parse(foreign)?)))
        }
        (None, None) if has_pipeline => Ok(None),
        _ => Err(Error::parse(message)),
    }
}

/// The settings for a pipeline that reads `from`.
fn inner_settings(from: Option<&Target>, settings: &Settings) -> Settings {
    let database = from.and_then(|from| from.db.as_deref());
    match database {
        Some(database) => settings.clone().within(database),
        None => settings.clone(),
    }
}

fn parse_from(spec: &Document) -> Result<Option<Target>> {
    match spec.get("from") {
        None => Ok(None),
        Some(Bson::Document(from)) => Target::parse("$lookup 'from'", from, 9).map(Some),
        Some(Bson::String(from)) => Ok(Some(Target::local(from))),
        Some(other) => Err(wrong_type("from", "a string", other)),
    }
}

fn parse_let(spec: &Document, settings: &Settings) -> Result<Vec<(String, Expr)>> {
    let scope = settings.scope();
    let mut variables = Vec::with_capacity(spec.len());
    for (name, value) in spec {
        let first = name.chars().next();
        let valid = first.is_some_and(|c| c.is_ascii_lowercase() || !c.is_ascii())
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii());
        if !valid {
            return Err(Error::parse(format!(
                "'{name}' starts with an invalid character for a user variable name"
            )));
        }
        variables.push((name.clone(), Expr::parse(value, &scope)?));
    }
    Ok(variables)
}

fn text<'a>(spec: &'a Document, name: &str) -> Result<Option<&'a str>> {
    match spec.get(name) {
        None => Ok(None),
        Some(Bson::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong_type(name, "a string", other)),
    }
}

fn wrong_type(name: &str, wanted: &str, found: &Bson) -> Error {
    Error::parse(format!(
        "$lookup argument '{}' must be {wanted}, is type {}",
        show::field(name, found),
        type_name(found)
    ))
}

/// `$graphLookup`: searches a collection from a start value, step by step, and puts the found
/// documents into an array.
#[derive(Debug, Clone)]
pub struct GraphLookup {
    /// The searched collection.
    pub from: Target,
    /// The field that receives the array.
    pub r#as: FieldPath,
    /// The values with which the search starts.
    pub start_with: Expr,
    /// The field of a found document whose values the next step searches for.
    pub connect_from: FieldPath,
    /// The field in which values are searched for.
    pub connect_to: Path,
    /// Maximum number of steps after the first one; `None` for no limit.
    pub max_depth: Option<u64>,
    /// The field that receives the number of steps after the first one.
    pub depth_field: Option<FieldPath>,
    /// The filter that found documents must match.
    pub restrict: Option<Filter>,
    /// A following `$unwind` of the array, which the optimizer has merged into this stage.
    pub unwind: Option<Unwind>,
    /// The operation's settings, for collation and variables.
    pub settings: Settings,
}

impl GraphLookup {
    /// Parses the specification.
    ///
    /// # Errors
    /// MongoDB's 40100 to 40105, 40185 and 40327.
    pub fn parse(spec: RawBsonRef<'_>, settings: &Settings) -> Result<GraphLookup> {
        let RawBsonRef::Document(raw) = spec else {
            return Err(Error::location(
                40_327,
                format!(
                    "the $graphLookup stage specification must be an object, but found {}",
                    type_name(&Bson::try_from(spec)?)
                ),
            ));
        };
        let spec = &options("$graphLookup", raw)?;
        let known = [
            "from",
            "as",
            "startWith",
            "connectFromField",
            "connectToField",
            "maxDepth",
            "depthField",
            "restrictSearchWithMatch",
        ];
        if let Some(name) = spec.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(Error::location(
                40_104,
                format!("Unknown argument to $graphLookup: {name}"),
            ));
        }
        let missing = || {
            Error::location(
                40_105,
                "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and \
                 'connectToField' to be specified.",
            )
        };
        let required = |name| graph_text(spec, name)?.ok_or_else(missing);
        let connect_to = required("connectToField")?;
        FieldPath::parse(connect_to)?;
        Ok(GraphLookup {
            from: Target::local(required("from")?).within(settings),
            r#as: FieldPath::parse(required("as")?)?,
            start_with: Expr::parse(
                spec.get("startWith").ok_or_else(missing)?,
                &settings.scope(),
            )?,
            connect_from: FieldPath::parse(required("connectFromField")?)?,
            connect_to: Path::parse(connect_to)?,
            max_depth: spec.get("maxDepth").map(max_depth).transpose()?,
            depth_field: graph_text(spec, "depthField")?
                .map(FieldPath::parse)
                .transpose()?,
            restrict: restriction(raw.get("restrictSearchWithMatch")?, settings)?,
            unwind: None,
            settings: settings.clone(),
        })
    }
}

fn graph_text<'a>(spec: &'a Document, name: &str) -> Result<Option<&'a str>> {
    match spec.get(name) {
        None => Ok(None),
        Some(Bson::String(text)) => Ok(Some(text)),
        Some(other) => Err(Error::location(
            40_103,
            format!(
                "expected string as argument for {name}, found: {}",
                show::value(other)
            ),
        )),
    }
}

fn max_depth(spec: &Bson) -> Result<u64> {
    let Some(number) = Number::from_bson(spec) else {
        return Err(Error::location(
            40_100,
            format!(
                "maxDepth requires a numeric argument, found type: {}",
                type_name(spec)
            ),
        ));
    };
    if number.is_negative() {
        return Err(Error::location(
            40_101,
            format!(
                "maxDepth requires a nonnegative argument, found: {}",
                show::value(spec)
            ),
        ));
    }
    let whole = number.to_i64_exact().and_then(|n| u64::try_from(n).ok());
    whole.ok_or_else(|| {
        Error::location(
            40_102,
            format!(
                "maxDepth could not be represented as a long long: {}",
                show::value(spec)
            ),
        )
    })
}

fn restriction(spec: Option<RawBsonRef<'_>>, settings: &Settings) -> Result<Option<Filter>> {
    match spec {
        None => Ok(None),
        Some(RawBsonRef::Document(filter)) => Ok(Some(Filter::parse(filter, settings)?)),
        Some(other) => Err(Error::location(
            40_185,
            format!(
                "restrictSearchWithMatch must be an object, found {}",
                type_name(&Bson::try_from(other)?)
            ),
        )),
    }
}

/// `$unionWith`: returns the input documents, then the documents of another collection.
#[derive(Debug, Clone)]
pub struct UnionWith {
    /// The other collection; `None` when the pipeline produces its own documents.
    pub coll: Option<Target>,
    /// The pipeline that is applied to the documents of the other collection.
    pub pipeline: SubPipeline,
}

impl UnionWith {
    /// Parses the specification.
    ///
    /// # Errors
    /// `FailedToParse` when the specification names no collection, and the errors of the pipeline.
    pub fn parse(spec: RawBsonRef<'_>, settings: &Settings) -> Result<UnionWith> {
        let none = RawArrayBuf::new();
        let (coll, stages): (Option<Target>, &RawArray) = match spec {
            RawBsonRef::String(coll) => (Some(Target::local(coll).within(settings)), &none),
            RawBsonRef::Document(raw) => {
                let options = options("$unionWith", raw)?;
                let coll = match options.get("coll") {
                    None => None,
                    Some(Bson::String(coll)) => Some(Target::local(coll).within(settings)),
                    Some(other) => return Err(union_type("coll", "string", other)),
                };
                let stages = match raw.get("pipeline")? {
                    None => &*none,
                    Some(RawBsonRef::Array(stages)) => stages,
                    Some(other) => {
                        return Err(union_type("pipeline", "array", &Bson::try_from(other)?));
                    }
                };
                let known = ["coll", "pipeline"];
                if let Some(name) = options.keys().find(|n| !known.contains(&n.as_str())) {
                    return Err(Error::new(
                        Code::IDL_UNKNOWN_FIELD,
                        format!("BSON field '$unionWith.{name}' is an unknown field."),
                    ));
                }
                (coll, stages)
            }
            other => {
                return Err(Error::parse(format!(
                    "the $unionWith stage specification must be an object or string, but found {}",
                    type_name(&Bson::try_from(other)?)
                )));
            }
        };
        let pipeline = SubPipeline::parse("$unionWith", stages, &[], settings)?;
        if coll.is_none() && !pipeline.has_source() {
            return Err(Error::parse(
                "$unionWith stage without explicit collection must have a pipeline with $documents \
                 as first stage",
            ));
        }
        Ok(UnionWith { coll, pipeline })
    }
}

fn union_type(name: &str, wanted: &str, found: &Bson) -> Error {
    Error::type_mismatch(format!(
        "BSON field '$unionWith.{name}' is the wrong type '{}', expected type '{wanted}'",
        type_name(found)
    ))
}

/// `$facet`: runs several pipelines over the same documents, and returns their results in one
/// document.
#[derive(Debug, Clone)]
pub struct Facet {
    /// The pipelines, each with the field for its result.
    pub facets: Vec<(String, Pipeline)>,
}

impl Facet {
    /// Parses the specification.
    ///
    /// # Errors
    /// 40169, 40170 and 40600; 17308 for `{$meta: "sortKey"}` without a `$sort` in the same facet.
    pub fn parse(spec: RawBsonRef<'_>, settings: &Settings) -> Result<Facet> {
        let spec = match spec {
            RawBsonRef::Document(spec) if !spec.is_empty() => spec,
            other => {
                return Err(Error::location(
                    40_169,
                    format!(
                        "the $facet specification must be a non-empty object, but found: {}",
                        show::value(&Bson::try_from(other)?)
                    ),
                ));
            }
        };
        let mut facets = Vec::new();
        for element in spec {
            let (name, stages) = element?;
            let name = name.as_str();
            FieldPath::parse(name)?;
            if name.contains('.') {
                return Err(Error::location(
                    16_412,
                    "FieldPath field names may not contain '.'. Consider using $getField or \
                     $setField.",
                ));
            }
            let RawBsonRef::Array(stages) = stages else {
                return Err(Error::location(
                    40_170,
                    format!(
                        "arguments to $facet must be arrays, {name} is type {}",
                        type_name(&Bson::try_from(stages)?)
                    ),
                ));
            };
            let pipeline = Pipeline::parse_nested(stages, settings, &|stage| {
                let inner = matches!(stage, Stage::Facet(_));
                let refused = inner || stage.writes() || stage.is_source();
                let name = stage.name();
                refused.then(|| {
                    let message = format!("{name} is not allowed to be used within a $facet stage");
                    Error::location(40_600, message)
                })
            })?;
            if wants_sort_key(&pipeline) {
                return Err(no_sort_key());
            }
            facets.push((name.to_owned(), pipeline));
        }
        Ok(Facet { facets })
    }
}

/// Whether a stage reads the sort key without a `$sort` before it in this pipeline: `$facet` keeps
/// its input rows without their sort keys.
fn wants_sort_key(pipeline: &Pipeline) -> bool {
    let stages = pipeline.stages().iter();
    let mut unsorted = stages.take_while(|stage| !matches!(stage, Stage::Sort(..)));
    unsorted.any(|stage| matches!(stage, Stage::Transform(transform) if transform.reads_sort_key()))
}

/// The values of the variables of `let` for one document.
///
/// # Errors
/// Errors of expressions.
pub(crate) fn bindings(
    variables: &[(String, Expr)],
    document: &Document,
    of: &Variables,
) -> Result<Vec<(String, Option<Bson>)>> {
    let env = crate::expr::Env::new(document, of);
    let bind = |(name, expr): &(String, Expr)| Ok((name.clone(), expr.evaluate(&env)?));
    variables.iter().map(bind).collect()
}
