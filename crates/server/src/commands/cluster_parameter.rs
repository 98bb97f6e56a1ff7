//! `getClusterParameter` and `setClusterParameter`.

use bson::{Bson, RawBsonRef, RawDocument};
use query::{Code, Error, Result};
use wire::Builder;

use crate::access::Privilege;
use crate::arguments::{Arguments, integer};
use crate::command::{ADMIN, Lane, WRITES};
use crate::request::Call;
use crate::row::Row;
use crate::state::cluster_parameters::CHANGE_STREAMS;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "getClusterParameter",
        get,
        "Return parameters of the replica set",
    )
    .flags(ADMIN)
    .privilege(Privilege::Cluster("getClusterParameter")),
    Row::new(
        "setClusterParameter",
        set,
        "Set a parameter of the replica set",
    )
    .lane(Lane::Storage)
    .flags(ADMIN | WRITES)
    .privilege(Privilege::Cluster("setClusterParameter")),
];

/// Check that the server is a member of a replica set.
fn check_member(call: &Call<'_>) -> Result<()> {
    if call.server.topology.is_replica_set() {
        return Ok(());
    }
    let message = format!("{} cannot be run on standalones", call.arguments().name());
    Err(Error::new(Code::ILLEGAL_OPERATION, message))
}

fn check_known(name: &str) -> Result<()> {
    if name == CHANGE_STREAMS {
        return Ok(());
    }
    let message = format!("Unknown server parameter: {name}");
    Err(Error::new(Code::NO_SUCH_KEY, message))
}

fn get(call: &Call<'_>, reply: &mut Builder) -> Result<()> {
    check_member(call)?;
    let wrong = || {
        let message = "BSON field 'getClusterParameter' must be a string or an array of strings";
        Error::type_mismatch(message)
    };
    match call.arguments().target() {
        RawBsonRef::String("*") => {}
        RawBsonRef::String(name) => check_known(name)?,
        RawBsonRef::Array(names) => {
            let mut any = false;
            for name in names {
                check_known(name?.as_str().ok_or_else(wrong)?)?;
                any = true;
            }
            if !any {
                let message = "Must supply at least one cluster server parameter name to \
                               getClusterParameter";
                return Err(Error::bad_value(message));
            }
        }
        _ => return Err(wrong()),
    }
    let options = call.server.cluster_parameters.change_streams();
    let all = vec![Bson::Document(options.to_document())];
    reply.value("clusterParameters", &Bson::Array(all));
    Ok(())
}

fn set(call: &Call<'_>, _: &mut Builder) -> Result<()> {
    check_member(call)?;
    let arguments = call.arguments();
    let given = arguments.need_document(arguments.name())?;
    let given = Arguments::of(arguments.name(), given)?;
    let mut all = given.iter();
    let (Some((name, _)), None) = (all.next(), all.next()) else {
        let message = "setClusterParameter only supports setting exactly one parameter";
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    };
    check_known(name)?;
    let seconds = image_age(given.need_document(name)?)?;
    let server = &call.server;
    call.with_store(|store, op| {
        let parameters = &server.cluster_parameters;
        parameters.set_image_age((store, op), seconds, server.written())
    })
}

/// The age in seconds that `changeStreamOptions` sets; `None` for `off`.
fn image_age(options: &RawDocument) -> Result<Option<i64>> {
    let options = Arguments::of(CHANGE_STREAMS, options)?;
    options.only(&["preAndPostImages"])?;
    let images = options.need_document("preAndPostImages")?;
    let images = Arguments::of("preAndPostImages", images)?;
    images.only(&["expireAfterSeconds"])?;
    match images.need("expireAfterSeconds")? {
        RawBsonRef::String("off") => Ok(None),
        RawBsonRef::String(_) => Err(Error::bad_value(
            "Non-numeric value of 'expireAfterSeconds' should be 'off'",
        )),
        other => match integer(other) {
            Some(seconds) if 0 < seconds => Ok(Some(seconds)),
            Some(_) => Err(Error::bad_value(
                "Numeric value of 'expireAfterSeconds' should be positive",
            )),
            None => Err(Error::type_mismatch(
                "'preAndPostImages.expireAfterSeconds' must be 'off' or a whole number of seconds",
            )),
        },
    }
}
