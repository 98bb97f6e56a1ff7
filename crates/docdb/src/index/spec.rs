//! Index specifications, in the form of `createIndexes` and `listIndexes`.
//!
//! Messages and codes follow MongoDB's.

use bson::{Bson, Document, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use query::repeated::{check_paths, distinct, distinct_within, repeated};
use query::value::type_name;
use query::{Code, Error, Result};

use crate::definition::with_definitions;
use crate::limits::INDEX_FIELDS_MAX;

/// A checked specification of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexSpec {
    /// The name, unique within the collection.
    pub name: String,
    /// The key pattern as given.
    pub key: Document,
    /// No two documents have the same key.
    pub unique: bool,
    /// Documents that have none of the fields are not indexed.
    pub sparse: bool,
    /// Only documents that match are in the index.
    pub partial: Option<RawDocumentBuf>,
    /// Seconds after which documents expire, for TTL indexes, as given.
    pub expire_after: Option<Bson>,
    /// Maintained but not used by plans.
    pub hidden: bool,
    /// The collation in full; `None` is byte order.
    pub collation: Option<Document>,
    /// The paths that a wildcard index holds.
    pub wildcard_projection: Option<Document>,
    /// Options for engines: stored and shown.
    pub storage_engine: Option<Document>,
    /// New duplicates are rejected; old ones may exist.
    pub prepare_unique: bool,
    /// Accepted without effect: no build blocks writers.
    pub background: Option<bool>,
}

/// The field of the filter of a partial index.
const PARTIAL: &str = "partialFilterExpression";

/// Options of an index that have an effect.
const EFFECTIVE: [&str; 13] = [
    "v",
    "key",
    "name",
    "unique",
    "sparse",
    PARTIAL,
    "expireAfterSeconds",
    "hidden",
    "collation",
    "wildcardProjection",
    "prepareUnique",
    "clustered",
    "originalSpec",
];

/// Options accepted without effect: those of old clients, and those of unsupported index types.
const WITHOUT_EFFECT: [&str; 13] = [
    "ns",
    "storageEngine",
    "background",
    "dropDups",
    "weights",
    "default_language",
    "language_override",
    "textIndexVersion",
    "2dsphereIndexVersion",
    "bits",
    "min",
    "max",
    "bucketSize",
];

/// The effective index options that clients may set.
#[must_use]
pub fn options() -> Vec<&'static str> {
    let effective = EFFECTIVE.into_iter();
    let mut options: Vec<&'static str> = effective.filter(|o| *o != "originalSpec").collect();
    options.sort_unstable();
    options
}

/// The kinds of fields, in the form of key patterns.
#[must_use]
pub fn kinds() -> [&'static str; 4] {
    ["1", "-1", "\"hashed\"", "{ \"$**\": 1 }"]
}

/// The kind of an index field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// In ascending order.
    Ascending,
    /// In descending order.
    Descending,
    /// By hash.
    Hashed,
    /// All paths below.
    Wildcard,
}

impl IndexSpec {
    /// The index on `_id` that every collection has.
    #[must_use]
    pub fn id(collation: Option<Document>) -> IndexSpec {
        IndexSpec {
            name: "_id_".to_owned(),
            key: doc! { "_id": 1 },
            unique: true,
            sparse: false,
            partial: None,
            expire_after: None,
            hidden: false,
            collation,
            wildcard_projection: None,
            storage_engine: None,
            prepare_unique: false,
            background: None,
        }
    }

