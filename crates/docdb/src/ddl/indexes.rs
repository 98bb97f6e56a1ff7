//! Creating indexes: compares the requested indexes with the existing ones.

use std::sync::Arc;

use bson::{Document, RawDocument, RawDocumentBuf};
use query::{Code, Error, Namespace, Result};

use crate::catalog::Named;
use crate::collate;
use crate::collection::Collection;
use crate::document::shell;
use crate::index::{Build, FieldKind, IndexSpec};
use crate::limits::INDEXES_MAX;
use crate::store::Store;
use crate::txn::Op;

/// Result of `createIndexes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateIndexesReply {
    /// Number of indexes before.
    pub before: i32,
    /// Number of indexes after. Equal to `before` if all indexes existed.
    pub after: i32,
    /// Whether the collection was created as well.
    pub created_collection: bool,
}

impl Store {
    /// As [`Store::create_indexes_raw`], of specifications whose filters name each field once.
    ///
    /// # Errors
    /// As [`Store::create_indexes_raw`].
    pub fn create_indexes(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        specs: &[Document],
    ) -> Result<CreateIndexesReply> {
        let specs: Result<Vec<RawDocumentBuf>> = specs
            .iter()
            .map(|spec| Ok(RawDocumentBuf::try_from(spec)?))
            .collect();
        self.create_indexes_raw(op, ns, &specs?)
    }

    /// Create indexes and build them; returns when they are usable. Writers continue during the
    /// build. The collection is created if it does not exist. For an index that another operation
    /// is building, this operation waits and shares that build's error.
    ///
    /// # Errors
    /// Invalid specifications, `IndexOptionsConflict`, `IndexKeySpecsConflict`; `DuplicateKey` and
    /// other errors of the documents; `IndexBuildAborted` when the collection or the indexes are
    /// dropped during the build. After an error no index of the command remains.
    pub fn create_indexes_raw(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        specs: &[RawDocumentBuf],
    ) -> Result<CreateIndexesReply> {
        let named = self.named(op, ns)?;
        let created_collection = named.is_none();
        if let Some(Named::Collection(found)) = &named
            && (found.is_oplog() || found.is_images())
        {
            let message = format!("cannot create an index on {ns}");
            return Err(Error::new(Code::CANNOT_CREATE_INDEX, message));
        }
        // Reject invalid specifications before anything is created.
        for spec in specs {
            IndexSpec::check_repeated(spec)?;
            check_id(spec, &IndexSpec::parse_raw(spec)?)?;
        }
        let collection = self.ensure_collection(op, ns)?;
        let mut before = count(&collection);
        let mut wanted = Vec::new();
        for spec in specs {
            let spec = full_spec(spec, &collection)?;
            check_partial(&spec)?;
            wanted.push(spec);
        }
        match op.transaction {
            None => before = self.build_indexes(op, ns, &wanted)?,
            Some(transaction) => self.index_uncommitted(op, transaction, &collection, &wanted)?,
        }
        let after = self.collection_for(op, ns)?;
        let after = after.map_or(before, |collection| count(&collection));
        Ok(CreateIndexesReply {
            before,
            after,
            created_collection,
        })
    }
}

/// Parse a specification and fill in the effective collation in full.
fn full_spec(spec: &RawDocument, collection: &Collection) -> Result<IndexSpec> {
    let mut parsed = IndexSpec::parse_raw(spec)?;
    parsed.collation = match (&parsed.collation, spec.get("collation")?.is_some()) {
        (Some(collation), _) => collate::in_full(collation)?,
        (None, true) => None,
        (None, false) => collection.options().collation.clone(),
    };
    if is_on_id(&parsed)? {
        parsed.name = "_id_".to_owned();
        parsed.unique = true;
    }
    Ok(parsed)
}

/// Whether the key is that of the index on `_id`.
fn is_on_id(spec: &IndexSpec) -> Result<bool> {
    let on_id = spec.key.len() == 1 && spec.key.contains_key("_id");
    let ascending = |(_, kind): &(String, FieldKind)| *kind == FieldKind::Ascending;
    Ok(on_id && spec.fields()?.iter().all(ascending))
}

/// Check that a client names no option for the index on `_id`, not even one that the index has.
fn check_id(spec: &RawDocument, parsed: &IndexSpec) -> Result<()> {
    if !is_on_id(parsed)? {
        return Ok(());
    }
    let clustered = spec.get("clustered")?.is_some();
    for element in spec {
        let (name, _) = element?;
        let name = name.as_str();
        let known = ["v", "key", "name", "ns", "collation", "_id"].contains(&name)
            || clustered && ["clustered", "unique"].contains(&name);
        if !known {
            let spec = Document::try_from(spec)?;
            let message = format!(
                "The field '{name}' is not valid for an _id index specification. Specification: \
                 {spec}"
            );
            let code = Code::INVALID_INDEX_SPECIFICATION_OPTION;
            return Err(Error::new(code, message));
        }
    }
    Ok(())
}

/// Check that a partial filter uses only operators that the planner can compare with a query.
fn check_partial(spec: &IndexSpec) -> Result<()> {
    let Some(filter) = &spec.partial else {
        return Ok(());
    };
    let filter = query::filter::Filter::parse(filter, &query::settings::Settings::default())?;
    simple(filter.root(), true)
}

