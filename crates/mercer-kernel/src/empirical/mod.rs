//! The empirical neural tangent kernel `Θ(x, x') = J(x) J(x')ᵀ`, contracted layer by layer.
//!
//! A dense layer's per-sample gradient is `δ ⊗ a`, so its share of the kernel is `(a·a')(δ·δ')` and the gradient is never
//! formed. A layer with many positions (convolutions, sequences) has a gradient `Σₚ δₚ ⊗ aₚ`, and forming it is cheaper
//! as soon as `P²` pairs of positions cost more than the gradient's elements; see [`Form`].
//!
//! Definitions: Jacot, Gabriel and Hongler 2018 (arXiv 1806.07572); trace: Engel et al. 2023 (arXiv 2305.14585), without
//! the normalisation; pseudo: Mohamadi, Bae and Sutherland 2022 (arXiv 2206.12543), equation 2.

mod contract;

use mercer_net::graph::{Graph, ValueId};
use mercer_net::run::{Factors, Keep, Reverse, Target, Weights, Workspace};
use mercer_net::{Element, NetError, Network, Result};
use std::sync::Arc;

/// Which kernel of the outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All pairs of outputs: `N·C × M·C`.
    Full,
    /// The sum of the diagonal of each `C × C` block.
    Trace,
    /// The kernel of the sum of the outputs, over `C`.
    Pseudo,
}

/// How the gradient of a parameter is kept between the phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Activations and deltas, multiplied out when blocks meet.
    Outer,
    /// The gradient itself.
    Explicit,
}

/// The prepared samples of a block.
#[derive(Debug)]
pub struct Block<T> {
    factors: Factors<T>,
}

impl<T> Block<T> {
    /// The number of samples.
    pub fn samples(&self) -> usize {
        self.factors.samples
    }
}

/// The empirical NTK of one network at its parameters.
#[derive(Debug)]
pub struct Ntk<T> {
    graph: Arc<Graph>,
    weights: Weights<T>,
    output: ValueId,
    kind: Kind,
    forms: Vec<Form>,
}

impl<T: Element> Ntk<T> {
    /// The kernel of the network's first output for samples of these shapes, each layer in its cheaper form.
    pub fn new(network: &Network, samples: &[Vec<usize>], kind: Kind) -> Result<Self> {
        let graph = network.graph(samples)?;
        let weights = network.weights(&graph);
        let output = graph.outputs()[0].1;
        if !graph.value(output).meta.is_batched() {
            return Err(NetError::Setting("the output does not depend on the input".into()));
        }
        let mut kernel = Self { graph, weights, output, kind, forms: Vec::new() };
        kernel.forms = kernel.cheapest();
        Ok(kernel)
    }

    /// Uses these forms instead (one per parameter); `Outer` stays `Explicit` where a layer has no outer form.
    pub fn with_forms(mut self, forms: Vec<Form>) -> Self {
        assert_eq!(forms.len(), self.forms.len(), "one form per parameter");
        self.forms = forms;
        self
    }

    /// The form of each parameter.
    pub fn forms(&self) -> &[Form] {
        &self.forms
    }

    /// The number of outputs.
    pub fn n_outputs(&self) -> usize {
        self.graph.value(self.output).meta.numel()
    }

    fn seeds(&self) -> usize {
        if self.kind == Kind::Pseudo { 1 } else { self.n_outputs() }
    }

    /// Rows of the Gram matrix per sample.
    pub fn rows(&self) -> usize {
        if self.kind == Kind::Full { self.n_outputs() } else { 1 }
    }

    fn reverse(&self) -> Reverse<T> {
        let target = Target { output: self.output, ..Target::all(&self.graph) };
        Reverse::new(Arc::clone(&self.graph), target)
    }

    /// `P²·(left + S'·right)` for factors against `S'·left·right` for gradients, per pair of samples, with
    /// `S'` = 1, C, C² for pseudo, trace and full.
    fn cheapest(&self) -> Vec<Form> {
        let reverse = self.reverse();
        let c = self.n_outputs();
        let pairs = match self.kind {
            Kind::Pseudo => 1,
            Kind::Trace => c,
            Kind::Full => c * c,
        };
        (0..self.graph.parameters().len())
            .map(|parameter| match reverse.outer_shape(parameter) {
                // A table is far larger than its few touched rows.
                Some(shape) if shape.one_hot => Form::Outer,
                Some(shape) => {
                    let outer = shape.positions * shape.positions * (shape.left + pairs * shape.right);
                    if outer <= pairs * shape.left * shape.right { Form::Outer } else { Form::Explicit }
                }
                None => Form::Explicit,
            })
            .collect()
    }

    /// Forward and reverse passes of a block of samples; each input is `[samples, …]`, row-major.
    pub fn prepare(&self, inputs: &[&[T]], samples: usize) -> Result<Block<T>> {
        let mut workspace = Workspace::new(Arc::clone(&self.graph), &Keep::All);
        workspace.forward(&self.weights, inputs, samples)?;
        workspace.check_finite(&self.weights, self.output)?;
        let (c, seeds) = (self.n_outputs(), self.seeds());
        let mut cotangent = vec![T::zero(); samples * seeds * c];
        match self.kind {
            Kind::Pseudo => cotangent.fill(T::of(1.0 / (c as f64).sqrt())),
            Kind::Full | Kind::Trace => {
                (0..samples * c).for_each(|at| cotangent[at * c + at % c] = T::one());
            }
        }
        let mut reverse = self.reverse();
        let outer: Vec<bool> = self
            .forms
            .iter()
            .enumerate()
            .map(|(p, form)| *form == Form::Outer && reverse.outer_shape(p).is_some())
            .collect();
        let factors = reverse.factors(&workspace, &self.weights, &cotangent, seeds, &outer);
        Ok(Block { factors })
    }

    /// Adds the kernel between two blocks to `gram` (`rows·N × rows·M`, row-major).
    pub fn contract(&self, a: &Block<T>, b: &Block<T>, gram: &mut [T]) {
        let full = self.kind == Kind::Full;
        contract::contract(&a.factors, &b.factors, full, gram);
    }

    /// The Gram matrix of some samples with themselves, in memory, from a single block.
    pub fn gram(&self, inputs: &[&[T]], samples: usize) -> Result<Vec<T>> {
        let block = self.prepare(inputs, samples)?;
        let side = samples * self.rows();
        let mut gram = vec![T::zero(); side * side];
        self.contract(&block, &block, &mut gram);
        Ok(gram)
    }
}
