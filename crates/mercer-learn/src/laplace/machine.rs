//! The machine: a network, its curvature on some data, and a prior.

use super::blocks::Blocks;
use super::dense::Dense;
use super::head::Head;
use super::jacobian::Jacobian;
use super::last_layer::LastFull;
use super::last_sides::LastSides;
use super::likelihood::check_labels;
use super::needs::PosteriorNeeds;
use super::pace::Pace;
use super::settings::{LaplaceSettings, Structure};
use super::source::{Batch, Source};
use super::tangent::Projection;
use super::target::Target;
use crate::error::{LearnError, Result, check_positive, check_size, setting};
use crate::repair::{self, Repair};
use mercer_data::{Dataset, Labels, RowBlock};
use mercer_kernel::activation::Activations;
use mercer_kernel::empirical::{Gradients, NtkKind};
use mercer_kernel::sketch::{self, Sketch, Spec};
use mercer_kernel::{FeatureMap, KernelError, Real};
use mercer_net::Network;
use mercer_net::network::Logits;
use mercer_run::Context;
use ndarray::{Array2, ArrayView1, ArrayView2};
use std::ops::Range;
use std::sync::Arc;

/// The approximate limit on the features or factors of a block of samples.
const BLOCK_BYTES: usize = 128 << 20;

/// The most samples in a block: larger products are not faster.
const LARGEST_BLOCK: usize = 1024;

/// A linearised Laplace approximation of a network's posterior.
#[derive(Debug)]
pub struct Laplace<T> {
    pub(super) settings: LaplaceSettings,
    pub(super) samples: Vec<Vec<usize>>,
    outputs: Activations<T>,
    /// Of the outputs.
    pace: Pace,
    n_outputs: usize,
    pub(super) fingerprint: String,
    pub(super) curvature: Curvature<T>,
    pub(super) squared_norm: f64,
    pub(super) log_likelihood: f64,
    pub(super) n_samples: usize,
    /// The least-squares problem for the part of the parameters that features represent.
    projection: Option<Projection<T>>,
    notes: Vec<String>,
}

/// `H` in one of its forms.
#[derive(Debug)]
pub(super) enum Curvature<T> {
    Blocks(Blocks<T>),
    Dense(Dense<T>),
    Last(LastFull<T>),
    Sides(LastSides<T>),
}

impl<T: Real> Laplace<T> {
    /// Fits the posterior on the data on which the network was trained, one [`Dataset`] per input.
    ///
    /// # Errors
    /// For settings, labels or data that do not match, and for a network without a linear last layer where one is
    /// needed.
    pub fn fit(
        network: &Network,
        data: &[Dataset],
        labels: &Labels,
        settings: &LaplaceSettings,
        context: &Context,
    ) -> Result<Self> {
        if matches!(settings.structure, Structure::Features { .. }) {
            let reason = "features must be given to `fit_features`";
            return Err(setting("the structure", settings.structure, reason));
        }
        let samples = sample_shapes(data);
        Self::unfitted(network, &samples, settings, None, Some(context))?.learn(data, labels, context)
    }

    /// As [`fit`](Self::fit), through features of the outputs: the map gives the features of the first output, then of
    /// the second, and so on. Scaled eigenfunctions `√μ_j ψ_j` of the tangent kernel give equation 22.
    pub fn fit_features(
        network: &Network,
        map: Arc<dyn FeatureMap<T>>,
        data: &[Dataset],
        labels: &Labels,
        settings: &LaplaceSettings,
        context: &Context,
    ) -> Result<Self> {
        if !matches!(settings.structure, Structure::Features { .. }) {
            let reason = "features are given, so it must be `features`";
            return Err(setting("the structure", settings.structure, reason));
        }
        let samples = sample_shapes(data);
        Self::unfitted(network, &samples, settings, Some(map), Some(context))?.learn(data, labels, context)
    }

