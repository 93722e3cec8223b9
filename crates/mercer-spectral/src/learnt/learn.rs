//! The loop: draw a batch, run the networks, turn their outputs into a gradient, step; then the Rayleigh–Ritz finish.

use super::draws::{Draws, SecondMoments};
use super::networks::{Networks, by_row};
use super::objective::{Objective, Rows, SecondPass, Sizes};
use super::passes::{MAX_INPUTS, Passes};
use super::ritz::rayleigh_ritz;
use super::settings::{LearningMethod, LearningSettings};
use super::state::{self, Changing};
use crate::basis::Basis;
use crate::error::{Result, SpectralError};
use crate::functions::Eigenfunctions;
use crate::spectrum::Repairs;
use mercer_kernel::Real;
use mercer_net::graph::{Graph, Origin, ValueId};
use mercer_net::op::Concat;
use mercer_net::run::Weights;
use mercer_net::train::OptimiserState;
use mercer_net::{NetError, Network};
use mercer_run::Context;
use ndarray::Array2;
use serde_json::{Value, json};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// What was learnt, for every kernel, before and after the finish. Both are always available, so that the effect of the
/// finish can be seen.
#[derive(Debug)]
pub struct Learnt<T: Real> {
    /// The functions of the networks, in their order and with the averages of the method: values descend only as far as
    /// the networks have converged.
    pub before: Vec<Eigenfunctions<T>>,
    /// The best functions in their span.
    pub after: Vec<Eigenfunctions<T>>,
    /// The loss at some steps, with the step.
    pub losses: Vec<(usize, f64)>,
}

/// A run that learns eigenfunctions.
///
/// The [module](super) has an example.
pub struct Learn<'a> {
    settings: LearningSettings,
    folder: Option<PathBuf>,
    resume: bool,
    context: Option<&'a Context>,
}

/// The number of losses that are kept from a run.
const LOSSES: usize = 200;

impl<'a> Learn<'a> {
    /// A run that keeps everything in memory.
    pub fn new(settings: LearningSettings) -> Self {
        Self { settings, folder: None, resume: false, context: None }
    }

    /// Writes the state into this folder, at regular intervals and when the run is cancelled.
    pub fn folder(self, folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()), ..self }
    }

    /// Continues from the state in the folder, if there is one. Without this, an existing state is an error.
    pub fn resume(self, resume: bool) -> Self {
        Self { resume, ..self }
    }

    /// Reports steps to this handle, and stops when it says so.
    pub fn context(self, context: &'a Context) -> Self {
        Self { context: Some(context), ..self }
    }

    /// Trains a network whose outputs are the functions, `k` times the outputs of the kernel: one network that shares
    /// weights between them, or several [`side_by_side`](super::side_by_side).
    ///
    /// # Errors
    /// [`SpectralError::Cancelled`] when the handle says so, with the state in the folder; [`NetError::Diverged`] when
    /// the loss is no longer finite.
    pub fn run<T: Real>(&self, network: Network, draws: &mut dyn Draws<T>) -> Result<Learnt<T>> {
        self.settings.check()?;
        let mut run = Run::new(&self.settings, &network, draws)?;
        let facts = self.facts(&run, draws)?;
        let silent = Context::new();
        let context = self.context.unwrap_or(&silent);
        let path = self.folder.as_ref().map(|folder| folder.join(state::STATE));
        let mut done = 0;
        if let (Some(folder), Some(path)) = (&self.folder, &path) {
            let failed = |source| NetError::Io { path: folder.clone(), source };
            std::fs::create_dir_all(folder).map_err(failed)?;
            if path.exists() {
                if !self.resume {
                    let text = format!("{} exists; resume from it or remove it", path.display());
                    return Err(SpectralError::Setting(text));
                }
                done = state::load(path, run.changing(), self.settings.steps, &facts)?;
            }
        }
        let steps = self.settings.steps;
        let mut losses = Vec::new();
        for step in done..steps {
            if context.cancelled() {
                if let Some(path) = &path {
                    state::save(path, run.changing(), step, &facts)?;
                }
                return Err(SpectralError::Cancelled);
            }
            let loss = run.step(&self.settings, draws, step)?;
            if (step + 1) % steps.div_ceil(LOSSES) == 0 || step + 1 == steps {
                losses.push((step + 1, loss));
                context.report(step + 1, steps, &format!("steps (loss {loss:.4})"));
            }
            if let Some(path) = &path
                && ((step + 1) % self.settings.checkpoint.max(1) == 0 || step + 1 == steps)
            {
                state::save(path, run.changing(), step + 1, &facts)?;
            }
        }
        let (before, after) = run.finish(draws, self.settings.components, context)?;
        Ok(Learnt { before, after, losses })
    }

    /// What must not change when a run is resumed.
    fn facts<T: Real>(&self, run: &Run<T>, draws: &dyn Draws<T>) -> Result<Vec<(String, Value)>> {
        if self.folder.is_none() {
            return Ok(Vec::new());
        }
        let settings = serde_json::to_value(&self.settings).map_err(|e| SpectralError::Setting(e.to_string()))?;
        // The precision comes first, because the weights also differ in another precision.
        let facts = [
            ("precision", json!(T::NAME)),
            ("network and initial weights", json!(run.weights.fingerprint(&run.graph))),
            ("settings", settings),
            ("data and kernel", draws.identity()?),
        ];
        Ok(facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }
}

