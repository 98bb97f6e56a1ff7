//! The values that paths lead to in known documents.

use std::ops::ControlFlow;

use bson::{Bson, Document, RawDocumentBuf, doc};

use super::{Leaves, Path, walk_leaves};

/// The leaves as text: the value, then `@index`, the index in the array that was entered.
fn leaves(document: Document, path: &str, leaves: Leaves) -> Vec<String> {
    let raw = RawDocumentBuf::try_from(&document).unwrap();
    let mut found = Vec::new();
    let end = walk_leaves(&raw, &Path::parse(path).unwrap(), leaves, &mut |leaf| {
        let value = match leaf.value {
            None => "missing".to_owned(),
            Some(value) => Bson::try_from(value).unwrap().to_string(),
        };
        let index = leaf
            .index
            .map_or(String::new(), |index| format!("@{index}"));
        found.push(format!("{value}{index}"));
        ControlFlow::Continue(())
    });
    assert_eq!(end.unwrap(), ControlFlow::Continue(()));
    found
}

fn check(document: Document, path: &str, expected: &[&str]) {
    assert_eq!(leaves(document, path, Leaves::Expanded), expected);
}

#[test]
fn fields_and_missing_fields() {
    check(doc! {"a": 1}, "a", &["1"]);
    check(doc! {"a": 1}, "b", &["missing"]);
    check(doc! {"a": 1}, "a.b", &["missing"]);
    check(doc! {"a": {"b": 2}}, "a.b", &["2"]);
    check(doc! {"a": {"b": 2}}, "a.c", &["missing"]);
    check(doc! {"a": {"": 2}}, "a.", &["2"]);
}

#[test]
fn arrays_at_the_end_give_elements_and_themselves() {
    check(doc! {"a": [5, 7]}, "a", &["5@0", "7@1", "[5, 7]"]);
    check(doc! {"a": []}, "a", &["[]"]);
    check(doc! {"a": [[1]]}, "a", &["[1]@0", "[[1]]"]);
    let whole = leaves(doc! {"a": [5, 7]}, "a", Leaves::Whole);
    assert_eq!(whole, ["[5, 7]"]);
}

#[test]
fn arrays_on_the_way_are_entered_but_not_arrays_in_them() {
    let document = doc! {"a": [{"b": 1}, 3, {"c": 2}, [{"b": 9}]]};
    check(document, "a.b", &["1@0", "missing@2"]);
    check(doc! {"a": [1, 2]}, "a.b", &[]);
    check(doc! {"a": []}, "a.b", &[]);
    let document = doc! {"a": [{"b": [1, 2]}]};
    check(document, "a.b", &["1@0", "2@0", "[1, 2]@0"]);
}

#[test]
fn an_index_is_a_name_too() {
    check(doc! {"a": [5, 7, 3]}, "a.1", &["7"]);
    check(doc! {"a": [5, [2, 4], 3]}, "a.1", &["[2, 4]"]);
    let document = doc! {"a": [5, {"1": 4}, 3]};
    check(document, "a.1", &["4@1", "{ \"1\": 4 }"]);
    check(doc! {"a": [5, {"b": 4}]}, "a.1.b", &["missing@1", "4"]);
    check(doc! {"a": [[{"b": 1}]]}, "a.0.b", &["1@0"]);
    check(doc! {"a": [[7, 8]]}, "a.0.1", &["8"]);
    check(doc! {"a": {"0": 3}}, "a.0", &["3"]);
    check(doc! {"a": [5]}, "a.00", &[]);
}

#[test]
fn a_visit_may_stop_the_walk() {
    let raw = RawDocumentBuf::try_from(&doc! {"a": [1, 2, 3]}).unwrap();
    let mut seen = 0;
    let end = super::walk(&raw, &Path::parse("a").unwrap(), &mut |_| {
        seen += 1;
        ControlFlow::Break(())
    });
    assert_eq!((end.unwrap(), seen), (ControlFlow::Break(()), 1));
}

#[test]
fn paths_cover_what_they_lead_to() {
    let path = |text| Path::parse(text).unwrap();
    assert!(path("a").covers(&path("a.b")));
    assert!(path("a.b").covers(&path("a.b")));
    assert!(!path("a").covers(&path("ab")));
    assert!(path("a.b.c").overlaps(&path("a")));
    assert!(!path("a.b").overlaps(&path("a.c")));
    assert!(Path::parse(&"a.".repeat(300)).is_err());
}

#[test]
fn finding_agrees_with_iterating() {
    use crate::value::random;
    use bson::RawDocument;
    use stdx::Tape;

    for seed in 0..4000 {
        let mut tape = Tape::from_seed(seed, 300);
        let document = RawDocumentBuf::try_from(&random::document(&mut tape, 2)).unwrap();
        for name in ["a", "b", "0", "1", "c", "", "ab"] {
            let expected = document.get(name).unwrap();
            let found = super::find(&document, name).unwrap();
            // Compared as bytes, because NaN is not equal to itself.
            assert_eq!(
                format!("{found:?}"),
                format!("{expected:?}"),
                "seed {seed}: {name}"
            );
        }
        let mut bytes = document.as_bytes().to_vec();
        let at = usize::from(tape.byte()) % bytes.len();
        bytes[at] = tape.byte();
        if let Ok(broken) = RawDocument::from_bytes(&bytes) {
            for name in ["a", "b", "0", "1", "c"] {
                // `find` and `bson` may differ on invalid BSON; neither may panic.
                let _ = super::find(broken, name);
            }
        }
    }
}