    /// The machine before it has seen any data. Without a context it is one that was fitted before.
    pub(super) fn unfitted(
        network: &Network,
        samples: &[Vec<usize>],
        settings: &LaplaceSettings,
        map: Option<Arc<dyn FeatureMap<T>>>,
        context: Option<&Context>,
    ) -> Result<Self> {
        let features = map.as_ref().map(|map| map.n_features());
        let needs = PosteriorNeeds::estimate::<T>(network, samples, settings, features)?;
        match context {
            Some(context) => needs.check(settings, context)?,
            None => needs.fitted().check(settings, &Context::new())?,
        }
        let graph = network.graph(samples)?;
        if graph.parameters().is_empty() {
            return Err(setting("the number of parameters", 0, "a posterior needs parameters"));
        }
        let Target { value: output, logits, .. } = Target::new(&graph, settings)?;
        let n_outputs = graph.value(output).meta.numel();
        let weights = network.weights::<T>(&graph);
        let selection = settings.selection(&graph)?;
        let gradients = || Gradients::new(network, samples, NtkKind::Trace, &selection);
        let kernel = |wanted: bool| -> Result<Option<Blocks<T>>> {
            Ok(if wanted { Some(Blocks::new(Source(gradients()?), false)) } else { None })
        };
        let head = || Head::new(network, &graph, output);
        let (curvature, chosen) = match settings.structure {
            Structure::Diagonal => {
                let source = gradients()?;
                let chosen = source.chosen().to_vec();
                (Curvature::Blocks(Blocks::new(Source(source), false)), chosen)
            }
            Structure::Kronecker => {
                let source = gradients()?;
                let chosen = source.chosen().to_vec();
                (Curvature::Blocks(Blocks::new(Source(source), true)), chosen)
            }
            Structure::Full => {
                let source = gradients()?;
                let chosen = source.chosen().to_vec();
                let pace = Pace::of_shards(source.grain(), source.flops(&vec![false; chosen.len()]));
                (Curvature::Dense(Dense::new(Arc::new(Jacobian::new(source)), pace, n_outputs, None)), chosen)
            }
            Structure::LastLayerKronecker | Structure::LastLayerDiagonal | Structure::LastLayerFull => {
                let head = head()?;
                let mut chosen = vec![false; graph.parameters().len()];
                head.chosen().into_iter().for_each(|parameter| chosen[parameter] = true);
                let curvature = match settings.structure {
                    Structure::LastLayerFull => Curvature::Last(LastFull::new(head)),
                    structure => Curvature::Sides(LastSides::new(head, structure == Structure::LastLayerKronecker)),
                };
                (curvature, chosen)
            }
            Structure::Sketch { method, k, seed, residual } => {
                let spec = Spec { method, k, total: false, seed, kind: NtkKind::Trace, selection: selection.clone() };
                let sketch = Arc::new(Sketch::<T>::from_spec(network, samples, &spec)?);
                let pace = match method {
                    sketch::SketchMethod::Gaussian | sketch::SketchMethod::Rademacher => Pace::of_products,
                    _ => Pace::of_shards,
                };
                let pace = pace(sketch.grain(), sketch.effort().flops);
                (
                    Curvature::Dense(Dense::new(sketch, pace, n_outputs, kernel(residual)?)),
                    gradients()?.chosen().to_vec(),
                )
            }
            Structure::Features { residual } => {
                let Some(map) = map else {
                    return Err(setting("the structure", settings.structure, "its features are not given"));
                };
                if !map.n_features().is_multiple_of(n_outputs.max(1)) {
                    let reason = "every output must have the same number of them";
                    return Err(setting("the number of features", map.n_features(), reason));
                }
                let source = gradients()?;
                let passes = source.flops(&vec![false; source.chosen().len()]);
                let pace = Pace::of_products(source.grain(), passes + map.effort().flops);
                (Curvature::Dense(Dense::new(map, pace, n_outputs, kernel(residual)?)), source.chosen().to_vec())
            }
        };
        let squares = |array: &Vec<T>| array.iter().map(|x| x.wide() * x.wide()).sum::<f64>();
        let squared_norm =
            weights.parameters.iter().zip(&chosen).filter(|(_, own)| **own).map(|(a, _)| squares(a)).sum();
        let fingerprint = weights.fingerprint(&graph);
        let likelihood = settings.likelihood.with_outputs(n_outputs)?;
        // The value is stored by name, so that a saved posterior does not depend on how it was found.
        let output_name = logits.as_ref().map(|logits| logits.name.clone()).or_else(|| settings.output.clone());
        let mut notes = Vec::new();
        notes.extend(logits.map(|Logits { name, node, .. }| {
            format!("the posterior is over the logits {name:?}, before the final {node}")
        }));
        let projection = match &curvature {
            Curvature::Dense(dense) if settings.structure != Structure::Full => {
                Some(Projection::new(gradients()?, dense.curvature.nrows()))
            }
            _ => None,
        };
        Ok(Self {
            settings: LaplaceSettings { likelihood, output: output_name, ..settings.clone() },
            samples: samples.to_vec(),
            outputs: Activations::of_values(network, Arc::clone(&graph), vec![output])?,
            pace: Pace::forward(&graph),
            n_outputs,
            fingerprint,
            curvature,
            squared_norm,
            log_likelihood: 0.0,
            n_samples: 0,
            projection,
            notes,
        })
    }

