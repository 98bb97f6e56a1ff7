//! `getParameter`, `setParameter`, `configureFailPoint` and `setFeatureCompatibilityVersion`.

use bson::{Bson, RawBsonRef, doc};
use query::repeated::value_tree;
use query::{Code, Error, Result};
use wire::Builder;

use crate::access::Privilege;
use crate::arguments::{GENERIC, switch};
use crate::command::{ADMIN, LOOSE, TEST, UNFAILING, WRITES};
use crate::request::Call;
use crate::row::Row;
use crate::state::parameters::Settable;
use crate::version::FEATURES;

pub(super) const ROWS: &[Row] = &[
    Row::new("getParameter", get, "Return server parameters")
        .flags(ADMIN | LOOSE)
        .privilege(Privilege::Cluster("getParameter")),
    Row::new("setParameter", set, "Set a server parameter")
        .flags(ADMIN | LOOSE)
        .privilege(Privilege::Cluster("setParameter")),
    Row::new(
        "configureFailPoint",
        configure,
        "Set a fail point, for tests",
    )
    .flags(ADMIN | LOOSE | TEST | UNFAILING)
    .privilege(Privilege::Cluster("setParameter")),
    Row::new(
        "setFeatureCompatibilityVersion",
        compatibility,
        "Set the feature compatibility version",
    )
    .flags(ADMIN | WRITES)
    .fields(&["confirm", "fromConfigServer"])
    .privilege(Privilege::Cluster("setFeatureCompatibilityVersion")),
];

fn details(reply: &mut Builder, name: &str, value: &Bson, settable: Settable) {
    reply.open_document(name).value("value", value);
    reply.boolean("settableAtRuntime", settable == Settable::AtRuntime);
    reply.boolean("settableAtStartup", settable != Settable::Never);
    reply.close();
}

fn get(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let parameters = &request.server.parameters;
    let mut all = false;
    let mut detailed = false;
    match request.target() {
        RawBsonRef::String("*") => all = true,
        RawBsonRef::Document(options) => {
            for field in options {
                let (name, value) = field?;
                match (name.as_str(), switch(value)) {
                    ("allParameters", Some(on)) => all = on,
                    ("showDetails", Some(on)) => detailed = on,
                    _ => {}
                }
            }
        }
        _ => {}
    }
    let mut found = 0;
    let named: Vec<&str> = request
        .arguments()
        .iter()
        .skip(1)
        .map(|(name, _)| name)
        .collect();
    for (name, value, settable) in parameters.list() {
        if !all && !named.contains(&name) {
            continue;
        }
        found += 1;
        match detailed {
            true => details(reply, name, &value, settable),
            false => {
                reply.value(name, &value);
            }
        }
    }
    if found == 0 {
        let message = "no option found to get";
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    Ok(())
}

fn set(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let arguments = request.arguments();
    let mut named = arguments
        .iter()
        .skip(1)
        .filter(|(name, _)| !GENERIC.contains(name));
    let Some((name, value)) = named.next() else {
        let message = "no option found to set, use help:true to see options ";
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    };
    let value = value_tree(&format!("setParameter.{name}"), value)?;
    let was = request.server.parameters.set(name, value.clone())?;
    request.server.tune();
    reply.value("was", &was);
    let attributes = doc! {"parameterName": name, "newValue": value};
    let context = request.client.name();
    let message = "Successfully set parameter to new value";
    request
        .server
        .log
        .info("CONTROL", 23_435, &context, message, attributes);
    Ok(())
}

fn configure(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let name = request.target().as_str().unwrap_or_default();
    let server = &request.server;
    let known = &server.commands;
    let count = server.failpoints.configure(known, name, request.body())?;
    reply.long("count", count);
    Ok(())
}

fn compatibility(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    if !request.arguments().is_on("confirm")? {
        let message = format!(
            "Once you have upgraded to {FEATURES}, you will not be able to downgrade FCV and \
             binary version without support assistance. Please re-run this command with \
             'confirm: true' to acknowledge this and continue with the FCV upgrade."
        );
        return Err(Error::location(7_369_100, message));
    }
    if request.target().as_str() == Some(FEATURES) {
        return Ok(());
    }
    let message = format!("the feature compatibility version is {FEATURES} and cannot be changed");
    Err(Error::bad_value(message))
}
