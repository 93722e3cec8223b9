//! The latent functions of several classes: one per class, independent a priori with the same kernel, and a softmax
//! likelihood.
//!
//! Rasmussen and Williams 2006, algorithms 3.3 and 3.4. With the probabilities `π_c` of a class at the training
//! samples,
//!
//! ```text
//! E_c = (K + diag(π_c)⁻¹)⁻¹        M Mᵀ = Σ_c E_c        a_c = K⁻¹f_c = y_c − π_c at the mode
//!
//! Cov f(x)_cd = δ_cd (κ(x, x) − kᵀE_c k) + (M⁻¹E_c k)·(M⁻¹E_d k)
//! ln p(y)     ≈ ln p(y|f) − ½ Σ_c a_cᵀf_c − ½ Σ_c ln det(I + √π_c K √π_c) − Σ_i ln M_ii
//! ```
//!
//! The printed algorithm lacks the last term, without which the determinant is that of `diag(π)` alone.

use crate::classification::{improve, settled};
use crate::error::Result;
use crate::laplace::{Functional, Likelihood};
use crate::repair::{self, Repair};
use crate::softmax::{log_softmax, softmax};
use mercer_linalg::{Cholesky, Triangle, cholesky, matmul, solve_triangular, syrk};
use mercer_run::Context;
use ndarray::{Array2, Array3, ArrayView1, ArrayView2, Axis, s};

/// The most steps of Newton's method; about ten are usual.
const STEPS: usize = 100;

/// The mode of the latent functions, and the curvature there.
#[derive(Clone, Debug)]
pub(crate) struct Multinomial {
    /// `a`, a column per class.
    pub(crate) coefficients: Array2<f64>,
    /// `E_c`.
    pub(crate) information: Vec<Array2<f64>>,
    /// `M`.
    pub(crate) lower: Array2<f64>,
    pub(crate) log_likelihood: f64,
}

/// The quantities that depend on the probabilities.
struct Curvature {
    information: Vec<Array2<f64>>,
    sum: Cholesky<f64>,
    /// `½ ln det(I + K·W)`.
    half_log_det: f64,
    repairs: Vec<Repair>,
}

impl Curvature {
    fn new(kernel: ArrayView2<'_, f64>, shares: &Array2<f64>, context: &Context) -> Result<Self> {
        let (mut information, mut half_log_det, mut repairs) = (Vec::new(), 0.0, Vec::new());
        let mut sum = Array2::zeros(kernel.dim());
        for share in shares.columns() {
            context.check()?;
            let roots = share.mapv(f64::sqrt);
            let mut inner = &kernel * &roots * roots.view().insert_axis(Axis(1));
            inner.diag_mut().mapv_inplace(|v| v + 1.0);
            let factor = cholesky(inner.view())?;
            let half = factor.solve_lower(Array2::from_diag(&roots).view())?;
            let own = syrk(half.t());
            sum += &own;
            information.push(own);
            half_log_det += 0.5 * factor.log_det();
            repairs.extend(repair::jitter(&factor));
        }
        let sum = cholesky(sum.view())?;
        repairs.extend(repair::jitter(&sum));
        half_log_det += 0.5 * sum.log_det();
        Ok(Self { information, sum, half_log_det, repairs })
    }

    /// Multiplies every column with the `E` of its class.
    fn times(&self, columns: &Array2<f64>) -> Array2<f64> {
        let mut product = Array2::zeros(columns.dim());
        for (at, own) in self.information.iter().enumerate() {
            let column = columns.slice(s![.., at..=at]);
            product.slice_mut(s![.., at..=at]).assign(&matmul(own.view(), column));
        }
        product
    }

    /// The next coefficients of Newton's method.
    fn newton(
        &self,
        kernel: ArrayView2<'_, f64>,
        f: &Array2<f64>,
        shares: &Array2<f64>,
        y: &Array2<f64>,
    ) -> Result<Array2<f64>> {
        let means = (shares * f).sum_axis(Axis(1)).insert_axis(Axis(1));
        let b = shares * &(f - &means) + y - shares;
        let c = self.times(&matmul(kernel, b.view()));
        let total = self.sum.solve_vector(c.sum_axis(Axis(1)).view())?.insert_axis(Axis(1));
        let spread = total.broadcast(f.dim()).expect("a column for every class").to_owned();
        Ok(b - c + self.times(&spread))
    }
}

impl Multinomial {
    /// Newton's method for the mode; `labels` are class indices from zero.
    pub(crate) fn fit(
        kernel: ArrayView2<'_, f64>,
        labels: &[usize],
        n_classes: usize,
        context: &Context,
    ) -> Result<(Self, Vec<Repair>)> {
        let y = Array2::from_shape_fn((labels.len(), n_classes), |(i, c)| f64::from(u8::from(labels[i] == c)));
        let image = |a: &Array2<f64>| matmul(kernel, a.view());
        let objective = |a: &Array2<f64>, f: &Array2<f64>| 0.5 * (a * f).sum() - (&y * &log_softmax(f.view())).sum();
        let mut a = Array2::zeros(y.dim());
        let mut f: Array2<f64> = Array2::zeros(y.dim());
        let mut value = objective(&a, &f);
        let mut iterations = 0;
        loop {
            let shares = softmax(f.view());
            let curvature = Curvature::new(kernel, &shares, context)?;
            let newton = curvature.newton(kernel, &f, &shares, &y)?;
            let next = improve(&a, &newton, value, image, objective);
            if settled(value, next.as_ref()) || iterations == STEPS {
                let log_likelihood = -value - curvature.half_log_det;
                let (information, lower) = (curvature.information, curvature.sum.lower);
                return Ok((Self { coefficients: a, information, lower, log_likelihood }, curvature.repairs));
            }
            if let Some((next_a, next_f, next_value)) = next {
                (a, f, value) = (next_a, next_f, next_value);
            }
            iterations += 1;
        }
    }

