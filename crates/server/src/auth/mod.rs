//! Who a client is, and what it may do.
//!
//! - A1. A password is never stored, logged or compared: `scram` proves that both sides know it.
//! - A2. What a client may do is looked up at each command, in the users as they are now.
//! - A3. A command without a rule is refused: `authorize` knows a rule for every row of the table.

pub(crate) mod authorize;
pub(crate) mod bounded;
pub(crate) mod conversation;
pub(crate) mod custom;
pub(crate) mod pipeline;
pub(crate) mod privilege;
pub(crate) mod restriction;
pub(crate) mod roles;
pub(crate) mod scram;
pub(crate) mod users;
pub(crate) mod x509;

pub(crate) use authorize::{Asked, authorize, is_allowed, user};
pub(crate) use conversation::Conversation;
pub(crate) use restriction::Restrictions;
pub(crate) use users::{User, Users};
