//! Parses the specification of a projection into its tree.

use bson::{Bson, Document, RawBsonRef, RawDocument};

use super::Projection;
use super::extra::{ElemMatch, Slice};
use super::spec::Mode;
use super::tree::{Child, Fields};
use crate::expr::{Expr, FieldPath, Scope, check_stage};
use crate::repeated::anywhere;
use crate::settings::Settings;
use crate::value::truthy;
use crate::{Error, Result};

/// Maximum nesting of a specification; documents on the wire may nest to 200 levels.
const MAX_DEPTH: usize = 200;

/// Parses the projection of `find`.
pub(super) fn find(spec: &RawDocument, settings: &Settings, query: bool) -> Result<Projection> {
    let mut parser = Parser::new(settings, Form::Find { query });
    parser.raw = Some(spec);
    check_stage("$project", RawBsonRef::Document(spec))?;
    let tree = Document::try_from(spec)?;
    if tree.len() < spec.iter_elements().count()
        && let Some(path) = anywhere(spec)?
    {
        return Err(Error::location(31_250, format!("Path collision at {path}")));
    }
    parser.fields(&tree, "", 0)?;
    parser.finish()
}

/// Parses `$project`.
pub(super) fn project(spec: &Document, settings: &Settings) -> Result<Projection> {
    if spec.is_empty() {
        return Err(Error::location(
            51_272,
            "Invalid $project :: caused by :: projection specification must have at least one \
             field",
        ));
    }
    let mut parser = Parser::new(settings, Form::Project);
    let parsed = parser.fields(spec, "", 0).and_then(|()| parser.finish());
    parsed.map_err(|error| in_stage("$project", error))
}

/// Parses `$addFields`.
pub(super) fn add_fields(spec: &Document, settings: &Settings) -> Result<Projection> {
    let mut parser = Parser::new(settings, Form::AddFields);
    parser.mode = Some(Mode::Add);
    let parsed = if spec.is_empty() {
        Err(Error::location(
            40_177,
            "specification must have at least one field",
        ))
    } else {
        parser.fields(spec, "", 0).and_then(|()| parser.finish())
    };
    parsed.map_err(|error| in_stage("$addFields", error))
}

/// The projection that excludes `paths`.
pub(super) fn unset(paths: &[&str]) -> Result<Projection> {
    let mut fields = Fields::default();
    for path in paths {
        FieldPath::parse(path)
            .and_then(|_| fields.insert(path, Child::Listed))
            .map_err(|error| in_stage("$unset", error))?;
    }
    Ok(Projection {
        mode: Mode::Exclude,
        fields,
        positional: None,
        variables: crate::expr::Variables::default(),
        _held: None,
    })
}

fn in_stage(stage: &str, error: Error) -> Error {
    Error {
        message: format!("Invalid {stage} :: caused by :: {}", error.message),
        ..error
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The projection of `find`. `query`: whether the command has a filter, to whose match the
    /// positional `$` refers.
    Find {
        query: bool,
    },
    Project,
    AddFields,
}

struct Parser<'a> {
    settings: &'a Settings,
    /// The projection of `find` in bytes, from which filters are parsed.
    raw: Option<&'a RawDocument>,
    scope: Scope,
    form: Form,
    mode: Option<Mode>,
    /// Whether `_id` is kept, if the specification names it.
    id: Option<bool>,
    fields: Fields,
    positional: Option<String>,
    elem_match: bool,
    slice: bool,
    meta: bool,
}

impl<'a> Parser<'a> {
    fn new(settings: &'a Settings, form: Form) -> Parser<'a> {
        let scope = settings.scope().with_sort_key();
        Parser {
            settings,
            raw: None,
            scope,
            form,
            mode: None,
            id: None,
            fields: Fields::default(),
            positional: None,
            elem_match: false,
            slice: false,
            meta: false,
        }
    }

    fn is_find(&self) -> bool {
        matches!(self.form, Form::Find { .. })
    }

    fn fields(&mut self, spec: &Document, prefix: &str, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(Error::bad_value("the projection nests too deeply"));
        }
        for (name, value) in spec {
            let path = if prefix.is_empty() {
                name.clone()
            } else {
                format!("{prefix}.{name}")
            };
            self.field(&path, value, depth)?;
        }
        Ok(())
    }

    fn field(&mut self, path: &str, value: &Bson, depth: usize) -> Result<()> {
        if self.is_find()
            && let Some(before) = path.strip_suffix(".$")
        {
            return self.positional(path, before);
        }
        FieldPath::parse(path)?;
        match value {
            Bson::Document(inner) => match inner.keys().next() {
                None if self.form == Form::AddFields => self.computed(path, value),
                None => Err(Error::location(
                    51_270,
                    format!(
                        "An empty sub-projection is not a valid value. Found empty object at path \
                         {path}"
                    ),
                )),
                Some(first) if first.starts_with('$') => self.operator(path, inner, value),
                Some(_) => self.fields(inner, path, depth + 1),
            },
            _ if self.form == Form::AddFields => self.computed(path, value),
            Bson::Boolean(_)
            | Bson::Int32(_)
            | Bson::Int64(_)
            | Bson::Double(_)
            | Bson::Decimal128(_) => self.listed(path, truthy(value)),
            _ => self.computed(path, value),
        }
    }

