//! The features of all outputs that eigenfunctions give.
//!
//! Equation 22 of Deng et al. 2022 (arXiv 2205.00165) has a row of `Ψ(x)` for every output. Functions of a matrix-valued
//! kernel are such rows. Those of a scalar kernel know nothing of outputs: the kernel then stands for every output by itself,
//! `κ ⊗ I` (as the pseudo-NTK stands for the full one, arXiv 2206.12543), and every output has its own weights,
//!
//! ```text
//! matrix-valued            one scalar kernel            a scalar kernel per output (appendix C.3)
//! Ψ = (√μ_j ψ_jc)          Ψ = I ⊗ (√μ_j ψ_j)           Ψ = diag(Ψ¹, …, Ψ^C)
//! ```
//!
//! with `k`, `Ck` and `Σ k_c` weights. The trace kernel is the sum over the outputs, so its functions are divided by `√C`.

use crate::error::{LearnError, Result, setting};
use mercer_kernel::{Effort, FeatureMap, NtkKind, Real, Recipe};
use mercer_spectral::Eigenfunctions;
use std::sync::Arc;

/// The features of a network with this many outputs: from matrix-valued functions, from those of one scalar kernel, or from
/// those of a scalar kernel for every output, in their order.
///
/// # Errors
/// For functions of a different number of outputs, and for another number of kernels.
pub fn features_of<T: Real>(functions: &[Eigenfunctions<T>], n_outputs: usize) -> Result<Arc<dyn FeatureMap<T>>> {
    let reason = "there must be one set of matrix-valued or scalar functions, or a scalar one for every output";
    match functions {
        [] => Err(LearnError::Empty { what: "eigenfunctions" }),
        [one] if one.per_sample() == n_outputs => Ok(Arc::new(one.clone())),
        [one] if one.per_sample() == 1 => {
            let of_trace = one.saved_kernel().is_some_and(|kernel| is_trace(&kernel.recipe));
            let factor = if of_trace { (n_outputs as f64).sqrt().recip() } else { 1.0 };
            Ok(Arc::new(PerOutput { functions: vec![one.clone()], n_outputs, factor }))
        }
        all if all.len() == n_outputs && all.iter().all(|own| own.per_sample() == 1) => {
            Ok(Arc::new(PerOutput { functions: all.to_vec(), n_outputs, factor: 1.0 }))
        }
        all => {
            let rows: Vec<String> = all.iter().map(|own| own.per_sample().to_string()).collect();
            Err(setting("the number of outputs of the functions", rows.join(", "), reason))
        }
    }
}

/// Whether a kernel is a sum over outputs.
fn is_trace(recipe: &Recipe) -> bool {
    match recipe {
        Recipe::Tangent { kind, selection, .. } | Recipe::Directions { kind, selection, .. } => {
            *kind == NtkKind::Trace && selection.combine.is_none()
        }
        Recipe::Sketch(spec) => spec.kind == NtkKind::Trace && spec.selection.combine.is_none(),
        _ => false,
    }
}

/// Scalar functions for every output, which do not enter the other outputs.
#[derive(Debug)]
struct PerOutput<T: Real> {
    /// One for all outputs, or one for each.
    functions: Vec<Eigenfunctions<T>>,
    n_outputs: usize,
    factor: f64,
}

impl<T: Real> PerOutput<T> {
    /// The functions of an output, and their first column.
    fn of(&self, output: usize) -> (usize, usize) {
        match &self.functions[..] {
            [one] => (0, output * one.n_components()),
            all => (output, all[..output].iter().map(Eigenfunctions::n_components).sum()),
        }
    }

    fn width(&self) -> usize {
        match &self.functions[..] {
            [one] => one.n_components() * self.n_outputs,
            all => all.iter().map(Eigenfunctions::n_components).sum(),
        }
    }
}

impl<T: Real> FeatureMap<T> for PerOutput<T> {
    fn n_features(&self) -> usize {
        self.width() * self.n_outputs
    }

    fn features(&self, inputs: &[&[T]], samples: usize, out: &mut [T]) -> mercer_kernel::Result<()> {
        let (width, factor) = (self.width(), T::narrow(self.factor));
        let own = |functions: &Eigenfunctions<T>| -> mercer_kernel::Result<Vec<T>> {
            let mut features = mercer_linalg::memory::zeros(samples * functions.n_components());
            functions.features(inputs, samples, &mut features)?;
            Ok(features)
        };
        let values = self.functions.iter().map(own).collect::<mercer_kernel::Result<Vec<_>>>()?;
        out.fill(T::zero());
        for (row, out) in out.chunks_exact_mut(width.max(1)).enumerate() {
            let (sample, output) = (row / self.n_outputs, row % self.n_outputs);
            let (at, first) = self.of(output);
            let k = self.functions[at].n_components();
            let own = &values[at][sample * k..(sample + 1) * k];
            out[first..first + k].iter_mut().zip(own).for_each(|(to, &value)| *to = factor * value);
        }
        Ok(())
    }

    fn effort(&self) -> Effort {
        let all: Vec<Effort> = self.functions.iter().map(FeatureMap::effort).collect();
        let values: usize = self.functions.iter().map(Eigenfunctions::n_components).sum();
        Effort {
            bytes: all.iter().map(|own| own.bytes).max().unwrap_or(0),
            shared_sample_bytes: values * size_of::<T>(),
            flops: all.iter().map(|own| own.flops).sum(),
            ..Effort::default()
        }
    }

    fn identity(&self) -> serde_json::Value {
        let functions: Vec<_> = self.functions.iter().map(FeatureMap::identity).collect();
        serde_json::json!({ "features": "per output", "of": functions, "outputs": self.n_outputs, "factor": self.factor })
    }
}
