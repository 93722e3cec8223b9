//! Matrices of independent entries, Gaussian or signs, as in the paper.
//!
//! The `K × width` matrix is never in memory: panels of it are drawn from streams named by position, multiplied and
//! dropped. Drawing an entry costs as much as a few dozen multiplications, so gradients are first gathered into a
//! buffer, and every panel multiplies all of them.

use super::signs::{SignTable, bytes_for, coins};
use crate::kernel::Real;
use mercer_data::random::{ChaCha8Rng, stream};
use mercer_linalg::{elementary, gemm, simd};
use rand::Rng;
use rayon::prelude::*;

/// The maximum bytes of gathered gradients, unless one sample takes more.
const BUFFER_BYTES: usize = 256 << 20;

/// Coordinates and features of a panel: it fits into the second-level cache.
const PANEL: (usize, usize) = (512, 256);

#[derive(Debug)]
pub(super) struct Dense<T> {
    k: usize,
    /// Numbers in a row of gradients.
    width: usize,
    gaussian: bool,
    seed: u64,
    table: SignTable<T>,
}

impl<T: Real> Dense<T> {
    pub(super) fn new(k: usize, width: usize, gaussian: bool, seed: u64) -> Self {
        Self { k, width, gaussian, seed, table: SignTable::new() }
    }

    /// Samples whose gradients are gathered, a multiple of the shards' size.
    pub(super) fn group(&self, rows_per_sample: usize, grain: usize) -> usize {
        let sample = rows_per_sample * self.width * size_of::<T>();
        (BUFFER_BYTES / sample.max(1) / grain * grain).clamp(grain, 4096.max(grain))
    }

    /// Bytes of a thread's panel, beside the gathered gradients and their features.
    pub(super) fn bytes(&self) -> usize {
        PANEL.1.min(self.k) * 2 * PANEL.0 * size_of::<T>()
    }

    /// `out = gradients · P` for `[rows, width]` gradients. Features are distributed over threads in fixed portions.
    pub(super) fn multiply(&self, gradients: &[T], rows: usize, out: &mut [T]) {
        let portions: Vec<(usize, Vec<T>)> = (0..self.k.div_ceil(PANEL.1))
            .into_par_iter()
            .map(|portion| {
                let columns = PANEL.1.min(self.k - portion * PANEL.1);
                let mut features = vec![T::zero(); rows * columns];
                let mut panel = vec![T::zero(); PANEL.0 * columns];
                for (at, start) in (0..self.width).step_by(PANEL.0).enumerate() {
                    let coordinates = PANEL.0.min(self.width - start);
                    let panel = &mut panel[..coordinates * columns];
                    self.draw(at, portion, panel);
                    let sizes = [rows, columns, coordinates];
                    gemm(sizes, (&gradients[start..], self.width, 1), (panel, columns, 1), true, &mut features);
                }
                (columns, features)
            })
            .collect();
        for (portion, (columns, features)) in portions.iter().enumerate() {
            let rows = out.chunks_exact_mut(self.k).zip(features.chunks_exact(*columns));
            rows.for_each(|(out, features)| out[portion * PANEL.1..][..*columns].copy_from_slice(features));
        }
    }

    fn draw(&self, coordinates: usize, portion: usize, panel: &mut [T]) {
        let kind = if self.gaussian { "gaussian" } else { "rademacher" };
        let mut stream = stream(self.seed, &format!("sketch/{kind}/{coordinates}/{portion}"));
        if self.gaussian {
            normal(&mut stream, panel);
        } else {
            let signs = coins(&mut stream, bytes_for(panel.len()));
            simd::dispatch(
                #[inline(always)]
                || self.table.expand(&signs, panel),
            );
        }
    }
}

