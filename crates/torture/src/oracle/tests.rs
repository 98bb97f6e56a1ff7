//! Small histories of known verdict.
