//! Commands that end sessions of other clients: `killSessions`, `killAllSessions` and
//! `killAllSessionsByPattern`.
//!
//! A session is a UUID and the digest of its owner. A pattern restricts both; a
//! missing part matches everything. Commands and cursors of a session end with it, also those of
//! sessions that were never registered because nothing of them had to be kept.

use bson::RawDocument;
use docdb::SessionId;
use query::{Code, Error, Result};
use wire::Builder;

use super::session::too_many;
use crate::access::{Privilege, is_allowed};
use crate::arguments::{Arguments, session};
use crate::auth::privilege::Wanted;
use crate::command::{ADMIN, LOOSE, Lane};
use crate::limits::SESSIONS;
use crate::request::Call;
use crate::row::Row;
use crate::state::{NO_USER, digest};

pub(super) const ROWS: &[Row] = &[
    Row::new("killSessions", kill, "Kill sessions and their operations")
        .lane(Lane::Reserved)
        // Users may end their own sessions.
        .privilege(Privilege::Authenticated),
    Row::new(
        "killAllSessions",
        kill_of_users,
        "Kill the sessions of the given users, or all, and their operations",
    )
    .lane(Lane::Reserved)
    .flags(LOOSE)
    .privilege(Privilege::Cluster("killAnySession")),
    Row::new(
        "killAllSessionsByPattern",
        kill_by_pattern,
        "Kill the sessions that match a pattern, or all, and their operations",
    )
    .lane(Lane::Reserved)
    .flags(ADMIN | LOOSE)
    .privilege(Privilege::Cluster("killAnySession")),
];

/// The digest of an empty name, which MongoDB uses for the sessions of unauthenticated clients.
const UNNAMED: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24,
    0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// The sessions to end.
#[derive(Debug, Default, PartialEq, Eq)]
struct Pattern {
    /// The UUID of the session.
    id: Option<[u8; 16]>,
    /// The digests of the owners.
    owners: Option<Vec<[u8; 32]>>,
}

impl Pattern {
    fn matches(&self, session: &SessionId) -> bool {
        let owners = self.owners.as_ref();
        self.id.is_none_or(|id| id == session.id)
            && owners.is_none_or(|owners| owners.contains(&session.uid))
    }

    /// Restrict the pattern to these owners, in addition to earlier restrictions.
    fn narrow(&mut self, owners: Vec<[u8; 32]>) {
        match &mut self.owners {
            Some(before) => before.retain(|owner| owners.contains(owner)),
            None => self.owners = Some(owners),
        }
    }
}

/// The documents in the first argument of the command.
fn listed<'a>(request: &'a Call<'_>) -> Result<Vec<&'a RawDocument>> {
    let name = request.command.name;
    let arguments = request.arguments();
    arguments.need_array(name)?;
    let listed = arguments.documents(name)?.unwrap_or_default();
    match listed.len() <= SESSIONS {
        true => Ok(listed),
        false => Err(too_many(name)),
    }
}

/// The owner's digest in the field `uid`, if it exists.
fn uid(document: &RawDocument) -> Result<Option<[u8; 32]>> {
    let Some(value) = document.get("uid")? else {
        return Ok(None);
    };
    let bytes = value.as_binary().map(|binary| binary.bytes);
    match bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok()) {
        Some(UNNAMED) => Ok(Some(NO_USER)),
        Some(digest) => Ok(Some(digest)),
        None => Err(Error::type_mismatch("'uid' must be a digest of 32 bytes")),
    }
}

/// The name and the database in a document such as `{user, db}`.
pub(super) fn named<'a>(
    list: Vec<&'a RawDocument>,
    place: &'static str,
    name: &str,
) -> Result<Vec<[&'a str; 2]>> {
    let mut named = Vec::new();
    for document in list {
        let fields = Arguments::of(place, document)?;
        fields.only(&[name, "db"])?;
        named.push([fields.need_string(name)?, fields.need_string("db")?]);
    }
    Ok(named)
}

/// The owner's digest of a user by name and database; of two empty names that of no user.
pub(super) fn of_user([name, database]: [&str; 2]) -> [u8; 32] {
    match (name, database) {
        ("", "") => NO_USER,
        _ => digest(name, database),
    }
}

