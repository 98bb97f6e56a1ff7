//! The program, used as a user does: command lines in, exit codes, messages and files out. Nothing
//! here asserts how fast anything is.

mod damage;
mod interrupt;
mod options;
mod program;
mod results;
mod surroundings;
mod wrong;
