//! Scores of training samples for test samples, by several methods, all in one form: a row per test sample, a column per
//! training sample, positive if the training sample raises the test sample's log-odds `ℓ`.
//!
//! ```text
//! attribution      Σ_c ∂ℓ/∂s_c · A(x, xᵢ)^c                            of the surrogate
//! leave-one-out    Σ_c ∂ℓ/∂s_c · (f_c(x) − f_c⁻ⁱ(x))                   of ridge regression, exactly
//! representer      the attribution of a multinomial model on the last layer, penalised in the kernel's space
//!                  (Yeh et al. 2018, arXiv 1811.09720)
//! gradient dot     ∇ℓ(x)·∇ℓ(xᵢ)·(1 − pᵢ)                               the loss gradients
//! gradient cosine  the cosine of the angle between ∇ℓ(x) and ∇ℓ(xᵢ)
//! TRAK             ∇ℓ(x)ᵀ(ΦᵀΦ + λI)⁻¹∇ℓ(xᵢ)·(1 − pᵢ)                   (Park et al. 2023, arXiv 2303.14186)
//! ```
//!
//! `∇ℓ` is the gradient of the log-odds of the sample's class with respect to the parameters, sketched; `pᵢ` is the
//! network's probability of the label of `xᵢ`, and `Φ` has the gradients of the training samples as rows. The gradient of
//! the loss is `−(1 − p)∇ℓ`.

use crate::Error;
use crate::job::surrogate::{Classified, KernelRows, SurrogateSpec};
use crate::spec::KernelSpec;
use mercer_data::Dataset;
use mercer_kernel::gram::{FeatureRun, Sink};
use mercer_kernel::store::TilePlace;
use mercer_kernel::{KernelError, Real};
use mercer_learn::surrogate::{DualRidge, DualRows, Influence, PenaltyNorm, RidgeInfluence, one_hot};
use mercer_lens::log_odds;
use mercer_linalg::{cholesky_shifted, matmul, syrk};
use mercer_run::Context;
use ndarray::{Array1, Array2, ArrayView2, Axis};
use std::sync::{Mutex, PoisonError};

/// Features of the sketched gradients.
const FEATURES: usize = 2048;

/// Damping values, relative to the mean eigenvalue of `ΦᵀΦ`.
const DAMPINGS: [f64; 7] = [1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3];

/// A method with its scores, one matrix per value of its damping.
pub(super) struct Method {
    pub(super) name: &'static str,
    /// The damping and the scores; a method without damping has one entry.
    pub(super) candidates: Vec<(Option<f64>, Array2<f64>)>,
}

impl Method {
    fn single(name: &'static str, scores: Array2<f64>) -> Self {
        Self { name, candidates: vec![(None, scores)] }
    }
}

/// `∂ℓ_y/∂s_c`: one at the class, minus the softmax of the others elsewhere.
pub(super) fn slopes(scores: ArrayView2<'_, f64>, classes: &[usize]) -> Array2<f64> {
    let mut slopes = Array2::zeros(scores.dim());
    for ((row, mut out), &class) in scores.outer_iter().zip(slopes.outer_iter_mut()).zip(classes) {
        let others = || row.iter().enumerate().filter(move |(at, _)| *at != class);
        let most = others().map(|(_, &score)| score).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = others().map(|(_, score)| (score - most).exp()).sum();
        others().for_each(|(at, score)| out[at] = -(score - most).exp() / sum);
        out[class] = 1.0;
    }
    slopes
}

/// What the methods work on.
pub(super) struct Problem<'a> {
    pub(super) known: &'a Classified,
    pub(super) test: &'a [Dataset],
    /// The classes of the test samples.
    pub(super) classes: &'a [usize],
    pub(super) spec: KernelSpec,
    pub(super) seed: u64,
}

