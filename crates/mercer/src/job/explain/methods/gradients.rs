//! Methods on the sketched gradients of the log-odds.

use super::{Method, Problem, slopes};
use crate::Error;
use crate::job::surrogate::KernelRows;
use crate::spec::{KernelSpec, NetworkSource, ParameterSpec, open_network};
use mercer_data::Dataset;
use mercer_kernel::gram::{FeatureRun, Sink};
use mercer_kernel::store::TilePlace;
use mercer_kernel::{KernelError, Real};
use mercer_learn::softmax;
use mercer_lens::log_odds;
use mercer_linalg::{cholesky_shifted, matmul, matmul_into, syrk};
use mercer_net::train::files;
use mercer_run::Context;
use ndarray::{Array1, Array2, Axis};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Features of the sketched gradients of a network with more parameters than [`NEARLY_EXACT`].
const FEATURES: usize = 2048;

/// Parameters up to which there are as many features: a Hadamard transform, which keeps the products within a tensor.
const NEARLY_EXACT: usize = 8192;

/// Damping values, relative to the mean eigenvalue of `ΦᵀΦ`.
const DAMPINGS: [f64; 7] = [1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3];

/// Checkpoints that are looked at besides the network itself.
const MOST_CHECKPOINTS: usize = 4;

/// The gradients of one network.
struct Gradients {
    train: Array2<f64>,
    test: Array2<f64>,
    /// `1 − p` of the label of every training sample.
    doubt: Array1<f64>,
    /// `Σᵢ Jᵢᵀ(diag pᵢ − pᵢpᵢᵀ)Jᵢ` over the training samples, the curvature of their loss; only if it was asked for.
    curvature: Option<Array2<f64>>,
}

impl Gradients {
    /// `∇ℓ(x)ᵀ(ΦᵀΦ + λI)⁻¹∇ℓ(xᵢ)` for every damping.
    fn damped(&self, context: &Context) -> Result<Vec<Array2<f64>>, Error> {
        self.damped_by(&syrk(self.train.t()), context)
    }

    /// The same with another matrix than `ΦᵀΦ`.
    fn damped_by(&self, normal: &Array2<f64>, context: &Context) -> Result<Vec<Array2<f64>>, Error> {
        let mean = normal.diag().mean().unwrap_or(1.0).max(f64::MIN_POSITIVE);
        let one = |damping: f64| {
            context.check()?;
            let solved = cholesky_shifted(normal.view(), damping * mean)?.solve(self.train.t())?;
            Ok(matmul(self.test.view(), solved.view()))
        };
        DAMPINGS.into_iter().map(one).collect()
    }
}

