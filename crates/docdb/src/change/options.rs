//! The options of the stage `$changeStream`, with MongoDB's refusals.
//!
//! | field | type | default |
//! |---|---|---|
//! | `fullDocument` | `default`, `updateLookup`, `whenAvailable`, `required` | `default` |
//! | `fullDocumentBeforeChange` | `off`, `whenAvailable`, `required` | `off` |
//! | `resumeAfter`, `startAfter` | a resume token | |
//! | `startAtOperationTime` | timestamp: the first one that may have an event | after now |
//! | `allChangesForCluster` | boolean: the deployment; on the database `admin` only | false |
//! | `showExpandedEvents`, `showSystemEvents` | boolean | false |
//! | `showMigrationEvents` | boolean; without effect, as nothing migrates | false |
//!
//! Null is no value. Behind the stage a pipeline has stages that keep one document for each event:
//! see [`check_stages`].

use bson::{RawBsonRef, RawDocument, Timestamp};
use query::value::type_name_raw;
use query::{Code, Error, Namespace, Result, stage_name};

use super::event::{Before, FullDocument, Shown};
use super::scope::{Scope, Watched};
use super::token::Token;

/// The stages that may follow `$changeStream`.
const FOLLOWERS: [&str; 9] = [
    "$match",
    "$project",
    "$addFields",
    "$set",
    "$unset",
    "$replaceRoot",
    "$replaceWith",
    "$redact",
    SPLIT,
];
/// The stage that splits large events; the last one.
pub(crate) const SPLIT: &str = "$changeStreamSplitLargeEvent";

/// Where a stream starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// After the last visible entry.
    Now,
    /// At the first entry of the time or later.
    At(Timestamp),
    /// After the event of a token.
    After(Token),
}

/// The options of a stream.
#[derive(Clone, Debug)]
pub struct Options {
    /// What it watches.
    pub scope: Scope,
    /// What it shows.
    pub shown: Shown,
    /// Where it starts.
    pub start: Start,
}

impl Options {
    /// The options of a stage `$changeStream` in an `aggregate` on `ns`, which is
    /// [`Namespace::collectionless`] for a database.
    ///
    /// # Errors
    /// `IDLUnknownField` for an unknown field, `TypeMismatch` for one of another type, `BadValue`
    /// for an unknown name of a kind of document; `InvalidNamespace` or `InvalidOptions` for a
    /// namespace that cannot be watched; 50865 and 40674 for several starts; `InvalidResumeToken`
    /// and those of [`Token::parse`] for a token that does not fit.
    pub fn parse(stage: &RawDocument, ns: &Namespace) -> Result<Options> {
        let fields = Fields::of(stage)?;
        let watched = watched(ns, fields.all)?;
        let start = fields.start(&watched)?;
        Ok(Options {
            scope: Scope::new(watched, fields.expanded, fields.system),
            shown: Shown {
                full: fields.full,
                before: fields.before,
            },
            start,
        })
    }
}

/// The fields of the stage.
struct Fields<'s> {
    full: FullDocument,
    before: Before,
    resume_after: Option<&'s RawDocument>,
    start_after: Option<&'s RawDocument>,
    start_at: Option<Timestamp>,
    all: bool,
    expanded: bool,
    system: bool,
}

