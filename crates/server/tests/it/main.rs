//! Tests of the server over a real socket, without any driver.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

mod apply_ops;
mod at_rest;
mod auth;
mod awaiting;
mod backup;
mod bulk;
mod certificates;
mod change_streams;
mod client;
mod cluster;
mod current_op;
mod dashboards;
mod deviations;
mod documents;
mod dump_users;
mod ending;
mod extremes;
mod faults;
mod foreign;
mod greeting;
mod guests;
mod hostile;
mod images;
mod inline;
mod local;
mod logins;
mod maintenance;
mod oplog;
mod page;
mod privileges;
mod prometheus;
mod protocol;
mod read_oplog;
mod restored;
mod roles;
mod runaway;
mod sessions;
mod tls;
mod users;
mod writes;