/// The functions of every kernel before and after the finish.
type Finished<T> = (Vec<Eigenfunctions<T>>, Vec<Eigenfunctions<T>>);

/// The working state of a run.
struct Run<T: Real> {
    graph: Arc<Graph>,
    weights: Weights<T>,
    optimiser: OptimiserState<T>,
    passes: Passes<T>,
    /// One per kernel.
    objectives: Vec<Box<dyn Objective<T>>>,
    /// The scale by which the kernels are divided.
    scales: Vec<f64>,
    owners: Vec<Range<usize>>,
    /// `k`, and the outputs of a function.
    functions: usize,
    outputs: usize,
    per_sample: usize,
    inputs: Vec<Vec<T>>,
    raw: Vec<T>,
    cotangents: Vec<T>,
    /// The state for one kernel.
    own: [Vec<T>; 2],
    gradient: Vec<T>,
}

impl<T: Real> Run<T> {
    fn new(settings: &LearningSettings, network: &Network, draws: &mut dyn Draws<T>) -> Result<Self> {
        let shapes = draws.input_shapes();
        let graph = network.graph(&shapes)?;
        if shapes.len() > MAX_INPUTS {
            return Err(SpectralError::Setting(format!(
                "there are {} inputs, but at most {MAX_INPUTS} are supported",
                shapes.len()
            )));
        }
        let outputs = draws.per_sample() * draws.n_kernels();
        let total = graph.outputs().first().map_or(0, |(_, id)| graph.value(*id).meta.numel());
        if total == 0 || !total.is_multiple_of(outputs) {
            let text = format!(
                "the {total} outputs of the network cannot be divided into functions with {outputs} outputs each"
            );
            return Err(SpectralError::Setting(text));
        }
        let functions = total / outputs;
        if settings.method == LearningMethod::Spin && outputs > 1 {
            let text = "SpIN supports only kernels with one output; NeuralEF and nested approximation support matrix-valued kernels";
            return Err(SpectralError::Setting(text.to_owned()));
        }
        let scales = (0..draws.n_kernels()).map(|kernel| draws.mean_diagonal(kernel)).collect::<Result<Vec<_>>>()?;
        if let Some(bad) = scales.iter().find(|scale| !(**scale > 0.0 && scale.is_finite())) {
            return Err(SpectralError::NoSpectrum { rows: draws.batch_size(), largest: *bad });
        }
        let weights = network.weights::<T>(&graph);
        let n_params = weights.parameters.iter().map(Vec::len).sum();
        let numbers = draws.batch_size() * functions * outputs;
        Ok(Self {
            optimiser: OptimiserState::new(&settings.optimiser, n_params),
            passes: Passes::new(&graph),
            objectives: scales.iter().map(|_| settings.method.objective(settings.keep)).collect(),
            owners: owners(&graph, functions),
            inputs: vec![Vec::new(); shapes.len()],
            raw: vec![T::zero(); numbers],
            cotangents: vec![T::zero(); numbers],
            own: Default::default(),
            gradient: vec![T::zero(); n_params],
            per_sample: draws.per_sample(),
            graph,
            weights,
            scales,
            functions,
            outputs,
        })
    }

