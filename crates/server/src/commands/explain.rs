//! `explain`: how a command would be executed.

use bson::{Document, RawBsonRef, RawDocument, doc};
use docdb::{
    AggregateRequest, CountRequest, DeleteStatement, DistinctRequest, FindAndModify, FindRequest,
    UpdateStatement, Verbosity,
};
use query::{Code, Error, Namespace, Result};
use wire::Builder;

use super::aggregate;
use super::find::{count_request, distinct_request, find_request};
use crate::dispatch::row::{ABANDON, API, Lane, Privilege, READS, Row};
use crate::dispatch::{Arguments, Call, failure};
use crate::state::metrics::Class;
use crate::version::MONGODB;

pub(super) const ROWS: &[Row] = &[Row {
    lane: Lane::Storage,
    class: Class::Command,
    flags: API | READS | ABANDON,
    fields: &["verbosity"],
    privilege: Privilege::Own,
    ..Row::new("explain", explain, "Return the execution plan of a command")
}];

/// A command that is explained.
pub(crate) struct Explained {
    /// Its collection.
    pub(crate) ns: Namespace,
    /// What it asks for.
    pub(crate) asked: Asked,
}

/// What a command asks for that can be explained.
pub(crate) enum Asked {
    Find(Box<FindRequest>),
    Aggregate(Box<AggregateRequest>),
    Count(Box<CountRequest>),
    Distinct(Box<DistinctRequest>),
    Update(Box<UpdateStatement>),
    Delete(Box<DeleteStatement>),
    FindAndModify(Box<FindAndModify>),
}

impl Explained {
    /// Understand a command on `database`.
    ///
    /// # Errors
    /// `InvalidNamespace`, `CommandNotFound` for what is not explained; arguments that are not
    /// right.
    pub(crate) fn of(database: &str, body: &RawDocument) -> Result<Explained> {
        let first = body.iter().next().transpose()?;
        let Some((command, target)) = first else {
            return Err(Error::parse("explain command requires a nested object"));
        };
        let command = command.as_str();
        let Some(collection) = target.as_str() else {
            return Err(Error::new(
                Code::INVALID_NAMESPACE,
                "collection name has invalid type",
            ));
        };
        let ns = Namespace::new(database, collection)?;
        let arguments = Arguments::of(command, body)?;
        let asked = match command {
            "find" => Asked::Find(Box::new(find_request(&arguments)?)),
            "aggregate" => Asked::Aggregate(Box::new(aggregate::asked(&arguments, true)?)),
            "count" => Asked::Count(Box::new(count_request(&arguments)?)),
            "distinct" => Asked::Distinct(Box::new(distinct_request(&arguments)?)),
            "update" => Asked::Update(Box::new(super::update::explained(&arguments)?)),
            "delete" => Asked::Delete(Box::new(super::delete::explained(&arguments)?)),
            "findAndModify" | "findandmodify" => {
                Asked::FindAndModify(Box::new(super::find_and_modify::asked(&arguments)?))
            }
            other => {
                let message = format!("Explain failed due to unknown command: {other}");
                return Err(Error::new(Code::COMMAND_NOT_FOUND, message));
            }
        };
        Ok(Explained { ns, asked })
    }
}

fn explain(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let RawBsonRef::Document(inner) = request.target()? else {
        let message = "BSON field 'explain.explain' is the wrong type, expected type 'object'";
        return Err(Error::type_mismatch(message));
    };
    let verbosity = match request.arguments()?.string("verbosity")? {
        None => Verbosity::default(),
        Some(name) => Verbosity::parse(name).ok_or_else(|| {
            Error::bad_value(format!(
                "Enumeration value '{name}' for field 'explain.verbosity' is not a valid value."
            ))
        })?,
    };
    let explained = Explained::of(request.database(), inner)?;
    let explained = run(request, &explained, verbosity)?;
    failure::append(reply, &explained);
    let command = Document::try_from(inner)?;
    reply.value("command", &command.into());
    let topology = &request.server.topology;
    reply.value(
        "serverInfo",
        &doc! {
            "host": topology.me.as_str(),
            "port": topology.me.rsplit(':').next().and_then(|port| port.parse::<i32>().ok()),
            "version": MONGODB,
            "gitVersion": "romanesco",
        }
        .into(),
    );
    Ok(())
}

/// What a command would do.
fn run(request: &Call<'_>, explained: &Explained, verbosity: Verbosity) -> Result<Document> {
    let ns = &explained.ns;
    request.with_store(|store, op| match &explained.asked {
        Asked::Find(asked) => store.explain_find(op, ns, asked, verbosity),
        Asked::Aggregate(asked) => store.explain_aggregate(op, ns, asked, verbosity),
        Asked::Count(asked) => store.explain_count(op, ns, asked, verbosity),
        Asked::Distinct(asked) => store.explain_distinct(op, ns, asked, verbosity),
        Asked::Update(asked) => store.explain_update(op, ns, asked, verbosity),
        Asked::Delete(asked) => store.explain_delete(op, ns, asked, verbosity),
        Asked::FindAndModify(asked) => store.explain_find_and_modify(op, ns, asked, verbosity),
    })
}
