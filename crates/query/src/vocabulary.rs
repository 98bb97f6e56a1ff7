//! The names that the query language supports, as lists: for documentation, and for tests that
//! compare them with the parsers. Names that the parsers know only in order to refuse them are not
//! included.

use crate::{accumulator, expr, filter, stage_name, update, window};

/// Stages of pipelines.
#[must_use]
pub fn stages() -> Vec<&'static str> {
    sorted(stage_name::names())
}

/// Operators of expressions.
#[must_use]
pub fn expressions() -> Vec<&'static str> {
    sorted(expr::names())
}

/// Accumulators, as in `$group`.
#[must_use]
pub fn accumulators() -> Vec<&'static str> {
    sorted(accumulator::names())
}

/// Functions of `$setWindowFields` that are not accumulators.
#[must_use]
pub fn window_functions() -> Vec<&'static str> {
    sorted(window::names())
}

/// Operators of filters.
#[must_use]
pub fn filters() -> Vec<&'static str> {
    sorted(filter::names())
}

/// Operators of updates.
#[must_use]
pub fn updates() -> Vec<&'static str> {
    sorted(update::names())
}

fn sorted(names: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = names.collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use bson::{Bson, RawBsonRef, RawDocumentBuf, doc};

    use super::*;
    use crate::accumulator::Accumulator;
    use crate::expr::{Expr, Scope};
    use crate::filter::Filter;
    use crate::settings::Settings;
    use crate::stage::Stage;
    use crate::update::Update;

    /// Checks that `parse` knows each of `names`: it may fail, but not with the message `unknown`.
    fn check(names: &[&str], unknown: &str, parse: impl Fn(&str) -> Option<String>) {
        assert!(!names.is_empty());
        for name in names {
            let error = parse(name).unwrap_or_default();
            assert!(!error.contains(unknown), "{name}: {error}");
        }
        let error = parse("$nonsense").unwrap();
        assert!(error.contains(unknown), "{error}");
    }

    #[test]
    fn every_word_is_understood() {
        let settings = Settings::default();
        let operand = Bson::Int32(1);
        check(&stages(), "Unrecognized pipeline stage", |name| {
            let done = Stage::parse(name, RawBsonRef::Int32(1), &settings);
            done.err().map(|e| e.message)
        });
        check(&expressions(), "Unrecognized expression", |name| {
            let done = Expr::parse(&Bson::Document(doc! {name: 1}), &Scope::default());
            done.err().map(|e| e.message)
        });
        check(&accumulators(), "unknown group operator", |name| {
            let done = Accumulator::parse(name, &operand, &Scope::default());
            done.err().map(|e| e.message)
        });
        check(&updates(), "Unknown modifier", |name| {
            let spec = doc! {name: {"a": 1}};
            let spec = RawDocumentBuf::try_from(&spec).unwrap();
            let spec = bson::RawBsonRef::Document(&spec);
            let done = Update::parse(spec, &[], &settings);
            done.err().map(|e| e.message)
        });
    }

    #[test]
    fn every_operator_of_filters_is_understood() {
        let settings = Settings::default();
        let refused = |document: bson::Document| {
            let raw = RawDocumentBuf::try_from(&document).unwrap();
            let done = Filter::parse(&raw, &settings);
            done.err().is_some_and(|e| e.message.contains("unknown"))
        };
        for name in filters() {
            let top = refused(doc! {name: [{}]});
            assert!(!top || !refused(doc! {"a": {name: 1}}), "{name}");
        }
        assert!(refused(doc! {"$nonsense": 1}));
    }
}
