//! The environment in which an expression is evaluated: the document, the variables, and the values
//! bound by enclosing `$let`, `$map` and similar.
//!
//! An [`Env`] consists of a few references and is copied; it has no locks. The values of variables
//! are in frames on the evaluation's stack. Each frame has the level that [`super::Scope`] gave its
//! variables, so a variable is found by comparing numbers, not names.

use std::borrow::Cow;
use std::sync::Arc;

use bson::{Bson, DateTime, Document, RawBsonRef, RawDocument};

use super::{Expr, Scope};
use crate::keyed::Keyed;
use crate::{Code, Error, Result};

/// The value of an expression during evaluation: borrowed where possible, `None` when missing.
pub(crate) type Value<'e> = Option<Cow<'e, Bson>>;

/// The environment in which an expression is evaluated.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// The document: the value of `$$ROOT`, and of `$$CURRENT` unless an expression redefines it.
    pub root: &'a Document,
    /// Variables of the operation.
    pub vars: &'a Variables,
    frame: Option<&'a Frame<'a>>,
}

impl<'a> Env<'a> {
    /// The environment of `root` with the operation's variables.
    #[must_use]
    pub fn new(root: &'a Document, vars: &'a Variables) -> Env<'a> {
        Env {
            root,
            vars,
            frame: None,
        }
    }

    /// Returns this environment with the variables of `frame`.
    pub(super) fn with(&self, frame: &'a Frame<'a>) -> Env<'a> {
        Env {
            frame: Some(frame),
            ..*self
        }
    }

    /// The innermost frame, which becomes the parent of a new one.
    pub(super) fn frame(&self) -> Option<&'a Frame<'a>> {
        self.frame
    }

    /// The value of the variable at `level`.
    pub(super) fn local(&self, level: u32) -> Option<&'a Bson> {
        let mut frame = self.frame;
        while let Some(at) = frame {
            if let Some(value) = at.value(level) {
                return value.as_deref();
            }
            frame = at.parent;
        }
        None
    }
}

/// The variables that one expression defines.
pub(super) struct Frame<'a> {
    /// The level of the first variable.
    pub(super) level: u32,
    /// Their values.
    pub(super) values: &'a [Value<'a>],
    /// The frame of the enclosing expression.
    pub(super) parent: Option<&'a Frame<'a>>,
}

impl<'a> Frame<'a> {
    fn value(&self, level: u32) -> Option<&'a Value<'a>> {
        let at = usize::try_from(level.checked_sub(self.level)?).ok()?;
        self.values.get(at)
    }
}

/// System variables that few operations read.
#[derive(Clone, Debug, Default)]
pub struct System {
    /// `CLUSTER_TIME`: the cluster time at the start of the operation; `None` without a cluster
    /// time.
    pub cluster_time: Option<Bson>,
    /// `USER_ROLES`: an array of documents `{_id, role, db}`; `None` without users.
    pub user_roles: Option<Arc<Bson>>,
}

impl System {
    fn get(&self, name: &str) -> Option<&Bson> {
        match name {
            "CLUSTER_TIME" => self.cluster_time.as_ref(),
            "USER_ROLES" => self.user_roles.as_deref(),
            _ => None,
        }
    }
}

/// The variables of an operation: `NOW` and the other system variables, and those of `let`.
///
/// Cloning shares the values.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    values: Arc<Keyed<Option<Bson>>>,
    system: Option<Arc<System>>,
}

impl Variables {
    /// Variables with `NOW`, the start of the operation.
    #[must_use]
    pub fn at(now: DateTime) -> Variables {
        let mut variables = Variables::default();
        variables.set("NOW", Some(Bson::DateTime(now)));
        variables
    }

    /// Evaluates the `let` of a command and adds its variables to those of `base`. An expression
    /// that reads the document is refused with code 4890500.
    pub fn from_let(spec: &RawDocument, base: &Variables) -> Result<Variables> {
        let mut variables = base.clone();
        let empty = Document::new();
        for element in spec {
            let (name, value) = element?;
            super::variable::check_user_name(name.as_str())?;
            let value = owned(value)?;
            let scope = Scope::new().with_variables(base);
            let expr = Expr::parse(&value, &scope)?;
            let mut dependencies = super::Dependencies::default();
            expr.dependencies(&mut dependencies);
            if dependencies.needs_document() {
                return Err(Error::location(
                    4_890_500,
                    "Command let Expression tried to access a field, but this is not allowed \
                     because Command let Expressions run before the query examines any documents.",
                ));
            }
            let value = expr.evaluate(&Env::new(&empty, base))?;
            variables.set(name.as_str(), value);
        }
        Ok(variables)
    }

    /// Sets a variable, named without dollars; `None` is a missing value.
    pub fn set(&mut self, name: &str, value: Option<Bson>) {
        Arc::make_mut(&mut self.values).set(name, value);
    }

    /// Sets the system variables other than `NOW`.
    pub fn set_system(&mut self, system: Option<Arc<System>>) {
        self.system = system;
    }

    /// Whether the variable `name` exists.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.values.get(name).is_some()
    }

    /// The value of the variable; `None` when it is missing or no such variable exists.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Bson> {
        match self.values.get(name) {
            Some(value) => value.as_ref(),
            None => self.system.as_ref()?.get(name),
        }
    }

    /// The value of the variable, for an expression that reads it.
    ///
    /// # Errors
    /// 51144 for a system variable that is not set.
    pub(super) fn read(&self, name: &str) -> Result<Option<&Bson>> {
        match self.get(name) {
            None if matches!(name, "CLUSTER_TIME" | "USER_ROLES") => Err(Error::location(
                51_144,
                format!("Builtin variable '$${name}' is not available"),
            )),
            found => Ok(found),
        }
    }

    /// The names of the variables, in the order in which they were set.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|(name, _)| name)
    }
}

fn owned(value: RawBsonRef<'_>) -> Result<Bson> {
    Bson::try_from(value).map_err(|error| Error::new(Code::INVALID_BSON, error.to_string()))
}
