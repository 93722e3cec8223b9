//! The work: activations, layers, similarity and files.

use super::findings::{CheckpointFindings, LayerFindings, ProbeFindings};
use super::layer::{Activations, Probing, products};
use super::opened::{OpenedProbe, checkpoint};
use super::similarity::View;
use super::{figures, words};
use crate::Error;
use crate::error::cannot_open;
use crate::job::record::InputRecord;
use crate::job::surrogate::KernelRows;
use crate::job::{Artefact, Outcome};
use crate::spec::{KernelSpec, Layers, NetworkSource, ParameterSpec, open_network, saved_network};
use mercer_data::folder::digest;
use mercer_data::random::stream;
use mercer_data::{Dataset, read_regular};
use mercer_kernel::Real;
use mercer_kernel::activation::LastLayer;
use mercer_learn::metrics::accuracy;
use mercer_lens::decisions;
use mercer_lens::probe::{ProbeSettings, agreement};
use mercer_linalg::matmul;
use mercer_net::Network;
use mercer_net::network::find;
use mercer_run::Context;
use ndarray::{Array2, Axis};
use rand::seq::SliceRandom;
use rayon::prelude::*;
use std::marker::PhantomData;
use std::path::Path;

/// Best accuracies that differ by at most this much agree.
const TOLERANCE: f64 = 0.02;

/// The largest relative difference between the outputs and the last layer's weight applied to its features.
const LINEAR: f64 = 1e-3;

/// The work in one precision.
pub(super) struct Work<T>(PhantomData<T>);

impl<T: Real> Work<T> {
    pub(super) fn run(mut opened: OpenedProbe, context: &Context) -> Result<Outcome<ProbeFindings>, Error> {
        let folder = opened.folder.take();
        let mut views = Vec::new();
        let mut checkpoints = Vec::new();
        let names: Vec<Option<&Path>> = match opened.job.checkpoints.is_empty() {
            true => vec![None],
            false => opened.job.checkpoints.iter().map(|path| Some(path.as_path())).collect(),
        };
        for &path in &names {
            let network = checkpoint(&opened.job, path)?;
            let name = path.map(short);
            let (found, own) = opened.checkpoint::<T>(network, name.as_deref(), context)?;
            checkpoints.push(found);
            views.extend(own);
        }
        for path in &opened.job.against {
            views.extend(opened.other::<T>(path, context)?);
        }
        let similarity = {
            let _phase = context.phase("similarity");
            super::similarity::compare(views, opened.job.permutations, opened.job.seed, context)?
        };
        let last = checkpoints.last().ok_or_else(|| Error::new("there is no network to probe"))?.clone();
        let classes = opened.known.classes.names().to_vec();
        let mut counts = vec![0_usize; classes.len()];
        opened.sets.test_labels.iter().for_each(|&class| counts[class] += 1);
        let n_test = opened.sets.test_labels.len();
        let mut findings = ProbeFindings {
            network: opened.job.net.display().to_string(),
            n_samples: opened.sets.labels.len(),
            n_test,
            held_out: opened.sets.held_out,
            chance: counts.into_iter().max().unwrap_or(0) as f64 / n_test.max(1) as f64,
            classes,
            neighbours: opened.job.neighbours,
            cost: opened.job.cost,
            tolerance: TOLERANCE,
            network_accuracy: last.network_accuracy,
            agree_from: last.agree_from,
            layers: last.layers,
            checkpoints: if opened.job.checkpoints.is_empty() { Vec::new() } else { checkpoints },
            similarity,
            sentences: Vec::new(),
        };
        findings.sentences = words::sentences(&findings);
        let Some(folder) = folder else { return Ok(opened.watch.outcome(findings, Vec::new(), context)) };
        let _phase = context.phase("writing");
        figures::write(&folder, &findings)?;
        let inputs = opened.inputs()?;
        let place = Artefact::file("probe", folder.path().display().to_string());
        let content = serde_json::json!({ "layers": opened.layers.names() });
        let mut outcome = folder.finish(opened.job, inputs, findings, &content, (opened.watch, context))?;
        outcome.artefacts.insert(0, place);
        Ok(outcome)
    }
}

/// The name of a checkpoint, without its folders.
fn short(path: &Path) -> String {
    path.file_stem().map_or_else(|| path.display().to_string(), |stem| stem.to_string_lossy().into_owned())
}

