//! The program: `buildInfo`, `ping`, `listCommands`,
//! `getCmdLineOpts`.

use bson::Bson;
use query::{Code, Error, Result};
use wire::Builder;

use crate::access::Privilege;
use crate::arguments::Arguments;
use crate::command::{ADMIN, ANYWHERE, API, Command, LOOSE, Lane, OPEN};
use crate::request::Call;
use crate::row::Row;
use crate::version;

pub(super) const ROWS: &[Row] = &[
    Row::new("buildInfo", build_info, "Return the version of the server")
        .aliases(&["buildinfo"])
        .open()
        .flags(LOOSE | ANYWHERE),
    Row::new("ping", |_, _| Ok(()), "Answer")
        .open()
        .flags(API | LOOSE | ANYWHERE),
    Row::new("listCommands", list_commands, "List the commands"),
    Row::new(
        "validateDBMetadata",
        validate_metadata,
        "Report collection options that are not part of the stable API",
    )
    .lane(Lane::Storage)
    .fields(&["apiParameters", "db", "collection"])
    .privilege(Privilege::Database("validate")),
    Row::new(
        "features",
        |_, reply| {
            reply.int("oidMachine", 0);
            Ok(())
        },
        "Return features, for old drivers",
    ),
    Row::new(
        "getCmdLineOpts",
        command_line,
        "Return the command line and the configuration",
    )
    .flags(ADMIN)
    .privilege(Privilege::Cluster("getCmdLineOpts")),
];

fn build_info(_: &Call<'_>, reply: &mut Builder) -> Result<()> {
    for (name, value) in &version::build_info() {
        reply.value(name, value);
    }
    Ok(())
}

fn list_commands(call: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let mut sorted: Vec<&Command> = call.server.commands.iter().collect();
    sorted.sort_by_key(|command| command.name);
    reply.open_document("commands");
    for command in sorted {
        reply.open_document(command.name);
        reply.string("help", command.help);
        reply.boolean("requiresAuth", !command.has(OPEN));
        reply.boolean("secondaryOk", true);
        reply.boolean("adminOnly", command.has(ADMIN));
        reply.strings("apiVersions", command.has(API).then_some("1"));
        reply.strings("deprecatedApiVersions", []);
        reply.close();
    }
    reply.close();
    Ok(())
}

/// All options of collections and views that this server accepts are part of version 1 of the API.
fn validate_metadata(call: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let arguments = call.arguments();
    let parameters = arguments.need_document("apiParameters")?;
    let version = Arguments::of("apiParameters", parameters)?.need_string("version")?;
    if version != "1" {
        let message = format!("API version must be \"1\", got: \"{version}\"");
        return Err(Error::new(Code::API_VERSION_ERROR, message));
    }
    reply.open_array("apiVersionErrors").close();
    Ok(())
}

fn command_line(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let config = &request.server.config;
    reply.strings("argv", config.arguments.iter().map(String::as_str));
    reply.value("parsed", &Bson::Document(config.parsed.clone()));
    Ok(())
}