impl<'s> Fields<'s> {
    fn of(stage: &'s RawDocument) -> Result<Fields<'s>> {
        let mut fields = Fields {
            full: FullDocument::Default,
            before: Before::Off,
            resume_after: None,
            start_after: None,
            start_at: None,
            all: false,
            expanded: false,
            system: false,
        };
        let mut seen = Vec::new();
        for element in stage {
            let (name, value) = element?;
            let name = name.as_str();
            // No client can name more fields than there are options before one is refused.
            if seen.contains(&name) {
                let message = format!("BSON field '$changeStream.{name}' is a duplicate field");
                return Err(Error::new(Code(40_413), message));
            }
            seen.push(name);
            fields.set(name, value)?;
        }
        Ok(fields)
    }

    fn set(&mut self, name: &str, value: RawBsonRef<'s>) -> Result<()> {
        let known = [
            "fullDocument",
            "fullDocumentBeforeChange",
            "resumeAfter",
            "startAfter",
            "startAtOperationTime",
            "allChangesForCluster",
            "showExpandedEvents",
            "showSystemEvents",
            "showMigrationEvents",
        ];
        if !known.contains(&name) {
            let message = format!("BSON field '$changeStream.{name}' is an unknown field.");
            return Err(Error::new(Code::IDL_UNKNOWN_FIELD, message));
        }
        match (name, value) {
            (_, RawBsonRef::Null | RawBsonRef::Undefined) => {}
            ("fullDocument", RawBsonRef::String(text)) => self.full = full(text)?,
            ("fullDocumentBeforeChange", RawBsonRef::String(text)) => self.before = before(text)?,
            ("resumeAfter", RawBsonRef::Document(token)) => self.resume_after = Some(token),
            ("startAfter", RawBsonRef::Document(token)) => self.start_after = Some(token),
            ("startAtOperationTime", RawBsonRef::Timestamp(time)) => self.start_at = Some(time),
            ("allChangesForCluster", RawBsonRef::Boolean(all)) => self.all = all,
            ("showExpandedEvents", RawBsonRef::Boolean(expanded)) => self.expanded = expanded,
            ("showSystemEvents", RawBsonRef::Boolean(system)) => self.system = system,
            ("showMigrationEvents", RawBsonRef::Boolean(_)) => {}
            (_, value) => return Err(wrong_type(name, value)),
        }
        Ok(())
    }

    fn start(&self, watched: &Watched) -> Result<Start> {
        let token = match (self.resume_after, self.start_after) {
            (Some(_), Some(_)) => {
                return Err(Error::location(
                    50_865,
                    "Do not specify both 'resumeAfter' and 'startAfter' in a $changeStream stage",
                ));
            }
            (None, None) => {
                return Ok(self.start_at.map_or(Start::Now, Start::At));
            }
            (Some(token), None) | (None, Some(token)) => Token::parse(token)?,
        };
        if self.start_at.is_some() {
            return Err(Error::location(
                40_674,
                "Only one type of resume option is allowed, but multiple were found",
            ));
        }
        if let Some(event) = token.stands_for() {
            if event.invalidate && self.resume_after.is_some() {
                return Err(unfit(
                    "Attempting to resume a change stream using 'resumeAfter' is not allowed from \
                     an invalidate notification",
                ));
            }
            if event.uuid.is_none() && matches!(watched, Watched::Collection(_)) {
                return Err(unfit(
                    "Attempted to resume a single-collection stream, but the resume token does \
                     not include a UUID",
                ));
            }
        }
        Ok(Start::After(token))
    }
}

/// Whether the stages behind `$changeStream` include `$changeStreamSplitLargeEvent`.
///
/// # Errors
/// 40324 for an unknown stage; `IllegalOperation` for one that may not follow; 7182802 for a stage
/// behind `$changeStreamSplitLargeEvent`.
pub fn check_stages<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<bool> {
    let mut splits = false;
    for name in names {
        if !stage_name::is_known(name) {
            return Err(stage_name::unknown(name));
        }
        if !FOLLOWERS.contains(&name) {
            let message = format!("{name} is not permitted in a $changeStream pipeline");
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        }
        if splits {
            let message = format!("{SPLIT} must be the last stage in the pipeline");
            return Err(Error::location(7_182_802, message));
        }
        splits = name == SPLIT;
    }
    Ok(splits)
}

/// What an aggregate on a namespace may watch.
fn watched(ns: &Namespace, all: bool) -> Result<Watched> {
    let database_only = ns.is_collectionless();
    if all {
        if ns.db == "admin" && database_only {
            return Ok(Watched::Deployment);
        }
        let message = format!(
            "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' \
             database, and with no collection name; found {ns}"
        );
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    if ["admin", "config", "local"].contains(&&*ns.db) {
        let message = format!(
            "$changeStream may not be opened on the internal {} database",
            ns.db
        );
        return Err(Error::new(Code::INVALID_NAMESPACE, message));
    }
    if database_only {
        return Ok(Watched::Database(ns.db.clone()));
    }
    if ns.coll.starts_with("system.") {
        let message = format!("$changeStream may not be opened on the internal {ns} collection");
        return Err(Error::new(Code::INVALID_NAMESPACE, message));
    }
    Ok(Watched::Collection(ns.clone()))
}

fn full(text: &str) -> Result<FullDocument> {
    Ok(match text {
        "default" => FullDocument::Default,
        "updateLookup" => FullDocument::UpdateLookup,
        "whenAvailable" => FullDocument::WhenAvailable,
        "required" => FullDocument::Required,
        other => return Err(unknown_value("fullDocument", other)),
    })
}

fn before(text: &str) -> Result<Before> {
    Ok(match text {
        "off" => Before::Off,
        "whenAvailable" => Before::WhenAvailable,
        "required" => Before::Required,
        other => return Err(unknown_value("fullDocumentBeforeChange", other)),
    })
}

fn unknown_value(field: &str, value: &str) -> Error {
    Error::bad_value(format!(
        "Enumeration value '{value}' for field '$changeStream.{field}' is not a valid value."
    ))
}

fn wrong_type(field: &str, found: RawBsonRef<'_>) -> Error {
    let expected = match field {
        "fullDocument" | "fullDocumentBeforeChange" => "string",
        "resumeAfter" | "startAfter" => "object",
        "startAtOperationTime" => "timestamp",
        _ => "bool",
    };
    let found = type_name_raw(found);
    Error::type_mismatch(format!(
        "BSON field '$changeStream.{field}' is the wrong type '{found}', expected type \
         '{expected}'"
    ))
}

fn unfit(message: &str) -> Error {
    Error::new(Code::INVALID_RESUME_TOKEN, message)
}

#[cfg(test)]
mod tests {
    use bson::{Bson, Document, RawDocumentBuf, doc, rawdoc};

    use super::*;
    use crate::change::token::Event;

    fn raw(document: &Document) -> RawDocumentBuf {
        RawDocumentBuf::try_from(document).unwrap()
    }

    fn on(db: &str, coll: &str) -> Namespace {
        match coll {
            "" => Namespace::collectionless(db),
            coll => Namespace::new(db, coll).unwrap(),
        }
    }

    fn parse(stage: &Document, ns: &Namespace) -> Result<Options> {
        Options::parse(&raw(stage), ns)
    }

    fn token(invalidate: bool) -> Token {
        let event = Event {
            index: 0,
            invalidate,
            uuid: None,
            fragment: None,
        };
        let time = Timestamp {
            time: 5,
            increment: 1,
        };
        Token::event(time, event, &rawdoc! { "operationType": "dropDatabase" }).unwrap()
    }

    fn document(token: &Token) -> Bson {
        Bson::Document(Document::try_from(&*token.to_document()).unwrap())
    }

    #[test]
    fn each_option_is_parsed() {
        let time = Timestamp {
            time: 7,
            increment: 1,
        };
        let stage = doc! {
            "fullDocument": "updateLookup", "fullDocumentBeforeChange": "required",
            "startAtOperationTime": time, "showExpandedEvents": true, "showSystemEvents": true,
            "showMigrationEvents": true, "resumeAfter": null, "allChangesForCluster": false,
        };
        let options = parse(&stage, &on("db", "c")).unwrap();
        assert_eq!(options.start, Start::At(time));
        assert_eq!(options.shown.full, FullDocument::UpdateLookup);
        assert_eq!(options.shown.before, Before::Required);
        assert!(options.scope.is_expanded());
        let options = parse(&doc! {}, &on("db", "")).unwrap();
        assert_eq!(options.start, Start::Now);
        assert_eq!(options.shown.full, FullDocument::Default);
        assert_eq!(options.shown.before, Before::Off);
        for field in ["resumeAfter", "startAfter"] {
            let options = parse(&doc! { field: document(&token(false)) }, &on("db", ""));
            assert_eq!(options.unwrap().start, Start::After(token(false)));
        }
        let after = doc! { "startAfter": document(&token(true)) };
        parse(&after, &on("db", "")).unwrap();
    }

    #[test]
    fn what_mongodb_refuses_is_refused_with_its_code() {
        let time = Timestamp {
            time: 7,
            increment: 1,
        };
        let (event, end) = (document(&token(false)), document(&token(true)));
        let cluster = doc! { "allChangesForCluster": true };
        for (stage, (db, coll), code) in [
            (doc! { "unknown": 1 }, ("db", "c"), 40_415),
            (doc! { "fullDocument": 1 }, ("db", "c"), 14),
            (doc! { "fullDocument": "all" }, ("db", "c"), 2),
            (doc! { "fullDocumentBeforeChange": "on" }, ("db", "c"), 2),
            (doc! { "resumeAfter": "x" }, ("db", "c"), 14),
            (doc! { "resumeAfter": {} }, ("db", "c"), 40_647),
            (doc! { "startAtOperationTime": 1 }, ("db", "c"), 14),
            (doc! { "showExpandedEvents": 1 }, ("db", "c"), 14),
            (cluster.clone(), ("db", ""), 72),
            (cluster.clone(), ("admin", "c"), 72),
            (doc! {}, ("admin", ""), 73),
            (doc! {}, ("config", ""), 73),
            (doc! {}, ("local", "c"), 73),
            (doc! {}, ("db", "system.js"), 73),
            (
                doc! { "resumeAfter": event.clone(), "startAfter": event.clone() },
                ("db", ""),
                50_865,
            ),
            (
                doc! { "resumeAfter": event.clone(), "startAtOperationTime": time },
                ("db", ""),
                40_674,
            ),
            (doc! { "resumeAfter": end }, ("db", ""), 260),
            (doc! { "resumeAfter": event }, ("db", "c"), 260),
        ] {
            let error = parse(&stage, &on(db, coll)).unwrap_err();
            assert_eq!(error.code.0, code, "{stage} on {db}.{coll}: {error}");
        }
        parse(&cluster, &on("admin", "")).unwrap();
        let mut twice = raw(&doc! { "fullDocument": "default" });
        twice.append(bson::raw::cstr!("fullDocument"), "required");
        let error = Options::parse(&twice, &on("db", "c")).unwrap_err();
        assert_eq!(error.code.0, 40_413);
    }

    #[test]
    fn stages_behind_keep_one_document_for_each_event() {
        let check = |names: &[&str]| check_stages(names.iter().copied()).map_err(|e| e.code.0);
        assert_eq!(check(&[]), Ok(false));
        assert_eq!(check(&["$match", "$project"]), Ok(false));
        assert_eq!(check(&["$match", SPLIT]), Ok(true));
        assert_eq!(check(&["$group"]), Err(20));
        assert_eq!(check(&["$unsupported"]), Err(40_324));
        assert_eq!(check(&["$changeStream"]), Err(20));
        assert_eq!(check(&[SPLIT, "$match"]), Err(7_182_802));
        assert_eq!(check(&[SPLIT, SPLIT]), Err(7_182_802));
    }
}