    /// `path: 1` or `path: 0`.
    fn listed(&mut self, path: &str, include: bool) -> Result<()> {
        if path == "_id" {
            if self.id.is_some() {
                return Err(Error::location(31_250, "Path collision at _id"));
            }
            self.id = Some(include);
            return Ok(());
        }
        match (self.mode, include) {
            (None, true) => self.mode = Some(Mode::Include),
            (None, false) => self.mode = Some(Mode::Exclude),
            (Some(Mode::Exclude), true) => {
                return Err(Error::location(
                    31_253,
                    format!("Cannot do inclusion on field {path} in exclusion projection"),
                ));
            }
            (Some(Mode::Include), false) => {
                return Err(Error::location(
                    31_254,
                    format!("Cannot do exclusion on field {path} in inclusion projection"),
                ));
            }
            _ => {}
        }
        self.fields.insert(path, Child::Listed)
    }

    fn computed(&mut self, path: &str, value: &Bson) -> Result<()> {
        let expr = Expr::parse(value, &self.scope)?;
        match self.mode {
            None => self.mode = Some(Mode::Include),
            Some(Mode::Exclude) => {
                return Err(Error::location(
                    31_252,
                    "Cannot use expression other than $meta in exclusion projection",
                ));
            }
            Some(_) => {}
        }
        if path == "_id" && self.id.is_some() {
            return Err(Error::location(31_250, "Path collision at _id"));
        }
        self.fields.insert(path, Child::Computed(expr))
    }

    fn operator(&mut self, path: &str, inner: &Document, value: &Bson) -> Result<()> {
        if inner.contains_key("$meta") {
            self.meta = true;
            let expr = Expr::parse(value, &self.scope)?;
            return self.fields.insert(path, Child::Computed(expr));
        }
        if !self.is_find() || inner.len() != 1 {
            return self.computed(path, value);
        }
        let Some((name, operand)) = inner.iter().next() else {
            return self.computed(path, value);
        };
        match name.as_str() {
            "$slice" if Slice::is_operand(operand) => {
                if self.positional.is_some() {
                    return Err(Error::location(
                        31_256,
                        "positional operator and $slice cannot be combined",
                    ));
                }
                self.slice = true;
                self.fields
                    .insert(path, Child::Slice(Slice::parse(operand)?))
            }
            "$elemMatch" => self.elem_match(path),
            _ => self.computed(path, value),
        }
    }

    fn elem_match(&mut self, path: &str) -> Result<()> {
        if path.contains('.') {
            return Err(Error::location(
                31_275,
                "Cannot use $elemMatch projection on a nested field",
            ));
        }
        if self.positional.is_some() {
            return Err(positional_with_elem_match());
        }
        self.elem_match = true;
        let spec = match self.raw {
            Some(raw) => raw.get_document(path)?.get("$elemMatch")?,
            None => None,
        };
        let elem_match = ElemMatch::parse(spec.unwrap_or(RawBsonRef::Null), self.settings)?;
        self.fields.insert(path, Child::ElemMatch(elem_match))
    }

    fn positional(&mut self, path: &str, before: &str) -> Result<()> {
        if before.split('.').any(|name| name == "$") {
            return Err(Error::location(
                31_287,
                format!("Cannot use positional operator twice: '{path}'"),
            ));
        }
        FieldPath::parse(before)?;
        if self.mode == Some(Mode::Exclude) {
            return Err(Error::location(
                31_395,
                "positional projection cannot be used with exclusion",
            ));
        }
        if self.positional.is_some() {
            return Err(Error::location(
                31_276,
                "Cannot specify more than one positional projection per query.",
            ));
        }
        if self.elem_match {
            return Err(positional_with_elem_match());
        }
        if self.form != (Form::Find { query: true }) {
            return Err(Error::location(
                51_050,
                "Projections with a positional operator require a matcher",
            ));
        }
        self.mode = Some(Mode::Include);
        self.positional = Some(before.to_owned());
        self.fields.insert(before, Child::Listed)
    }

    /// The mode for the fields that a projection of only `_id`, `$slice`, `$elemMatch` and `$meta`
    /// does not name: with `$slice` they are kept, unless `_id` is included; otherwise `$elemMatch`
    /// drops them.
    fn implied(&self) -> Mode {
        let include = match self.id {
            _ if self.slice => self.id == Some(true),
            _ if self.elem_match => true,
            _ if self.meta && !self.is_find() => true,
            id => id == Some(true),
        };
        if include {
            Mode::Include
        } else {
            Mode::Exclude
        }
    }

    fn finish(&mut self) -> Result<Projection> {
        let mut fields = std::mem::take(&mut self.fields);
        let mode = self.mode.unwrap_or_else(|| self.implied());
        match (mode, self.id) {
            (Mode::Include, Some(false)) | (Mode::Exclude, Some(true) | None) => {}
            (Mode::Include, _) => {
                if fields.get("_id").is_none() {
                    fields.prepend("_id", Child::Listed);
                }
            }
            (Mode::Exclude, Some(false)) => {
                if fields.get("_id").is_some() {
                    return Err(Error::location(31_250, "Path collision at _id"));
                }
                fields.prepend("_id", Child::Listed);
            }
            (Mode::Add, _) => {}
        }
        if self.id == Some(false) && mode == Mode::Include {
            fields.remove("_id");
        }
        Ok(Projection {
            mode,
            fields,
            positional: self.positional.take(),
            variables: self.settings.variables.clone(),
            _held: None,
        })
    }
}

fn positional_with_elem_match() -> Error {
    Error::location(31_255, "Cannot specify positional operator and $elemMatch.")
}
