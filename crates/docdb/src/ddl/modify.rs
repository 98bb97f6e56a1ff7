//! Modifying collections: `collMod` and `convertToCapped`.

use std::sync::Arc;

use bson::{Bson, Document, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use query::{Code, Error, Namespace, Result};

use super::change::Change;
use super::unique;
use crate::catalog::{Named, Stored};
use crate::collection::{Action, Capped, CollectionOptions, DEFINITIONS, Level, View, capped_size};
use crate::definition;
use crate::document::shell;
use crate::entries::Writer;
use crate::index::{Index, IndexSpec, number, same_pattern};
use crate::oplog::Noted;
use crate::oplog::entry::Command;
use crate::store::{Store, not_found};
use crate::txn::Op;

impl Store {
    /// Modify a collection or view; `fields` are the fields of `collMod` other than the name.
    /// Returns the changed options that the reply shows.
    ///
    /// # Errors
    /// `NamespaceNotFound`, `IndexNotFound`, `InvalidOptions`, `IDLUnknownField`,
    /// `CannotConvertIndexToUnique`; `AmbiguousIndexKeyPattern` for a key pattern that several
    /// indexes have; `BackgroundOperationInProgressForNamespace` for every modification while an
    /// index of the collection is being built.
    pub fn coll_mod(&self, op: &Op<'_>, ns: &Namespace, fields: &RawDocument) -> Result<Document> {
        self.coll_mod_parsed(op, ns, (fields, None))
    }

    /// As [`Store::coll_mod`], with the view that `fields` define if the caller has parsed it.
    ///
    /// # Errors
    /// As [`Store::coll_mod`].
    pub fn coll_mod_parsed(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        (fields, view): (&RawDocument, Option<&View>),
    ) -> Result<Document> {
        if let Some(Named::View(options)) = self.lookup(ns) {
            return self.modify_view(op, ns, &options, (fields, view));
        }
        self.modify_collection(op, ns, fields)
    }

    fn modify_collection(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        given: &RawDocument,
    ) -> Result<Document> {
        let fields = &definition::options("collMod", given, &DEFINITIONS)?;
        let mut change = self.begin_change(op, ns)?;
        change.check_no_build()?;
        let mut reply = Document::new();
        let mut indexes = change.indexes();
        let mut options = change.stored.options.to_document();
        let mut level = None;
        let mut left = None;
        let old = change.stored.options.to_raw()?;
        for (name, value) in fields {
            match (name.as_str(), value) {
                ("index", Bson::Document(asked)) => {
                    let dry = fields.get_bool("dryRun").unwrap_or(false);
                    left = modify_index(&mut change, &mut indexes, (asked, dry), &mut reply)?;
                }
                ("validationLevel", Bson::String(text)) => level = Some(Level::parse(text)?),
                ("validationAction", Bson::String(text)) => {
                    change.stored.options.validation_action = Action::parse(text)?;
                    options.insert(name, value.clone());
                }
                ("expireAfterSeconds", Bson::String(text)) if text == "off" => {
                    options.remove(name);
                }
                ("validator", Bson::Document(_))
                | ("changeStreamPreAndPostImages" | "expireAfterSeconds", _) => {
                    options.insert(name, value.clone());
                }
                ("cappedSize", _) => {
                    options.insert("size", value.clone());
                }
                ("cappedMax", _) => {
                    options.insert("max", value.clone());
                }
                ("dryRun" | "recordPreImages", _) => {}
                ("viewOn" | "pipeline", _) => {
                    return Err(invalid("'viewOn' and 'pipeline' are options of views"));
                }
                (other, _) => return Err(unknown(other)),
            }
        }
        let mut parsed = merged(&change.stored.options, &options, level)?;
        if let Some(RawBsonRef::Document(validator)) = given.get("validator")? {
            parsed.validator = (!validator.is_empty()).then(|| validator.to_owned());
        }
        if fields.get_bool("dryRun").unwrap_or(false) {
            return Ok(reply);
        }
        self.ensure_images_of(ns, &parsed)?;
        change.stored.options = parsed;
        change.finish(indexes, &Noted::modified(ns, given, &old)?)?;
        drop(change);
        self.drop_named(left.filter(|_| !self.retains(ns)));
        Ok(reply)
    }

    fn modify_view(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        options: &CollectionOptions,
        (fields, view): (&RawDocument, Option<&View>),
    ) -> Result<Document> {
        let mut next = options.to_raw()?;
        for field in fields {
            let (name, value) = field?;
            match name.as_str() {
                "viewOn" | "pipeline" => next = replaced(&next, name.as_str(), value)?,
                "changeStreamPreAndPostImages" => {
                    return Err(invalid(
                        "option not supported on a view: changeStreamPreAndPostImages",
                    ));
                }
                other => return Err(unknown(other)),
            }
        }
        let mut parsed = CollectionOptions::parse_raw(&next)?;
        parsed.collation.clone_from(&options.collation);
        if parsed.view.as_ref() == view {
            parsed.view = view.cloned();
        }
        let _changes = self.changes(op)?;
        self.check_view(ns, &parsed)?;
        let mut stored = self.get_stored(ns)?.ok_or_else(|| not_found(ns))?;
        stored.options = parsed.clone();
        let noted = Noted::modified(ns, fields, &options.to_raw()?)?;
        self.put_stored(&stored, &noted)?;
        let named = Named::View(Arc::new(parsed));
        self.set_catalog(self.catalog().with(ns.clone(), named));
        Ok(Document::new())
    }

    /// Make a collection capped. Drops its indexes except the one on `_id`, as in MongoDB.
    ///
    /// # Errors
    /// `NamespaceNotFound`; `InvalidOptions` for sizes that are not positive and for clustered
    /// collections; `BadValue` above 1 PiB; `BackgroundOperationInProgressForNamespace` while an
    /// index of the collection is being built.
    pub fn convert_to_capped(&self, op: &Op<'_>, ns: &Namespace, size: i64) -> Result<()> {
        if size <= 0 {
            return Err(invalid("Capped collection size must be greater than zero"));
        }
        let size = capped_size(size)?;
        if self.existing(ns)?.is_clustered() {
            return Err(invalid("a clustered collection cannot be capped"));
        }
        let mut change = self.begin_change(op, ns)?;
        change.check_no_build()?;
        let mut gone = change.indexes();
        gone.retain(|index| !index.spec().is_id());
        let indexes = change.without(&gone);
        change.stored.options.capped = Some(Capped { size, max: None });
        let noted = Noted::one(&Command::ConvertToCapped {
            collection: &ns.coll,
            size,
        })?;
        change.finish(indexes, &noted)?;
        self.end_without(change, &gone);
        if self.is_follower() {
            // Each document that the primary removes has an entry.
            return Ok(());
        }
        self.write(op, &mut |work| match work.collection(ns)? {
            None => Ok(()),
            Some(collection) => {
                work.hold_capped(&collection)?;
                Writer::new(work).evict(&collection)
            }
        })
    }
}

/// The options `next`, with the options that its document omits, and the validator, taken from
/// `old`.
fn merged(
    old: &CollectionOptions,
    next: &Document,
    level: Option<Level>,
) -> Result<CollectionOptions> {
    let mut parsed = CollectionOptions::parse(next)?;
    parsed.collation.clone_from(&old.collation);
    parsed.validation_action = old.validation_action;
    parsed.validation_level = level.unwrap_or(old.validation_level);
    parsed.validator.clone_from(&old.validator);
    Ok(parsed)
}

/// A document with another value of a field that it has.
fn replaced(of: &RawDocument, name: &str, value: RawBsonRef<'_>) -> Result<RawDocumentBuf> {
    let mut out = RawDocumentBuf::new();
    for field in of {
        let (known, old) = field?;
        out.append(known, if known == name { value } else { old });
    }
    Ok(out)
}

/// The index that `collMod` names. A key pattern must belong to one index only: a plain, a unique
/// and a sparse index may have the same pattern.
fn named<'i>(
    change: &Change<'_>,
    indexes: &'i mut [Arc<Index>],
    asked: &Document,
) -> Result<&'i mut Arc<Index>> {
    let is_named = |index: &Index| match (asked.get("name"), asked.get("keyPattern")) {
        (Some(Bson::String(name)), None) => index.name() == name,
        (None, Some(Bson::Document(key))) => same_pattern(&index.spec().key, key),
        _ => false,
    };
    let mut found: Vec<&mut Arc<Index>> = indexes.iter_mut().filter(|i| is_named(i)).collect();
    match (found.pop(), found.pop()) {
        (Some(index), None) => Ok(index),
        (Some(second), Some(first)) => {
            let shown = |index: &Index| shell(&index.spec().to_document());
            let message = format!(
                "index keyPattern {} matches {} indexes, must use index name. Conflicting \
                 indexes: {}, {}",
                shell(&first.spec().key),
                found.len() + 2,
                shown(first),
                shown(second)
            );
            Err(Error::new(Code::AMBIGUOUS_INDEX_KEY_PATTERN, message))
        }
        (None, _) => {
            let ns = change.collection.ns();
            let message = format!("cannot find index {asked} for ns {ns}");
            Err(Error::new(Code::INDEX_NOT_FOUND, message))
        }
    }
}

