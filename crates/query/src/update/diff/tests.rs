//! Tests of diffs: known ones, and the laws D1 to D4 for random documents.

use bson::raw::{RawArrayBuf, cstr};
use bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};
use stdx::Tape;

use super::{Difference, Form, delta, diff};
use crate::value::random;

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

fn inner(made: &RawDocument) -> &RawDocument {
    assert_eq!(made.get_i32("$v").unwrap(), 2);
    made.get_document("diff").unwrap()
}

/// Applies `diff`; D1.
fn applied(before: &Document, diff: &Document, after: &Document) {
    let (diff, after) = (raw(diff), raw(after));
    let once = delta(&raw(before), &diff).unwrap();
    assert_eq!(once, after, "{diff:?}");
    assert_eq!(delta(&once, &diff).unwrap(), after, "{diff:?} twice");
}

/// Makes the diff, compares it, and applies it.
#[expect(clippy::needless_pass_by_value, reason = "tests")]
fn check(before: Document, after: Document, expected: Document) {
    let made = diff(&raw(&before), &raw(&after), Form::Operators).unwrap();
    let Difference::Delta(made) = made else {
        panic!("{before} to {after}: {made:?}");
    };
    assert_eq!(inner(&made), &*raw(&expected), "{before} to {after}");
    applied(&before, &expected, &after);
}

#[test]
fn fields_are_removed_set_and_appended() {
    check(
        doc! {"_id": 1, "a": 1, "b": 2, "c": 3},
        doc! {"_id": 1, "a": 5, "c": 3, "z": 1, "x": 2},
        doc! {"d": {"b": false}, "u": {"a": 5}, "i": {"z": 1, "x": 2}},
    );
    // A field that moves towards the end is appended there, with those it passes.
    check(
        doc! {"_id": 1, "a": 1, "b": 2, "c": 3},
        doc! {"_id": 1, "b": 2, "c": 3, "a": 1},
        doc! {"i": {"a": 1}},
    );
    check(
        doc! {"_id": 1, "a": 1, "b": 2, "c": 3},
        doc! {"_id": 1, "c": 3, "a": 4},
        doc! {"d": {"b": false}, "i": {"a": 4}},
    );
    // The type and the bits of a number count.
    check(doc! {"a": 1}, doc! {"a": 1_i64}, doc! {"u": {"a": 1_i64}});
    check(doc! {"a": 0.0}, doc! {"a": -0.0}, doc! {"u": {"a": -0.0}});
}

#[test]
fn diffs_reach_into_documents_and_arrays() {
    check(
        doc! {"a": {"b": {"c": 1, "d": 2}}, "l": [1, {"x": 1}, 3, 4]},
        doc! {"a": {"b": {"c": 9}}, "l": ["first", {"x": 1, "y": 2}, 3]},
        doc! {
            "sa": {"sb": {"d": {"d": false}, "u": {"c": 9}}},
            "sl": {"a": true, "l": 3, "u0": "first", "s1": {"i": {"y": 2}}},
        },
    );
    check(
        doc! {"l": [1]},
        doc! {"l": [1, 2, [3]]},
        doc! {"sl": {"a": true, "u1": 2, "u2": [3]}},
    );
    // A value of another type is replaced.
    check(
        doc! {"a": {"0": 1}, "b": [1]},
        doc! {"a": [1], "b": {"0": 1}},
        doc! {"u": {"a": [1], "b": {"0": 1}}},
    );
}

#[test]
fn the_smaller_form_is_taken_where_it_is_asked_for() {
    let text = "x".repeat(100);
    let before = raw(&doc! {"_id": 1, "a": 1, "b": &text});
    let small = raw(&doc! {"_id": 1, "a": 2});
    let large = raw(&doc! {"_id": 1, "a": 2, "b": &text});
    let made = |after, form| diff(&before, after, form).unwrap();
    assert_eq!(made(&before, Form::Smallest), Difference::Nothing);
    assert_eq!(made(&small, Form::Smallest), Difference::Whole);
    assert!(matches!(
        made(&small, Form::Operators),
        Difference::Delta(_)
    ));
    let Difference::Delta(delta) = made(&large, Form::Smallest) else {
        panic!("a delta is smaller");
    };
    assert_eq!(inner(&delta), &*raw(&doc! {"u": {"a": 2}}));
}

