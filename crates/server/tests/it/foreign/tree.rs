//! BSON that libraries do not produce: documents with repeated fields in any order.

use bson::{Bson, Document, RawArrayBuf, RawBson, RawDocumentBuf};

/// Fields in order; names may repeat.
pub(super) type Fields = Vec<(String, Tree)>;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tree {
    Leaf(Bson),
    Fields(Fields),
    List(Vec<Tree>),
}

/// The path to a field: indexes in nested documents and lists, the last one in a document.
pub(super) type Way = Vec<usize>;

pub(super) fn fields(document: &Document) -> Fields {
    let fields = document.iter();
    fields
        .map(|(name, value)| (name.clone(), Tree::of(value)))
        .collect()
}

pub(super) fn raw(fields: &Fields) -> RawDocumentBuf {
    let mut document = RawDocumentBuf::new();
    for (name, value) in fields {
        let name = bson::raw::CString::try_from(name.as_str()).unwrap();
        document.append(name, value.raw());
    }
    document
}

impl Tree {
    pub(super) fn of(value: &Bson) -> Tree {
        match value {
            Bson::Document(document) => Tree::Fields(fields(document)),
            Bson::Array(list) => Tree::List(list.iter().map(Tree::of).collect()),
            other => Tree::Leaf(other.clone()),
        }
    }

    fn raw(&self) -> RawBson {
        match self {
            Tree::Leaf(value) => RawBson::try_from(value.clone()).unwrap(),
            Tree::Fields(fields) => RawBson::Document(raw(fields)),
            Tree::List(list) => {
                let mut array = RawArrayBuf::new();
                for value in list {
                    array.push(value.raw());
                }
                RawBson::Array(array)
            }
        }
    }

    /// A copy with its strings replaced.
    pub(super) fn renamed(&self, rename: &dyn Fn(&str) -> String) -> Tree {
        match self {
            Tree::Leaf(Bson::String(text)) => Tree::Leaf(Bson::String(rename(text))),
            Tree::Leaf(other) => Tree::Leaf(other.clone()),
            Tree::Fields(fields) => {
                let fields = fields.iter();
                Tree::Fields(
                    fields
                        .map(|(n, v)| (n.clone(), v.renamed(rename)))
                        .collect(),
                )
            }
            Tree::List(list) => Tree::List(list.iter().map(|v| v.renamed(rename)).collect()),
        }
    }
}

/// The paths to all fields, at any depth.
pub(super) fn ways(fields: &Fields) -> Vec<Way> {
    fn of_value(value: &Tree, way: &Way, found: &mut Vec<Way>) {
        let below = |at: usize| [way.as_slice(), &[at]].concat();
        match value {
            Tree::Leaf(_) => {}
            Tree::Fields(fields) => {
                for (at, (_, value)) in fields.iter().enumerate() {
                    found.push(below(at));
                    of_value(value, &below(at), found);
                }
            }
            Tree::List(list) => {
                for (at, value) in list.iter().enumerate() {
                    of_value(value, &below(at), found);
                }
            }
        }
    }
    let mut found = Vec::new();
    let root = Tree::Fields(fields.clone());
    of_value(&root, &Vec::new(), &mut found);
    found
}

/// The document at the end of a path, and the index in it.
pub(super) fn at<'f>(fields: &'f mut Fields, way: &[usize]) -> (&'f mut Fields, usize) {
    let (first, rest) = way.split_first().unwrap();
    if rest.is_empty() {
        return (fields, *first);
    }
    let mut value = &mut fields[*first].1;
    let (last, middle) = rest.split_last().unwrap();
    for place in middle {
        value = match value {
            Tree::Fields(fields) => &mut fields[*place].1,
            Tree::List(list) => &mut list[*place],
            Tree::Leaf(_) => panic!("a way leads through a leaf"),
        };
    }
    match value {
        Tree::Fields(fields) => (fields, *last),
        _ => panic!("a way ends in no document"),
    }
}