/// Change an index. If the index moved to a new tree, returns the name of the old tree.
fn modify_index(
    change: &mut Change<'_>,
    indexes: &mut [Arc<Index>],
    (asked, dry): (&Document, bool),
    reply: &mut Document,
) -> Result<Option<String>> {
    let index = named(change, indexes, asked)?;
    let mut spec = index.spec().clone();
    let mut convert = false;
    for (name, value) in asked {
        match name.as_str() {
            "name" | "keyPattern" => {}
            "expireAfterSeconds" => set_ttl(&mut spec, value, reply)?,
            "hidden" => {
                if spec.is_id() {
                    return Err(Error::bad_value("can't hide _id index"));
                }
                let hidden = truth(value)?;
                if hidden != spec.hidden {
                    reply.insert("hidden_old", spec.hidden);
                    reply.insert("hidden_new", hidden);
                }
                spec.hidden = hidden;
            }
            "prepareUnique" => {
                let prepare = truth(value)?;
                if prepare != spec.prepare_unique && !spec.unique {
                    reply.insert("prepareUnique_old", spec.prepare_unique);
                    reply.insert("prepareUnique_new", prepare);
                    spec.prepare_unique = prepare;
                }
            }
            "unique" if !truth(value)? => {
                return Err(Error::bad_value("Cannot make index non-unique"));
            }
            "unique" => convert = !spec.unique,
            other => return Err(unknown(&format!("index.{other}"))),
        }
    }
    if !convert {
        *index = change.next_state(index, spec, index.is_ready())?;
        return Ok(None);
    }
    let left = make_unique(change, index, spec, dry)?;
    if left.is_some() {
        reply.insert("unique_new", true);
    }
    Ok(left)
}