impl Problem<'_> {
    /// The attribution of the scores of a surrogate to all training samples.
    pub(super) fn attribution<T: Real>(
        &self,
        rows: &KernelRows<T>,
        surrogate: &crate::job::surrogate::Surrogate,
        scores: &Array2<f64>,
        context: &Context,
    ) -> Result<Array2<f64>, Error> {
        let slopes = slopes(scores.view(), self.classes);
        let mut found = Array2::zeros((self.classes.len(), self.known.samples.n_samples));
        rows.visit(self.test, &self.known.samples.inputs, context, &mut |first, strip| {
            for (at, row) in strip.outer_iter().enumerate() {
                let kernel = row.as_slice().unwrap_or(&[]);
                for class in 0..surrogate.n_classes {
                    let slope = slopes[(first + at, class)];
                    let own = surrogate.attributions(kernel, class)?;
                    found.row_mut(first + at).iter_mut().zip(own).for_each(|(sum, value)| *sum += slope * value);
                }
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// All methods. The kernel rows must be computed; the scores of the network are of training and test samples.
    pub(super) fn methods<T: Real>(
        &self,
        main: (&KernelRows<T>, Array2<f64>),
        network: (&Array2<f64>, &Array2<f64>),
        context: &Context,
    ) -> Result<Vec<Method>, Error> {
        let (rows, attribution) = main;
        let mut methods = vec![Method::single("attribution", attribution)];
        methods.push(self.leave_one_out(rows, context)?);
        if let Ok(representer) = self.representer::<T>(context) {
            methods.push(representer);
        }
        methods.extend(self.gradients::<T>(network, context)?);
        Ok(methods)
    }

    /// The exact effect of leaving a sample out of a ridge regression on the labels.
    fn leave_one_out<T: Real>(&self, rows: &KernelRows<T>, context: &Context) -> Result<Method, Error> {
        let (_, targets) = one_hot(&self.known.classes)?;
        let scale = rows.mean_diagonal()?;
        let mut candidates = Vec::new();
        let mut queries = Array2::zeros((self.classes.len(), self.known.samples.n_samples));
        rows.visit(self.test, &self.known.samples.inputs, context, &mut |first, strip| {
            strip.outer_iter().enumerate().for_each(|(at, row)| queries.row_mut(first + at).assign(&row));
            Ok(())
        })?;
        let gram = rows.gram()?;
        for damping in [1e-3, 1e-2, 1e-1, 1.0, 10.0] {
            let settings = DualRidge::new(damping * scale)?.centred();
            let influence = RidgeInfluence::new(&settings, DualRows::Gram(gram.view()), targets.view(), context)?;
            let machine = settings.fit(DualRows::Gram(gram.view()), targets.view(), context)?;
            let slopes = slopes(machine.scores(queries.view())?.view(), self.classes);
            let mut found = Array2::<f64>::zeros(queries.dim());
            for class in 0..targets.ncols() {
                let effects = influence.effects(&DualRows::Gram(queries.view()), class, context)?;
                for ((mut sum, own), slope) in
                    found.outer_iter_mut().zip(effects.outer_iter()).zip(slopes.column(class))
                {
                    sum.scaled_add(-slope, &own);
                }
            }
            candidates.push((Some(damping), found));
        }
        Ok(Method { name: "leave-one-out", candidates })
    }

    /// Representer points on the last hidden layer.
    fn representer<T: Real>(&self, context: &Context) -> Result<Method, Error> {
        let spec = KernelSpec { kernel: Some("ck".to_owned()), ..self.spec.clone() };
        let mut rows = KernelRows::<T>::build(spec, &self.known.source, &self.known.samples.shapes())?;
        rows.compute(&self.known.samples.inputs, context)?;
        let spec = SurrogateSpec { norm: PenaltyNorm::Function, ..SurrogateSpec::default() };
        let (surrogate, _) = spec.fit(&rows, &self.known.classes, None, self.seed, context)?;
        let mut scores = Array2::zeros((self.classes.len(), surrogate.n_classes));
        rows.visit(self.test, &self.known.samples.inputs, context, &mut |first, strip| {
            for (at, row) in strip.outer_iter().enumerate() {
                let own = surrogate.scores(row.as_slice().unwrap_or(&[]))?;
                scores.row_mut(first + at).assign(&Array1::from_vec(own));
            }
            Ok(())
        })?;
        Ok(Method::single("representer", self.attribution(&rows, &surrogate, &scores, context)?))
    }

    /// Methods on the gradients of the log-odds.
    fn gradients<T: Real>(
        &self,
        (network_train, network_test): (&Array2<f64>, &Array2<f64>),
        context: &Context,
    ) -> Result<Vec<Method>, Error> {
        let labels = self.known.classes.indices();
        let train = self.log_odds_gradients::<T>(&self.known.samples.inputs, network_train, labels, context)?;
        let test = self.log_odds_gradients::<T>(self.test, network_test, self.classes, context)?;
        let odds = log_odds(network_train.view(), labels)?;
        // 1 − p of the label.
        let doubt: Array1<f64> = odds.iter().map(|odds| 1.0 / (1.0 + odds.exp())).collect();
        let products = matmul(test.view(), train.t());
        let length = |rows: &Array2<f64>| rows.map_axis(Axis(1), |row| row.dot(&row).sqrt().max(f64::MIN_POSITIVE));
        let (own, other) = (length(&test), length(&train));
        let cosine = &products / &own.insert_axis(Axis(1)) / &other;
        let mut methods =
            vec![Method::single("gradient dot", &products * &doubt), Method::single("gradient cosine", cosine)];
        let normal = syrk(train.t());
        let mean = normal.diag().mean().unwrap_or(1.0).max(f64::MIN_POSITIVE);
        let mut candidates = Vec::new();
        for damping in DAMPINGS {
            context.check()?;
            let solved = cholesky_shifted(normal.view(), damping * mean)?.solve(train.t())?;
            candidates.push((Some(damping), matmul(test.view(), solved.view()) * &doubt));
        }
        methods.push(Method { name: "TRAK", candidates });
        Ok(methods)
    }

    /// Sketched gradients of the log-odds of the classes: `Σ_c ∂ℓ/∂s_c · P g^c`.
    fn log_odds_gradients<T: Real>(
        &self,
        samples: &[Dataset],
        scores: &Array2<f64>,
        classes: &[usize],
        context: &Context,
    ) -> Result<Array2<f64>, Error> {
        let text = format!("trace(sketch=sjlt:{FEATURES})");
        let spec = KernelSpec { kernel: Some(text), ..self.spec.clone() };
        let rows = KernelRows::<T>::build(spec, &self.known.source, &self.known.samples.shapes())?;
        let Some(map) = rows.map() else { return Err(Error::new("a sketch has features")) };
        let slopes = slopes(scores.view(), classes);
        let n_outputs = map.n_features() / FEATURES;
        // The scores of a network with one output are zero and the output.
        let first = slopes.ncols().saturating_sub(n_outputs);
        let slopes = slopes.slice_move(ndarray::s![.., first..]);
        let found = Mutex::new(Array2::zeros((classes.len(), FEATURES)));
        let run = FeatureRun::new(&**map, samples);
        let sink = Combined { slopes: &slopes, found: &found };
        run.run(&run.layout().all_tiles(), &sink, context).map_err(|error| rows.spec.failure(error))?;
        Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Combines the features of the outputs with a slope each.
struct Combined<'a> {
    slopes: &'a Array2<f64>,
    found: &'a Mutex<Array2<f64>>,
}

impl<T: Real> Sink<T> for Combined<'_> {
    fn write(&self, _: usize, place: &TilePlace, matrices: &[&[T]]) -> Result<(), KernelError> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let n_outputs = self.slopes.ncols();
        for (row, features) in place.rows.clone().zip(matrices[0].chunks_exact(n_outputs * FEATURES)) {
            let mut out = found.row_mut(row);
            for (own, &slope) in features.chunks_exact(FEATURES).zip(self.slopes.row(row)) {
                out.iter_mut().zip(own).for_each(|(sum, value)| *sum += slope * value.wide());
            }
        }
        Ok(())
    }
}
