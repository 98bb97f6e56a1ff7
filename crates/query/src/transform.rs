//! Stages that map one document to one or none: without state, without storage.

use bson::{Bson, Document};

use crate::expr::{Dependencies, Env, Expr, Variables, no_sort_key};
use crate::path::Path;
use crate::projection::Projection;
use crate::settings::Settings;
use crate::stage_name::{is_known, unknown};
use crate::value::type_name;
use crate::{Code, Error, Result, meter, show};

/// A stage that maps documents.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Transform {
    /// `$project`.
    Project(Projection),
    /// `$addFields` and `$set`.
    AddFields(Projection),
    /// `$unset`.
    Unset(Projection),
    /// `$replaceRoot` and `$replaceWith`.
    ReplaceRoot(Expr),
    /// `$redact`.
    Redact(Expr),
}

/// The names of the variables that the expression of `$redact` returns as its decision.
const DECISIONS: [&str; 3] = ["DESCEND", "PRUNE", "KEEP"];

impl Transform {
    /// Parses the stage `name`; `None` when it is not one of these stages.
    ///
    /// # Errors
    /// Errors of projections and expressions.
    pub fn parse(name: &str, spec: &Bson, settings: &Settings) -> Result<Option<Transform>> {
        Ok(Some(match name {
            "$project" => {
                let spec = object(spec, 15_969, "$project specification must be an object")?;
                Transform::Project(Projection::parse_stage(spec, settings)?)
            }
            "$addFields" | "$set" => {
                let message = format!(
                    "{name} specification stage must be an object, got {}",
                    type_name(spec)
                );
                let spec = object(spec, 40_272, &message)?;
                Transform::AddFields(Projection::parse_add_fields(spec, settings)?)
            }
            "$unset" => Transform::Unset(unset(spec)?),
            "$replaceRoot" => Transform::ReplaceRoot(replace_root(spec, settings)?),
            "$replaceWith" => Transform::ReplaceRoot(new_root(spec, settings)?),
            "$redact" => {
                let mut scope = settings.scope().with_sort_key();
                for decision in DECISIONS {
                    scope = scope.with_declared(decision);
                }
                Transform::Redact(Expr::parse(spec, &scope)?)
            }
            _ => return Ok(None),
        }))
    }

    /// Parses a stage of a pipeline-style update.
    ///
    /// # Errors
    /// `InvalidOptions` for stages that updates do not allow; 17308 for `{$meta: "sortKey"}`.
    pub fn parse_for_update(stage: &Document, settings: &Settings) -> Result<Transform> {
        let mut entries = stage.iter();
        let (Some((name, spec)), None) = (entries.next(), entries.next()) else {
            return Err(Error::location(
                40_323,
                "A pipeline stage specification object must contain exactly one field.",
            ));
        };
        if name == "$redact" {
            return Err(not_in_update(name));
        }
        match Transform::parse(name, spec, settings)? {
            Some(transform) if transform.reads_sort_key() => Err(no_sort_key()),
            Some(transform) => Ok(transform),
            None if is_known(name) => Err(not_in_update(name)),
            None => Err(unknown(name)),
        }
    }

    /// The name with its dollar.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Transform::Project(_) => "$project",
            Transform::AddFields(_) => "$addFields",
            Transform::Unset(_) => "$unset",
            Transform::ReplaceRoot(_) => "$replaceRoot",
            Transform::Redact(_) => "$redact",
        }
    }

    /// Applies the stage to `document`.
    ///
    /// # Errors
    /// Errors of expressions; 40228 when `$replaceRoot` does not result in a document. A `$redact`
    /// that prunes the whole document returns an empty one here; see [`Transform::apply_or_drop`].
    pub fn apply(&self, document: Document, variables: &Variables) -> Result<Document> {
        Ok(self.apply_or_drop(document, variables)?.unwrap_or_default())
    }

    /// Applies the stage to `document`; `None` if the document is removed.
    ///
    /// # Errors
    /// As [`Transform::apply`].
    pub fn apply_or_drop(
        &self,
        document: Document,
        variables: &Variables,
    ) -> Result<Option<Document>> {
        match self {
            Transform::Project(projection)
            | Transform::AddFields(projection)
            | Transform::Unset(projection) => {
                projection.apply_document(document, variables).map(Some)
            }
            Transform::ReplaceRoot(expr) => replaced(expr, &document, variables).map(Some),
            Transform::Redact(expr) => {
                let mut variables = variables.clone();
                for decision in DECISIONS {
                    let name = decision.to_ascii_lowercase();
                    variables.set(decision, Some(Bson::String(name)));
                }
                redact(expr, document, &variables)
            }
        }
    }

    /// The projection; `None` for `$replaceRoot` and `$redact`.
    #[must_use]
    pub fn projection(&self) -> Option<&Projection> {
        match self {
            Transform::Project(projection)
            | Transform::AddFields(projection)
            | Transform::Unset(projection) => Some(projection),
            Transform::ReplaceRoot(_) | Transform::Redact(_) => None,
        }
    }

    /// Whether the stage leaves the value at `path` unchanged in every document.
    #[must_use]
    pub fn preserves(&self, path: &Path) -> bool {
        self.projection()
            .is_some_and(|projection| projection.preserves(path))
    }

    /// Whether the stage reads the key by which documents were sorted (`{$meta: "sortKey"}`).
    #[must_use]
    pub fn reads_sort_key(&self) -> bool {
        let mut found = Dependencies::default();
        match self {
            Transform::Redact(expr) => expr.dependencies(&mut found),
            other => other.dependencies(&mut found),
        }
        found.reads_sort_key()
    }

    /// Adds what the stage reads of the document; fields that it only passes on are not added.
    pub fn dependencies(&self, found: &mut Dependencies) {
        match self {
            Transform::Project(projection)
            | Transform::AddFields(projection)
            | Transform::Unset(projection) => projection.dependencies(found),
            Transform::ReplaceRoot(expr) => expr.dependencies(found),
            Transform::Redact(_) => found.whole = true,
        }
    }
}

