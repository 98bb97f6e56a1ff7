//! The default concerns: `getDefaultRWConcern`, `setDefaultRWConcern`.

use bson::{Bson, RawDocument, doc};
use query::{Code, Error, Result};
use wire::Builder;

use crate::access::Privilege;
use crate::arguments::Arguments;
use crate::command::{ADMIN, Lane, WRITES};
use crate::request::Call;
use crate::row::Row;
use crate::state::clock;
use crate::state::concerns::Defaults;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "getDefaultRWConcern",
        get,
        "Return the default read and write concerns",
    )
    .flags(ADMIN)
    .fields(&["inMemory"])
    .privilege(Privilege::Cluster("getDefaultRWConcern")),
    Row::new("setDefaultRWConcern", set, "Set the default concerns")
        .lane(Lane::Storage)
        .flags(ADMIN | WRITES)
        .fields(&["defaultReadConcern", "defaultWriteConcern"])
        .privilege(Privilege::Cluster("setDefaultRWConcern")),
];

fn show(call: &Call<'_>, reply: &mut Builder, defaults: Defaults) {
    let source = |set: bool| if set { "global" } else { "implicit" };
    let (read, write) = (defaults.read.is_some(), defaults.write.is_some());
    let w = match call.server.topology.is_replica_set() {
        true => Bson::from("majority"),
        false => Bson::Int32(1),
    };
    let read_concern = defaults.read.unwrap_or_else(|| doc! {"level": "local"});
    let mut write_concern = doc! {"w": w, "wtimeout": 0};
    write_concern.extend(defaults.write.unwrap_or_default());
    reply.value("defaultReadConcern", &Bson::Document(read_concern));
    reply.value("defaultWriteConcern", &Bson::Document(write_concern));
    if let Some(updated) = defaults.updated {
        reply.date("updateWallClockTime", updated);
    }
    reply.string("defaultWriteConcernSource", source(write));
    reply.string("defaultReadConcernSource", source(read));
    reply.date("localUpdateWallClockTime", clock::now());
}

fn get(call: &Call<'_>, reply: &mut Builder) -> Result<()> {
    show(call, reply, call.server.concerns.get());
    Ok(())
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(Code::BAD_VALUE, message)
}

fn read_concern(document: &RawDocument) -> Result<()> {
    let fields = Arguments::of("defaultReadConcern", document)?;
    fields.only(&["level"])?;
    match fields.string("level")? {
        None | Some("local" | "available" | "majority") => Ok(()),
        Some(level) => Err(bad(format!(
            "level: '{level}' is not suitable for the default read concern"
        ))),
    }
}

fn write_concern(document: &RawDocument) -> Result<()> {
    let fields = Arguments::of("defaultWriteConcern", document)?;
    fields.only(&["w", "j", "wtimeout"])?;
    fields.boolean("j")?;
    fields.long("wtimeout")?;
    match fields.get("w").map(Bson::try_from).transpose()? {
        None | Some(Bson::String(_)) => Ok(()),
        Some(Bson::Int32(1..=50) | Bson::Int64(1..=50)) => Ok(()),
        Some(w) if w == Bson::Int32(0) || w == Bson::Int64(0) || w == Bson::Double(0.0) => Err(
            bad("Unsatisfiable default write concern: w: 0 is not suitable"),
        ),
        Some(Bson::Double(w)) if (1.0..=50.0).contains(&w) => Ok(()),
        Some(_) => Err(bad("w has to be a number between 1 and 50, or a string")),
    }
}

fn set(call: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let arguments = call.arguments();
    let read = arguments.document("defaultReadConcern")?;
    let write = arguments.document("defaultWriteConcern")?;
    if read.is_none() && write.is_none() {
        let message = "At least one of the \"defaultReadConcern\" or \"defaultWriteConcern\" \
             fields must be present";
        return Err(bad(message));
    }
    read.map(read_concern).transpose()?;
    write.map(write_concern).transpose()?;
    let (read, write) = (
        arguments.tree("defaultReadConcern")?,
        arguments.tree("defaultWriteConcern")?,
    );
    let concerns = &call.server.concerns;
    let defaults = call.with_store(|store, op| concerns.set(store, op, read, write))?;
    show(call, reply, defaults);
    Ok(())
}
