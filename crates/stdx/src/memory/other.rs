//! An allocator that nothing is known of.

use std::alloc::System;

/// The C library's allocator.
pub type Allocator = System;

pub(super) const ALLOCATOR: Allocator = System;

pub(super) const NAME: &str = "system";

pub(super) fn release() {}

pub(super) fn keep_little() {}
