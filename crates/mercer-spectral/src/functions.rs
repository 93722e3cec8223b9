//! Eigenfunctions from any method.

use crate::basis::{self, Basis};
use crate::error::{Result, SpectralError};
use crate::spectrum::{Repairs, Spectrum};
use mercer_data::{Dataset, Fingerprint};
use mercer_kernel::{Effort, FeatureMap, KernelError, Real, SavedKernel};
use mercer_linalg::matmul;
use mercer_run::Context;
use ndarray::{Array1, Array2, Axis, s};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The leading eigenvalues and eigenfunctions of a kernel: `ψ(x) = b(x)·W` over a [`Basis`] `b`.
///
/// As a [`FeatureMap`] it gives `√μ_j ψ_j(x)`, so it can be used wherever a feature map can. `Features(…)` of it is the
/// kernel by Mercer's sum.
#[derive(Clone, Debug)]
pub struct Eigenfunctions<T: Real> {
    values: Array1<f64>,
    basis: Arc<dyn Basis<T>>,
    weights: Array2<T>,
    repairs: Repairs,
    notes: Map<String, Value>,
    kernel: Option<SavedKernel>,
}

impl<T: Real> Eigenfunctions<T> {
    /// From values, a basis, and the weights (`n_functions × k`) that combine it into functions.
    ///
    /// Functions are sorted by their values. A negative value becomes zero and is counted in
    /// [`repairs`](Self::repairs).
    ///
    /// # Errors
    /// [`SpectralError::Setting`] if sizes do not match, or a number is not finite.
    pub fn new(values: &[f64], basis: Arc<dyn Basis<T>>, weights: Array2<T>) -> Result<Self> {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
        Self::ordered(values, basis, weights, &order)
    }

    /// As [`new`](Self::new), but keeps the order of a method that orders its functions itself. Values then descend
    /// only as far as they have converged.
    pub(crate) fn in_given_order(values: &[f64], basis: Arc<dyn Basis<T>>, weights: Array2<T>) -> Result<Self> {
        let order: Vec<usize> = (0..values.len()).collect();
        Self::ordered(values, basis, weights, &order)
    }

    fn ordered(values: &[f64], basis: Arc<dyn Basis<T>>, weights: Array2<T>, order: &[usize]) -> Result<Self> {
        if weights.dim() != (basis.n_functions(), values.len()) {
            return Err(SpectralError::Setting(format!(
                "weights of shape {:?} do not combine {} basis functions into {}",
                weights.shape(),
                basis.n_functions(),
                values.len()
            )));
        }
        if !values.iter().all(|v| v.is_finite()) || !weights.iter().all(|w| w.is_finite()) {
            return Err(SpectralError::Setting("an eigenvalue or a weight is not a finite number".to_owned()));
        }
        let negative = values.iter().filter(|v| **v < 0.0).count();
        let most_negative = values.iter().copied().fold(0.0, f64::min);
        let repairs = Repairs { negative, most_negative, ..Repairs::default() };
        let (sorted, weights) = (order.iter().map(|&j| values[j].max(0.0)).collect(), weights.select(Axis(1), order));
        Ok(Self { values: sorted, basis, weights, repairs, notes: Map::new(), kernel: None })
    }

    /// From a spectrum on data, which the basis extends with these weights.
    pub fn from_spectrum(spectrum: &Spectrum<T>, basis: Arc<dyn Basis<T>>, weights: Array2<T>) -> Result<Self> {
        Ok(Self::new(&spectrum.values.to_vec(), basis, weights)?.with_repairs(spectrum.repairs))
    }

    /// Sets the repairs.
    pub fn with_repairs(self, repairs: Repairs) -> Self {
        Self { repairs, ..self }
    }

    /// Adds a note, such as the method and its settings. It is saved with the functions.
    pub fn note(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.notes.insert(name.to_owned(), value.into());
        self
    }

    /// Sets what is needed to rebuild the kernel of saved functions.
    pub fn with_kernel(self, kernel: Option<SavedKernel>) -> Self {
        Self { kernel, ..self }
    }

    /// How to rebuild the kernel, if known.
    pub fn saved_kernel(&self) -> Option<&SavedKernel> {
        self.kernel.as_ref()
    }