/// Make an index unique, which requires `prepareUnique` in its specification. Returns the name of
/// the old tree, or `None` for a dry run.
fn make_unique(
    change: &mut Change<'_>,
    index: &mut Arc<Index>,
    mut spec: IndexSpec,
    dry: bool,
) -> Result<Option<String>> {
    if !spec.prepare_unique {
        return Err(invalid(
            "Cannot make index unique with 'prepareUnique=false'. Run collMod to set it first.",
        ));
    }
    spec.unique = true;
    spec.prepare_unique = false;
    let uuid = change.stored.uuid.unwrap_or_default();
    let left = Stored::index_tree(&uuid, index.number());
    let Some(made) = unique::convert(change, index, spec, dry)? else {
        return Ok(None);
    };
    *index = made;
    Ok(Some(left))
}

fn set_ttl(spec: &mut IndexSpec, value: &Bson, reply: &mut Document) -> Result<()> {
    let checked = doc! {
        "key": spec.key.clone(),
        "name": &spec.name,
        "expireAfterSeconds": value.clone(),
    };
    let checked = IndexSpec::parse(&checked)?;
    if let Some(old) = spec.ttl_seconds() {
        reply.insert("expireAfterSeconds_old", old);
    }
    if let Some(new) = checked.ttl_seconds() {
        reply.insert("expireAfterSeconds_new", new);
    }
    spec.expire_after = checked.expire_after;
    Ok(())
}

fn truth(value: &Bson) -> Result<bool> {
    match value {
        Bson::Boolean(value) => Ok(*value),
        other => number(other)
            .map(|n| n != 0.0)
            .ok_or_else(|| Error::type_mismatch("the option of an index must be a bool")),
    }
}

fn invalid(message: &str) -> Error {
    Error::new(Code::INVALID_OPTIONS, message)
}

fn unknown(name: &str) -> Error {
    let message = format!("BSON field 'collMod.{name}' is an unknown field.");
    Error::new(Code::IDL_UNKNOWN_FIELD, message)
}
