//! The wire protocol of MongoDB: bytes in, messages out.
//!
//! Sans-I/O: nothing here reads a socket or a clock. Bodies stay raw BSON.