/// `$pull` from the front of a long array moves every element.
#[test]
fn a_long_array_that_moves_is_set_whole() {
    let list = |from: i32| (from..1_000).map(Bson::Int32).collect::<Vec<_>>();
    check(
        doc! {"l": list(0)},
        doc! {"l": list(1)},
        doc! {"u": {"l": list(1)}},
    );
}

/// D4.
#[test]
fn a_repeated_name_has_no_diff() {
    let twice = |second: i32| {
        let mut document = RawDocumentBuf::new();
        document.append(cstr!("a"), 1_i32);
        document.append(cstr!("b"), 1_i32);
        document.append(cstr!("a"), second);
        document
    };
    let whole = |before: &RawDocument, after: &RawDocument| {
        let made = diff(before, after, Form::Operators).unwrap();
        assert_eq!(made, Difference::Whole, "{before:?} to {after:?}");
    };
    whole(&twice(1), &twice(2));
    whole(&twice(1), &raw(&doc! {"b": 1, "a": 1}));
    whole(&raw(&doc! {"b": 1}), &twice(1));
    // A repeated name that does not change is copied.
    let (mut before, mut after) = (twice(3), twice(3));
    before.append(cstr!("c"), 1_i32);
    after.append(cstr!("c"), 2_i32);
    let Difference::Delta(made) = diff(&before, &after, Form::Operators).unwrap() else {
        panic!("a delta exists");
    };
    assert_eq!(delta(&before, inner(&made)).unwrap(), after);
}

/// D2 for arrays whose names are not 0, 1 and so on.
#[test]
fn an_array_with_other_names_is_copied_whole() {
    let mut bytes = raw(&doc! {"l": {"x": 1_i32, "y": 2_i32}}).into_bytes();
    // The type of the field `l` becomes that of an array.
    bytes[4] = 4;
    let odd = RawDocumentBuf::from_bytes(bytes).unwrap();
    let mut plain = RawDocumentBuf::new();
    plain.append(cstr!("l"), RawArrayBuf::from_iter([1_i32, 2]));
    for (before, after) in [(&odd, &plain), (&plain, &odd)] {
        let Difference::Delta(made) = diff(before, after, Form::Operators).unwrap() else {
            panic!("a delta exists");
        };
        assert_eq!(&delta(before, inner(&made)).unwrap(), after);
    }
}

#[test]
fn a_diff_for_another_value_is_ignored() {
    let of_document = doc! {"sa": {"u": {"x": 1}}};
    for kept in [doc! {"a": 5}, doc! {"a": [1]}, doc! {"b": 1}] {
        applied(&kept, &of_document, &kept);
    }
    let of_array = doc! {"sa": {"a": true, "u0": 1}};
    let kept = doc! {"a": {"x": 1}};
    applied(&kept, &of_array, &kept);
    // Setting an element beyond the end extends the array.
    let diff = doc! {"sl": {"a": true, "u2": 7}};
    applied(&doc! {"l": []}, &diff, &doc! {"l": [null, null, 7]});
    // A field to set that is missing is appended.
    let diff = doc! {"u": {"z": 1}, "i": {"y": 2}};
    applied(&doc! {"a": 1}, &diff, &doc! {"a": 1, "z": 1, "y": 2});
}

#[test]
fn an_invalid_diff_is_refused() {
    let before = raw(&doc! {"a": {"x": 1}, "l": [1]});
    for bad in [
        doc! {},
        doc! {"u": {}},
        doc! {"q": 1},
        doc! {"q": {}},
        doc! {"u": 1},
        doc! {"sa": 1},
        doc! {"sa": {}},
        doc! {"sa": {"a": true}, "u": {"a": 1}},
        doc! {"d": {"a": false}, "i": {"a": 1}},
        doc! {"sl": {"a": true, "l": -1}},
        doc! {"sl": {"a": true, "l": 1_i64}},
        doc! {"sl": {"a": true, "ux": 1}},
        doc! {"sl": {"a": true, "u+1": 1}},
        doc! {"sl": {"a": true, "u01": 1}},
        doc! {"sl": {"a": true, "u1": 1, "s1": {}}},
        doc! {"sl": {"a": true, "u99999999": 1}},
        doc! {"sl": {"a": true, "s0": 1}},
        doc! {"sl": {"a": true, "": 1}},
        doc! {"sl": {"a": true, "\u{e9}": 1}},
    ] {
        assert!(delta(&before, &raw(&bad)).is_err(), "{bad}");
    }
    // Many arrays of the greatest length exceed the size of a document.
    let mut wide = Document::new();
    let mut arrays = Document::new();
    for name in ["a", "b", "c"] {
        arrays.insert(name, Bson::Array(Vec::new()));
        wide.insert(format!("s{name}"), doc! {"a": true, "l": 1 << 22});
    }
    let error = delta(&raw(&arrays), &raw(&wide)).unwrap_err();
    assert_eq!(error.code, crate::Code::BSON_OBJECT_TOO_LARGE);
}

