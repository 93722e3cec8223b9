//! One kernel over a slice, compiled once per instruction set.

use super::real::Real;
use crate::simd::arch;
use pulp::{Simd, WithSimd};
use std::marker::PhantomData;

/// A function of one variable.
pub(super) trait Kernel {
    /// Arguments beyond this magnitude go to [`Kernel::beyond`].
    const LIMIT: f64 = f64::INFINITY;

    /// The function at `x`, without branches.
    fn at<R: Real, const FMA: bool>(x: R) -> R;

    /// The function at an argument beyond the limit: rare, so it may be slow.
    fn beyond<R: Real>(x: R) -> R {
        x
    }
}

/// Replaces every element by the function of it.
pub(super) fn sweep<K: Kernel, R: Real>(x: &mut [R]) {
    arch().dispatch(Sweep { x, kernel: PhantomData::<K> });
}

struct Sweep<'a, K, R> {
    x: &'a mut [R],
    kernel: PhantomData<K>,
}

impl<K: Kernel, R: Real> WithSimd for Sweep<'_, K, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        // Every vector instruction set of pulp has fused multiply-add, except that of WebAssembly.
        if const { S::IS_SCALAR || cfg!(target_family = "wasm") } {
            run::<K, R, false>(self.x);
        } else {
            run::<K, R, true>(self.x);
        }
    }
}

#[inline(always)]
fn run<K: Kernel, R: Real, const FMA: bool>(x: &mut [R]) {
    if K::LIMIT == f64::INFINITY {
        return x.iter_mut().for_each(|v| *v = K::at::<R, FMA>(*v));
    }
    // Chunks, so that one large argument slows down only its neighbours. The result for an element never depends on the
    // chunks.
    let limit = R::narrow(K::LIMIT);
    for chunk in x.chunks_mut(256) {
        if chunk.iter().fold(false, |far, v| far | (v.abs() > limit)) {
            for v in chunk {
                *v = if v.abs() > limit { K::beyond(*v) } else { K::at::<R, FMA>(*v) };
            }
        } else {
            chunk.iter_mut().for_each(|v| *v = K::at::<R, FMA>(*v));
        }
    }
}