/// The recursion depth is bounded by the depth of filters, which the parser limits.
fn simple(node: &query::filter::Node, top: bool) -> Result<()> {
    use query::filter::{Node, Test};
    let bad = |what: &str| {
        let message = format!("unsupported expression in partial index: {what}");
        Err(Error::new(Code::CANNOT_CREATE_INDEX, message))
    };
    match node {
        Node::And(nodes) | Node::Or(nodes) => nodes.iter().try_for_each(|n| simple(n, false)),
        Node::AlwaysTrue if top => Ok(()),
        Node::Field { test, .. } => match test {
            Test::Eq(_)
            | Test::Gt(_)
            | Test::Gte(_)
            | Test::Lt(_)
            | Test::Lte(_)
            | Test::In(_)
            | Test::Type(_)
            | Test::Exists(true) => Ok(()),
            Test::Exists(false) => bad("$not $exists"),
            _ => bad("operator"),
        },
        _ => bad("operator"),
    }
}

/// State of a requested index relative to the existing ones.
pub(super) enum Standing {
    /// The index does not exist.
    Missing,
    /// The index exists.
    There,
    /// Another operation is building it.
    Built(Arc<Build>),
}

/// The state of a requested index relative to the existing indexes and to `fresh`, the other new
/// indexes of the request. Indexes left over from an ended build count as missing.
///
/// # Errors
/// Another index has its key or its name; the collection has too many indexes.
pub(super) fn compare(
    collection: &Collection,
    fresh: &[&IndexSpec],
    wanted: &IndexSpec,
) -> Result<Standing> {
    if wanted.is_id() {
        let clustered = collection.is_clustered();
        let same = wanted.collation == collection.options().collation;
        if !clustered && !same {
            return Err(Error::bad_value(
                "The _id index must have the same collation as the collection.",
            ));
        }
        return Ok(Standing::There);
    }
    let old = collection.indexes().iter().filter(|i| !i.is_left());
    let count = fresh.len() + old.clone().count();
    // An index of the requested name decides: others may have the same key and options, which
    // `collMod` permits when it makes an index unique.
    let of_name = |spec: &IndexSpec| spec.name == wanted.name;
    let index = match old.clone().find(|index| of_name(index.spec())) {
        Some(index) => Some(index),
        None => old.clone().find(|index| index.spec().same_keys(wanted)),
    };
    if let Some(index) = index {
        check_same(index.spec(), wanted)?;
        return Ok(match index.build() {
            None => Standing::There,
            Some(build) => Standing::Built(Arc::clone(build)),
        });
    }
    let new = fresh.iter().find(|spec| of_name(spec));
    if let Some(spec) = new.or_else(|| fresh.iter().find(|spec| spec.same_keys(wanted))) {
        check_same(spec, wanted)?;
        return Ok(Standing::There);
    }
    if INDEXES_MAX <= count {
        let message = format!(
            "add index fails, too many indexes for {} key:{}",
            collection.ns(),
            shell(&wanted.key)
        );
        return Err(Error::new(Code::CANNOT_CREATE_INDEX, message));
    }
    Ok(Standing::Missing)
}

/// Check that an index with the name of the requested one, or else with its keys, is the requested
/// one.
///
/// # Errors
/// `IndexKeySpecsConflict` for another index of that name; `IndexOptionsConflict` for the same keys
/// under another name or with other options.
fn check_same(there: &IndexSpec, wanted: &IndexSpec) -> Result<()> {
    let (same_keys, same_name) = (there.same_keys(wanted), there.name == wanted.name);
    let same_options = there.same_options(wanted);
    let between = || {
        let (wanted, there) = (described(wanted), described(there));
        format!("Requested index: {wanted}, existing index: {there}")
    };
    let (code, message) = match (same_name, same_keys, same_options) {
        (true, true, true) => return Ok(()),
        (true, true, false) => {
            let text =
                "An equivalent index already exists with the same name but different options";
            (
                Code::INDEX_OPTIONS_CONFLICT,
                format!("{text}. {}", between()),
            )
        }
        (true, false, _) => (Code::INDEX_KEY_SPECS_CONFLICT, conflict(&between())),
        (false, _, true) => {
            let text = "Index already exists with a different name";
            (
                Code::INDEX_OPTIONS_CONFLICT,
                format!("{text}: {}", there.name),
            )
        }
        (false, _, false) => {
            let text = "An equivalent index already exists with a different name and options";
            (
                Code::INDEX_OPTIONS_CONFLICT,
                format!("{text}. {}", between()),
            )
        }
    };
    Err(Error::new(code, message))
}

fn conflict(between: &str) -> String {
    format!(
        "An existing index has the same name as the requested index. When index names are not \
         specified, they are auto generated and can cause conflicts. Please refer to our \
         documentation. {between}"
    )
}

/// An index in the form of MongoDB's messages: in the field order of its catalog, which puts some
/// options before the key.
fn described(spec: &IndexSpec) -> String {
    let mut rest = spec.to_document();
    let mut shown = bson::Document::new();
    for name in ["v", "unique", "hidden", "prepareUnique", "key", "name"] {
        if let Some(value) = rest.remove(name) {
            shown.insert(name, value);
        }
    }
    shown.extend(rest);
    shell(&shown)
}

/// Number of indexes as users see it: a clustered collection counts one on `_id` as well.
pub(super) fn count(collection: &Arc<Collection>) -> i32 {
    let clustered = usize::from(collection.is_clustered());
    i32::try_from(collection.indexes().len() + clustered).unwrap_or(i32::MAX)
}