impl OpenedProbe {
    /// Probes all layers of a network.
    fn checkpoint<T: Real>(
        &self,
        network: Network,
        name: Option<&str>,
        context: &Context,
    ) -> Result<(CheckpointFindings, Vec<View>), Error> {
        let sets = &self.sets;
        let (scores, own) = {
            let _phase = context.phase("network");
            let scores = |inputs: &[Dataset]| self.known.logits.scores::<T>(&network, inputs, context);
            (scores(&sets.train)?, accuracy(&decisions(scores(&sets.test)?.view()), &sets.test_labels)?)
        };
        let decided = decisions(scores.view());
        let cost = Some(self.job.cost).filter(|cost| *cost > 0.0);
        let probing = Probing {
            labels: &sets.labels,
            test_labels: &sets.test_labels,
            n_classes: self.known.classes.n_classes(),
            decisions: &decided,
            settings: ProbeSettings { neighbours: self.job.neighbours, cost },
            pairs: &sets.pairs,
            seed: self.job.seed,
        };
        let last = self.last_layer::<T>(&network);
        let (mut layers, mut views) = (Vec::new(), Vec::new());
        let found = self.each_layer::<T, _>(&network, context, |at, activations| {
            let weight = match &last {
                Some((place, weights)) if *place == at => fitting(weights, activations.train, &scores),
                _ => None,
            };
            let weight = weight.as_ref().map(|weight| weight.view());
            probing.layer(&Activations { weight, ..activations }, context)
        })?;
        for (findings, gram) in found {
            views.push(View::layer(name, &findings.node, gram));
            layers.push(findings);
        }
        if self.job.untrained {
            let shuffled = self.shuffled::<T>(&network)?;
            let found = self.each_layer::<T, _>(&shuffled, context, |_, layer| probing.linear_accuracy(&layer))?;
            layers.iter_mut().zip(found).for_each(|(layer, found)| layer.untrained = found);
        }
        let source = NetworkSource::Trained(network);
        for text in &self.job.kernels {
            views.push(View::kernel(name, text, self.kernel::<T>(text, &source, context)?));
        }
        let best: Vec<_> = layers.iter().map(|layer: &LayerFindings| layer.accuracy).collect();
        let agree_from = agreement(&best, TOLERANCE).map(|at| layers[at].node.clone());
        let name = name.unwrap_or_default().to_owned();
        Ok((CheckpointFindings { name, network_accuracy: own, agree_from, layers }, views))
    }

