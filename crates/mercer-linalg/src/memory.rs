//! Large buffers.
//!
//! Fresh memory comes in pages of four kilobytes, and the first access to each is a page fault. Measured, these took a
//! fifth of the time of a tangent kernel. Large buffers therefore request huge pages where the system has them.

use crate::Scalar;

/// Buffers below this many bytes are left as they are.
const LARGE: usize = 4 << 20;

/// A buffer of `length` zeros.
///
/// ```
/// assert_eq!(mercer_linalg::memory::zeros::<f32>(3), [0.0; 3]);
/// ```
pub fn zeros<T: Scalar>(length: usize) -> Vec<T> {
    // The system zeroes each page when it is first touched.
    let mut buffer = vec![T::zero(); length];
    advise(buffer.as_mut_ptr(), length);
    buffer
}

/// Requests huge pages for memory that has been reserved but not touched yet.
pub fn advise_spare<T: Scalar>(buffer: &mut Vec<T>) {
    let spare = buffer.spare_capacity_mut();
    advise(spare.as_mut_ptr().cast::<T>(), spare.len());
}

/// Configures the allocator of the whole program. Call it first in `main`, with the promised memory limit, if there is
/// one.
///
/// A kernel of a thousand samples takes a tenth of a second, and ten thousand first accesses to small pages take a
/// tenth of that. All threads therefore share one heap that grows in large steps. Its first 256 MiB are on huge pages,
/// and only touched pages count. If the limit is below half a gigabyte, [`keep_nothing_back`] applies from the start.
/// Does nothing unless the C library is GNU's.
pub fn arrange(promised: Option<usize>) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    match promised {
        Some(bytes) if bytes < SMALL => gnu::keep_nothing_back(),
        _ => gnu::prefer_huge_pages(),
    }
    let _ = promised;
}

/// Below this limit the heap has no huge pages: what they retain would be most of it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const SMALL: usize = 512 << 20;

/// From now on, freed memory is returned to the system at once, and pages are small: slower, but exact. Only for
/// programs that called [`arrange`].
pub fn keep_nothing_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if kept_back() > gnu::EXACT {
        gnu::keep_nothing_back();
    }
}

/// The bytes that the allocator may hold beyond those in use: freed memory that it retains, and the unused rest of huge
/// pages.
pub fn kept_back() -> usize {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    return gnu::KEPT_BACK.load(std::sync::atomic::Ordering::Relaxed);
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    0
}

/// The allocator of the GNU C library.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod gnu {
    use super::PAGE;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// How much of the heap is on huge pages: enough for the buffers of a small job. It makes no difference to a long
    /// one.
    const HEAP: usize = 256 << 20;

    /// Blocks of at least this size are mapped individually, as the library does by itself once such blocks have been
    /// freed.
    const MAPPED: usize = 32 << 20;

    /// The same threshold where nothing is retained. Smaller blocks, such as tiles, are reused.
    const MAPPED_EXACTLY: usize = 1 << 20;

    /// The most that is retained when nothing should be: free memory at the end of the heap, and gaps in it.
    pub(super) const EXACT: usize = MAPPED_EXACTLY;

    /// See [`super::kept_back`].
    pub(super) static KEPT_BACK: AtomicUsize = AtomicUsize::new(EXACT);

    fn set(parameter: libc::c_int, bytes: usize) {
        // SAFETY: the settings only choose where blocks come from.
        unsafe { libc::mallopt(parameter, bytes as libc::c_int) };
    }

    pub(super) fn prefer_huge_pages() {
        // SAFETY: the block forces the heap to grow and is freed; the advice applies to pages of the heap, and changes
        // neither their content nor their permissions.
        unsafe {
            let before = libc::sbrk(0) as usize;
            set(libc::M_ARENA_MAX, 1);
            set(libc::M_MMAP_THRESHOLD, MAPPED);
            set(libc::M_TRIM_THRESHOLD, 2 * MAPPED);
            set(libc::M_TOP_PAD, HEAP);
            // Hidden from the compiler, which would otherwise remove an unused allocation.
            libc::free(std::hint::black_box(libc::malloc(MAPPED / 2)));
            set(libc::M_TOP_PAD, 2 * MAPPED);
            let (from, to) = (before.next_multiple_of(PAGE), libc::sbrk(0) as usize / PAGE * PAGE);
            if to > from {
                libc::madvise(from as *mut libc::c_void, to - from, libc::MADV_HUGEPAGE);
                HEAP_START.store(from, Ordering::Relaxed);
            }
        }
        // The whole heap on huge pages, and the free memory at its end.
        KEPT_BACK.store(HEAP + 2 * MAPPED, Ordering::Relaxed);
    }

    /// The start of the part of the heap that is on huge pages; zero if there is none.
    static HEAP_START: AtomicUsize = AtomicUsize::new(0);

    pub(super) fn keep_nothing_back() {
        set(libc::M_ARENA_MAX, 1);
        set(libc::M_MMAP_THRESHOLD, MAPPED_EXACTLY);
        set(libc::M_TRIM_THRESHOLD, MAPPED_EXACTLY);
        set(libc::M_TOP_PAD, 32 * PAGE);
        let from = HEAP_START.load(Ordering::Relaxed);
        // SAFETY: as above; trimming returns only free pages.
        unsafe {
            let to = libc::sbrk(0) as usize / PAGE * PAGE;
            if from > 0 && to > from {
                libc::madvise(from as *mut libc::c_void, to - from, libc::MADV_NOHUGEPAGE);
            }
            libc::malloc_trim(0);
        }
        KEPT_BACK.store(EXACT, Ordering::Relaxed);
    }
}

#[cfg(target_os = "linux")]
const PAGE: usize = 4096;

#[cfg(target_os = "linux")]
fn advise<T>(start: *mut T, length: usize) {
    let bytes = length * size_of::<T>();
    if bytes < LARGE {
        return;
    }
    let address = start as usize;
    let from = address.next_multiple_of(PAGE);
    let to = (address + bytes) / PAGE * PAGE;
    // SAFETY: the pages lie inside a buffer that the caller owns, and the advice changes neither their content nor
    // their permissions. A system that does not support the advice rejects it, which is harmless.
    unsafe {
        libc::madvise(from as *mut libc::c_void, to - from, libc::MADV_HUGEPAGE);
    }
}

#[cfg(not(target_os = "linux"))]
fn advise<T>(_: *mut T, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_buffers_are_zero_and_can_be_used() {
        let mut large = zeros::<f64>(3 << 20);
        assert!(large.iter().all(|&x| x == 0.0));
        large[(3 << 20) - 1] = 1.0;
        assert_eq!(large.iter().sum::<f64>(), 1.0);
        let mut spare: Vec<f32> = Vec::with_capacity(5 << 20);
        advise_spare(&mut spare);
        spare.resize(5 << 20, 2.0);
        assert!(spare.iter().all(|&x| x == 2.0));
    }
}
