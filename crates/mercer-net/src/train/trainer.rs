//! One step of training: forward and reverse over fixed shards of a batch, then an update.
//!
//! A batch is split into shards whose size depends only on the network. Lane `j` of [`LANES`] works through the shards
//! `j, j + LANES, …` one after the other and adds their gradients; then the lanes are added in order. Threads only
//! determine where a lane runs, so the result is the same to the bit for any number of threads. Once it has seen its
//! largest batch, a step on one thread allocates nothing. Networks with batch normalisation take their steps in
//! `together.rs`, where the lanes meet.

use super::lane::{Lane, Work};
use super::norm::Norm;
use super::together;
use super::{Loss, Optimiser, OptimiserState, Targets};
use crate::element::Element;
use crate::error::{NetError, Result};
use crate::graph::{Graph, ValueId};
use crate::network::{Logits, Shards, default_logits};
use crate::run::Weights;
use mercer_linalg::simd::dispatch;
use std::sync::Arc;

/// The number of lanes. More threads than this do not speed up a step.
pub const LANES: usize = 8;

/// Loss and accuracy of a network on some samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metrics {
    /// The mean loss.
    pub loss: f64,
    /// The share of samples whose class is predicted: the largest output, or class 1 where a single output is above 0
    /// before its sigmoid. `None` if there are no classes.
    pub accuracy: Option<f64>,
}

/// A network in training: its graph, its weights and the optimiser state.
///
/// ```
/// use mercer_net::arch::{Activation, Mlp};
/// use mercer_net::train::{Loss, Optimiser, Targets, Trainer};
///
/// let network = Mlp::new(2, &[8], 2).activation(Activation::Tanh).build(0)?;
/// let graph = network.declared_graph()?;
/// let weights = network.weights::<f32>(&graph);
/// let mut trainer = Trainer::new(graph, weights, Loss::CrossEntropy, Optimiser::adam())?;
/// let (points, classes) = ([0.0, 0.0, 1.0, 1.0], [0, 1]);
/// let first = trainer.step(&[&points], &Targets::classes(&classes), 2, 0.01)?;
/// let second = trainer.step(&[&points], &Targets::classes(&classes), 2, 0.01)?;
/// assert!(second < first);
/// # Ok::<(), mercer_net::NetError>(())
/// ```
#[derive(Debug)]
pub struct Trainer<T> {
    graph: Arc<Graph>,
    weights: Weights<T>,
    loss: Loss,
    optimiser: Optimiser,
    state: OptimiserState<T>,
    lanes: Vec<Lane<T>>,
    /// The normalisations by the statistics of a batch.
    norms: Vec<Norm<T>>,
    grain: usize,
    n_outputs: usize,
    /// All parameters one after the other.
    gradient: Vec<T>,
    correct: usize,
}

impl<T: Element> Trainer<T> {
    /// Starts training from these weights. The loss is computed at the network's first output. The cross-entropy
    /// includes a softmax, or a sigmoid for a single output, so it uses the logits before a final one of the network. The
    /// squared loss after the sigmoid uses the logits before a final sigmoid.
    ///
    /// A step normalises by the statistics of its batch where the graph has [statistics](Graph::statistics), and
    /// updates the running ones, which are part of the weights. Everything else uses the running ones.
    pub fn new(graph: Arc<Graph>, weights: Weights<T>, loss: Loss, optimiser: Optimiser) -> Result<Self> {
        optimiser.check()?;
        let Some(&(_, output)) = graph.outputs().first() else {
            return Err(NetError::Setting("the network has no output".into()));
        };
        let output = match default_logits(&graph).and_then(|(_, logits)| logits) {
            Some(logits) => before_squash(&graph, output, &loss, &logits)?,
            None => output,
        };
        let meta = &graph.value(output).meta;
        if !meta.is_batched() {
            return Err(NetError::Setting("the network's output does not depend on its input".into()));
        }
        let n_params = weights.parameters.iter().map(Vec::len).sum();
        let norms = Norm::find(&graph, &weights)?;
        let shared: Vec<ValueId> = norms.iter().flat_map(Norm::statistics).collect();
        Ok(Self {
            state: OptimiserState::new(&optimiser, n_params),
            lanes: (0..LANES).map(|_| Lane::new(&graph, output, &shared)).collect(),
            norms,
            grain: Shards::for_graph(&graph).grain.max(1),
            n_outputs: meta.numel(),
            gradient: vec![T::zero(); n_params],
            correct: 0,
            graph,
            weights,
            loss,
            optimiser,
        })
    }

    /// The graph.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// The current weights.
    pub fn weights(&self) -> &Weights<T> {
        &self.weights
    }