    /// Runs something on every layer: one forward pass per group, then the layers of the group side by side.
    fn each_layer<T: Real, F: Send>(
        &self,
        network: &Network,
        context: &Context,
        work: impl Fn(usize, Activations<'_, T>) -> Result<F, Error> + Sync,
    ) -> Result<Vec<F>, Error> {
        let names = self.layers.names();
        let mut found = Vec::with_capacity(names.len());
        for group in &self.groups.passes {
            let (train, test) = {
                let _phase = context.phase("activations");
                let values = |inputs: &[Dataset]| self.layers.values::<T>(network, group, inputs, &context.quiet());
                (values(&self.sets.train)?, values(&self.sets.test)?)
            };
            let _phase = context.phase("probing");
            let members: Vec<usize> = (0..group.len()).collect();
            for some in members.chunks(self.groups.side_by_side.max(1)) {
                let one = |&member: &usize| {
                    let at = group[member];
                    let (train, test) = (train[member].view(), test[member].view());
                    work(at, Activations { node: &names[at], train, test, weight: None })
                };
                found.extend(some.par_iter().map(one).collect::<Result<Vec<_>, Error>>()?);
                context.report(found.len(), names.len(), "layers");
            }
        }
        Ok(found)
    }

    /// The layer whose features enter the last layer, and that one's weight with a row per class, in both orientations if
    /// its shape allows both.
    fn last_layer<T: Real>(&self, network: &Network) -> Option<(usize, Vec<Array2<f64>>)> {
        let graph = self.layers.graph();
        let logits = find(graph, self.known.logits.node()).ok()?;
        let last = LastLayer::new(graph, logits).ok().filter(|last| last.positions.is_none())?;
        let at = self.layers.position(last.features)?;
        let parameter = last.weight?;
        let values: Vec<f64> = network.weights::<T>(graph).parameters[parameter].iter().map(|x| x.wide()).collect();
        let width = last.width(graph);
        let n_outputs = values.len().checked_div(width)?;
        let shape = &graph.value(graph.parameters()[parameter]).meta.shape;
        let sizes: Vec<usize> = shape.iter().copied().filter(|&size| size != 1).collect();
        let rows = Array2::from_shape_vec((n_outputs, width), values.clone()).ok()?;
        let columns = Array2::from_shape_vec((width, n_outputs), values).ok()?.reversed_axes();
        let fits = |order: [usize; 2]| {
            let order: Vec<usize> = order.into_iter().filter(|&size| size != 1).collect();
            order == sizes
        };
        let mut found = Vec::new();
        found.extend(fits([n_outputs, width]).then_some(rows));
        found.extend(fits([width, n_outputs]).then_some(columns));
        Some((at, found))
    }

    /// The network with the values of every parameter shuffled.
    fn shuffled<T: Real>(&self, network: &Network) -> Result<Network, Error> {
        let graph = self.layers.graph();
        let mut weights = network.weights::<T>(graph);
        for (at, values) in weights.parameters.iter_mut().enumerate() {
            values.shuffle(&mut stream(self.job.seed, &format!("probe/parameter {at}")));
        }
        let mut shuffled = checkpoint(&self.job, None)?;
        shuffled.set_weights(&weights);
        Ok(shuffled)
    }

    /// The samples that are compared in pairs.
    fn compared(&self) -> Result<Vec<Dataset>, Error> {
        Ok(self.sets.train.iter().map(|set| set.subset(&self.sets.pairs)).collect::<Result<_, _>>()?)
    }

    /// A kernel on the samples that are compared in pairs.
    fn kernel<T: Real>(&self, text: &str, source: &NetworkSource, context: &Context) -> Result<Array2<f64>, Error> {
        let _phase = context.phase("kernels");
        let spec = KernelSpec::of_network(text, &self.job.net, &self.job.parameters, self.job.seed);
        let mut rows = KernelRows::<T>::build(spec, source, &self.known.samples.shapes())?;
        rows.compute(&self.compared()?, context)?;
        Ok(rows.gram()?.into_owned())
    }

    /// The layers of another network, for comparison.
    fn other<T: Real>(&self, path: &Path, context: &Context) -> Result<Vec<View>, Error> {
        let _phase = context.phase("activations");
        let network = open_network(path, &ParameterSpec::default())?;
        let layers = Layers::choose(&network, &self.known.samples.shapes(), &[], path)?;
        let (inputs, name) = (self.compared()?, short(path));
        let rows: Vec<usize> = (0..self.sets.pairs.len()).collect();
        let mut views = Vec::with_capacity(layers.count());
        for (at, node) in layers.names().iter().enumerate() {
            let values = layers.values::<T>(&network, &[at], &inputs, &context.quiet())?;
            views.push(View::layer(Some(&name), node, products(values[0].view(), &rows)));
        }
        Ok(views)
    }

    fn inputs(&self) -> Result<Vec<InputRecord>, Error> {
        let fingerprint = |path: &Path| -> Result<String, Error> {
            let bytes = read_regular(path, u64::MAX).map_err(|error| cannot_open(path.display(), &error))?;
            Ok(digest(&bytes))
        };
        let network = saved_network(&self.job.net, &self.job.parameters, self.known.network()?)?;
        let (place, train) = (self.job.net.display().to_string(), &self.known.samples);
        let mut inputs = vec![
            InputRecord::new("net", &place, digest(network.bytes())),
            InputRecord::new("data", &train.places(), train.fingerprint()?),
        ];
        if let (Some(labels), Some(print)) = (&self.job.train.labels, train.labels_fingerprint()) {
            inputs.push(InputRecord::new("labels", &labels.to_string(), print));
        }
        for (setting, paths) in [("weights", &self.job.checkpoints), ("other-net", &self.job.against)] {
            for path in paths {
                inputs.push(InputRecord::new(setting, &path.display().to_string(), fingerprint(path)?));
            }
        }
        if !self.sets.held_out {
            let print = crate::spec::fingerprint_of_inputs(&self.sets.test)?;
            let places: Vec<String> = self.job.test.iter().map(ToString::to_string).collect();
            inputs.push(InputRecord::new("test", &places.join(", "), print));
        }
        Ok(inputs)
    }
}

/// The weight that explains the outputs by the features, a row per class; a single output becomes two opposite rows.
fn fitting<T: Real>(
    candidates: &[Array2<f64>],
    features: ndarray::ArrayView2<'_, T>,
    scores: &Array2<f64>,
) -> Option<Array2<f64>> {
    const ROWS: usize = 256;
    let n = features.nrows().min(ROWS);
    let wide = features.slice(ndarray::s![..n, ..]).mapv(|x| x.wide());
    let centred = |matrix: Array2<f64>| {
        let mean = matrix.mean_axis(Axis(0));
        mean.map(|mean| matrix - &mean)
    };
    for weight in candidates {
        let first = scores.ncols().checked_sub(weight.nrows())?;
        let outputs = centred(scores.slice(ndarray::s![..n, first..]).to_owned())?;
        let own = centred(matmul(wide.view(), weight.t()))?;
        // Up to one factor for all outputs.
        let scale = (&own * &outputs).sum() / (&own * &own).sum();
        let rest: f64 = (&outputs - &(&own * scale)).iter().map(|x| x * x).sum();
        let all: f64 = outputs.iter().map(|x| x * x).sum();
        if rest <= LINEAR * LINEAR * all && scale > 0.0 {
            return Some(match weight.nrows() {
                1 => ndarray::concatenate![Axis(0), -0.5 * weight, 0.5 * weight],
                _ => weight.clone(),
            });
        }
    }
    None
}
