//! Counts the memory that the fuzzed code allocates, and fails if an input needs too much.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum of memory that an input may occupy in addition to what is allocated before it, in bytes.
const BYTES_MAX: usize = 64 << 20;

/// The memory that is allocated, and its maximum since the last [`check`].
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let allocated = ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(allocated, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Checks the memory of an input until it is dropped.
pub struct Check {
    before: usize,
}

/// Begins the check of an input.
pub fn check() -> Check {
    let before = ALLOCATED.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    Check { before }
}

impl Drop for Check {
    fn drop(&mut self) {
        let bytes = PEAK.load(Ordering::Relaxed).saturating_sub(self.before);
        assert!(
            bytes <= BYTES_MAX || std::thread::panicking(),
            "the input occupies {bytes} bytes"
        );
    }
}