    /// `μ`, descending.
    pub fn values(&self) -> &Array1<f64> {
        &self.values
    }

    /// The number of functions.
    pub fn n_components(&self) -> usize {
        self.values.len()
    }

    /// Rows per sample: 1, or the number of outputs of a matrix-valued kernel.
    pub fn per_sample(&self) -> usize {
        self.basis.per_sample()
    }

    /// The basis of the functions.
    pub fn basis(&self) -> &Arc<dyn Basis<T>> {
        &self.basis
    }

    /// The weights of the combinations, `n_functions × k`.
    pub fn weights(&self) -> &Array2<T> {
        &self.weights
    }

    /// The repairs.
    pub fn repairs(&self) -> &Repairs {
        &self.repairs
    }

    /// The notes.
    pub fn notes(&self) -> &Map<String, Value> {
        &self.notes
    }

    /// `ψ_j` of samples: `[samples · per_sample, k]`; each input is `[samples, …]`, row-major.
    pub fn eval(&self, inputs: &[&[T]], samples: usize) -> Result<Array2<T>> {
        basis::eval(&*self.basis, Some(self.weights.view()), inputs, samples, &Context::new())
    }

    /// `ψ_j` of data sets, one per input, which are read in blocks.
    pub fn eval_data(&self, data: &[Dataset], context: &Context) -> Result<Array2<T>> {
        basis::eval_data(&*self.basis, Some(self.weights.view()), data, context)
    }

    /// `κ(x, x') = Σ_j μ_j ψ_j(x) ψ_j(x')` between samples: `[samples · per_sample, others · per_sample]`.
    pub fn kernel(&self, inputs: &[&[T]], samples: usize, others: &[&[T]], n_others: usize) -> Result<Array2<T>> {
        let left = self.scaled(inputs, samples)?;
        let right = self.scaled(others, n_others)?;
        Ok(matmul(left.view(), right.t()))
    }

    /// `√μ_j ψ_j`.
    fn scaled(&self, inputs: &[&[T]], samples: usize) -> Result<Array2<T>> {
        let mut functions = self.eval(inputs, samples)?;
        for (mut column, value) in functions.axis_iter_mut(Axis(1)).zip(&self.values) {
            let root = T::narrow(value.sqrt());
            column.mapv_inplace(|x| x * root);
        }
        Ok(functions)
    }

    /// Only the first `k` functions.
    pub fn truncated(&self, k: usize) -> Self {
        let k = k.min(self.n_components());
        let (values, weights) = (self.values.slice(s![..k]).to_owned(), self.weights.slice(s![.., ..k]).to_owned());
        Self { values, weights, ..self.clone() }
    }
}

impl<T: Real> FeatureMap<T> for Eigenfunctions<T> {
    /// For a matrix-valued kernel, the features of all outputs side by side. Their products give the trace of the
    /// kernel.
    fn n_features(&self) -> usize {
        self.n_components() * self.per_sample()
    }

    fn features(&self, inputs: &[&[T]], samples: usize, out: &mut [T]) -> mercer_kernel::Result<()> {
        let scaled = self.scaled(inputs, samples).map_err(|error| match error {
            SpectralError::Kernel(error) => *error,
            SpectralError::Cancelled => KernelError::Cancelled,
            other => KernelError::Setting(other.to_string()),
        })?;
        out.iter_mut().zip(&scaled).for_each(|(to, &x)| *to = x);
        Ok(())
    }

    fn effort(&self) -> Effort {
        let functions = self.basis.n_functions() * self.per_sample();
        Effort {
            bytes: basis::step(&*self.basis) * functions * size_of::<T>(),
            flops: 2.0 * functions as f64 * self.n_components() as f64,
            ..Effort::default()
        }
    }

    fn identity(&self) -> Value {
        let mut numbers = Fingerprint::new();
        self.values.iter().for_each(|value| numbers.update(&value.to_le_bytes()));
        self.weights.iter().for_each(|weight| numbers.update(&weight.wide().to_le_bytes()));
        serde_json::json!({ "features": "eigenfunctions", "fingerprint": numbers.finish(), "notes": self.notes })
    }
}
