//! Evaluation at new samples.

use super::arrays::InputArrays;
use crate::Error;
use mercer_kernel::Real;
use mercer_learn::laplace::{Functional, Laplace};
use mercer_run::Context;
use mercer_spectral::Eigenfunctions;
use ndarray::Array2;

/// An object that can be evaluated at samples.
///
/// ```
/// use mercer::prelude::*;
///
/// let x = ndarray::Array1::linspace(-1.0, 1.0, 20).insert_axis(ndarray::Axis(1));
/// let functions = KernelFn::new("rbf()", None)?.eigen(&x, 3)?;
/// assert_eq!(functions.evaluate(&ndarray::array![[0.3], [0.7]])?.dim(), (2, 3));
/// # Ok::<(), mercer::Error>(())
/// ```
pub trait Evaluate {
    /// The values.
    type Values;

    /// The values at these samples.
    ///
    /// # Errors
    /// If the samples have a different shape from those it was made from.
    fn evaluate<X: InputArrays>(&self, x: X) -> Result<Self::Values, Error>;
}

/// A row per sample, a column per function.
impl<T: Real> Evaluate for Eigenfunctions<T> {
    type Values = Array2<T>;

    fn evaluate<X: InputArrays>(&self, x: X) -> Result<Array2<T>, Error> {
        Ok(self.eval_data(&x.into_datasets()?, &Context::new())?)
    }
}

/// Mean and covariance of the outputs.
impl<T: Real> Evaluate for Laplace<T> {
    type Values = Functional;

    fn evaluate<X: InputArrays>(&self, x: X) -> Result<Functional, Error> {
        Ok(self.predict(&x.into_datasets()?, &Context::new())?)
    }
}
