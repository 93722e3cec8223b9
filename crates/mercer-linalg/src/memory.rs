//! Large buffers.
//!
//! Fresh memory is handed out in pages of four kilobytes, and touching each for the first time is a call into the system: a
//! fifth of the time of a tangent kernel, measured. Large buffers therefore ask for huge pages where the system has them.

use crate::Scalar;

/// Buffers below this many bytes are left as they are.
const LARGE: usize = 4 << 20;

/// So many zeros.
///
/// ```
/// assert_eq!(mercer_linalg::memory::zeros::<f32>(3), [0.0; 3]);
/// ```
pub fn zeros<T: Scalar>(length: usize) -> Vec<T> {
    // Zeroed by the system, page by page, when it is first touched.
    let mut buffer = vec![T::zero(); length];
    advise(buffer.as_mut_ptr(), length);
    buffer
}

/// Asks for huge pages for memory that has been reserved and not touched yet.
pub fn advise_spare<T: Scalar>(buffer: &mut Vec<T>) {
    let spare = buffer.spare_capacity_mut();
    advise(spare.as_mut_ptr().cast::<T>(), spare.len());
}

/// Tells the allocator of a whole program to hand out memory on huge pages; the first call of a program's `main`.
///
/// A kernel of a thousand samples takes a tenth of a second, and ten thousand small pages touched for the first time a tenth
/// of that. One heap for all threads grows in large steps; its first 256 MiB are on huge pages, and only what is
/// touched counts. Does nothing where the C library is not GNU's.
pub fn prefer_huge_pages() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    prefer();
}

/// How much of the heap is on huge pages: enough for the buffers of a small job; a long one does not notice.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const HEAP: usize = 256 << 20;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn prefer() {
    // Blocks from this size on are mapped one by one, as the library does by itself once such blocks were freed.
    const MAPPED: libc::c_int = 32 << 20;
    // SAFETY: the settings only choose where blocks come from. The block forces the heap to grow and is freed; the advice
    // is for pages of the heap, and changes neither their content nor who may access them.
    unsafe {
        let before = libc::sbrk(0) as usize;
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * MAPPED);
        libc::mallopt(libc::M_TOP_PAD, HEAP as libc::c_int);
        // Hidden from the compiler, which leaves out a block that nobody uses.
        libc::free(std::hint::black_box(libc::malloc(MAPPED as usize / 2)));
        libc::mallopt(libc::M_TOP_PAD, 2 * MAPPED);
        let (from, to) = (before.next_multiple_of(PAGE), libc::sbrk(0) as usize / PAGE * PAGE);
        if to > from {
            libc::madvise(from as *mut libc::c_void, to - from, libc::MADV_HUGEPAGE);
        }
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
    // SAFETY: the pages lie inside a buffer that the caller owns, and the advice changes neither their content nor who may
    // access them. Where the system does not know it, it refuses, which does no harm.
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
