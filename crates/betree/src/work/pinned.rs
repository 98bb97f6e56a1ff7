//! Memory of buffers that were flushed while they were being read. Readers hold a buffer for the
//! length of one call, so this is little, and soon gone; it is counted so that this can be checked.

use std::sync::Weak;

use stdx::sync::Mutex;

use crate::buffer::Buffer;

/// The buffers, with their bytes. The lock is a leaf.
#[derive(Default)]
pub(crate) struct Pinned {
    list: Mutex<Vec<(Weak<Buffer>, usize)>>,
}

impl Pinned {
    /// Record a flushed buffer of `bytes` that its bucket has released.
    pub(super) fn flushed(&self, buffer: Weak<Buffer>, bytes: usize) {
        if is_held(&buffer) {
            let mut list = self.list.lock();
            list.retain(|(buffer, _)| is_held(buffer));
            list.push((buffer, bytes));
        }
    }

    /// Bytes of the recorded buffers that readers still hold.
    pub(crate) fn bytes(&self) -> usize {
        let mut list = self.list.lock();
        list.retain(|(buffer, _)| is_held(buffer));
        list.iter().map(|(_, bytes)| bytes).sum()
    }
}

fn is_held(buffer: &Weak<Buffer>) -> bool {
    0 < buffer.strong_count()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_flushed_buffer_counts_until_its_last_reader_lets_go() {
        let pinned = Pinned::default();
        let (read, free) = (Arc::new(Buffer::new(0)), Arc::new(Buffer::new(0)));
        pinned.flushed(Arc::downgrade(&read), 10);
        let alone = Arc::downgrade(&free);
        drop(free);
        pinned.flushed(alone, 5);
        assert_eq!(pinned.bytes(), 10);
        drop(read);
        assert_eq!(pinned.bytes(), 0);
    }
}
