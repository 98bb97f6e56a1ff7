//! Changes of what there is: collections, views and indexes.

mod create;
