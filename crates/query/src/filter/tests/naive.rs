//! A slow reference evaluation of filters, directly from the filter's document on owned documents.
//! Compiled filters are compared with it.

use bson::{Bson, Document};

use crate::value::{compare, rank};

/// Whether `document` matches; supports only the filters that [`super::random`] makes.
pub(super) fn matches(filter: &Document, document: &Document) -> bool {
    filter.iter().all(|(name, value)| match name.as_str() {
        "$and" => clauses(value).all(|clause| matches(clause, document)),
        "$or" => clauses(value).any(|clause| matches(clause, document)),
        "$nor" => !clauses(value).any(|clause| matches(clause, document)),
        path => field(path, value, document),
    })
}

fn clauses(value: &Bson) -> impl Iterator<Item = &Document> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|clause| clause.as_document().unwrap())
}

fn field(path: &str, value: &Bson, document: &Document) -> bool {
    match value {
        Bson::Document(operators) if operators.keys().any(|key| key.starts_with('$')) => operators
            .iter()
            .all(|(name, argument)| operator(path, name, argument, document)),
        value => operator(path, "$eq", value, document),
    }
}

fn operator(path: &str, name: &str, argument: &Bson, document: &Document) -> bool {
    match name {
        "$ne" => !operator(path, "$eq", argument, document),
        "$nin" => !operator(path, "$in", argument, document),
        "$not" => !field(path, argument, document),
        "$exists" if *argument == Bson::Boolean(false) => {
            !operator(path, "$exists", &Bson::Boolean(true), document)
        }
        "$all" => {
            let list = argument.as_array().unwrap();
            !list.is_empty()
                && list
                    .iter()
                    .all(|item| operator(path, "$eq", item, document))
        }
        _ => {
            let mut leaves = Vec::new();
            let expand = !matches!(name, "$size" | "$elemMatch");
            let parts: Vec<&str> = path.split('.').collect();
            collect(document, &parts, expand, &mut leaves);
            leaves
                .iter()
                .any(|leaf| single(name, argument, leaf.as_ref()))
        }
    }
}

/// Collects every leaf of the path; `None` for a missing value.
fn collect(document: &Document, path: &[&str], expand: bool, leaves: &mut Vec<Option<Bson>>) {
    let (first, rest) = path.split_first().unwrap();
    match (document.get(first), rest) {
        (Some(Bson::Array(items)), []) => {
            if expand {
                leaves.extend(items.iter().cloned().map(Some));
            }
            leaves.push(Some(Bson::Array(items.clone())));
        }
        (value, []) => leaves.push(value.cloned()),
        (Some(Bson::Document(inner)), rest) => collect(inner, rest, expand, leaves),
        (Some(Bson::Array(items)), rest) => within(items, rest, expand, leaves),
        _ => leaves.push(None),
    }
}

fn within(items: &[Bson], path: &[&str], expand: bool, leaves: &mut Vec<Option<Bson>>) {
    for (index, item) in items.iter().enumerate() {
        if let Bson::Document(inner) = item {
            collect(inner, path, expand, leaves);
        }
        if path[0] == index.to_string() {
            match (item, &path[1..]) {
                (item, []) => leaves.push(Some(item.clone())),
                (Bson::Document(inner), rest) => collect(inner, rest, expand, leaves),
                (Bson::Array(inner), rest) => within(inner, rest, expand, leaves),
                _ => {}
            }
        }
    }
}

fn single(name: &str, argument: &Bson, value: Option<&Bson>) -> bool {
    let Some(value) = value else {
        let null = |item: &Bson| *item == Bson::Null;
        return match name {
            "$eq" | "$gte" | "$lte" if null(argument) => true,
            "$gt" | "$gte" => *argument == Bson::MinKey,
            "$lt" | "$lte" => *argument == Bson::MaxKey,
            "$in" => argument.as_array().unwrap().iter().any(null),
            _ => false,
        };
    };
    match name {
        "$eq" => compare(value, argument).is_eq(),
        "$in" => argument
            .as_array()
            .unwrap()
            .iter()
            .any(|item| compare(value, item).is_eq()),
        "$gt" | "$gte" | "$lt" | "$lte" => ordered(name, argument, value),
        "$exists" => true,
        "$size" => match value {
            Bson::Array(items) => argument.as_i32().map(usize::try_from) == Some(Ok(items.len())),
            _ => false,
        },
        "$type" => crate::value::type_name(value) == argument.as_str().unwrap(),
        "$elemMatch" => match value {
            Bson::Array(items) => items.iter().any(|item| element(argument, item)),
            _ => false,
        },
        other => panic!("the generator makes no {other}"),
    }
}

fn ordered(name: &str, argument: &Bson, value: &Bson) -> bool {
    let nan = |value: &Bson| {
        crate::number::Number::from_bson(value).is_some_and(crate::number::Number::is_nan)
    };
    if rank(value) != rank(argument) {
        return match name {
            "$gt" | "$gte" => *argument == Bson::MinKey,
            _ => *argument == Bson::MaxKey,
        };
    }
    if nan(value) != nan(argument) {
        return false;
    }
    let order = compare(value, argument);
    match name {
        "$gt" => order.is_gt(),
        "$gte" => order.is_ge(),
        "$lt" => order.is_lt(),
        _ => order.is_le(),
    }
}

/// Whether an element passes an `$elemMatch`.
fn element(argument: &Bson, item: &Bson) -> bool {
    let inner = argument.as_document().unwrap();
    if inner.keys().any(|key| key.starts_with('$')) {
        return inner
            .iter()
            .all(|(name, argument)| single(name, argument, Some(item)));
    }
    match item {
        Bson::Document(document) => matches(inner, document),
        Bson::Array(items) => {
            let named = items.iter().enumerate();
            let document = named
                .map(|(at, item)| (at.to_string(), item.clone()))
                .collect();
            matches(inner, &document)
        }
        _ => false,
    }
}
