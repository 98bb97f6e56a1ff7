//! The machine and the connection: `hostInfo`, `whatsmyuri`, `connectionStatus`,
//! `rotateCertificates`.

use query::Result;
use wire::Builder;

use crate::access::Privilege;
use crate::command::{ADMIN, API, LOOSE, Lane};
use crate::config::Memory;
use crate::kernel;
use crate::long::long;
use crate::request::Call;
use crate::row::Row;
use crate::server::hostname;
use crate::state::clock;

pub(super) const ROWS: &[Row] = &[
    Row::new("hostInfo", host_info, "Describe the machine")
        .flags(ADMIN)
        .lane(Lane::Reserved)
        .privilege(Privilege::Cluster("hostInfo")),
    Row::new(
        "rotateCertificates",
        rotate_certificates,
        "Reload the TLS certificates",
    )
    .flags(ADMIN)
    .lane(Lane::Reserved)
    .fields(&["message"])
    .privilege(Privilege::Cluster("rotateCertificates")),
    Row::new(
        "whatsmyuri",
        whats_my_uri,
        "Return the address of the client",
    )
    .flags(LOOSE),
    Row::new(
        "connectionStatus",
        connection_status,
        "Return the authenticated users and roles of the connection",
    )
    .flags(API)
    .fields(&["showPrivileges"]),
    Row::new(
        "isdbgrid",
        not_sharded,
        "Refused: only sharding routers answer it",
    )
    .flags(ADMIN),
];

fn not_sharded(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    let name = request.name();
    let message = format!("no such command: '{name}'");
    Err(query::Error::new(query::Code::COMMAND_NOT_FOUND, message))
}

fn host_info(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let memory = Memory::read();
    let mebibytes = |bytes: u64| long(bytes >> 20);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = i32::try_from(cores).unwrap_or(i32::MAX);
    let kernel = kernel::release();
    reply
        .open_document("system")
        .date("currentTime", clock::now());
    reply.string("hostname", &hostname()).int("cpuAddrSize", 64);
    reply.long("memSizeMB", mebibytes(memory.total));
    reply.long("memLimitMB", mebibytes(memory.limit));
    reply
        .int("numCores", cores)
        .int("numCoresAvailableToProcess", cores);
    reply
        .string("cpuArch", std::env::consts::ARCH)
        .boolean("numaEnabled", false)
        .close();
    reply.open_document("os").string("type", "Linux");
    reply
        .string("name", "Linux")
        .string("version", &kernel)
        .close();
    reply
        .open_document("extra")
        .string("kernelVersion", &kernel);
    reply.string("pageSize", "4096");
    reply.string("memLimitSource", &memory.source);
    let cache = request.server.config.cache_bytes;
    let cache = cache.unwrap_or_else(|| memory.cache());
    reply.long("engineCacheSizeMB", mebibytes(cache)).close();
    Ok(())
}

fn rotate_certificates(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    request.server.rotate_certificates()
}

fn whats_my_uri(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    reply.string("you", &request.client.peer.to_string());
    Ok(())
}

fn connection_status(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let show = request.arguments().is_on("showPrivileges")?;
    let user = request.server.user_of(&request.client);
    reply
        .open_document("authInfo")
        .open_array("authenticatedUsers");
    if let Some(user) = &user {
        reply.open_document("0").string("user", &user.name);
        reply.string("db", &user.database).close();
    }
    reply.close().open_array("authenticatedUserRoles");
    let roles = user.iter().flat_map(|user| &user.roles);
    for (i, (role, database)) in roles.enumerate() {
        reply.open_document(&i.to_string()).string("role", role);
        reply.string("db", database).close();
    }
    reply.close();
    if show {
        reply.open_array("authenticatedUserPrivileges");
        let grants = user.iter().flat_map(|user| &user.grants);
        for (i, grant) in grants.enumerate() {
            let shown = bson::Bson::Document(grant.to_document());
            reply.value(&i.to_string(), &shown);
        }
        reply.close();
    }
    reply.close();
    Ok(())
}