    /// Parse and check a specification. A missing name is generated from the key.
    ///
    /// # Errors
    /// `CannotCreateIndex`, `TypeMismatch`, `InvalidIndexSpecificationOption` and similar.
    pub fn parse(spec: &Document) -> Result<IndexSpec> {
        check_names(spec)?;
        let key = document(spec, "key")?.ok_or_else(|| {
            Error::parse("The 'key' field is a required property of an index specification")
        })?;
        let fields = fields(&key)?;
        let name = match spec.get("name") {
            Some(Bson::String(name)) if name == "*" => {
                return Err(Error::bad_value("The index name '*' is not valid."));
            }
            Some(Bson::String(name)) if name.contains('\0') => {
                return Err(cannot("index name cannot contain null characters"));
            }
            Some(Bson::String(name)) if name.is_empty() => {
                return Err(cannot("index name cannot be empty"));
            }
            Some(Bson::String(name)) => name.clone(),
            Some(other) => return Err(wrong_type("name", "string", other)),
            None => name_of(&key),
        };
        if let Some(version) = spec.get("v") {
            check_version(version)?;
        }
        let index = IndexSpec {
            name,
            unique: flag(spec, "unique")?,
            sparse: flag(spec, "sparse")?,
            partial: document(spec, PARTIAL)?
                .map(|partial| RawDocumentBuf::try_from(&partial))
                .transpose()?,
            expire_after: spec.get("expireAfterSeconds").cloned(),
            hidden: flag(spec, "hidden")?,
            collation: document(spec, "collation")?
                .filter(|c| c.get_str("locale").ok() != Some("simple")),
            wildcard_projection: document(spec, "wildcardProjection")?,
            storage_engine: document(spec, "storageEngine")?,
            prepare_unique: flag(spec, "prepareUnique")?,
            background: match spec.contains_key("background") {
                true => Some(flag(spec, "background")?),
                false => None,
            },
            key,
        };
        index.check(&fields)?;
        Ok(index)
    }

    /// Refuses a specification from a client that names a field twice, of which a tree would keep
    /// the last. Fields of the partial filter may repeat.
    ///
    /// # Errors
    /// 40413 for an option, `BadValue` for a field of the key, 31250 for a path of the wildcard
    /// projection.
    pub(crate) fn check_repeated(spec: &RawDocument) -> Result<()> {
        const PLACE: &str = "createIndexes.indexes";
        distinct(PLACE, spec)?;
        for option in spec {
            let (name, value) = option?;
            let RawBsonRef::Document(value) = value else {
                continue;
            };
            match name.as_str() {
                "key" => check_key(value)?,
                "wildcardProjection" => check_paths(value)?,
                PARTIAL => {}
                name => distinct_within(&format!("{PLACE}.{name}"), value)?,
            }
        }
        Ok(())
    }

    /// As [`IndexSpec::parse`]; the filter of a partial index may name a field twice.
    ///
    /// # Errors
    /// As [`IndexSpec::parse`].
    pub fn parse_raw(spec: &RawDocument) -> Result<IndexSpec> {
        let mut parsed = IndexSpec::parse(&Document::try_from(spec)?)?;
        if let Some(RawBsonRef::Document(partial)) = spec.get(PARTIAL)? {
            parsed.partial = Some(partial.to_owned());
        }
        Ok(parsed)
    }

    /// Whether this is the index on `_id`.
    #[must_use]
    pub fn is_id(&self) -> bool {
        let mut keys = self.key.iter();
        let first = keys
            .next()
            .is_some_and(|(name, value)| name == "_id" && !matches!(value, Bson::String(_)));
        first && keys.next().is_none() && self.name == "_id_"
    }

    /// The fields with their kinds. The pattern was checked when the specification was made.
    ///
    /// # Errors
    /// `CannotCreateIndex` for invalid patterns.
    pub fn fields(&self) -> Result<Vec<(String, FieldKind)>> {
        fields(&self.key)
    }

    /// The specification in the form of `listIndexes`.
    ///
    /// # Errors
    /// Invalid bytes in the filter.
    pub fn to_raw(&self) -> Result<RawDocumentBuf> {
        let partial = self.partial.as_deref().map(RawBsonRef::Document);
        let partial = partial.map(|partial| (PARTIAL, partial));
        with_definitions(&self.to_document(), partial.as_slice())
    }

