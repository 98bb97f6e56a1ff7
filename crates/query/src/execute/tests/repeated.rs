//! Fields and options that are repeated.

use bson::{Bson, Document, RawArrayBuf, RawBson, RawDocumentBuf, bson, doc};

use super::documents;
use crate::Code;
use crate::execute::harness::Memory;
use crate::pipeline::Pipeline;
use crate::settings::Settings;

/// `{name: value, name: value, ..}`; names may repeat.
fn repeated(fields: &[(&str, Bson)]) -> RawDocumentBuf {
    let mut document = RawDocumentBuf::new();
    for (name, value) in fields {
        let name = bson::raw::CString::try_from(*name).unwrap();
        document.append(name, RawBson::try_from(value.clone()).unwrap());
    }
    document
}

fn stage_of(name: &str, spec: impl Into<RawBson>) -> RawDocumentBuf {
    let mut stage = RawDocumentBuf::new();
    stage.append(bson::raw::CString::try_from(name).unwrap(), spec.into());
    stage
}

fn raw_pipeline(stages: &[RawDocumentBuf]) -> RawArrayBuf {
    stages.iter().cloned().collect()
}

#[test]
fn every_condition_on_a_field_that_is_repeated_counts() {
    // The stock has `n` from 5 to 8. An owned document keeps only the second condition, and 5 and 6
    // would match, too.
    let filter = repeated(&[("n", bson!({"$gt": 6})), ("n", bson!({"$lt": 8}))]);
    let matching = stage_of("$match", filter.clone());
    let inner = raw_pipeline(std::slice::from_ref(&matching));
    let spec = |fields: &[(&str, &str)], last: (&str, RawBson)| {
        let mut spec = RawDocumentBuf::new();
        for (name, text) in fields {
            spec.append(bson::raw::CString::try_from(*name).unwrap(), *text);
        }
        spec.append(bson::raw::CString::try_from(last.0).unwrap(), last.1);
        spec
    };
    let pipeline = || ("pipeline", RawBson::Array(inner.clone()));
    let lookup = spec(&[("from", "stock"), ("as", "found")], pipeline());
    let graph = spec(
        &[
            ("from", "stock"),
            ("startWith", "$start"),
            ("connectFromField", "none"),
            ("connectToField", "kind"),
            ("as", "found"),
        ],
        ("restrictSearchWithMatch", RawBson::Document(filter)),
    );
    let counted = |stages: &[RawDocumentBuf], over: Bson| {
        let pipeline = Pipeline::parse_raw(&raw_pipeline(stages), &Settings::default()).unwrap();
        let documents = bson!([
            {"_id": 1, "n": 5, "kind": 1}, {"_id": 2, "n": 6, "kind": 1},
            {"_id": 3, "n": 7, "kind": 1}, {"_id": 4, "n": 8, "kind": 1},
        ]);
        let mut memory = Memory::with("stock", self::documents(&documents));
        let over = if over == Bson::Null { documents } else { over };
        let found = memory.run(pipeline, &self::documents(&over)).unwrap();
        found
            .iter()
            .map(Document::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let seven = doc! {"_id": 3, "n": 7, "kind": 1}.to_string();
    assert_eq!(counted(&[matching], Bson::Null), seven);
    let facet = spec(&[], ("f", RawBson::Array(inner.clone())));
    let found = counted(&[stage_of("$facet", facet)], Bson::Null);
    assert_eq!(
        found,
        doc! {"f": [{"_id": 3, "n": 7, "kind": 1}]}.to_string()
    );
    let union = spec(&[("coll", "stock")], pipeline());
    assert_eq!(counted(&[stage_of("$unionWith", union)], bson!([])), seven);
    for stage in [stage_of("$lookup", lookup), stage_of("$graphLookup", graph)] {
        let found = counted(&[stage], bson!([{"start": 1}]));
        let one = doc! {"start": 1, "found": [{"_id": 3, "n": 7, "kind": 1}]};
        assert_eq!(found, one.to_string());
    }
}

#[test]
fn options_of_stages_are_given_once() {
    for stage in ["$lookup", "$graphLookup", "$unionWith"] {
        let spec = repeated(&[
            ("from", bson!("a")),
            ("as", bson!("x")),
            ("from", bson!("b")),
        ]);
        let stages = raw_pipeline(&[stage_of(stage, spec)]);
        let error = Pipeline::parse_raw(&stages, &Settings::default()).unwrap_err();
        assert_eq!(error.code, Code(40_413), "{stage}: {error}");
    }
}
