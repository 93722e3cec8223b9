//! Numbers for the tests of this crate.
#![allow(dead_code, reason = "every test uses part of this")]

use ndarray::Array2;

/// Deterministic numbers that look random, between −½ and ½.
pub(crate) fn features(n: usize, width: usize, seed: u64) -> Array2<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    Array2::from_shape_fn((n, width), |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    })
}

/// Sums of twelve such numbers: nearly normal, with variance 1.
pub(crate) fn normals(n: usize, width: usize, seed: u64) -> Array2<f64> {
    let many = features(n * 12, width, seed);
    Array2::from_shape_fn((n, width), |(i, j)| (0..12).map(|part| many[[12 * i + part, j]]).sum())
}

pub(crate) fn gram(features: &Array2<f64>) -> Array2<f64> {
    features.dot(&features.t())
}