    /// The loss.
    pub fn loss(&self) -> &Loss {
        &self.loss
    }

    /// The optimiser.
    pub fn optimiser(&self) -> &Optimiser {
        &self.optimiser
    }

    /// The optimiser state.
    pub fn state(&self) -> &OptimiserState<T> {
        &self.state
    }

    /// The number of outputs per sample.
    pub fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    /// The gradient of the last step, all parameters one after the other.
    pub fn gradient(&self) -> &[T] {
        &self.gradient
    }

    /// Samples of the last step whose class was predicted, before the update.
    pub fn correct(&self) -> usize {
        self.correct
    }

    /// The approximate memory of steps on this many samples: weights, gradients, optimiser state, and the lanes in use.
    /// A network with batch normalisation holds all values of a batch.
    pub fn bytes(&self, samples: usize) -> usize {
        match self.norms.is_empty() {
            true => self.evaluation_bytes(samples),
            false => self.lane_bytes(samples, together::share(samples, self.grain)),
        }
    }

    /// The same for an evaluation of this many samples.
    pub fn evaluation_bytes(&self, samples: usize) -> usize {
        self.lane_bytes(samples, samples.min(self.grain))
    }

    /// The same for lanes that run so many samples together.
    fn lane_bytes(&self, samples: usize, shard: usize) -> usize {
        let lanes = samples.div_ceil(self.grain).clamp(1, LANES);
        let of_lanes = self.lanes.iter().take(lanes).map(|lane| lane.bytes(shard)).fold(0, usize::saturating_add);
        let fixed = 2 * self.gradient.len() + self.state.first.len() + self.state.second.len();
        let of_norms: usize = self.norms.iter().map(Norm::bytes).sum();
        of_lanes.saturating_add(fixed * size_of::<T>()).saturating_add(of_norms)
    }

    /// Continues from other weights and another state, as a resumed run does.
    ///
    /// # Panics
    /// If the sizes are not the graph's and the optimiser's.
    pub(super) fn restore(&mut self, parameters: Vec<Vec<T>>, statistics: &[Vec<T>], state: OptimiserState<T>) {
        assert_eq!((state.first.len(), state.second.len()), (self.state.first.len(), self.state.second.len()));
        self.weights = Weights::new(&self.graph, parameters);
        for (&id, numbers) in self.graph.statistics().iter().zip(statistics) {
            self.weights.set_statistic(&self.graph, id, numbers);
        }
        self.norms.iter_mut().for_each(|norm| norm.reset(&self.graph, &self.weights));
        self.state = state;
    }

    /// One step on a batch; returns its mean loss before the update. Inputs are `[samples, …]`, row-major.
    ///
    /// A loss that is not finite is [`NetError::Diverged`]; the weights are then unchanged.
    pub fn step(
        &mut self,
        inputs: &[&[T]],
        targets: &Targets<'_, T>,
        samples: usize,
        learning_rate: f64,
    ) -> Result<f64> {
        T::step(self, inputs, targets, samples, learning_rate)
    }

    pub(crate) fn learn(
        &mut self,
        inputs: &[&[T]],
        targets: &Targets<'_, T>,
        samples: usize,
        learning_rate: f64,
    ) -> Result<f64> {
        self.norms.iter().try_for_each(|norm| norm.check(samples))?;
        let metrics = self.pass(inputs, targets, samples, true)?;
        if !metrics.loss.is_finite() {
            let step = usize::try_from(self.state.steps).unwrap_or(usize::MAX).saturating_add(1);
            return Err(NetError::Diverged { epoch: None, step, loss: metrics.loss });
        }
        self.norms.iter_mut().for_each(|norm| norm.update(samples));
        self.restore_statistics();
        self.sum_lanes();
        self.optimiser.update(&mut self.state, &mut self.weights.parameters, &self.gradient, learning_rate);
        Ok(metrics.loss)
    }

    /// Loss and accuracy on some samples, without learning from them.
    pub fn evaluate(&mut self, inputs: &[&[T]], targets: &Targets<'_, T>, samples: usize) -> Result<Metrics> {
        T::evaluate(self, inputs, targets, samples)
    }

