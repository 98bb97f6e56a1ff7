//! `$listSessions` and `$listLocalSessions`: the sessions in use, the same in both because there is
//! no other server. A user sees its own; those of others need a privilege.

use bson::{DateTime, Document, RawDocumentBuf, doc};
use query::{Code, Error, Result};

use super::kill_sessions::{named, of_user};
use super::session::too_many;
use crate::access::is_allowed;
use crate::arguments::Arguments;
use crate::auth::privilege::Wanted;
use crate::limits::SESSIONS;
use crate::request::Request;

/// Which sessions to list.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Listed {
    /// Those of the client that asks.
    Own,
    /// Those of the users with these digests.
    Of(Vec<[u8; 32]>),
    All,
}

impl Listed {
    /// Parse the options of the stage `name`.
    ///
    /// # Errors
    /// `IDLUnknownField` and `TypeMismatch`; `UnsupportedFormat` for all users and some at once.
    pub(super) fn of(name: &str, options: &Document) -> Result<Listed> {
        let options = RawDocumentBuf::try_from(options)?;
        let fields = Arguments::of(name, &options)?;
        fields.only(&["users", "allUsers"])?;
        let all = fields.boolean("allUsers")?.unwrap_or(false);
        let users = fields.documents("users")?.unwrap_or_default();
        if SESSIONS < users.len() {
            return Err(too_many(name));
        }
        let users = named(users, "ListSessionsUser", "user")?;
        match (all, users.is_empty()) {
            (true, true) => Ok(Listed::All),
            (true, false) => Err(Error::new(
                Code::UNSUPPORTED_FORMAT,
                format!(
                    "{name} may not specify {{allUsers:true}} and {{users:[...]}} at the same time"
                ),
            )),
            (false, true) => Ok(Listed::Own),
            (false, false) => Ok(Listed::Of(users.into_iter().map(of_user).collect())),
        }
    }

    /// Whether it includes sessions of others than `own`.
    pub(super) fn of_others(&self, own: &[u8; 32]) -> bool {
        match self {
            Listed::Own => false,
            Listed::Of(owners) => owners.iter().any(|owner| owner != own),
            Listed::All => true,
        }
    }
}

/// The sessions. The privilege is checked here, too: a view runs for others than it was defined by.
///
/// # Errors
/// `Unauthorized`.
pub(super) fn list(request: &Request, listed: &Listed) -> Result<Vec<Document>> {
    let own = request.owner();
    if listed.of_others(&own) && !is_allowed(request, &Wanted::Cluster("listSessions")) {
        let message = "not authorized to list the sessions of other users";
        return Err(Error::new(Code::UNAUTHORIZED, message));
    }
    // Without access control a client sees all sessions.
    let guarded = request.server.config.authorization;
    let shown = |owner: &[u8; 32]| match listed {
        Listed::Own => !guarded || *owner == own,
        Listed::Of(owners) => owners.contains(owner),
        Listed::All => true,
    };
    let now = stdx::time::wall();
    let mut rows = Vec::new();
    for (id, since) in request.server.store.session_uses() {
        if shown(&id.uid) {
            let used = now.saturating_sub(since).as_millis();
            let used = DateTime::from_millis(i64::try_from(used).unwrap_or(i64::MAX));
            rows.push(doc! {"_id": Document::try_from(id.lsid())?, "lastUse": used});
        }
    }
    Ok(rows)
}