    fn learn(mut self, data: &[Dataset], labels: &Labels, context: &Context) -> Result<Self> {
        let total = count(data)?;
        check_labels(labels, total)?;
        self.settings.check_samples(total)?;
        let mut probable = true;
        let joint = !matches!(self.curvature, Curvature::Sides(_));
        for rows in self.blocks(total, joint) {
            context.check()?;
            let block = RowBlock::<T>::read(data, rows.clone())?;
            let slices = block.slices();
            let forward = self.forward(&slices, rows.len(), context).map_err(|error| shifted(error, rows.start))?;
            let (batch, outputs) = forward;
            let likelihood = self.settings.likelihood;
            self.log_likelihood += likelihood.log_likelihood(outputs.view(), labels, rows.start)?;
            let added = match &mut self.curvature {
                Curvature::Blocks(blocks) => blocks.accumulate(&batch, &likelihood.roots(outputs.view())),
                Curvature::Dense(dense) => {
                    dense.accumulate(&batch, &likelihood.roots(outputs.view()), self.projection.as_mut())
                }
                Curvature::Last(last) => last.accumulate(&batch, &likelihood.curvature(outputs.view())),
                Curvature::Sides(sides) => sides.accumulate(&batch, outputs.view(), likelihood),
            };
            added.map_err(|error| shifted(error, rows.start))?;
            self.n_samples += rows.len();
            probable &= are_probabilities(outputs.view());
            context.report(rows.end, total, "samples");
        }
        match &mut self.curvature {
            Curvature::Blocks(blocks) => blocks.finish(context)?,
            Curvature::Dense(dense) => dense.finish(),
            Curvature::Last(last) => last.finish(),
            Curvature::Sides(sides) => sides.finish(self.settings.likelihood, context)?,
        }
        if let Some(projection) = self.projection.take() {
            self.squared_norm = projection.squared_norm()?;
        }
        if probable && self.settings.likelihood.is_of_classes() {
            self.notes.push(
                "the outputs are never negative and sum to one: they look like probabilities, and their softmax is taken \
                 again; name the logits as the output"
                    .to_owned(),
            );
        }
        let ratio = self.train_size() as f64 / self.n_samples as f64;
        if ratio != 1.0 {
            self.scale_curvature(ratio);
            self.log_likelihood *= ratio;
        }
        match self.log_likelihood.is_finite() && self.squared_norm.is_finite() {
            true => Ok(self),
            false => Err(LearnError::NotFinite { what: "likelihood" }),
        }
    }

    /// Multiplies the curvature.
    pub(super) fn scale_curvature(&mut self, factor: f64) {
        match &mut self.curvature {
            Curvature::Blocks(blocks) => blocks.scale(factor),
            Curvature::Dense(dense) => dense.scale(factor),
            Curvature::Last(last) => last.scale(factor),
            Curvature::Sides(sides) => sides.scale(factor),
        }
    }

    /// Notes on how it was fitted.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The number of samples that the posterior represents: those that were given, or those for which they stand.
    pub fn train_size(&self) -> usize {
        self.settings.train_size.unwrap_or(self.n_samples)
    }

    /// The settings, with the current prior.
    pub fn settings(&self) -> &LaplaceSettings {
        &self.settings
    }

    /// The number of outputs.
    pub fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    /// The number of training samples.
    pub fn n_samples(&self) -> usize {
        self.n_samples
    }

    /// The precision of the prior.
    pub fn prior_precision(&self) -> f64 {
        self.settings.prior_precision
    }

    /// Changes the prior, without another pass over the data.
    pub fn set_prior_precision(&mut self, precision: f64) -> Result<()> {
        self.settings.prior_precision = check_positive("the prior precision", precision)?;
        Ok(())
    }

    /// `‖θ‖²` of the parameters that are not fixed; with features, `‖w*‖²` of the part that they represent.
    pub fn squared_norm(&self) -> f64 {
        self.squared_norm
    }

    /// `ln p(y|θ)` of the training data.
    pub fn log_likelihood(&self) -> f64 {
        self.log_likelihood
    }

    /// Repairs at the current prior: jitter for a curvature that is singular up to rounding.
    pub fn repairs(&self) -> Result<Vec<Repair>> {
        let precision = self.prior_precision();
        Ok(match &self.curvature {
            Curvature::Blocks(_) | Curvature::Sides(_) => Vec::new(),
            Curvature::Dense(dense) => repair::jitter(&*dense.factor(precision)?).into_iter().collect(),
            Curvature::Last(last) => last.repair(precision)?.into_iter().collect(),
        })
    }