    pub(crate) fn pass(
        &mut self,
        inputs: &[&[T]],
        targets: &Targets<'_, T>,
        samples: usize,
        learn: bool,
    ) -> Result<Metrics> {
        self.check(inputs, targets, samples)?;
        let Self { graph, weights, loss, lanes, norms, grain, .. } = self;
        if learn && !norms.is_empty() {
            let grain = together::share(samples, *grain);
            together::pass(graph, weights, norms, lanes, &Work { loss, inputs, targets, samples, grain, learn });
            self.restore_statistics();
        } else {
            let work = Work { loss, inputs, targets, samples, grain: *grain, learn };
            together::each_lane(lanes, |(index, lane)| lane.run(index, weights, &work));
        }
        if let Some(error) = self.lanes.iter_mut().find_map(|lane| lane.failed.take()) {
            return Err(error);
        }
        self.correct = self.lanes.iter().map(|lane| lane.correct).sum();
        let total: f64 = self.lanes.iter().map(|lane| lane.loss).sum();
        let share = self.correct as f64 / samples as f64;
        let classes = matches!(targets.answers, super::Answers::Classes(_));
        Ok(Metrics { loss: total / samples as f64, accuracy: classes.then_some(share) })
    }

    /// The fewest samples that a step takes: two where a normalisation has one value per sample and channel.
    pub fn fewest_samples(&self) -> usize {
        self.norms.iter().map(Norm::fewest_samples).max().unwrap_or(1)
    }

    /// The weights hold the running statistics between steps.
    fn restore_statistics(&mut self) {
        self.norms.iter().for_each(|norm| norm.restore(&self.graph, &mut self.weights));
    }

    fn check(&self, inputs: &[&[T]], targets: &Targets<'_, T>, samples: usize) -> Result<()> {
        if samples == 0 {
            return Err(NetError::Setting("the batch has no samples".into()));
        }
        if inputs.len() != self.graph.inputs().len() || inputs.len() > super::lane::MAX_INPUTS {
            let (needs, most) = (self.graph.inputs().len(), super::lane::MAX_INPUTS);
            let text = format!("{} inputs were given, but the network has {needs} (at most {most})", inputs.len());
            return Err(NetError::Setting(text));
        }
        for (&id, data) in self.graph.inputs().iter().zip(inputs) {
            let value = self.graph.value(id);
            if data.len() != samples * value.meta.numel() {
                let reason = format!("{} numbers for {samples} samples of shape {:?}", data.len(), value.meta.shape);
                return Err(NetError::Input { input: value.name.clone(), reason });
            }
        }
        self.loss.check(targets, samples, self.n_outputs)
    }

    /// The lanes' gradients, added in the order of the lanes.
    fn sum_lanes(&mut self) {
        let Self { gradient, lanes, weights, .. } = self;
        let mut rest = gradient.as_mut_slice();
        for (index, values) in weights.parameters.iter().enumerate() {
            let sum = rest.split_off_mut(..values.len()).unwrap_or_default();
            sum_parts(sum, 0, index, lanes);
        }
    }
}

/// The value at which a loss is computed, for a network that ends in a softmax or sigmoid.
fn before_squash(graph: &Graph, output: ValueId, loss: &Loss, logits: &Logits) -> Result<ValueId> {
    let (is_sigmoid, is_one) = (logits.squash.is_single(), graph.value(output).meta.numel() == 1);
    match loss {
        Loss::CrossEntropy if is_one && !is_sigmoid => {
            Err(NetError::Setting("the softmax of a single output is always 1; use two outputs or a sigmoid".into()))
        }
        Loss::CrossEntropy if is_one || !is_sigmoid => Ok(logits.value),
        Loss::SigmoidSquared if is_sigmoid => Ok(logits.value),
        Loss::SigmoidSquared => Err(NetError::Setting(format!(
            "sigmoid-squared takes sigmoids of its own, but the network ends in {}",
            logits.node
        ))),
        Loss::CrossEntropy | Loss::Squared { .. } => Ok(output),
    }
}

/// Elements below which a sum is not split between threads.
const GRAIN: usize = 1 << 15;

/// `sum = Σ lanes` for the elements of a parameter from `start` on.
fn sum_parts<T: Element>(sum: &mut [T], start: usize, parameter: usize, lanes: &[Lane<T>]) {
    if sum.len() > GRAIN && rayon::current_num_threads() > 1 {
        let half = sum.len() / 2;
        let (one, two) = sum.split_at_mut(half);
        rayon::join(|| sum_parts(one, start, parameter, lanes), || sum_parts(two, start + half, parameter, lanes));
        return;
    }
    let range = start..start + sum.len();
    let mut parts = lanes.iter().filter_map(|lane| lane.gradient(parameter)).map(|whole| &whole[range.clone()]);
    match parts.next() {
        None => sum.fill(T::zero()),
        Some(first) => sum.copy_from_slice(first),
    }
    for part in parts {
        dispatch(
            #[inline(always)]
            || sum.iter_mut().zip(part).for_each(|(sum, &x)| *sum += x),
        );
    }
}
