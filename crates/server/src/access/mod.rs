//! Authentication and authorization of requests, over the users and roles of `auth`.
//!
//! - A2. What a client may do is looked up at each command, in the users as they are now.
//! - A3. A command without a rule is refused: where the table says that the arguments decide, it
//!   names the function that reads them.
//! - A4. What a command needs is computed from the arguments that it is run with: both read the one
//!   parse that the request holds. Of an `aggregate`, also an explained one, the stages that run
//!   are those that the privileges were computed from, or access the same.

mod authorize;
mod bounded;
pub(crate) mod login;
pub(crate) mod x509;

pub(crate) use authorize::{
    Asked, Needed, Needs, Privilege, Rule, Sent, authorize, bypasses, is_allowed, still_authorized,
};