    /// The Gaussian over the latent functions at samples with these kernel rows and prior variances.
    pub(crate) fn posterior(&self, kernel: ArrayView2<'_, f64>, prior: ArrayView1<'_, f64>) -> Result<Functional> {
        let (samples, n_classes) = (kernel.nrows(), self.information.len());
        let mut covariance = Array3::zeros((samples, n_classes, n_classes));
        let mut halves: Vec<Array2<f64>> = Vec::new();
        for (c, own) in self.information.iter().enumerate() {
            let explained = matmul(own.view(), kernel.t());
            let half = solve_triangular(Triangle::Lower, self.lower.view(), explained.view())?;
            halves.push(half);
            let explained = (&explained.t() * &kernel).sum_axis(Axis(1));
            for d in 0..=c {
                let shared = (&halves[c] * &halves[d]).sum_axis(Axis(0));
                for at in 0..samples {
                    let alone = if c == d { prior[at] - explained[at] } else { 0.0 };
                    covariance[(at, c, d)] = shared[at] + alone;
                    covariance[(at, d, c)] = covariance[(at, c, d)];
                }
            }
        }
        let mean = matmul(kernel, self.coefficients.view());
        Ok(Functional { mean, covariance, clipped: 0, likelihood: Likelihood::Categorical })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array1;

    const N: usize = 7;
    const CLASSES: usize = 3;

    /// A kernel without small eigenvalues, so that it can be inverted.
    fn problem() -> (Array2<f64>, Vec<usize>) {
        let near = |i: usize, j: usize| 3.0 * (-((i as f64 - j as f64) / 1.5).powi(2)).exp();
        let kernel = Array2::from_shape_fn((N, N), |(i, j)| near(i, j) + if i == j { 1.0 } else { 0.0 });
        (kernel, (0..N).map(|i| (i * i + i / 3) % CLASSES).collect())
    }

    fn inverse(a: &Array2<f64>) -> Array2<f64> {
        cholesky(a.view()).and_then(|factor| factor.solve(Array2::eye(a.nrows()).view())).expect("definite")
    }

    /// `diag(π) − ΠΠᵀ` and the block-diagonal prior, all classes of a sample after those of another.
    fn dense(kernel: &Array2<f64>, shares: &Array2<f64>) -> (Array2<f64>, Array2<f64>) {
        let side = N * CLASSES;
        let split = |at: usize| (at / CLASSES, at % CLASSES);
        let curvature = Array2::from_shape_fn((side, side), |(row, column)| {
            let ((i, c), (j, d)) = (split(row), split(column));
            let own = if c == d { shares[(i, c)] } else { 0.0 };
            if i == j { own - shares[(i, c)] * shares[(i, d)] } else { 0.0 }
        });
        let prior = Array2::from_shape_fn((side, side), |(row, column)| {
            let ((i, c), (j, d)) = (split(row), split(column));
            if c == d { kernel[(i, j)] } else { 0.0 }
        });
        (curvature, prior)
    }

    #[test]
    fn mode_evidence_and_covariance_are_those_of_the_dense_formulas() {
        let (kernel, labels) = problem();
        let (machine, repairs) = Multinomial::fit(kernel.view(), &labels, CLASSES, &Context::new()).expect("fits");
        assert!(repairs.is_empty());
        let f = kernel.dot(&machine.coefficients);
        let shares = softmax(f.view());
        for ((i, c), a) in machine.coefficients.indexed_iter() {
            let slope = f64::from(u8::from(labels[i] == c)) - shares[(i, c)];
            // The objective is at its minimum up to 1e-12, so its gradient vanishes to half of that.
            assert!((a - slope).abs() < 1e-6, "{a} instead of {slope}");
        }
        let (curvature, prior) = dense(&kernel, &shares);
        let root = cholesky(prior.view()).expect("definite").lower;
        let inner = Array2::<f64>::eye(N * CLASSES) + root.t().dot(&curvature).dot(&root);
        let log_det = cholesky(inner.view()).expect("definite").log_det();
        let fit: f64 = log_softmax(f.view()).outer_iter().zip(&labels).map(|(row, &label)| row[label]).sum();
        let expected = fit - 0.5 * (&machine.coefficients * &f).sum() - 0.5 * log_det;
        assert!((machine.log_likelihood - expected).abs() < 1e-9, "{} {expected}", machine.log_likelihood);
        let covariance = inverse(&(inverse(&prior) + curvature));
        let found = machine.posterior(kernel.view(), kernel.diag()).expect("predicts");
        for ((at, c, d), value) in found.covariance.indexed_iter() {
            let expected = covariance[(at * CLASSES + c, at * CLASSES + d)];
            // Condition numbers of about a hundred, twice.
            assert!((value - expected).abs() < 1e-10, "{at} {c} {d}: {value} instead of {expected}");
        }
    }

    #[test]
    fn far_from_the_data_all_classes_are_equally_likely() {
        let (kernel, labels) = problem();
        let (machine, _) = Multinomial::fit(kernel.view(), &labels, CLASSES, &Context::new()).expect("fits");
        let far = machine.posterior(Array2::zeros((1, N)).view(), Array1::from_elem(1, 4.0).view()).expect("predicts");
        assert!(far.mean.iter().all(|&mean| mean == 0.0));
        assert_eq!(far.covariance.into_shape_with_order((3, 3)).expect("a matrix"), Array2::from_diag_elem(3, 4.0));
    }
}