fn object<'a>(spec: &'a Bson, code: i32, message: &str) -> Result<&'a Document> {
    spec.as_document()
        .ok_or_else(|| Error::location(code, message))
}

fn not_in_update(name: &str) -> Error {
    Error::new(
        Code::INVALID_OPTIONS,
        format!("{name} is not allowed to be used within an update"),
    )
}

fn unset(spec: &Bson) -> Result<Projection> {
    let message = "$unset specification must be a string or an array";
    let paths: Vec<&str> = match spec {
        Bson::String(path) => vec![path],
        Bson::Array(paths) if paths.is_empty() => {
            return Err(Error::location(
                31_119,
                "$unset specification must be a string or an array with at least one field",
            ));
        }
        Bson::Array(paths) => {
            let names = paths.iter().map(Bson::as_str);
            let names: Option<Vec<&str>> = names.collect();
            names.ok_or_else(|| {
                Error::location(
                    31_120,
                    "$unset specification must be a string or an array containing only string \
                     values",
                )
            })?
        }
        _ => return Err(Error::location(31_002, message)),
    };
    Projection::unset(&paths)
}

fn replace_root(spec: &Bson, settings: &Settings) -> Result<Expr> {
    let Bson::Document(spec) = spec else {
        return Err(Error::location(
            40_229,
            format!(
                "expected an object as specification for $replaceRoot stage, got {}",
                type_name(spec)
            ),
        ));
    };
    if let Some(name) = spec.keys().find(|name| *name != "newRoot") {
        return Err(Error::location(
            40_415,
            format!("BSON field '$replaceRoot.{name}' is an unknown field."),
        ));
    }
    let root = spec.get("newRoot").ok_or_else(|| {
        Error::location(
            40_414,
            "BSON field '$replaceRoot.newRoot' is missing but a required field",
        )
    })?;
    new_root(root, settings)
}

fn new_root(spec: &Bson, settings: &Settings) -> Result<Expr> {
    Expr::parse(spec, &settings.scope().with_sort_key())
}

fn replaced(expr: &Expr, document: &Document, variables: &Variables) -> Result<Document> {
    match expr.evaluate(&Env::new(document, variables))? {
        Some(Bson::Document(root)) => Ok(root),
        other => Err(Error::location(
            40_228,
            format!(
                "'newRoot' expression must evaluate to an object, but resulting value was: {}. \
                 Type of resulting value: '{}'. Input document: {}",
                other
                    .as_ref()
                    .map_or_else(|| String::from("MISSING"), show::value),
                other.as_ref().map_or("missing", type_name),
                show::document(document)
            ),
        )),
    }
}

/// Evaluates the decision for a document and, on `$$DESCEND`, for the documents in it. Recursion is
/// bounded by the depth of documents.
fn redact(expr: &Expr, document: Document, variables: &Variables) -> Result<Option<Document>> {
    meter::step()?;
    let decision = expr.evaluate(&Env::new(&document, variables))?;
    match decision.as_ref().and_then(Bson::as_str) {
        Some("keep") => Ok(Some(document)),
        Some("prune") => Ok(None),
        Some("descend") => {
            let mut kept = Document::new();
            for (name, value) in document {
                if let Some(value) = redact_value(expr, value, variables)? {
                    kept.insert(name, value);
                }
            }
            Ok(Some(kept))
        }
        _ => Err(Error::location(
            17_053,
            format!(
                "$redact's expression should not return anything aside from the variables \
                 $$KEEP, $$DESCEND, and $$PRUNE, but returned {}",
                decision
                    .as_ref()
                    .map_or_else(|| String::from("missing"), show::value)
            ),
        )),
    }
}

fn redact_value(expr: &Expr, value: Bson, variables: &Variables) -> Result<Option<Bson>> {
    match value {
        Bson::Document(document) => Ok(redact(expr, document, variables)?.map(Bson::Document)),
        Bson::Array(array) => {
            let mut kept = Vec::with_capacity(array.len());
            for value in array {
                if let Some(value) = redact_value(expr, value, variables)? {
                    kept.push(value);
                }
            }
            Ok(Some(Bson::Array(kept)))
        }
        other => Ok(Some(other)),
    }
}
