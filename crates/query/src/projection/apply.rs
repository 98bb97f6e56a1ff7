//! Applies a projection to owned documents.
//!
//! Expressions read the input document, never the result of another expression of the projection.
//! So all of them are evaluated first, in order; then fields are kept, dropped and set. Recursion
//! is bounded by the depth of the tree of fields; arrays in arrays nest as deep as documents do.

use bson::{Bson, Document};

use super::Projection;
use super::spec::Mode;
use super::tree::{Child, Fields};
use crate::expr::{Env, Variables};
use crate::{Result, meter};

/// Values of computed fields, in the order of the projection's tree of fields.
type Values = std::vec::IntoIter<Option<Bson>>;

impl Projection {
    /// Applies the projection to an owned document.
    ///
    /// # Errors
    /// Errors of expressions.
    pub fn apply_document(&self, document: Document, variables: &Variables) -> Result<Document> {
        let _scope = meter::scope();
        meter::step()?;
        let mut values = Vec::new();
        if self.fields.computes || self.fields.complex {
            let env = Env::new(&document, variables);
            evaluate(&self.fields, &document, &env, &mut values)?;
        }
        let mut result = match self.mode {
            Mode::Add => document,
            mode => choose(&self.fields, document, mode, false)?,
        };
        if !values.is_empty() {
            let values = Computed::of(&self.fields, &mut values.into_iter());
            values.put(&mut result)?;
        }
        Ok(result)
    }
}

/// Evaluates the computed fields below `fields`, depth first.
fn evaluate(
    fields: &Fields,
    document: &Document,
    env: &Env<'_>,
    values: &mut Vec<Option<Bson>>,
) -> Result<()> {
    for (name, child) in fields.iter() {
        match child {
            Child::Computed(expr) => values.push(expr.kept(env)?),
            Child::ElemMatch(elem_match) => values.push(elem_match.apply(document.get(name))?),
            Child::Fields(inner) => evaluate(inner, document, env, values)?,
            Child::Listed | Child::Slice(_) => {}
        }
    }
    Ok(())
}

/// Keeps or drops the listed fields. `nested`: the document is inside an array that is an element
/// of an array, where `$slice` does not apply.
fn choose(fields: &Fields, document: Document, mode: Mode, nested: bool) -> Result<Document> {
    let mut kept = Document::new();
    for (name, value) in document {
        meter::step()?;
        let value = match fields.get(&name) {
            None if mode == Mode::Include => None,
            None => Some(value),
            Some(Child::Listed) => (mode == Mode::Include).then_some(value),
            Some(Child::Slice(_)) if nested => Some(value),
            Some(Child::Slice(slice)) => Some(slice.apply(value)),
            // When the mode drops the other fields, the value is appended later; otherwise it
            // replaces the present value.
            Some(Child::Computed(_) | Child::ElemMatch(_)) => {
                (mode != Mode::Include).then_some(value)
            }
            Some(Child::Fields(inner)) => choose_value(inner, value, mode, nested)?,
        };
        if let Some(value) = value {
            kept.insert(name, value);
        }
    }
    Ok(kept)
}

fn choose_value(fields: &Fields, value: Bson, mode: Mode, nested: bool) -> Result<Option<Bson>> {
    Ok(match value {
        Bson::Document(document) => Some(Bson::Document(choose(fields, document, mode, nested)?)),
        Bson::Array(array) => {
            // An element that is not a document becomes one if a field is computed below it: null
            // keeps its position until then.
            let place = || fields.computes.then_some(Bson::Null);
            let chosen = array.into_iter().filter_map(|value| {
                let nested = nested || matches!(value, Bson::Array(_));
                let chosen = meter::step().and_then(|()| choose_value(fields, value, mode, nested));
                chosen.map(|chosen| chosen.or_else(place)).transpose()
            });
            Some(Bson::Array(chosen.collect::<Result<_>>()?))
        }
        other => (mode != Mode::Include).then_some(other),
    })
}

/// The computed fields of a tree, with their values.
struct Computed<'a>(Vec<(&'a str, Put<'a>)>);

enum Put<'a> {
    Value(Option<Bson>),
    Below(Computed<'a>),
}

impl<'a> Computed<'a> {
    fn of(fields: &'a Fields, values: &mut Values) -> Computed<'a> {
        let mut puts = Vec::new();
        for (name, child) in fields.iter() {
            match child {
                Child::Computed(_) | Child::ElemMatch(_) => {
                    puts.push((name, Put::Value(values.next().flatten())));
                }
                Child::Fields(inner) if inner.computes => {
                    puts.push((name, Put::Below(Computed::of(inner, values))));
                }
                Child::Fields(_) | Child::Listed | Child::Slice(_) => {}
            }
        }
        Computed(puts)
    }

    /// Puts the values into a document: each in place of the field of its name, or at the end.
    fn put(self, document: &mut Document) -> Result<()> {
        for (name, put) in self.0 {
            meter::step()?;
            match put {
                Put::Value(Some(value)) => {
                    document.insert(name, value);
                }
                Put::Value(None) => {
                    document.remove(name);
                }
                Put::Below(inner) => match document.get_mut(name) {
                    Some(value) => inner.put_copies(value)?,
                    None => {
                        let mut made = Document::new();
                        inner.put(&mut made)?;
                        document.insert(name, made);
                    }
                },
            }
        }
        Ok(())
    }

    /// Puts copies of the values into a document, or into every element of an array.
    fn put_copies(&self, value: &mut Bson) -> Result<()> {
        meter::step()?;
        match value {
            Bson::Array(array) => array
                .iter_mut()
                .try_for_each(|value| self.put_copies(value)),
            Bson::Document(document) => self.copy()?.put(document),
            other => {
                meter::charge("$addFields", meter::NEW_DOCUMENT)?;
                let mut made = Document::new();
                self.copy()?.put(&mut made)?;
                *other = Bson::Document(made);
                Ok(())
            }
        }
    }

    fn copy(&self) -> Result<Computed<'a>> {
        let copy = |(name, put): &(&'a str, Put<'a>)| {
            let put = match put {
                Put::Value(None) => Put::Value(None),
                Put::Value(Some(value)) => Put::Value(Some(meter::copy("$addFields", value)?)),
                Put::Below(inner) => Put::Below(inner.copy()?),
            };
            Ok((*name, put))
        };
        Ok(Computed(self.0.iter().map(copy).collect::<Result<_>>()?))
    }
}