    /// As [`IndexSpec::to_raw`], as a tree: of a field that the filter names twice one condition is
    /// left.
    #[must_use]
    pub fn to_document(&self) -> Document {
        let mut out = doc! { "v": 2, "key": self.key.clone(), "name": &self.name };
        if self.is_id() {
            if let Some(collation) = &self.collation {
                out.insert("collation", collation.clone());
            }
            return out;
        }
        for (name, set) in [
            ("unique", self.unique),
            ("sparse", self.sparse),
            ("hidden", self.hidden),
            ("prepareUnique", self.prepare_unique),
        ] {
            if set {
                out.insert(name, true);
            }
        }
        if let Some(background) = self.background {
            out.insert("background", background);
        }
        if let Some(seconds) = &self.expire_after {
            out.insert("expireAfterSeconds", seconds.clone());
        }
        if let Some(partial) = &self.partial {
            // The bytes were checked when they were parsed.
            out.insert(PARTIAL, Document::try_from(&**partial).unwrap_or_default());
        }
        for (name, value) in [
            ("collation", &self.collation),
            ("wildcardProjection", &self.wildcard_projection),
            ("storageEngine", &self.storage_engine),
        ] {
            if let Some(value) = value {
                out.insert(name, value.clone());
            }
        }
        out
    }

    /// Whether both specifications describe the same index apart from the name: the same keys for
    /// the same documents. A unique and a plain index with equal keys are different indexes, as are
    /// a sparse and a plain one.
    #[must_use]
    pub fn same_keys(&self, other: &IndexSpec) -> bool {
        same_pattern(&self.key, &other.key)
            && self.unique == other.unique
            && self.sparse == other.sparse
            && self.collation == other.collation
            && self.partial == other.partial
    }

    /// Whether all options but the name agree.
    #[must_use]
    pub fn same_options(&self, other: &IndexSpec) -> bool {
        self.unique == other.unique
            && self.sparse == other.sparse
            && seconds(self.expire_after.as_ref()) == seconds(other.expire_after.as_ref())
            && self.wildcard_projection == other.wildcard_projection
            && self.partial == other.partial
            && self.collation == other.collation
    }

    /// The number of seconds after which documents expire. `None` without a limit; NaN is no limit.
    #[must_use]
    pub fn ttl_seconds(&self) -> Option<i64> {
        seconds(self.expire_after.as_ref())
    }

    fn check(&self, fields: &[(String, FieldKind)]) -> Result<()> {
        let has = |kind| fields.iter().any(|(_, k)| *k == kind);
        let shown = || self.to_document().to_string();
        if self.is_id() {
            return self.check_id();
        }
        if self.partial.is_some() && self.sparse {
            return Err(cannot(
                "cannot mix \"partialFilterExpression\" and \"sparse\" options",
            ));
        }
        if has(FieldKind::Hashed) && self.unique {
            return Err(Error::location(
                16764,
                "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.",
            ));
        }
        if has(FieldKind::Wildcard) {
            if fields.len() != 1 {
                return Err(cannot("wildcard indexes do not allow compounding"));
            }
            for (option, set) in [
                ("unique", self.unique),
                ("sparse", self.sparse),
                ("expireAfterSeconds", self.expire_after.is_some()),
            ] {
                if set {
                    return Err(cannot(format!(
                        "Index type 'wildcard' does not support the {option} option"
                    )));
                }
            }
        }
        if self.wildcard_projection.is_some()
            && fields.first().is_none_or(|(name, _)| name != "$**")
        {
            return Err(Error::bad_value(
                "The field 'wildcardProjection' is only allowed in an 'wildcard' index with a key \
                 pattern of {'$**': 1}",
            ));
        }
        if let Some(seconds) = &self.expire_after {
            check_ttl(seconds, fields, &shown)?;
        }
        Ok(())
    }

