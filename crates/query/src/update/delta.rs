//! Deltas: the form of an update in an oplog entry, `{$v: 2, diff: ...}`.
//!
//! A diff of a document has the keys `d` (fields to remove), `u` (fields to set), `i` (fields to
//! append) and, for each field `f` that is changed below, `sf` with the diff of its value. A diff
//! of an array has `a: true`, optionally `l` for the new length, and for the element with index N
//! the key `uN` (its new value) or `sN` (a diff of its value).
//!
//! - D1. Deltas are idempotent: applying one to its own result changes nothing. A nested diff whose
//!   value is missing or has another type is ignored.

use bson::{Array, Bson, Document};

use crate::{Error, Result};

/// Maximum length to which a delta may extend an array.
const LENGTH_MAX: usize = 1 << 22;

/// Applies a diff to a document. Recursion is bounded by the depth of the diff, and so by the depth
/// of documents.
///
/// # Errors
/// An invalid diff, with MongoDB's codes.
pub fn delta(document: &Document, diff: &Document) -> Result<Document> {
    if diff.is_empty() {
        return Err(Error::location(4_770_500, "Expected diff to be non-empty"));
    }
    let mut next = document.clone();
    for (name, value) in diff {
        match (name.as_str(), value) {
            ("d", Bson::Document(fields)) => {
                for name in fields.keys() {
                    next.remove(name);
                }
            }
            ("u", Bson::Document(fields)) => {
                for (name, value) in fields {
                    next.insert(name, value.clone());
                }
            }
            ("i", Bson::Document(fields)) => {
                for (name, value) in fields {
                    next.remove(name);
                    next.insert(name, value.clone());
                }
            }
            (name, Bson::Document(inner)) if name.starts_with('s') => {
                let field = name.get(1..).unwrap_or_default();
                if let Some(value) = next.get_mut(field) {
                    change(value, inner)?;
                }
            }
            _ => return Err(unknown(name)),
        }
    }
    Ok(next)
}

/// Applies a diff to a value of the type that the diff is for; ignores other values (D1).
fn change(value: &mut Bson, diff: &Document) -> Result<()> {
    let of_array = diff.get_bool("a").unwrap_or(false);
    match value {
        Bson::Array(elements) if of_array => change_array(elements, diff),
        Bson::Document(document) if !of_array => {
            *document = delta(document, diff)?;
            Ok(())
        }
        _ => Ok(()),
    }
}

fn change_array(elements: &mut Array, diff: &Document) -> Result<()> {
    for (name, value) in diff {
        match (name.as_str(), value) {
            ("a", _) => {}
            ("l", Bson::Int32(length)) => {
                let length = usize::try_from(*length).map_err(|_| unknown(name))?;
                resize(elements, length)?;
            }
            (name, value) => {
                let (kind, place) = name.split_at_checked(1).ok_or_else(|| unknown(name))?;
                let place: usize = place.parse().map_err(|_| unknown(name))?;
                if elements.len() <= place {
                    resize(elements, place.saturating_add(1))?;
                }
                let Some(element) = elements.get_mut(place) else {
                    return Err(unknown(name));
                };
                match (kind, value) {
                    ("u", value) => *element = value.clone(),
                    ("s", Bson::Document(inner)) => change(element, inner)?,
                    _ => return Err(unknown(name)),
                }
            }
        }
    }
    Ok(())
}

fn resize(elements: &mut Array, length: usize) -> Result<()> {
    if LENGTH_MAX < length {
        let message = format!("A diff makes an array of {length} elements");
        return Err(Error::location(4_770_513, message));
    }
    elements.resize(length, Bson::Null);
    Ok(())
}

fn unknown(name: &str) -> Error {
    let message = format!("Unexpected field in the diff of an update: '{name}'");
    Error::location(4_770_503, message)
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "tests")]
    fn check(before: Document, diff: Document, after: Document) {
        let once = delta(&before, &diff).unwrap();
        assert_eq!(once, after, "{diff}");
        // D1
        assert_eq!(delta(&once, &diff).unwrap(), after, "{diff} twice");
    }

    #[test]
    fn fields_go_change_and_come() {
        let before = doc! {"_id": 1, "a": 1, "b": 2, "c": 3};
        let diff = doc! {"d": {"b": false}, "u": {"a": 5}, "i": {"z": 1, "x": 2}};
        check(
            before,
            diff,
            doc! {"_id": 1, "a": 5, "c": 3, "z": 1, "x": 2},
        );
    }

    #[test]
    fn diffs_reach_into_documents_and_arrays() {
        let before = doc! {"a": {"b": {"c": 1, "d": 2}}, "l": [1, {"x": 1}, 3, 4]};
        let diff = doc! {
            "sa": {"sb": {"u": {"c": 9}, "d": {"d": false}}},
            "sl": {"a": true, "l": 3, "u0": "first", "s1": {"i": {"y": 2}}},
        };
        let after = doc! {"a": {"b": {"c": 9}}, "l": ["first", {"x": 1, "y": 2}, 3]};
        check(before, diff, after);
        // Setting an element beyond the end extends the array.
        let diff = doc! {"sl": {"a": true, "u2": 7}};
        check(doc! {"l": []}, diff, doc! {"l": [null, null, 7]});
    }

    #[test]
    fn what_is_no_more_what_it_was_stays() {
        let diff = || doc! {"sa": {"u": {"x": 1}}};
        for kept in [doc! {"a": 5}, doc! {"a": [1]}, doc! {"b": 1}] {
            check(kept.clone(), diff(), kept);
        }
        let diff = doc! {"sa": {"a": true, "u0": 1}};
        check(doc! {"a": {"x": 1}}, diff, doc! {"a": {"x": 1}});
    }

    #[test]
    fn what_is_no_diff_is_refused() {
        let before = doc! {"a": {"x": 1}, "l": [1]};
        for bad in [
            doc! {},
            doc! {"q": 1},
            doc! {"u": 1},
            doc! {"sa": 1},
            doc! {"sa": {}},
            doc! {"sl": {"a": true, "l": -1}},
            doc! {"sl": {"a": true, "ux": 1}},
            doc! {"sl": {"a": true, "u99999999": 1}},
            doc! {"sl": {"a": true, "s0": 1}},
            doc! {"sl": {"a": true, "\u{e9}": 1}},
        ] {
            assert!(delta(&before, &bad).is_err(), "{bad}");
        }
    }
}