/// Parse a pattern of `killAllSessionsByPattern`.
fn pattern(request: &Call<'_>, document: &RawDocument) -> Result<Pattern> {
    let place = "KillAllSessionsByPattern";
    let fields = Arguments::of(place, document)?;
    fields.only(&["lsid", "uid", "users", "roles"])?;
    let mut pattern = Pattern::default();
    if let Some(lsid) = fields.document("lsid")? {
        pattern.id = Some(session(lsid)?);
        pattern.owners = uid(lsid)?.map(|owner| vec![owner]);
    }
    if let Some(owner) = uid(document)? {
        pattern.narrow(vec![owner]);
    }
    let (users, roles) = (fields.documents("users")?, fields.documents("roles")?);
    let impersonates = users.is_some() || roles.is_some();
    if impersonates && !is_allowed(request, &Wanted::Cluster("impersonate")) {
        let message = "Not authorized to impersonate in killAllSessionsByPattern";
        return Err(Error::new(Code::UNAUTHORIZED, message));
    }
    if let Some(users) = users {
        let users = named(users, "KillAllSessionsByPatternUser", "user")?;
        pattern.narrow(users.into_iter().map(of_user).collect());
    }
    if let Some(roles) = roles {
        let roles = named(roles, "KillAllSessionsByPatternRole", "role")?;
        let known = request.server.users.list();
        let have = known.iter().filter(|user| {
            let mut own = user.roles.iter();
            own.any(|(role, database)| roles.contains(&[role.as_str(), database.as_str()]))
        });
        let owners = have.map(|user| of_user([&user.name, &user.database]));
        pattern.narrow(owners.collect());
    }
    Ok(pattern)
}

/// The session of a cursor, which stores it as bytes.
pub(super) fn session_of(bytes: &[u8]) -> Option<SessionId> {
    let (id, uid) = bytes.split_first_chunk()?;
    let uid = uid.try_into().ok()?;
    Some(SessionId { id: *id, uid })
}

/// End the sessions that match a pattern, with their operations and cursors.
fn end(request: &Call<'_>, patterns: &[Pattern]) -> Result<()> {
    let chosen = |id: &SessionId| patterns.iter().any(|pattern| pattern.matches(id));
    // First the cursors: a `getMore` that waits for one ends with `CursorKilled`.
    let store = &request.server.store;
    store.kill_cursors_where(&mut |_, owner| {
        let session = owner.session.as_deref().and_then(session_of);
        session.is_some_and(|session| chosen(&session))
    });
    for other in request.server.operations.list() {
        let session = other.generic.lsid.map(|id| SessionId {
            id,
            uid: other.owner(),
        });
        let theirs = session.is_some_and(|session| chosen(&session));
        if theirs && other.number != request.number {
            other.kill();
        }
    }
    let mut ids = store.session_ids();
    ids.retain(chosen);
    store.end_sessions(&ids)
}

fn kill(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    let mut patterns = Vec::new();
    for document in listed(request)? {
        let id = session(document)?;
        let owner = uid(document)?.unwrap_or_else(|| request.owner());
        let other = owner != request.owner();
        if other && !is_allowed(request, &Wanted::Cluster("killAnySession")) {
            let message = "Unauthorized to set user digest in LogicalSessionId";
            return Err(Error::new(Code::UNAUTHORIZED, message));
        }
        patterns.push(Pattern {
            id: Some(id),
            owners: Some(vec![owner]),
        });
    }
    end(request, &patterns)
}

fn kill_of_users(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    let users = named(listed(request)?, "KillAllSessionsUser", "user")?;
    let owners: Vec<[u8; 32]> = users.into_iter().map(of_user).collect();
    let owners = Some(owners).filter(|owners| !owners.is_empty());
    end(request, &[Pattern { id: None, owners }])
}

fn kill_by_pattern(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    let listed = listed(request)?;
    let patterns = listed.iter().map(|document| pattern(request, document));
    let mut patterns = patterns.collect::<Result<Vec<Pattern>>>()?;
    if patterns.is_empty() {
        patterns.push(Pattern::default());
    }
    end(request, &patterns)
}
