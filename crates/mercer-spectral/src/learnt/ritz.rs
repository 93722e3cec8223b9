//! The Rayleigh–Ritz finish: the best functions in the span of the learnt ones.
//!
//! The span of the learnt functions approximates the eigenfunctions better than the individual functions do. In that
//! space the eigenproblem is small: with `Σ = ΨᵀΨ/R` and `Π = ΨᵀKΨ/R²` over the data,
//!
//! ```text
//! Π a = μ Σ a,    aᵀΣa = 1,    ψ = Ψ a
//! ```
//!
//! solved by whitening: `Σ = V diag(s) Vᵀ`, `W = V diag(s)^{-½}`, `WᵀΠW = Q diag(μ) Qᵀ`, `a = WQ`. Directions with `s`
//! below [`FLOOR`] of the largest come from functions that have become nearly equal, and are dropped. So are values
//! within rounding. Both are counted as [`Repairs::dropped`].

use super::draws::SecondMoments;
use crate::error::{Result, SpectralError};
use crate::spectrum::{Repairs, orient};
use mercer_linalg::{matmul, symmetric_eigen};
use ndarray::{Array2, Axis, s};

/// Directions below this fraction of the largest variance are dropped. Networks compute in single precision, with
/// errors near 1e-7, and a direction with fraction `s` amplifies them by `1/√s`.
const FLOOR: f64 = 1e-10;

/// The finish: values, the combinations `a` (`k × r`), and what was dropped.
pub(super) struct Ritz {
    pub(super) values: Vec<f64>,
    pub(super) combinations: Array2<f64>,
    pub(super) repairs: Repairs,
}

/// Solves the small eigenproblem; `precision` is the unit of rounding of the kernel.
pub(super) fn rayleigh_ritz(moments: &SecondMoments, precision: f64) -> Result<Ritz> {
    let (rows, k) = moments.functions.dim();
    // Functions may have very different scales. Normalising to unit variance first keeps small ones from being dropped.
    let scale = moments.covariance.diag().mapv(|x| if x > 0.0 { x.sqrt().recip() } else { 0.0 });
    let scaled = |matrix: &Array2<f64>| {
        let mut matrix = matrix * &scale.view().insert_axis(Axis(0));
        matrix *= &scale.view().insert_axis(Axis(1));
        matrix
    };
    let variance = symmetric_eigen(scaled(&moments.covariance).view())?;
    let largest = variance.values.first().copied().unwrap_or(0.0);
    let rank = variance.values.iter().take_while(|&&s| s > FLOOR * largest && s > 0.0).count();
    if rank == 0 {
        return Err(SpectralError::NoSpectrum { rows, largest: 0.0 });
    }
    let roots = variance.values.slice(s![..rank]).mapv(|s| s.sqrt().recip());
    let whitening = &variance.vectors.slice(s![.., ..rank]) * &roots.insert_axis(Axis(0));
    let inner = matmul(matmul(whitening.t(), scaled(&moments.kernel).view()).view(), whitening.view());
    let eigen = symmetric_eigen(((&inner + &inner.t()) * 0.5).view())?;
    // The rounding of the kernel is that of a matrix. The rounding of the moments is divided by the smallest variance
    // that was kept.
    let rounding = (rows as f64).sqrt() * precision + f64::EPSILON * largest / variance.values[rank - 1];
    let floor = 8.0 * rounding * eigen.values.first().copied().unwrap_or(0.0).abs();
    let found = eigen.values.iter().take_while(|&&value| value > floor).count();
    if found == 0 {
        return Err(SpectralError::NoSpectrum { rows, largest: eigen.values.first().copied().unwrap_or(0.0) });
    }
    let negative = eigen.values.iter().filter(|&&value| value < -floor).count();
    let mut combinations = matmul(whitening.view(), eigen.vectors.slice(s![.., ..found]));
    combinations *= &scale.insert_axis(Axis(1));
    let mut functions = matmul(moments.functions.view(), combinations.view());
    let signs = orient(functions.view_mut());
    combinations.axis_iter_mut(Axis(1)).zip(signs).for_each(|(mut column, sign)| column *= sign);
    let repairs = Repairs {
        dropped: k - found,
        negative,
        most_negative: if negative > 0 { eigen.values[rank - 1] } else { 0.0 },
        ..Repairs::default()
    };
    Ok(Ritz { values: eigen.values.slice(s![..found]).to_vec(), combinations, repairs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mercer_data::random::stream;
    use rand::RngExt;

    fn random(rows: usize, columns: usize, name: &str) -> Array2<f64> {
        let mut numbers = stream(1, name);
        Array2::from_shape_simple_fn((rows, columns), || numbers.random::<f64>() - 0.5)
    }

    /// Any basis of the space of the first eigenvectors gives them, with their values.
    #[test]
    fn a_rotated_and_scaled_eigenspace_is_resolved() {
        let factor = random(40, 40, "factor");
        let gram = matmul(factor.view(), factor.t());
        let truth = symmetric_eigen(gram.view()).unwrap();
        let mut mixed = matmul(truth.vectors.slice(s![.., ..6]), random(6, 6, "mix").view());
        mixed.column_mut(2).mapv_inplace(|x| 1e-5 * x);
        let image = matmul(gram.view(), mixed.view());
        let ritz = rayleigh_ritz(&SecondMoments::new(mixed.clone(), image.view()), f64::EPSILON).unwrap();
        assert_eq!((ritz.values.len(), ritz.repairs.any()), (6, false));
        let functions = matmul(mixed.view(), ritz.combinations.view());
        for j in 0..6 {
            assert!((ritz.values[j] / (truth.values[j] / 40.0) - 1.0).abs() < 1e-9, "{j}");
            let cosine = functions.column(j).dot(&truth.vectors.column(j)) / 40f64.sqrt();
            assert!((cosine.abs() - 1.0).abs() < 1e-9, "{j}: {cosine}");
        }
    }

    #[test]
    fn functions_that_are_alike_and_a_kernel_of_low_rank_drop_components() {
        let factor = random(30, 3, "factor");
        let gram = matmul(factor.view(), factor.t());
        let mut functions = random(30, 8, "functions");
        let twin = functions.column(0).to_owned();
        functions.column_mut(7).assign(&twin);
        let image = matmul(gram.view(), functions.view());
        let ritz = rayleigh_ritz(&SecondMoments::new(functions, image.view()), f64::EPSILON).unwrap();
        assert_eq!((ritz.values.len(), ritz.repairs.dropped), (3, 5));
        let nothing = SecondMoments::new(Array2::zeros((5, 2)), Array2::zeros((5, 2)).view());
        assert!(matches!(rayleigh_ritz(&nothing, 1e-16), Err(SpectralError::NoSpectrum { .. })));
    }
}
