//! A command in the form that logs and `currentOp` show: without secrets, and truncated.

use bson::{Document, RawDocument, doc};
use query::Result;

use crate::command::{Commands, SECRET};
use crate::limits::{SHOWN, SHOWN_NAME};
use crate::state::Operation;
use crate::state::brief::{Brief, cut};

/// Arguments whose values are never shown.
const SECRETS: &[&str] = &[
    "pwd",
    "payload",
    "key",
    "digestPassword",
    "speculativeAuthenticate",
];

/// The arguments whose values are documents to be stored (of `insert`, `bulkWrite`), with the word
/// for them: files that are not encrypted must not have what encrypted ones do, so only their
/// number is shown.
const DOCUMENTS: &[(&str, &str)] = &[("documents", "documents"), ("ops", "operations")];

/// Whether a command contains a password or a proof of one.
pub(crate) fn is_secret(commands: &Commands, body: &RawDocument) -> bool {
    let mut names = body.iter().map_while(Result::ok).map(|(name, _)| name);
    let first = names.next().is_some_and(|name| {
        let command = commands.find(name.as_str());
        command.is_some_and(|command| command.has(SECRET))
    });
    first || names.any(|name| SECRETS.contains(&name.as_str()))
}

/// A command without secrets and with every part truncated: its name first, the fields that drivers
/// add to every command last.
pub(crate) fn shown(operation: &Operation) -> Document {
    let mut shown = masked(operation);
    for name in ["$clusterTime", "$db"] {
        if let Some(value) = shown.remove(name) {
            shown.insert(name, value);
        }
    }
    shown
}

fn masked(operation: &Operation) -> Document {
    let command = operation.command;
    if command.has(SECRET) {
        return doc! {command.name: "###"};
    }
    let mut brief = Brief::new(SHOWN);
    let mut shown = Document::new();
    for (name, value) in operation.arguments().iter() {
        if !brief.has_room() {
            break;
        }
        let secret = SECRETS.contains(&name);
        let stored = DOCUMENTS.iter().find(|(of, _)| *of == name);
        let documents = stored.and_then(|(_, word)| Some((word, value.as_array()?)));
        let name = brief.name(name);
        let value = match (secret, documents) {
            (true, _) => "###".into(),
            (false, Some((word, documents))) => {
                let count = documents.into_iter().count();
                format!("{count} {word}").into()
            }
            (false, None) => brief.value(value, 1),
        };
        shown.insert(name, value);
    }
    if brief.is_cut() {
        let bytes = operation.body().as_bytes().len();
        shown.insert("$truncated", format!("{bytes} bytes"));
        shown.insert("$db", cut(operation.database(), SHOWN_NAME));
    }
    shown
}

/// The collection or database a command works on, as text.
pub(crate) fn namespace(operation: &Operation) -> String {
    let database = cut(operation.database(), SHOWN_NAME);
    match operation.collection() {
        Some(collection) => format!("{database}.{}", cut(collection, SHOWN_NAME)),
        None => format!("{database}.$cmd"),
    }
}
