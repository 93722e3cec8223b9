//! Wide features with fewer numbers: a sparse random projection.
//!
//! Every feature is added, with a random sign, to [`COPIES`] of the results and divided by `√COPIES` (Kane and Nelson 2014).
//! Products of samples are kept on average, with a relative error of order `1/√(number of results)`. The projection does not
//! look at the samples, so tests with its results are as valid as before.

use crate::checks::check_rows;
use crate::error::Result;
use mercer_data::random::stream;
use mercer_linalg::Scalar;
use ndarray::{Array2, ArrayView2};
use rand::RngExt;

/// Results that a feature is added to.
const COPIES: usize = 4;

/// A sparse random projection.
#[derive(Clone, Debug)]
pub struct SparseProjection {
    n_results: usize,
    /// For every feature its places; the lowest bit is the sign.
    places: Vec<[u32; COPIES]>,
}

impl SparseProjection {
    /// Draws a projection from `width` features to `n_results` numbers.
    pub fn draw(width: usize, n_results: usize, seed: u64) -> Self {
        let mut random = stream(seed, "lens/shift/projection");
        let most = u32::try_from(n_results.max(1)).unwrap_or(u32::MAX / 2).min(u32::MAX / 2);
        let mut one = || 2 * random.random_range(0..most) + random.random_range(0..2_u32);
        let places = (0..width).map(|_| std::array::from_fn(|_| one())).collect();
        Self { n_results: most as usize, places }
    }

    /// The numbers of a projected sample.
    pub fn n_results(&self) -> usize {
        self.n_results
    }

    /// The projected samples, a row each.
    ///
    /// # Errors
    /// For samples of another width.
    pub fn apply<T: Scalar>(&self, samples: ArrayView2<'_, T>) -> Result<Array2<f64>> {
        check_rows("the transposed features", self.places.len(), samples.ncols())?;
        let factor = 1.0 / (COPIES as f64).sqrt();
        let mut found = Array2::zeros((samples.nrows(), self.n_results));
        for (mut to, from) in found.outer_iter_mut().zip(samples.outer_iter()) {
            for (x, places) in from.iter().zip(&self.places) {
                let x = x.wide() * factor;
                for place in places {
                    to[(place >> 1) as usize] += if place & 1 == 0 { x } else { -x };
                }
            }
        }
        Ok(found)
    }
}
