//! Scores of training samples for test samples, by several methods, all in one form: a row per test sample, a column per
//! training sample, positive if the training sample raises the test sample's log-odds `ℓ`.
//!
//! ```text
//! attribution      Σ_c ∂ℓ/∂s_c · A(x, xᵢ)^c                            of the surrogate
//! leave-one-out    Σ_c ∂ℓ/∂s_c · (f_c(x) − f_c⁻ⁱ(x))                   of ridge regression, exactly, and of a
//!                                                                      multinomial model by one Newton step
//! representer      the attribution of a multinomial model on the last layer, penalised in the kernel's space
//!                  (Yeh et al. 2018, arXiv 1811.09720)
//! gradient dot     ∇ℓ(x)·∇ℓ(xᵢ)·(1 − pᵢ)                               the loss gradients
//! gradient cosine  the cosine of the angle between ∇ℓ(x) and ∇ℓ(xᵢ)
//! TRAK             ∇ℓ(x)ᵀ(ΦᵀΦ + λI)⁻¹∇ℓ(xᵢ)·(1 − pᵢ)                   (Park et al. 2023, arXiv 2303.14186); the
//!                                                                      means of both factors over checkpoints
//! influence        ∇ℓ(x)ᵀ(Σᵢ JᵢᵀΛᵢJᵢ + λI)⁻¹∇ℓ(xᵢ)·(1 − pᵢ),           Λ = diag p − ppᵀ, all classes (Koh and Liang 2017,
//!                                                                      arXiv 1703.04730, with the Gauss–Newton matrix)
//! ```
//!
//! `∇ℓ` is the gradient of the log-odds of the sample's class with respect to the parameters, sketched; `pᵢ` is the
//! network's probability of the label of `xᵢ`, and `Φ` has the gradients of the training samples as rows. The gradient of
//! the loss is `−(1 − p)∇ℓ`.

mod gradients;
mod leave_one_out;

use crate::Error;
use crate::job::surrogate::{Classified, KernelRows, SurrogateSpec};
use crate::spec::KernelSpec;
use mercer_data::Dataset;
use mercer_kernel::Real;
use mercer_learn::surrogate::PenaltyNorm;
use mercer_run::Context;
use ndarray::{Array1, Array2, ArrayView2, Axis};

/// A method with its scores, one matrix per value of its damping.
pub(super) struct Method {
    pub(super) name: String,
    /// The damping and the scores; a method without damping has one entry.
    pub(super) candidates: Vec<(Option<f64>, Array2<f64>)>,
}

impl Method {
    fn single(name: &str, scores: Array2<f64>) -> Self {
        Self { name: name.to_owned(), candidates: vec![(None, scores)] }
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
    /// The attribution of the log-odds of a surrogate to all training samples.
    pub(super) fn attribution<T: Real>(
        &self,
        rows: &KernelRows<T>,
        surrogate: &crate::job::surrogate::Surrogate,
        context: &Context,
    ) -> Result<Array2<f64>, Error> {
        let mut found = Array2::zeros((self.classes.len(), self.known.samples.n_samples));
        rows.visit(self.test, &self.known.samples.inputs, context, &mut |first, strip| {
            for (at, row) in strip.outer_iter().enumerate() {
                let kernel = row.as_slice().unwrap_or(&[]);
                let scores = Array1::from_vec(surrogate.scores(kernel)?).insert_axis(Axis(0));
                let slopes = slopes(scores.view(), &self.classes[first + at..][..1]);
                for (class, slope) in slopes.iter().enumerate() {
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
        methods.extend(self.leave_one_out(rows, context)?);
        if let Ok(representer) = self.representer::<T>(context) {
            methods.push(representer);
        }
        methods.extend(self.gradients::<T>(network, context)?);
        Ok(methods)
    }

    /// Representer points on the last hidden layer.
    fn representer<T: Real>(&self, context: &Context) -> Result<Method, Error> {
        let spec = KernelSpec { kernel: Some("ck".to_owned()), ..self.spec.clone() };
        let mut rows = KernelRows::<T>::build(spec, &self.known.source, &self.known.samples.shapes())?;
        rows.compute(&self.known.samples.inputs, context)?;
        let spec = SurrogateSpec { norm: PenaltyNorm::Function, ..SurrogateSpec::default() };
        let (surrogate, _) = spec.fit(&rows, &self.known.classes, None, self.seed, context)?;
        Ok(Method::single("representer", self.attribution(&rows, &surrogate, context)?))
    }
}
