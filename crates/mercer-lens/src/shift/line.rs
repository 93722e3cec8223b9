//! The energy distance of two sets on a line, under all permutations at once.
//!
//! ```text
//! E = 2 ∫ (F_A − F_B)² dx          Székely and Rizzo 2013: 2E|X − Y| − E|X − X'| − E|Y − Y'|
//! ```
//!
//! With the samples in order, the distribution functions of all permutations are counters that grow from sample to sample.

use super::Permutations;
use crate::checks::{check_numbers, check_rows};
use crate::error::Result;

/// The energy distances of one number per sample, for the sets as they are and all permutations.
///
/// ```
/// use mercer_lens::shift::{Permutations, energy_on_a_line};
/// let permutations = Permutations::draw(2, 2, 19, 0)?;
/// // 2·mean|x − y| − mean|x − x'| − mean|y − y'| = 2·10 − ½ − ½
/// let found = energy_on_a_line(&[0.0, 1.0, 10.0, 11.0], &permutations)?;
/// assert!((found[0] - 19.0).abs() < 1e-12);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For another number of samples, and numbers that are not finite.
pub fn energy_on_a_line(values: &[f64], permutations: &Permutations) -> Result<Vec<f64>> {
    const LANES: usize = u64::BITS as usize;
    check_rows("the numbers on a line", permutations.n_rows(), values.len())?;
    check_numbers("a number on a line", values)?;
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&i, &j| values[i].total_cmp(&values[j]).then(i.cmp(&j)));
    let (n_a, n_b) = (permutations.n_first() as f64, (permutations.n_rows() - permutations.n_first()) as f64);
    let both = 1.0 / n_a + 1.0 / n_b;
    let mut found = Vec::with_capacity(permutations.n_columns());
    for word in 0..permutations.n_columns().div_ceil(LANES) {
        let (mut counts, mut sums) = ([0.0_f64; LANES], [0.0_f64; LANES]);
        for (place, pair) in order.windows(2).enumerate() {
            let bits = permutations.words(pair[0])[word];
            let gap = values[pair[1]] - values[pair[0]];
            let others = (place + 1) as f64 / n_b;
            for lane in 0..LANES {
                counts[lane] += (bits >> lane & 1) as f64;
                let difference = counts[lane] * both - others;
                sums[lane] += difference * difference * gap;
            }
        }
        found.extend(sums.iter().map(|sum| 2.0 * sum));
    }
    found.truncate(permutations.n_columns());
    Ok(found)
}
