//! Tests of the adapter against the system's WiredTiger.
