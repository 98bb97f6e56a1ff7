//! Random values for laws.
