//! `explain`: how a command would be executed.

use bson::{Document, RawBsonRef, doc};
use docdb::Verbosity;
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
    ..Row::new("explain", explain, "Tell how a command would be executed")
}];

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
    let first = inner.iter().next().transpose()?;
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
    let ns = Namespace::new(request.database(), collection)?;
    let arguments = Arguments::of(command, inner)?;
    let explained = asked(request, (command, &ns), &arguments, verbosity)?;
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

/// What a command that is explained would do.
fn asked(
    request: &Call<'_>,
    (command, ns): (&str, &Namespace),
    arguments: &Arguments<'_>,
    verbosity: Verbosity,
) -> Result<Document> {
    request.with_store(|store, op| match command {
        "find" => store.explain_find(op, ns, &find_request(arguments)?, verbosity),
        "aggregate" => {
            store.explain_aggregate(op, ns, &aggregate::asked(arguments, true)?, verbosity)
        }
        "count" => store.explain_count(op, ns, &count_request(arguments)?, verbosity),
        "distinct" => store.explain_distinct(op, ns, &distinct_request(arguments)?, verbosity),
        "update" => store.explain_update(op, ns, &super::update::explained(arguments)?, verbosity),
        "delete" => store.explain_delete(op, ns, &super::delete::explained(arguments)?, verbosity),
        "findAndModify" | "findandmodify" => {
            let asked = super::find_and_modify::asked(arguments)?;
            store.explain_find_and_modify(op, ns, &asked, verbosity)
        }
        other => {
            let message = format!("Explain failed due to unknown command: {other}");
            Err(Error::new(Code::COMMAND_NOT_FOUND, message))
        }
    })
}
