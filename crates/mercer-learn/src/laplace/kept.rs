//! A cache of the factor of `H + δI`, which is expensive and often needed again with the same `δ`.

use crate::error::Result;
use mercer_linalg::{Cholesky, cholesky};
use ndarray::Array2;
use std::sync::{Arc, Mutex, PoisonError};

/// The result for the last `δ`.
#[derive(Debug)]
pub(super) struct Kept<F>(Mutex<Option<(f64, Arc<F>)>>);

impl<F> Default for Kept<F> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<F> Kept<F> {
    /// The result of `finish` on the factor of `curvature + precision·I`, computed if it is not cached.
    pub(super) fn get(
        &self,
        curvature: &Array2<f64>,
        precision: f64,
        finish: impl FnOnce(Cholesky<f64>) -> Result<F>,
    ) -> Result<Arc<F>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((own, factor)) = &*kept
            && *own == precision
        {
            return Ok(Arc::clone(factor));
        }
        // Free the old factor before computing the new one.
        *kept = None;
        let mut shifted = curvature.clone();
        shifted.diag_mut().mapv_inplace(|x| x + precision);
        let factor = cholesky(shifted.view())?;
        drop(shifted);
        let factor = Arc::new(finish(factor)?);
        *kept = Some((precision, Arc::clone(&factor)));
        Ok(factor)
    }
}
