//! Eigenfunctions from landmarks.
//!
//! Nyström's approximation of a kernel by `m` landmarks `Z` is `κ̃(x, x') = κ(x, Z) K_ZZ⁺ κ(Z, x')`. With
//! `K_ZZ = U Λ Uᵀ` its features are `φ(x) = κ(x, Z) U Λ^{-½}`, and
//!
//! ```text
//! landmarks' measure   ψ_j(x) = 1/(m μ_j) Σ_i κ(x, z_i) ψ_j(z_i),   μ_j = λ_j / m          Deng, Shi and Zhu 2022, (7)(8)
//! data's measure       Φ = [φ(x_1); …; φ(x_N)] = P S Vᵀ,   ψ_j(x) = √N φ(x)·v_j / s_j,   μ_j = s_j² / N
//! ```
//!
//! The first is the textbook version and costs `O(m³)`, but its functions are orthonormal only under the landmarks, and
//! its values are those of the landmarks as a sample. The second gives the eigenfunctions of `κ̃` under all of the
//! data, for an additional `O(N m²)`. With all samples as landmarks both are exact. The reading-group notes lack the
//! factor `1/μ_j` of (8).
//!
//! `κ - κ̃` is positive semidefinite, so its trace over the data bounds its norm: `trace_residual` is that trace
//! relative to the kernel's, zero if the landmarks explain everything. If the kernel is indefinite, this is reported,
//! the positive part is found under the data's measure, and there is no such bound.

mod core;

use crate::error::Result;
use crate::exact::{Solver, extend};
use crate::functions::Eigenfunctions;
use crate::landmarks::Landmarks;
use crate::memory::MemoryNeeds;
use crate::sections::Sections;
use crate::spectrum::Spectrum;
use crate::{basis, basis::Basis, exact, samples};
use core::Core;
use mercer_data::Dataset;
use mercer_kernel::{Kernel, Real};
use mercer_linalg::matmul;
use mercer_run::Context;
use ndarray::Array2;
use std::sync::Arc;

/// The measure under which functions are orthonormal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// All samples of the data.
    Data,
    /// The landmarks alone.
    Landmarks,
}

/// Nyström's method and its settings.
#[derive(Clone, Copy, Debug)]
pub struct Nystrom {
    landmarks: Landmarks,
    measure: Measure,
    seed: u64,
}

/// The result of Nyström's method.
#[derive(Debug)]
pub struct NystromFit<T: Real> {
    /// The functions.
    pub functions: Eigenfunctions<T>,
    /// The rows of the landmarks.
    pub landmarks: Vec<usize>,
    /// `tr(K - K̃) / tr(K)` over the data, for the approximation with all its components. `None` for an indefinite
    /// kernel, and for the landmarks' measure, which does not use the data.
    pub trace_residual: Option<f64>,
}

impl Nystrom {
    /// With these landmarks, under the data's measure.
    pub fn new(landmarks: Landmarks) -> Self {
        Self { landmarks, measure: Measure::Data, seed: 0 }
    }

    /// Under another measure.
    pub fn measure(self, measure: Measure) -> Self {
        Self { measure, ..self }
    }

    /// With another seed for the landmarks.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// The leading `k` eigenfunctions of a kernel on data, one data set per input.
    pub fn fit<T: Real>(
        &self,
        kernel: Arc<dyn Kernel<T>>,
        data: &[Dataset],
        k: usize,
        context: &Context,
    ) -> Result<NystromFit<T>> {
        let samples = samples::count(data);
        let wanted = self.landmarks.count(samples);
        self.needs((samples, kernel.per_sample(), k)).check(context)?;
        let rows = self.landmarks.choose(&*kernel, data, self.seed, context)?;
        let chosen = data.iter().map(|set| Ok(Dataset::from_array(set.name(), set.select::<T>(&rows)?.view())?));
        let chosen = chosen.collect::<Result<Vec<_>>>()?;
        let gram = exact::gram_matrix(&*kernel, &chosen, context)?;
        let fitted = match self.measure {
            Measure::Landmarks => {
                let spectrum = Spectrum::of_matrix(gram.view(), k, Solver::Full, context)?;
                (extend(&spectrum, kernel, &chosen)?, None)
            }
            Measure::Data => on_data(kernel, &chosen, gram, data, k, context)?,
        };
        let (functions, trace_residual) = fitted;
        let mut repairs = *functions.repairs();
        repairs.landmarks_removed = wanted - rows.len();
        repairs.all_seen = rows.len() == samples;
        let functions = functions
            .with_repairs(repairs)
            .note("method", "nystrom")
            .note("landmarks", self.landmarks.name())
            .note("n_landmarks", rows.len())
            .note("seed", self.seed);
        let functions = match trace_residual {
            Some(residual) => functions.note("trace_residual", residual),
            None => functions,
        };
        Ok(NystromFit { functions, landmarks: rows, trace_residual })
    }

    /// The memory of `k` functions of a kernel, for this many samples with this many rows each.
    pub fn needs(&self, (samples, per_sample, k): (usize, usize, usize)) -> MemoryNeeds {
        let rows = samples.saturating_mul(per_sample);
        let columns = self.landmarks.count(samples).saturating_mul(per_sample);
        let own = MemoryNeeds::whole("landmarks' eigenvectors", columns, columns);
        match (self.measure, solver(k, columns)) {
            (Measure::Landmarks, _) => own,
            (Measure::Data, Solver::Full) => own.or(MemoryNeeds::whole("landmarks' features", rows, columns)),
            (Measure::Data, _) => own.or(MemoryNeeds::features("landmarks' features", rows, columns)),
        }
    }
}

/// The decomposition of the features over the data.
fn on_data<T: Real>(
    kernel: Arc<dyn Kernel<T>>,
    chosen: &[Dataset],
    gram: Array2<T>,
    data: &[Dataset],
    k: usize,
    context: &Context,
) -> Result<(Eigenfunctions<T>, Option<f64>)> {
    let complete = samples::count(chosen) == samples::count(data);
    let core = Core::new(&gram, complete)?;
    let landmarks = chosen.iter().map(|set| Ok(set.read::<T>()?)).collect::<Result<Vec<_>>>()?;
    let basis: Arc<dyn Basis<T>> = Arc::new(Sections::new(Arc::clone(&kernel), landmarks)?);
    let features = basis::eval_data(&*basis, Some(core.whitening.view()), data, context)?;
    let (mut spectrum, rotation) = match core.is_positive() {
        true => Spectrum::of_features(features.view(), k, solver(k, features.ncols()), context)?,
        false => core.decompose(&features, k)?,
    };
    let diagonal = exact::diagonal(&*kernel, data, context)?;
    let left = &diagonal - &core.explained(&features);
    let repairs = &mut spectrum.repairs;
    if let Some(least) = core.least(&features, &left) {
        repairs.negative = repairs.negative.max(1);
        repairs.most_negative = repairs.most_negative.min(least / diagonal.len() as f64);
    }
    // The residual of an indefinite kernel bounds nothing.
    let trace = diagonal.sum();
    let share = if trace > 0.0 { (left.sum() / trace).max(0.0) } else { 0.0 };
    let residual = (repairs.negative == 0).then_some(share);
    let weights = matmul(core.whitening.view(), rotation.view());
    Ok((Eigenfunctions::from_spectrum(&spectrum, basis, weights)?, residual))
}

/// A few components are computed by products; most or all of them by the whole decomposition.
fn solver(k: usize, available: usize) -> Solver {
    if 4 * k < available { Solver::Lanczos } else { Solver::Full }
}
