//! The trace of a symmetric operator from a given number of products: Hutch++.
//!
//! ```text
//! Q = orth(A·S)                                   S: k columns of random signs
//! tr A ≈ tr QᵀAQ + 1/g · tr GᵀPAPG,  P = I − QQᵀ     G: g columns of random signs
//! ```
//!
//! The trace on the span of `Q` is exact. Only the rest is estimated, so for a spectrum that decays few products give
//! many digits, and for a matrix of rank up to `k` the result is exact. A third of the products goes to `A·S`, a third
//! to `A·Q`, and what is left to `A·P·G`. Meyer, Musco, Musco and Woodruff, Hutch++: optimal stochastic trace
//! estimation, SOSA 2021 (arXiv 2010.09649), algorithm 1.
//!
//! We deviate in one point: with as many products as rows, the diagonal is computed and the trace is exact. The
//! standard error is that of the mean of the `g` samples, given `Q`.

use crate::random::Signs;
use crate::{LinalgError, LinearOperator, Result, Scalar, check_finite, matmul, matmul_into, thin_qr};
use ndarray::{Array2, Axis};

const ROUTINE: &str = "hutch++";

/// A trace that was estimated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceEstimate {
    /// The estimate.
    pub value: f64,
    /// Its standard error; zero if the value is exact, `None` for a single random sample.
    pub standard_error: Option<f64>,
    /// How often the operator was applied to a vector.
    pub n_applications: usize,
}

impl TraceEstimate {
    /// A known part, plus the mean of samples.
    pub(crate) fn of_samples(known: f64, samples: &[f64], n_applications: usize) -> Self {
        let n = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / n;
        let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
        let standard_error = (samples.len() > 1).then(|| (squares / (n - 1.0) / n).sqrt());
        Self { value: known + mean, standard_error, n_applications }
    }
}

/// The trace of an operator from at most `n_products` products with vectors.
///
/// ```
/// use mercer_linalg::hutch_plus_plus;
/// let a = ndarray::Array2::from_diag(&ndarray::Array1::from_shape_fn(200, |i| 1.0 / (1.0 + i as f64).powi(2)));
/// let trace = hutch_plus_plus(&a, 60, 1)?;
/// assert!((trace.value / a.diag().sum() - 1.0).abs() < 0.01);
/// # Ok::<(), mercer_linalg::LinalgError>(())
/// ```
///
/// # Errors
/// [`LinalgError::ShapeMismatch`] without products, [`LinalgError::NotFinite`] if the operator returns such a value,
/// and the errors of [`thin_qr`].
pub fn hutch_plus_plus<T: Scalar>(
    operator: &impl LinearOperator<T>,
    n_products: usize,
    seed: u64,
) -> Result<TraceEstimate> {
    let n = operator.dim();
    if n_products == 0 {
        let what = "the number of products";
        return Err(LinalgError::ShapeMismatch { routine: ROUTINE, what, expected: 1, found: 0 });
    }
    if n_products >= n {
        let exact = sum_of_products(&Array2::<T>::eye(n), &image(operator, &Array2::eye(n))?);
        return Ok(TraceEstimate { value: exact.iter().sum(), standard_error: Some(0.0), n_applications: n });
    }
    let mut random = Signs::new(seed ^ n as u64);
    let mut signs = |columns: usize| Array2::from_shape_simple_fn((n, columns), || random.next_of(T::one()));
    let n_basis = n_products / 3;
    let sketch = signs(n_basis);
    let basis = thin_qr(image(operator, &sketch)?.view())?.q;
    let known: f64 = sum_of_products(&basis, &image(operator, &basis)?).iter().sum();
    let mut rest = signs(n_products - 2 * n_basis);
    let inner = matmul(basis.t(), rest.view());
    matmul_into(-T::one(), basis.view(), inner.view(), true, rest.view_mut());
    let samples = sum_of_products(&rest, &image(operator, &rest)?);
    Ok(TraceEstimate::of_samples(known, &samples, n_products))
}

fn image<T: Scalar>(operator: &impl LinearOperator<T>, block: &Array2<T>) -> Result<Array2<T>> {
    let mut image = Array2::zeros(block.dim());
    operator.apply_block(block.view(), image.view_mut());
    check_finite("hutch++ operator", image.view())?;
    Ok(image)
}

/// The inner products of corresponding columns.
fn sum_of_products<T: Scalar>(a: &Array2<T>, b: &Array2<T>) -> Vec<f64> {
    let dot = |(a, b): (ndarray::ArrayView1<'_, T>, ndarray::ArrayView1<'_, T>)| {
        a.iter().zip(b).map(|(x, y)| x.wide() * y.wide()).sum::<f64>()
    };
    a.axis_iter(Axis(1)).zip(b.axis_iter(Axis(1))).map(dot).collect()
}