#[test]
fn a_diff_nested_too_deep_is_refused() {
    let nested = |name: &str, depth: usize, last: Document| {
        (0..depth).fold(last, |inside, _| doc! {name: inside})
    };
    for (depth, refused) in [(super::DEPTH_MAX, false), (super::DEPTH_MAX + 1, true)] {
        let before = raw(&nested("a", depth, doc! {"x": 1}));
        let diff = raw(&nested("sa", depth, doc! {"u": {"x": 2}}));
        assert_eq!(delta(&before, &diff).is_err(), refused, "{depth}");
    }
    // What lies below is set whole.
    let (before, after) = (
        raw(&nested("a", 2 * super::DEPTH_MAX, doc! {"x": 1})),
        raw(&nested("a", 2 * super::DEPTH_MAX, doc! {"x": 2})),
    );
    let Difference::Delta(made) = diff(&before, &after, Form::Operators).unwrap() else {
        panic!("a delta exists");
    };
    assert_eq!(delta(&before, inner(&made)).unwrap(), after);
}

/// A document made from another by a few random changes, at any depth.
fn changed(tape: &mut Tape, document: &Document, depth: usize) -> Document {
    let mut fields: Vec<(String, Bson)> = Vec::new();
    for (name, value) in document {
        match tape.byte() % 8 {
            0 => {}
            1 => fields.push((name.clone(), random::value(tape, depth))),
            2 | 3 => fields.push((name.clone(), changed_value(tape, value, depth))),
            4 => fields.insert(0, (name.clone(), value.clone())),
            _ => fields.push((name.clone(), value.clone())),
        }
    }
    if tape.byte().is_multiple_of(3) {
        fields.push((random::name(tape).to_owned(), random::value(tape, depth)));
    }
    // A name that is repeated keeps its first position and its last value.
    fields.into_iter().collect()
}

fn changed_value(tape: &mut Tape, value: &Bson, depth: usize) -> Bson {
    match value {
        Bson::Document(inside) => Bson::Document(changed(tape, inside, depth.saturating_sub(1))),
        Bson::Array(items) => {
            let mut items = items.clone();
            for item in &mut items {
                if tape.byte().is_multiple_of(3) {
                    *item = changed_value(tape, item, depth.saturating_sub(1));
                }
            }
            match tape.byte() % 4 {
                0 => items.truncate(usize::from(tape.byte()) % (items.len() + 1)),
                1 => items.push(random::value(tape, depth.saturating_sub(1))),
                2 if !items.is_empty() => drop(items.remove(0)),
                _ => {}
            }
            Bson::Array(items)
        }
        other if tape.byte().is_multiple_of(2) => other.clone(),
        _ => random::value(tape, depth),
    }
}

/// D2, D3 and D1 for random documents.
#[test]
fn a_diff_leads_to_the_second_document() {
    let mut deltas = 0;
    for seed in 0..4_000 {
        let mut tape = Tape::from_seed(seed, 400);
        let first = random::document(&mut tape, 4);
        let second = match seed % 4 {
            0 => random::document(&mut tape, 4),
            _ => changed(&mut tape, &first, 3),
        };
        let (before, after) = (raw(&first), raw(&second));
        for form in [Form::Operators, Form::Smallest] {
            match diff(&before, &after, form).unwrap() {
                Difference::Nothing => assert_eq!(before, after, "seed {seed}"),
                Difference::Whole => {
                    assert_eq!(form, Form::Smallest, "seed {seed}: {first} to {second}");
                }
                Difference::Delta(made) => {
                    deltas += 1;
                    let (size, whole) = (made.as_bytes().len(), after.as_bytes().len());
                    let small = form == Form::Operators || size < whole;
                    assert!(small, "seed {seed}: D3: {size} of {whole}");
                    let once = delta(&before, inner(&made)).unwrap();
                    assert_eq!(once, after, "seed {seed}: D2: {first} to {second}");
                    let twice = delta(&once, inner(&made)).unwrap();
                    assert_eq!(twice, after, "seed {seed}: D1: {first} to {second}");
                }
            }
        }
    }
    assert!(deltas > 3_000, "{deltas} deltas");
}
