//! Methods on the sketched gradients of the log-odds.

use super::{Method, Problem, slopes};
use crate::Error;
use crate::job::surrogate::KernelRows;
use crate::spec::{KernelSpec, NetworkSource, ParameterSpec, open_network};
use mercer_data::Dataset;
use mercer_kernel::gram::{FeatureRun, Sink};
use mercer_kernel::store::TilePlace;
use mercer_kernel::{KernelError, Real};
use mercer_lens::log_odds;
use mercer_linalg::{cholesky_shifted, matmul, syrk};
use mercer_net::train::files;
use mercer_run::Context;
use ndarray::{Array1, Array2, Axis};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Features of the sketched gradients.
const FEATURES: usize = 2048;

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
}

impl Gradients {
    /// `∇ℓ(x)ᵀ(ΦᵀΦ + λI)⁻¹∇ℓ(xᵢ)` for every damping.
    fn damped(&self, context: &Context) -> Result<Vec<Array2<f64>>, Error> {
        let normal = syrk(self.train.t());
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
        let own = self.of_network::<T>(&self.known.source, network, context)?;
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
        let checkpoints = self.checkpoints()?;
        if !checkpoints.is_empty() {
            let (mut damped, mut doubt) = (single, own.doubt);
            for path in &checkpoints {
                let network = open_network(&self.known.path, &self.with_weights(path))?;
                let of_inputs = |inputs: &[Dataset]| self.known.logits.scores::<T>(&network, inputs, context);
                let said = (of_inputs(&self.known.samples.inputs)?, of_inputs(self.test)?);
                let source = NetworkSource::Trained(network);
                let other = self.of_network::<T>(&source, (&said.0, &said.1), context)?;
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
        context: &Context,
    ) -> Result<Gradients, Error> {
        let (labels, train) = (self.known.classes.indices(), &self.known.samples.inputs);
        let odds = log_odds(network_train.view(), labels)?;
        Ok(Gradients {
            train: self.log_odds_gradients::<T>(source, train, network_train, labels, context)?,
            test: self.log_odds_gradients::<T>(source, self.test, network_test, self.classes, context)?,
            doubt: odds.iter().map(|odds| 1.0 / (1.0 + odds.exp())).collect(),
        })
    }

    /// Sketched gradients of the log-odds of the classes: `Σ_c ∂ℓ/∂s_c · P g^c`.
    fn log_odds_gradients<T: Real>(
        &self,
        source: &NetworkSource,
        samples: &[Dataset],
        scores: &Array2<f64>,
        classes: &[usize],
        context: &Context,
    ) -> Result<Array2<f64>, Error> {
        let text = format!("trace(sketch=sjlt:{FEATURES})");
        let spec = KernelSpec { kernel: Some(text), ..self.spec.clone() };
        let rows = KernelRows::<T>::build(spec, source, &self.known.samples.shapes())?;
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
