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

#[cfg(target_os = "linux")]
fn advise<T>(start: *mut T, length: usize) {
    const PAGE: usize = 4096;
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
