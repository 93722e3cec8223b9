//! Batch normalisation in training: statistics of the whole batch, in the forward and in the reverse pass.
//!
//! With `M` values per channel in a batch (samples × positions), the statistics are `μ = Σx / M` and `v = Σ(x − μ)² /
//! M`. They are shared operands of [`BatchNorm`], so a reverse pass gives their cotangents `dμ` and `dv`, summed over
//! samples, and the derivative through the statistics is
//!
//! ```text
//! dx += dμ / M + 2 (x − μ) dv / M
//! ```
//!
//! The running statistics, which the network has at inference, are updated as PyTorch does: `r ← 0.9 r + 0.1 s`, where
//! `s` is `μ`, or the unbiased variance `v M / (M − 1)` (Ioffe and Szegedy, arXiv 1502.03167, algorithm 2).

use super::lane::Lane;
use crate::element::Element;
use crate::error::{NetError, Result};
use crate::graph::{Graph, ValueId};
use crate::op::{BatchNorm, Channels};
use crate::run::Weights;

/// The share of a batch in the running statistics: PyTorch's `momentum`.
const MOMENTUM: f64 = 0.1;

/// A batch normalisation of a network in training.
#[derive(Debug)]
pub(super) struct Norm<T> {
    /// Its position among the nodes.
    pub(super) node: usize,
    label: String,
    pub(super) x: ValueId,
    pub(super) channels: Channels,
    /// Values per channel in one sample.
    positions: usize,
    mean: Statistic<T>,
    variance: Statistic<T>,
    /// Constant and slope of the derivative through the statistics.
    through: [Vec<T>; 2],
    sum: Vec<f64>,
}

/// The mean or the variance: of all batches, and of this one.
#[derive(Debug)]
struct Statistic<T> {
    id: ValueId,
    running: Vec<T>,
    batch: Vec<T>,
}

impl<T: Element> Statistic<T> {
    fn new(graph: &Graph, weights: &Weights<T>, id: ValueId) -> Self {
        let running = weights.leaf(graph.value(id).origin).unwrap_or_default().to_vec();
        Self { id, batch: vec![T::zero(); running.len()], running }
    }

    /// Mixes the batch's numbers, times a factor, into the running ones.
    fn update(&mut self, factor: f64) {
        for (running, batch) in self.running.iter_mut().zip(&self.batch) {
            *running = T::narrow((1.0 - MOMENTUM) * running.wide() + MOMENTUM * factor * batch.wide());
        }
    }
}

impl<T: Element> Norm<T> {
    /// The batch normalisations whose statistics training measures, in order.
    ///
    /// # Errors
    /// If two of them share a statistic.
    pub(super) fn find(graph: &Graph, weights: &Weights<T>) -> Result<Vec<Self>> {
        let mut norms = Vec::new();
        for (at, node) in graph.nodes().iter().enumerate() {
            let &[x, _, _, mean, variance] = &node.inputs[..] else { continue };
            let is_measured = [mean, variance].iter().all(|id| graph.statistics().contains(id));
            if !node.op.as_any().is::<BatchNorm>() || !is_measured || !graph.value(x).meta.is_batched() {
                continue;
            }
            if [mean, variance].iter().any(|&id| graph.uses(id).len() > 1) {
                let text = format!("{}: its statistics are used twice, and cannot be measured", node.label());
                return Err(NetError::Setting(text));
            }
            let channels = Channels::new(&graph.value(x).meta.shape);
            let zeros = vec![T::zero(); channels.count];
            norms.push(Self {
                node: at,
                label: node.label(),
                x,
                positions: graph.value(x).meta.numel() / channels.count.max(1),
                mean: Statistic::new(graph, weights, mean),
                variance: Statistic::new(graph, weights, variance),
                through: [zeros.clone(), zeros],
                sum: vec![0.0; channels.count],
                channels,
            });
        }
        Ok(norms)
    }

    /// The values whose cotangents are needed.
    pub(super) fn statistics(&self) -> [ValueId; 2] {
        [self.mean.id, self.variance.id]
    }