    /// `ln det(H/δ + I)`.
    pub(super) fn log_det_ratio(&self, precision: f64) -> Result<f64> {
        match &self.curvature {
            Curvature::Blocks(blocks) => Ok(blocks.log_det_ratio(precision)),
            Curvature::Dense(dense) => dense.log_det_ratio(precision),
            Curvature::Last(last) => last.log_det_ratio(precision),
            Curvature::Sides(sides) => Ok(sides.log_det_ratio(precision)),
        }
    }

    /// `γ = tr H(H + δI)⁻¹`: how many parameters the data determine.
    pub fn effective_parameters(&self, precision: f64) -> Result<f64> {
        match &self.curvature {
            Curvature::Blocks(blocks) => Ok(blocks.effective_parameters(precision)),
            Curvature::Dense(dense) => dense.effective_parameters(precision),
            Curvature::Last(last) => last.effective_parameters(precision),
            Curvature::Sides(sides) => Ok(sides.effective_parameters(precision)),
        }
    }

    /// The outputs of some samples, and what a last-layer posterior needs from the same pass.
    pub(super) fn forward<'a>(
        &self,
        inputs: &'a [&'a [T]],
        samples: usize,
        context: &'a Context,
    ) -> Result<(Batch<'a, T>, Array2<f64>)> {
        let head = match &self.curvature {
            Curvature::Last(last) => Some(last.head()),
            Curvature::Sides(sides) => Some(sides.head()),
            Curvature::Blocks(_) | Curvature::Dense(_) => None,
        };
        let (features, outputs) = match head {
            Some(head) => head.forward(inputs, samples, context)?,
            None => {
                let mut outputs = vec![T::zero(); samples * self.n_outputs];
                self.pace.features(&self.outputs, (inputs, samples), &mut outputs, context)?;
                (Vec::new(), outputs)
            }
        };
        Ok((Batch { inputs, samples, features, context }, super::algebra::wide(&outputs, self.n_outputs)))
    }

    /// Blocks of samples. Their size depends only on the network and the structure, and on whether there is a matrix of side
    /// `C` for every sample.
    pub(super) fn blocks(&self, total: usize, joint: bool) -> impl Iterator<Item = Range<usize>> + use<T> {
        let bytes = match &self.curvature {
            Curvature::Blocks(blocks) => blocks.sample_bytes(),
            Curvature::Dense(dense) => dense.sample_bytes(),
            Curvature::Last(last) => last.sample_bytes(),
            Curvature::Sides(sides) => sides.sample_bytes(),
        };
        let rows = block_rows(bytes.saturating_add(if joint { matrices_bytes(self.n_outputs) } else { 0 }));
        (0..total).step_by(rows).map(move |start| start..(start + rows).min(total))
    }
}

/// The samples of a block, of which each takes this many bytes.
pub(super) fn block_rows(bytes: usize) -> usize {
    let fitting = (BLOCK_BYTES / bytes.max(1)).clamp(1, LARGEST_BLOCK);
    // A power of two, so that shards are whole.
    if fitting.is_power_of_two() { fitting } else { fitting.next_power_of_two() / 2 }
}

/// Bytes of the matrices of a sample's outputs: a curvature or its root, or a covariance and its parts.
pub(super) fn matrices_bytes(n_outputs: usize) -> usize {
    n_outputs.saturating_mul(n_outputs).saturating_mul(2 * size_of::<f64>())
}

/// Whether all rows are distributions over classes, up to the rounding of single precision.
fn are_probabilities(outputs: ArrayView2<'_, f64>) -> bool {
    let distribution = |row: ArrayView1<'_, f64>| row.iter().all(|&p| p >= 0.0) && (row.sum() - 1.0).abs() < 1e-4;
    outputs.ncols() > 1 && outputs.outer_iter().all(distribution)
}

pub(super) fn sample_shapes(data: &[Dataset]) -> Vec<Vec<usize>> {
    data.iter().map(|data| data.sample_shape().to_vec()).collect()
}

/// The number of samples, the same in all inputs.
pub(super) fn count(data: &[Dataset]) -> Result<usize> {
    let Some(first) = data.first() else { return Err(LearnError::Empty { what: "data" }) };
    data.iter().try_for_each(|data| check_size("the number of samples", first.n_samples(), data.n_samples()))?;
    if first.n_samples() == 0 { Err(LearnError::Empty { what: "data" }) } else { Ok(first.n_samples()) }
}

/// The same error, with samples counted from `start`.
pub(super) fn shifted(error: LearnError, start: usize) -> LearnError {
    match error {
        LearnError::Kernel(error) => error.shifted(start).into(),
        LearnError::Network(error) => KernelError::Network(error).shifted(start).into(),
        other => other,
    }
}
