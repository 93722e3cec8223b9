//! The spectrum of a kernel from products with it, without its matrix.
//!
//! A third of the products estimates the trace (Hutch++), a third the density (stochastic Lanczos quadrature), and as
//! many as it takes find the leading eigenpairs (Lanczos).

use super::findings::{KernelSpectrum, LargeFindings};
use super::kernels::{FirstKernel, above_rounding, aligned, angle};
use crate::Error;
use mercer_kernel::Real;
use mercer_lens::spectra::TargetAlignment;
use mercer_linalg::{Lanczos, LinearOperator, StochasticLanczos, Watched, hutch_plus_plus, matmul};
use mercer_run::Context;
use ndarray::{Array2, ArrayView1, ArrayViewMut1, Axis, s};

/// Steps of the quadrature per random vector.
const STEPS: usize = 30;

/// `ZZᵀ` for features `Z`.
pub(super) struct FeatureProducts<T>(pub(super) Array2<T>);

impl<T: Real> LinearOperator<T> for FeatureProducts<T> {
    fn dim(&self) -> usize {
        self.0.nrows()
    }

    fn apply(&self, x: ArrayView1<'_, T>, mut y: ArrayViewMut1<'_, T>) {
        let inner = matmul(self.0.t(), x.insert_axis(Axis(1)));
        y.assign(&matmul(self.0.view(), inner.view()).column(0));
    }
}

/// The spectrum of an operator, its alignment with the labels, and what later ones are compared with.
pub(super) fn spectrum<T: Real>(
    kernel: &str,
    operator: &impl LinearOperator<T>,
    targets: Option<&Array2<f64>>,
    (leading, n_products, seed): (usize, usize, u64),
    first: Option<&FirstKernel>,
    context: &Context,
) -> Result<(KernelSpectrum, Option<TargetAlignment>, FirstKernel), Error> {
    let about = |error| Error::from(error).with_place(&format!("kernel {kernel}"));
    let watched = Watched::new(operator, context);
    let stopped = |error| match context.check() {
        Ok(()) => about(error),
        Err(_) => Error::interrupted("interrupted"),
    };
    let trace = hutch_plus_plus(&watched, n_products.div_ceil(3), seed).map_err(stopped)?;
    let probes = (n_products / 3 / STEPS).max(1);
    let density = StochasticLanczos::new(STEPS).probes(probes).seed(seed).run(&watched).map_err(stopped)?;
    let top = Lanczos::new(leading.min(operator.dim())).run(&watched).map_err(stopped)?;
    let eigenvalues: Vec<f64> = top.values.iter().map(|value| value.wide()).collect();
    let kept = above_rounding(&eigenvalues, leading, operator.dim(), T::epsilon().wide());
    let vectors = top.vectors.slice(s![.., ..kept]).mapv(|x| x.wide());
    // The leading eigenvalues are known; only the rest of the norm is estimated.
    let known: f64 = top.values.iter().map(|value| value.wide().powi(2)).sum();
    let least = top.values.iter().map(|value| value.wide()).fold(f64::INFINITY, f64::min);
    let squares = known + density.trace_of(|value| if value < least { value * value } else { 0.0 }).value;
    let kta = targets.map(|targets| alignment(operator, targets, squares));
    let aligned = aligned(&vectors, targets)?;
    let found = KernelSpectrum {
        kernel: kernel.to_owned(),
        trace: trace.value,
        largest: eigenvalues.first().copied().unwrap_or(0.0),
        participation_ratio: (squares > 0.0).then(|| trace.value * trace.value / squares),
        effective_rank: None,
        alpha: None,
        alpha_error: None,
        label_alignment: aligned.alignment,
        captured: aligned.captured,
        drift: None,
        largest_angle: angle(first, &vectors)?,
        eigenvalues,
        estimated: Some(LargeFindings {
            n_products: trace.n_applications + density.n_applications,
            trace_error: trace.standard_error,
            nodes: density.nodes().iter().map(|node| [node.value, node.weight]).collect(),
        }),
    };
    Ok((found, kta, FirstKernel { gram: None, vectors }))
}

/// `tr YᵀKY / (‖K‖ ‖YYᵀ‖)`, plain, with the norm of the kernel from its density; centred numbers need more than the norm.
fn alignment<T: Real>(operator: &impl LinearOperator<T>, targets: &Array2<f64>, squares: f64) -> TargetAlignment {
    let mut image = ndarray::Array1::<T>::zeros(operator.dim());
    let mut sum = 0.0;
    for column in targets.axis_iter(Axis(1)) {
        operator.apply(column.mapv(T::narrow).view(), image.view_mut());
        sum += column.iter().zip(&image).map(|(y, own)| y * own.wide()).sum::<f64>();
    }
    let products = matmul(targets.t(), targets.view());
    let norm = products.iter().map(|x| x * x).sum::<f64>().sqrt();
    let plain = (squares > 0.0 && norm > 0.0).then(|| sum / (squares.sqrt() * norm));
    TargetAlignment { plain, centred: None }
}