    fn changing(&mut self) -> Changing<'_, T> {
        Changing {
            graph: &self.graph,
            weights: &mut self.weights,
            optimiser: &mut self.optimiser,
            objectives: &mut self.objectives,
            sizes: Sizes {
                functions: self.functions,
                parameters: self.passes.n_params(),
                separate: !self.owners.is_empty(),
            },
        }
    }

    fn step(&mut self, settings: &LearningSettings, draws: &mut dyn Draws<T>, step: usize) -> Result<f64> {
        let samples = draws.draw(step, &mut self.inputs)?;
        let size = samples * self.functions * self.outputs;
        let raw = &mut self.raw[..size];
        self.passes.forward(&self.weights, &self.inputs, samples, raw)?;
        let cotangents = &mut self.cotangents[..size];
        let (k, rows) = (self.functions, samples * self.per_sample);
        let [own, own_cotangents] = &mut self.own;
        own.resize(rows * k, T::zero());
        own_cotangents.resize(rows * k, T::zero());
        let mut loss = 0.0;
        for (kernel, objective) in self.objectives.iter_mut().enumerate() {
            let view = View { functions: k, outputs: self.outputs, per_sample: self.per_sample, kernel };
            view.gather(raw, own);
            let scale = T::narrow(self.scales[kernel].recip());
            let mut product = |v: &[T], out: &mut [T]| {
                draws.product(kernel, v, k, out)?;
                out.iter_mut().for_each(|x| *x *= scale);
                Ok(())
            };
            let batch = Rows { outputs: own, rows, functions: k, product: &mut product };
            loss += objective.cotangents(batch, own_cotangents)?;
            view.scatter(own_cotangents, cotangents);
        }
        if !loss.is_finite() {
            return Err(NetError::Diverged { epoch: None, step: step + 1, loss }.into());
        }
        self.gradient.copy_from_slice(self.passes.reverse(&self.weights, cotangents));
        if let [objective] = &mut self.objectives[..] {
            let again = SecondPass {
                passes: &mut self.passes,
                weights: &self.weights,
                outputs: own,
                rows,
                owners: &self.owners,
            };
            objective.correct(again, &mut self.gradient);
        }
        let rate = settings.schedule.rate(step, 1, settings.steps);
        settings.optimiser.update(&mut self.optimiser, &mut self.weights.parameters, &self.gradient, rate);
        Ok(loss)
    }

    /// The functions before and after the Rayleigh–Ritz finish.
    fn finish(self, draws: &mut dyn Draws<T>, components: Option<usize>, context: &Context) -> Result<Finished<T>> {
        let Self { graph, weights, objectives, scales, outputs, functions, .. } = self;
        let wanted = components.unwrap_or(functions);
        let whole = Networks::new(mercer_net::export::onnx(&graph, &weights)?, outputs)?;
        let bases: Vec<Arc<dyn Basis<T>>> = if objectives.len() == 1 {
            vec![Arc::new(whole)]
        } else {
            (0..objectives.len()).map(|kernel| Arc::new(whole.at_output(kernel)) as Arc<dyn Basis<T>>).collect()
        };
        let narrow = |map: &Array2<f64>| map.mapv(T::narrow);
        let mut before = Vec::new();
        for ((objective, basis), scale) in objectives.iter().zip(&bases).zip(&scales) {
            let (values, map) = objective.outcome()?;
            let values: Vec<f64> = values.iter().map(|value| value * scale).collect();
            before.push(Eigenfunctions::in_given_order(&values, Arc::clone(basis), narrow(&map))?);
        }
        // The span is that of the networks themselves; a linear map does not change it.
        let mut eval = |inputs: &[&[T]], samples: usize| {
            context.check()?;
            let each = bases.iter().map(|basis| {
                let mut values = Array2::zeros((samples * basis.per_sample(), basis.n_functions()));
                let place = values.as_slice_mut().expect("a fresh array is contiguous");
                basis.eval(inputs, samples, place, context)?;
                Ok(values)
            });
            each.collect()
        };
        let moments: Vec<SecondMoments> = draws.moments(&mut eval)?;
        let mut after = Vec::new();
        for (moments, basis) in moments.iter().zip(&bases) {
            let ritz = rayleigh_ritz(moments, T::epsilon().wide() / 2.0)?;
            let functions = Eigenfunctions::new(&ritz.values, Arc::clone(basis), narrow(&ritz.combinations))?;
            let dropped = wanted.saturating_sub(functions.n_components());
            after.push(functions.with_repairs(Repairs { dropped, ..ritz.repairs }).truncated(wanted));
        }
        Ok((before, after))
    }
}

