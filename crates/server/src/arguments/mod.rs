//! The arguments of commands: parsed once from the body of a message, and kept with the request.

mod fields;
mod generic;
mod parsed;

pub(crate) use fields::{Arguments, integer, switch, type_name};
pub(crate) use generic::{GENERIC, Generic, session};
pub(crate) use parsed::Parsed;