    fn check_id(&self) -> Result<()> {
        let options = [
            ("sparse", self.sparse),
            ("partialFilterExpression", self.partial.is_some()),
            ("expireAfterSeconds", self.expire_after.is_some()),
            ("wildcardProjection", self.wildcard_projection.is_some()),
        ];
        if let Some((name, _)) = options.iter().find(|(_, given)| *given) {
            return Err(Error::new(
                Code::INVALID_INDEX_SPECIFICATION_OPTION,
                format!("The field '{name}' is not valid for an _id index specification."),
            ));
        }
        if self.hidden {
            return Err(Error::bad_value("can't hide _id index"));
        }
        Ok(())
    }
}

fn check_key(key: &RawDocument) -> Result<()> {
    let mut names = Vec::new();
    for element in key.iter_elements() {
        names.push(element?.key().as_str());
    }
    match repeated(names.iter().copied()) {
        None => Ok(()),
        Some(name) => Err(Error::bad_value(format!(
            "The field '{name}' appears multiple times in the index key pattern"
        ))),
    }
}

/// The default name that MongoDB's tools give an index: field names and directions joined by `_`.
#[must_use]
pub fn name_of(key: &Document) -> String {
    let mut parts = Vec::new();
    for (name, value) in key {
        parts.push(name.clone());
        parts.push(match value {
            Bson::String(kind) => kind.clone(),
            Bson::Double(v) => format!("{v}"),
            other => other.to_string(),
        });
    }
    parts.join("_")
}

fn check_names(spec: &Document) -> Result<()> {
    for name in spec.keys() {
        if !EFFECTIVE.contains(&name.as_str()) && !WITHOUT_EFFECT.contains(&name.as_str()) {
            let message = format!(
                "The field '{name}' is not valid for an index specification. Specification: {spec}"
            );
            return Err(Error::new(
                Code::INVALID_INDEX_SPECIFICATION_OPTION,
                message,
            ));
        }
    }
    Ok(())
}

fn check_version(version: &Bson) -> Result<()> {
    let number = number(version).ok_or_else(|| wrong_type("v", "number", version))?;
    if number == 2.0 || number == 1.0 {
        return Ok(());
    }
    Err(cannot(format!(
        "Invalid index specification; cannot create an index with v={version}"
    )))
}

fn check_ttl(
    seconds: &Bson,
    fields: &[(String, FieldKind)],
    shown: &dyn Fn() -> String,
) -> Result<()> {
    let Some(value) = number(seconds) else {
        return Err(cannot(format!(
            "TTL index 'expireAfterSeconds' option must be numeric, but received a type of '{}'. \
             Index spec: {}",
            type_name(seconds),
            shown()
        )));
    };
    let within = value.is_nan() || (0.0..=2_147_483_647.0).contains(&value);
    if !within {
        return Err(cannot(format!(
            "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a \
             different number than {seconds}. Index spec: {}",
            shown()
        )));
    }
    if fields.len() != 1 {
        return Err(cannot(format!(
            "TTL indexes are single-field indexes, compound indexes do not support TTL. Index \
             spec: {}",
            shown()
        )));
    }
    if fields.first().is_some_and(|(name, _)| name == "_id") {
        return Err(Error::new(
            Code::INVALID_INDEX_SPECIFICATION_OPTION,
            "The field 'expireAfterSeconds' is not valid for an _id index specification.",
        ));
    }
    Ok(())
}