/// Which outputs of the networks belong to a kernel.
struct View {
    functions: usize,
    outputs: usize,
    per_sample: usize,
    kernel: usize,
}

impl View {
    /// The outputs of all functions for this kernel, `[rows, functions]`, from `[samples, functions, outputs]`.
    fn gather<T: Copy>(&self, from: &[T], to: &mut [T]) {
        if self.per_sample == self.outputs {
            return by_row(from, self.functions, self.outputs, to);
        }
        // One kernel per output.
        let own = from.iter().skip(self.kernel).step_by(self.outputs);
        to.iter_mut().zip(own).for_each(|(to, &x)| *to = x);
    }

    /// The inverse.
    fn scatter<T: Copy>(&self, from: &[T], to: &mut [T]) {
        if self.per_sample == self.outputs {
            // Transposing the other way round takes rows back.
            return by_row(from, self.outputs, self.functions, to);
        }
        let own = to.iter_mut().skip(self.kernel).step_by(self.outputs);
        own.zip(from).for_each(|(to, &x)| *to = x);
    }
}

/// The parameters of every function as a range of the gradient, if no two functions share any; otherwise `None`.
pub(super) fn owners(graph: &Graph, functions: usize) -> Vec<Range<usize>> {
    let output = graph.outputs()[0].1;
    let Some(node) = graph.nodes().iter().find(|node| node.output == output) else { return Vec::new() };
    if !node.op.as_any().is::<Concat>() || node.inputs.len() != functions {
        return Vec::new();
    }
    let sizes: Vec<usize> = graph.parameters().iter().map(|&id| graph.value(id).meta.numel()).collect();
    let mut ranges = Vec::new();
    let mut end = 0;
    for &branch in &node.inputs {
        let mut own = vec![false; sizes.len()];
        collect(graph, branch, &mut vec![false; graph.values().len()], &mut own);
        let first = own.iter().position(|&is| is).unwrap_or(0);
        let count = own.iter().filter(|&&is| is).count();
        let start: usize = sizes[..first].iter().sum();
        let contiguous = own.iter().skip(first).take(count).all(|&is| is);
        if !contiguous || start != end {
            return Vec::new();
        }
        end = start + sizes[first..first + count].iter().sum::<usize>();
        ranges.push(start..end);
    }
    ranges
}

/// Marks the parameters on which a value depends.
fn collect(graph: &Graph, id: ValueId, seen: &mut [bool], own: &mut [bool]) {
    let mut waiting = vec![id];
    while let Some(id) = waiting.pop() {
        if std::mem::replace(&mut seen[id.index()], true) {
            continue;
        }
        match graph.value(id).origin {
            Origin::Parameter(index) => own[index] = true,
            Origin::Node(index) => waiting.extend(&graph.nodes()[index].inputs),
            Origin::Input(_) | Origin::Constant(_) => {}
        }
    }
}
