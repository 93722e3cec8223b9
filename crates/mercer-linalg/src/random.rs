//! Random signs for probes and start vectors: SplitMix64 from a fixed seed, so that the same input gives the same bits.
//!
//! Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014. The vectors only have to be
//! unaligned with the data, so a dependency is not justified.

use crate::Scalar;
use ndarray::Array1;

pub(crate) struct Signs {
    state: u64,
}

impl Signs {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next_bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// `size` or `-size`.
    pub(crate) fn next_of<T: Scalar>(&mut self, size: T) -> T {
        if self.next_bits() >> 63 == 0 { size } else { -size }
    }

    /// A vector with entries spread over `[-1, 1)`.
    pub(crate) fn vector<T: Scalar>(&mut self, n: usize) -> Array1<T> {
        Array1::from_shape_simple_fn(n, || T::narrow((self.next_bits() >> 11) as f64 / (1u64 << 52) as f64 - 1.0))
    }
}