/// Independent standard normal numbers, by Box and Muller: `√(−2 ln u) · (cos 2πv, sin 2πv)`.
///
/// The ziggurat of the `rand_distr` crate takes 5 ns for a number, this 1.5.
fn normal<T: Real>(stream: &mut ChaCha8Rng, out: &mut [T]) {
    const HALF: usize = 256;
    let mut bytes = [0u8; 8 * HALF];
    let (mut radius, mut angle) = ([T::zero(); HALF], [T::zero(); HALF]);
    let mut both = [T::zero(); 2 * HALF];
    for out in out.chunks_mut(2 * HALF) {
        stream.fill_bytes(&mut bytes);
        let scale = T::narrow(1.0 / 4_294_967_296.0);
        let turn = T::narrow(std::f64::consts::TAU / 4_294_967_296.0);
        let half = T::narrow(0.5);
        simd::dispatch(
            #[inline(always)]
            || {
                // Above zero, so that the logarithm is finite; the angle is centred, where sine and cosine are most
                // accurate.
                for ((radius, angle), word) in radius.iter_mut().zip(&mut angle).zip(bytes.as_chunks::<8>().0) {
                    let [a, b, c, d, e, f, g, h] = *word;
                    *radius =
                        (whole::<T>(i32::from_le_bytes([a, b, c, d])) + T::narrow(2_147_483_648.0) + half) * scale;
                    *angle = whole::<T>(i32::from_le_bytes([e, f, g, h])) * turn;
                }
            },
        );
        elementary::ln_in_place(&mut radius);
        let (cosine, sine) = both.split_at_mut(HALF);
        elementary::cos(&angle, cosine);
        elementary::sin(&angle, sine);
        simd::dispatch(
            #[inline(always)]
            || {
                for ((radius, cosine), sine) in radius.iter().zip(cosine).zip(sine) {
                    let radius = (T::narrow(-2.0) * *radius).max(T::zero()).sqrt();
                    (*cosine, *sine) = (*cosine * radius, *sine * radius);
                }
            },
        );
        out.copy_from_slice(&both[..out.len()]);
    }
}

#[inline(always)]
fn whole<T: Real>(x: i32) -> T {
    T::narrow(f64::from(x))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Moments of a million numbers; each bound is five standard errors: √(2/n), √(15/n), √(96/n) and so on.
    #[test]
    fn normal_numbers_have_the_moments_of_a_normal_distribution() {
        let count = 1 << 20;
        let mut numbers = vec![0.0f64; count];
        normal(&mut stream(5, "test"), &mut numbers);
        let moment = |power: i32| numbers.iter().map(|x| x.powi(power)).sum::<f64>() / count as f64;
        let error = |variance: f64| 5.0 * (variance / count as f64).sqrt();
        for (power, expected, variance) in
            [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0), (6, 15.0, 10170.0)]
        {
            let found = moment(power);
            assert!((found - expected).abs() < error(variance), "moment {power} is {found}");
        }
        // Neighbours, and the two numbers that one draw gives, are uncorrelated.
        for lag in [1, 256] {
            let mixed = numbers.iter().zip(&numbers[lag..]).map(|(a, b)| a * b).sum::<f64>() / count as f64;
            assert!(mixed.abs() < error(1.0), "correlation {mixed} at distance {lag}");
        }
        let beyond = numbers.iter().filter(|x| x.abs() > 3.0).count() as f64;
        let (mean, spread) = (0.0026998 * count as f64, (0.0026998 * count as f64).sqrt());
        assert!((beyond - mean).abs() < 5.0 * spread, "{beyond} numbers beyond 3");
    }

    #[test]
    fn single_and_double_precision_draw_the_same_numbers() {
        let (mut single, mut double) = (vec![0.0f32; 1000], vec![0.0f64; 1000]);
        normal(&mut stream(5, "test"), &mut single);
        normal(&mut stream(5, "test"), &mut double);
        // The angle has 24 bits in single precision: an error of 2⁻²⁵ · 2π · 2, times a radius of at most 6.8.
        let close = single.iter().zip(&double).all(|(a, b)| (f64::from(*a) - b).abs() < 5e-6);
        assert!(close, "{single:?} {double:?}");
    }
}
