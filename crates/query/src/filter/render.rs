//! Converts the tree of a filter back to a document with all operators explicit, for `explain`.

use bson::{Bson, Document, doc};

use super::{Node, Test};

/// The document for `node`.
pub(super) fn node(node: &Node) -> Document {
    match node {
        Node::And(nodes) => list("$and", nodes),
        Node::Or(nodes) => list("$or", nodes),
        Node::Nor(nodes) => list("$nor", nodes),
        Node::Field { path, test } => {
            let mut document = Document::new();
            document.insert(path.as_str(), tests(std::slice::from_ref(test)));
            document
        }
        Node::Expr { spec, .. } => doc! {"$expr": spec.clone()},
        Node::Schema(schema) => doc! {"$jsonSchema": schema.to_document().clone()},
        Node::AlwaysTrue => Document::new(),
        Node::AlwaysFalse => doc! {"$alwaysFalse": 1},
        Node::Comment(comment) => doc! {"$comment": comment.clone()},
    }
}

fn list(name: &str, nodes: &[Node]) -> Document {
    let clauses = nodes.iter().map(|clause| Bson::Document(node(clause)));
    let mut document = Document::new();
    document.insert(name, Bson::Array(clauses.collect()));
    document
}

/// The operators of several tests, as one document.
pub(super) fn tests(tests: &[Test]) -> Document {
    let mut document = Document::new();
    for test in tests {
        let (name, value) = operator(test);
        document.insert(name, value);
        if let Test::Regex(regex) = test
            && !regex.options().is_empty()
        {
            document.insert("$options", regex.options());
        }
    }
    document
}

/// One operator as users write it, with `$nin` and `$ne` instead of a negation.
pub(super) fn given(test: &Test) -> Document {
    match test {
        Test::Not(inner) if matches!(inner.as_slice(), [Test::In(_)]) => {
            let mut document = Document::new();
            for (_, value) in tests(inner) {
                document.insert("$nin", value);
            }
            document
        }
        test => tests(std::slice::from_ref(test)),
    }
}

/// The name of a test's operator as users write it.
pub(super) fn name(test: &Test) -> &'static str {
    match test {
        Test::Not(inner) if matches!(inner.as_slice(), [Test::In(_)]) => "$nin",
        test => operator(test).0,
    }
}

/// The name and the argument of a test's operator.
fn operator(test: &Test) -> (&'static str, Bson) {
    match test {
        Test::Eq(value) => ("$eq", value.clone()),
        Test::Ne(value) => ("$ne", value.clone()),
        Test::Gt(value) => ("$gt", value.clone()),
        Test::Gte(value) => ("$gte", value.clone()),
        Test::Lt(value) => ("$lt", value.clone()),
        Test::Lte(value) => ("$lte", value.clone()),
        Test::In(list) => {
            let patterns = list.regexes.iter().map(crate::regex::Regex::to_bson);
            let values = list.values.iter().cloned().chain(patterns);
            ("$in", Bson::Array(values.collect()))
        }
        Test::Exists(wanted) => ("$exists", Bson::Boolean(*wanted)),
        Test::Type(types) => ("$type", types.to_bson()),
        Test::Regex(regex) => ("$regex", Bson::from(regex.pattern())),
        Test::Mod { divisor, remainder } => {
            let pair = vec![Bson::Int64(*divisor), Bson::Int64(*remainder)];
            ("$mod", Bson::Array(pair))
        }
        Test::Size(size) => ("$size", Bson::Int64(*size)),
        Test::ElemMatchObject(inner) => ("$elemMatch", Bson::Document(node(inner))),
        Test::ElemMatchValue(inner) => ("$elemMatch", Bson::Document(tests(inner))),
        Test::Bits(bits) => (bits.name(), bits.to_bson()),
        Test::Not(inner) => ("$not", Bson::Document(tests(inner))),
        Test::Never => ("$in", Bson::Array(Vec::new())),
    }
}