fn fields(key: &Document) -> Result<Vec<(String, FieldKind)>> {
    if key.is_empty() {
        return Err(cannot("Index keys cannot be an empty object."));
    }
    if INDEX_FIELDS_MAX < key.len() {
        return Err(Error::location(
            13103,
            format!("too many compound keys; the limit is {INDEX_FIELDS_MAX}"),
        ));
    }
    let mut fields = Vec::with_capacity(key.len());
    let mut hashed = 0;
    for (name, value) in key {
        let mut wildcard = name == "$**" || name.ends_with(".$**");
        let kind = match value {
            Bson::String(plugin) if plugin == "hashed" => {
                hashed += 1;
                // A hashed field names one field.
                wildcard = false;
                FieldKind::Hashed
            }
            Bson::String(plugin) => {
                let known = matches!(plugin.as_str(), "text" | "2d" | "2dsphere" | "geoHaystack");
                return Err(cannot(if known {
                    format!("Index type '{plugin}' is not supported by this server")
                } else {
                    format!("Unknown index plugin '{plugin}'")
                }));
            }
            other => match number(other) {
                None => {
                    return Err(cannot(format!(
                        "Values in v:2 index key pattern cannot be of type {}. Only numbers > 0, \
                         numbers < 0, and strings are allowed.",
                        type_name(other)
                    )));
                }
                Some(n) if n == 0.0 || n.is_nan() => {
                    return Err(cannot("Values in the index key pattern cannot be 0."));
                }
                Some(_) if wildcard => FieldKind::Wildcard,
                Some(n) if n < 0.0 => FieldKind::Descending,
                Some(_) => FieldKind::Ascending,
            },
        };
        check_field(name, wildcard)?;
        fields.push((name.clone(), kind));
    }
    if 1 < hashed {
        return Err(Error::location(
            31303,
            format!(
                "A maximum of one index field is allowed to be hashed but found {hashed} for \
                 'key' {key}"
            ),
        ));
    }
    Ok(fields)
}

fn check_field(name: &str, wildcard: bool) -> Result<()> {
    if name.is_empty() {
        return Err(cannot("Index keys cannot contain an empty field."));
    }
    if wildcard && name == "$**" {
        return Ok(());
    }
    let path = match name.strip_suffix(".$**") {
        Some(path) if wildcard => path,
        _ => name,
    };
    for part in path.split('.') {
        if part.is_empty() {
            return Err(cannot("Index keys cannot contain an empty field."));
        }
        if part.starts_with('$') && !matches!(part, "$id" | "$db" | "$ref") {
            return Err(cannot(
                "Index key contains an illegal field name: field name starts with '$'.",
            ));
        }
    }
    Ok(())
}

/// Whether two key patterns name the same fields in the same directions.
#[must_use]
pub fn same_pattern(a: &Document, b: &Document) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|((an, av), (bn, bv))| {
            an == bn
                && match (number(av), number(bv)) {
                    (Some(a), Some(b)) => (a < 0.0) == (b < 0.0),
                    (None, None) => av == bv,
                    _ => false,
                }
        })
}

fn document(spec: &Document, name: &str) -> Result<Option<Document>> {
    match spec.get(name) {
        None => Ok(None),
        Some(Bson::Document(value)) => Ok(Some(value.clone())),
        Some(other) => Err(wrong_type(name, "object", other)),
    }
}

fn flag(spec: &Document, name: &str) -> Result<bool> {
    match spec.get(name) {
        None => Ok(false),
        Some(Bson::Boolean(value)) => Ok(*value),
        Some(other) => match number(other) {
            Some(value) => Ok(value != 0.0),
            None => Err(wrong_type(name, "bool", other)),
        },
    }
}

/// A number other than a decimal, as a double.
#[expect(
    clippy::cast_precision_loss,
    reason = "signs and small numbers are asked for"
)]
pub(crate) fn number(value: &Bson) -> Option<f64> {
    match value {
        Bson::Int32(v) => Some(f64::from(*v)),
        Bson::Int64(v) => Some(*v as f64),
        Bson::Double(v) => Some(*v),
        Bson::Decimal128(v) => v.to_string().parse().ok(),
        _ => None,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the range was checked; the cast saturates"
)]
fn seconds(value: Option<&Bson>) -> Option<i64> {
    let seconds = number(value?)?;
    (!seconds.is_nan()).then_some(seconds as i64)
}

fn cannot(message: impl Into<String>) -> Error {
    Error::new(Code::CANNOT_CREATE_INDEX, message)
}

fn wrong_type(name: &str, wanted: &str, found: &Bson) -> Error {
    Error::type_mismatch(format!(
        "The field '{name}' must be of type {wanted}, but got {}",
        type_name(found)
    ))
}