    /// Bytes of its statistics and sums.
    pub(super) fn bytes(&self) -> usize {
        self.channels.count * (6 * size_of::<T>() + size_of::<f64>())
    }

    /// The fewest samples of a batch that has a variance.
    pub(super) fn fewest_samples(&self) -> usize {
        if self.positions > 1 { 1 } else { 2 }
    }

    /// Refuses a batch with a single value per channel: it has no variance.
    pub(super) fn check(&self, samples: usize) -> Result<()> {
        if samples >= self.fewest_samples() {
            return Ok(());
        }
        Err(NetError::Setting(format!(
            "{}: a batch of one sample has one value per channel, and so no variance; use batches of at least 2 samples",
            self.label
        )))
    }

    /// The mean of the batch, from the lanes' sums.
    pub(super) fn set_mean(&mut self, graph: &Graph, weights: &mut Weights<T>, lanes: &[Lane<T>], samples: usize) {
        let Self { mean, .. } = self;
        add_lanes(&mut self.sum, lanes);
        let count = (samples * self.positions) as f64;
        mean.batch.iter_mut().zip(&self.sum).for_each(|(mean, sum)| *mean = T::narrow(sum / count));
        weights.set_statistic(graph, mean.id, &mean.batch);
    }

    /// The variance of the batch, from the lanes' sums of squared distances from its mean.
    pub(super) fn set_variance(&mut self, graph: &Graph, weights: &mut Weights<T>, lanes: &[Lane<T>], samples: usize) {
        let Self { variance, .. } = self;
        add_lanes(&mut self.sum, lanes);
        let count = (samples * self.positions) as f64;
        variance.batch.iter_mut().zip(&self.sum).for_each(|(variance, sum)| *variance = T::narrow(sum / count));
        weights.set_statistic(graph, variance.id, &variance.batch);
    }

    /// The mean of the batch.
    pub(super) fn batch_mean(&self) -> &[T] {
        &self.mean.batch
    }

    /// The derivative through the statistics, from the cotangents of the lanes.
    pub(super) fn set_through(&mut self, lanes: &[Lane<T>], samples: usize) {
        let count = (samples * self.positions) as f64;
        let parts = [(self.mean.id, 1.0 / count), (self.variance.id, 2.0 / count)];
        for (numbers, (id, factor)) in self.through.iter_mut().zip(parts) {
            self.sum.fill(0.0);
            for lane in lanes {
                self.sum.iter_mut().zip(lane.shared_cotangent(id)).for_each(|(sum, x)| *sum += x.wide());
            }
            numbers.iter_mut().zip(&self.sum).for_each(|(number, sum)| *number = T::narrow(factor * sum));
        }
    }

    /// Adds the derivative through the statistics to the cotangent of some values.
    pub(super) fn add_through(&self, x: &[T], dx: &mut [T]) {
        let [constant, slope] = &self.through;
        self.channels.add_through(x, &self.mean.batch, [constant, slope], dx);
    }

    /// Takes the statistics of a batch of this many samples into the running ones.
    pub(super) fn update(&mut self, samples: usize) {
        let count = (samples * self.positions) as f64;
        self.mean.update(1.0);
        self.variance.update(count / (count - 1.0));
    }

    /// Takes other running statistics, as a resumed run does.
    pub(super) fn reset(&mut self, graph: &Graph, weights: &Weights<T>) {
        for statistic in [&mut self.mean, &mut self.variance] {
            statistic.running.copy_from_slice(weights.leaf(graph.value(statistic.id).origin).unwrap_or_default());
        }
    }

    /// Puts the running statistics back into the weights.
    pub(super) fn restore(&self, graph: &Graph, weights: &mut Weights<T>) {
        for statistic in [&self.mean, &self.variance] {
            weights.set_statistic(graph, statistic.id, &statistic.running);
        }
    }
}

/// The lanes' sums, added in the order of the lanes.
fn add_lanes<T: Element>(sum: &mut [f64], lanes: &[Lane<T>]) {
    sum.fill(0.0);
    for lane in lanes {
        sum.iter_mut().zip(lane.sums()).for_each(|(sum, x)| *sum += x);
    }
}
