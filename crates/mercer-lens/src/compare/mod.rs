//! Similarity of two kernels on the same samples.
//!
//! | lens | what |
//! |---|---|
//! | [`extent`] | both ends of a spectrum and the condition number |
//! | [`likeness`] | distance and alignment of two Gram matrices |
//! | [`kernel_likeness`] | the same of a kernel with a matrix of outputs per pair of samples, and a scalar one |
//! | [`block_mass`] | how much of a matrix-valued kernel lies between different outputs |
//! | [`Linearised`] | predictions of the network that is linear in its parameters |
//!
//! The relative distance is `‖A − B‖ / ‖A‖` in the Frobenius norm. The alignment is the debiased CKA of
//! [`cka`](crate::cka).

mod blocks;
mod extent;
mod linearised;

pub use blocks::{BlockMass, Valued, block_mass, kernel_likeness};
pub use extent::{Extent, extent};
pub use linearised::{Linearised, relative_difference};

use crate::cka::cka_from_grams;
use crate::error::Result;
use mercer_linalg::verify::frobenius;
use ndarray::{ArrayView2, Zip};
use serde::Serialize;

/// The similarity of two matrices.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Likeness {
    /// `‖A − B‖ / ‖A‖`.
    pub frobenius: f64,
    /// The multiple of `B` that is nearest to `A`, `⟨A, B⟩ / ‖B‖²`; `None` if `B` is zero.
    pub scale: Option<f64>,
    /// `‖A − scale·B‖ / ‖A‖`, which does not depend on the scale of either.
    pub scaled_frobenius: f64,
    /// Debiased CKA; `None` if one of the two is constant off its diagonal.
    pub cka: Option<f64>,
}

impl Likeness {
    /// From `‖A‖`, `‖B‖`, `⟨A, B⟩`, and the distance `‖A − s·B‖` for any `s`.
    fn new([a, b]: [f64; 2], product: f64, distance: impl Fn(f64) -> f64, cka: Option<f64>) -> Self {
        let relative = |scale: f64| match distance(scale) {
            0.0 => 0.0,
            distance => distance / a,
        };
        // In this order, a square does not overflow where its root would not.
        let scale = (b > 0.0).then(|| product / b / b);
        Self { frobenius: relative(1.0), scale, scaled_frobenius: relative(scale.unwrap_or(0.0)), cka }
    }
}

/// Compares two Gram matrices of the same samples.
///
/// ```
/// use ndarray::array;
/// let a = array![[2.0, 1.0, 0.0, 0.5], [1.0, 2.0, 0.3, 0.0], [0.0, 0.3, 2.0, 1.0], [0.5, 0.0, 1.0, 2.0]];
/// let found = mercer_lens::likeness(a.view(), (&a * 3.0).view())?;
/// assert!((found.cka.unwrap() - 1.0).abs() < 1e-12 && (found.frobenius - 2.0).abs() < 1e-12);
/// assert!((found.scale.unwrap() - 1.0 / 3.0).abs() < 1e-12 && found.scaled_frobenius < 1e-12);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For fewer than four samples, and matrices that are of different sizes, not finite or not symmetric.
pub fn likeness(a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>) -> Result<Likeness> {
    let cka = cka_from_grams(a, b)?.debiased;
    let product = Zip::from(a).and(b).fold(0.0, |sum: f64, &x, &y| sum + x * y);
    let distance = |scale: f64| Zip::from(a).and(b).fold(0.0, |sum: f64, &x, &y| sum + (x - scale * y).powi(2)).sqrt();
    Ok(Likeness::new([frobenius(a), frobenius(b)], product, distance, cka))
}