impl Problem<'_> {
    /// Methods on the gradients of the log-odds. The scores of the network are of training and test samples.
    pub(super) fn gradients<T: Real>(
        &self,
        network: (&Array2<f64>, &Array2<f64>),
        context: &Context,
    ) -> Result<Vec<Method>, Error> {
        let mut own = self.of_network::<T>(&self.known.source, network, true, context)?;
        let length = |rows: &Array2<f64>| rows.map_axis(Axis(1), |row| row.dot(&row).sqrt().max(f64::MIN_POSITIVE));
        let (left, right) = (length(&own.test), length(&own.train));
        let products = matmul(own.test.view(), own.train.t());
        let cosine = &products / &left.insert_axis(Axis(1)) / &right;
        let mut methods =
            vec![Method::single("gradient dot", &products * &own.doubt), Method::single("gradient cosine", cosine)];
        let single = own.damped(context)?;
        let scores = |damped: &[Array2<f64>], doubt: &Array1<f64>| {
            DAMPINGS.iter().zip(damped).map(|(&damping, product)| (Some(damping), product * doubt)).collect()
        };
        methods.push(Method { name: "TRAK".to_owned(), candidates: scores(&single, &own.doubt) });
        if let Some(curvature) = own.curvature.take() {
            let damped = own.damped_by(&curvature, context)?;
            methods.push(Method { name: "influence".to_owned(), candidates: scores(&damped, &own.doubt) });
        }
        let checkpoints = self.checkpoints()?;
        if !checkpoints.is_empty() {
            let (mut damped, mut doubt) = (single, own.doubt);
            for path in &checkpoints {
                let network = open_network(&self.known.path, &self.with_weights(path))?;
                let of_inputs = |inputs: &[Dataset]| self.known.logits.scores::<T>(&network, inputs, context);
                let said = (of_inputs(&self.known.samples.inputs)?, of_inputs(self.test)?);
                let source = NetworkSource::Trained(network);
                let other = self.of_network::<T>(&source, (&said.0, &said.1), false, context)?;
                damped.iter_mut().zip(other.damped(context)?).for_each(|(sum, own)| *sum += &own);
                doubt += &other.doubt;
            }
            let name = format!("TRAK, {} checkpoints", checkpoints.len() + 1);
            methods.push(Method { name, candidates: scores(&damped, &doubt) });
        }
        Ok(methods)
    }

    /// Earlier weights of the network that its training left beside it, [`MOST_CHECKPOINTS`] of them, evenly spaced. The
    /// last ones are the network itself, and those of the first half of the training are far from it.
    fn checkpoints(&self) -> Result<Vec<PathBuf>, Error> {
        let folder = self.known.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let mut all = files::checkpoints(folder)?;
        let last = all.pop().map_or(0, |(epoch, _)| epoch);
        all.retain(|(epoch, _)| 2 * epoch >= last);
        let count = all.len().min(MOST_CHECKPOINTS);
        Ok((0..count).map(|at| folder.join(&all[at * all.len() / count].1)).collect())
    }

    fn with_weights(&self, path: &Path) -> ParameterSpec {
        ParameterSpec { weights: Some(path.to_owned()), ..self.spec.parameters.clone() }
    }

    fn of_network<T: Real>(
        &self,
        source: &NetworkSource,
        (network_train, network_test): (&Array2<f64>, &Array2<f64>),
        with_curvature: bool,
        context: &Context,
    ) -> Result<Gradients, Error> {
        let (labels, train) = (self.known.classes.indices(), &self.known.samples.inputs);
        let odds = log_odds(network_train.view(), labels)?;
        let of_train = self.log_odds_gradients::<T>(source, train, (network_train, labels), with_curvature, context)?;
        let of_test = (network_test, self.classes);
        Ok(Gradients {
            train: of_train.gradients,
            test: self.log_odds_gradients::<T>(source, self.test, of_test, false, context)?.gradients,
            doubt: odds.iter().map(|odds| 1.0 / (1.0 + odds.exp())).collect(),
            curvature: of_train.curvature,
        })
    }

    /// Sketched gradients of the log-odds of the classes: `Σ_c ∂ℓ/∂s_c · P g^c`.
    fn log_odds_gradients<T: Real>(
        &self,
        source: &NetworkSource,
        samples: &[Dataset],
        (scores, classes): (&Array2<f64>, &[usize]),
        with_curvature: bool,
        context: &Context,
    ) -> Result<Collected, Error> {
        let n_parameters = source.network().map_or(usize::MAX, mercer_net::Network::n_params);
        let (method, width) = match n_parameters <= NEARLY_EXACT {
            true => ("srht", n_parameters.next_power_of_two()),
            false => ("sjlt", FEATURES),
        };
        let text = format!("trace(sketch={method}:{width})");
        let spec = KernelSpec { kernel: Some(text), ..self.spec.clone() };
        let rows = KernelRows::<T>::build(spec, source, &self.known.samples.shapes())?;
        let Some(map) = rows.map() else { return Err(Error::new("a sketch has features")) };
        let n_outputs = map.n_features() / width;
        // The scores of a network with one output are zero and the output.
        let first = scores.ncols().saturating_sub(n_outputs);
        let slopes = slopes(scores.view(), classes).slice_move(ndarray::s![.., first..]);
        let shares = with_curvature.then(|| softmax(scores.view()).slice_move(ndarray::s![.., first..]));
        let collected = Mutex::new(Collected {
            gradients: Array2::zeros((classes.len(), width)),
            curvature: with_curvature.then(|| Array2::zeros((width, width))),
        });
        let run = FeatureRun::new(&**map, samples);
        let sink = Collector { slopes: &slopes, shares: shares.as_ref(), width, collected: &collected };
        run.run(&run.layout().all_tiles(), &sink, context).map_err(|error| rows.spec.failure(error))?;
        Ok(collected.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What is collected from the features of samples.
struct Collected {
    gradients: Array2<f64>,
    curvature: Option<Array2<f64>>,
}

/// Combines the features of the outputs with a slope each, and adds up the curvature.
struct Collector<'a> {
    slopes: &'a Array2<f64>,
    /// The probabilities of the outputs, if the curvature is wanted.
    shares: Option<&'a Array2<f64>>,
    /// Features of an output.
    width: usize,
    collected: &'a Mutex<Collected>,
}

impl<T: Real> Sink<T> for Collector<'_> {
    fn write(&self, _: usize, place: &TilePlace, matrices: &[&[T]]) -> Result<(), KernelError> {
        let mut collected = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        let n_outputs = self.slopes.ncols();
        let samples = || place.rows.clone().zip(matrices[0].chunks_exact(n_outputs * self.width));
        for (row, features) in samples() {
            let mut out = collected.gradients.row_mut(row);
            for (own, &slope) in features.chunks_exact(self.width).zip(self.slopes.row(row)) {
                out.iter_mut().zip(own).for_each(|(sum, value)| *sum += slope * value.wide());
            }
        }
        if let (Some(shares), Some(curvature)) = (self.shares, &mut collected.curvature) {
            // With the mean m = Σ p_c g^c over all classes, the curvature of a sample is Σ_c p_c (g^c − m)(g^c − m)ᵀ. The
            // class without an output has g = 0.
            let mut roots = Array2::<f64>::zeros((place.rows.len() * (n_outputs + 1), self.width));
            let mut next = roots.outer_iter_mut();
            for (row, features) in samples() {
                let shares = shares.row(row);
                let mut mean = Array1::<f64>::zeros(self.width);
                for (own, &share) in features.chunks_exact(self.width).zip(shares) {
                    mean.iter_mut().zip(own).for_each(|(sum, value)| *sum += share * value.wide());
                }
                for (own, &share) in features.chunks_exact(self.width).zip(shares) {
                    let Some(mut root) = next.next() else { continue };
                    let values = own.iter().zip(&mean).map(|(value, mean)| share.sqrt() * (value.wide() - mean));
                    root.iter_mut().zip(values).for_each(|(slot, value)| *slot = value);
                }
                let rest = (1.0 - shares.sum()).max(0.0).sqrt();
                let Some(mut root) = next.next() else { continue };
                root.assign(&mean.mapv(|value| -rest * value));
            }
            matmul_into(1.0, roots.t(), roots.view(), true, curvature.view_mut());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    /// The curvature is `Σᵢ Jᵢᵀ(diag pᵢ − pᵢpᵢᵀ)Jᵢ`, with all outputs or with one for two classes; gradients are `Σ_c slope_c g^c`.
    #[test]
    fn the_curvature_is_that_of_the_softmax() {
        let scores = array![[0.3, -1.0, 0.5], [2.0, 0.1, -0.4]];
        let features = [1.0, 2.0, -0.5, 0.25, 3.0, -1.0, 0.5, 0.5, -2.0, 1.5, 0.0, 1.0];
        for first in [0, 1] {
            let n_outputs = 3 - first;
            let all = softmax(scores.view());
            let shares = all.slice(ndarray::s![.., first..]).to_owned();
            let slopes = Array2::from_shape_fn((2, n_outputs), |(i, c)| (i + 2 * c) as f64 - 0.7);
            let width = 2;
            let empty =
                Collected { gradients: Array2::zeros((2, width)), curvature: Some(Array2::zeros((width, width))) };
            let collected = Mutex::new(empty);
            let collector = Collector { slopes: &slopes, shares: Some(&shares), width, collected: &collected };
            let place = TilePlace { rows: 0..2, columns: 0..1, row_block: 0, column_block: 0 };
            let own = &features[..2 * n_outputs * width];
            Sink::<f64>::write(&collector, 0, &place, &[own]).expect("collects");
            let found = collected.into_inner().expect("nobody panicked");
            let (mut curvature, mut gradients) = (Array2::<f64>::zeros((2, 2)), Array2::<f64>::zeros((2, 2)));
            for i in 0..2 {
                let jacobian = Array2::from_shape_fn((n_outputs, width), |(c, k)| own[(i * n_outputs + c) * width + k]);
                let p = shares.row(i);
                let inner = Array2::from_diag(&p) - Array2::from_shape_fn((n_outputs, n_outputs), |(c, d)| p[c] * p[d]);
                curvature += &jacobian.t().dot(&inner).dot(&jacobian);
                gradients.row_mut(i).assign(&slopes.row(i).dot(&jacobian));
            }
            let near = |a: &Array2<f64>, b: &Array2<f64>| (a - b).iter().all(|x| x.abs() < 1e-12);
            assert!(near(&found.gradients, &gradients));
            assert!(near(&found.curvature.expect("asked for"), &curvature), "{first}");
        }
    }
}
