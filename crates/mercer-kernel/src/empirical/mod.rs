//! The empirical neural tangent kernel `Θ(x, x') = J(x) J(x')ᵀ`, contracted layer by layer.
//!
//! A dense layer's per-sample gradient is `δ ⊗ a`, so its part of the kernel is `(a·a' + 1)(δ·δ')`, where the 1 comes
//! from its bias, and the gradient is never formed. A layer with many positions (convolutions, sequences) has a
//! gradient `Σₚ δₚ ⊗ aₚ`, and forming it is cheaper as soon as `P²` pairs of positions cost more than the gradient's
//! elements; see [`NtkForm`].
//!
//! Definitions: Jacot, Gabriel and Hongler 2018 (arXiv 1806.07572); trace: Engel et al. 2023 (arXiv 2305.14585), equation
//! 4 without the normalisation; pseudo: Mohamadi, Bae and Sutherland 2022 (arXiv 2206.12543), equation 2.
//!
//! ```
//! use mercer_kernel::{Ntk, NtkKind, Selection};
//! use mercer_net::arch::Mlp;
//!
//! let network = Mlp::new(2, &[8], 3).build(0)?;
//! let x: [&[f64]; 1] = [&[1.0, 0.0, 0.5, -1.0]];
//! let full = Ntk::<f64>::new(&network, &[vec![2]], NtkKind::Full)?;
//! assert_eq!(full.gram(&x, 2)?.len(), 6 * 6);
//!
//! // One output, and the parameters of the first layer alone.
//! let first = Selection { parameters: vec![network.parameters()[0].name().to_owned()], ..Selection::default() };
//! let logit = Ntk::<f64>::with_selection(&network, &[vec![2]], NtkKind::Logit(1), &first)?;
//! assert!(logit.gram(&x, 2)?[0] < full.gram(&x, 2)?[7]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod block;
mod contract;
mod forms;
mod gradients;
mod layers;
mod selection;

pub use forms::{FormChoice, NtkForm};
pub use gradients::Gradients;
pub use layers::layer_names;
pub use selection::{NtkKind, Selection};

use crate::error::Result;
use crate::kernel::{Block, Cost, Kernel, Real};
use block::{Plan, Prepared, Spare};
use contract::Pair;
use mercer_net::Network;
use mercer_net::graph::Graph;
use mercer_net::run::Weights;
use std::sync::Arc;

/// The empirical NTK of one network at its parameters.
#[derive(Debug)]
pub struct Ntk<T> {
    gradients: Gradients<T>,
    kind: NtkKind,
    plan: Plan,
    by_layer: bool,
    chosen: Vec<bool>,
    spare: Arc<Spare<T>>,
}

impl<T: Real> Ntk<T> {
    /// The kernel of the network's first output (of its logits, if it ends in a softmax or sigmoid) and all parameters,
    /// for samples of these shapes (one per input).
    pub fn new(network: &Network, samples: &[Vec<usize>], kind: NtkKind) -> Result<Self> {
        Self::with_selection(network, samples, kind, &Selection::default())
    }

    /// The kernel of a part of a network, each parameter in its cheaper form.
    pub fn with_selection(
        network: &Network,
        samples: &[Vec<usize>],
        kind: NtkKind,
        selection: &Selection,
    ) -> Result<Self> {
        Self::with(Gradients::new(network, samples, kind, selection)?, kind)
    }

    /// The kernel of a graph with its own weights.
    pub fn at(graph: Arc<Graph>, weights: Weights<T>, kind: NtkKind, selection: &Selection) -> Result<Self> {
        Self::with(Gradients::at(graph, weights, kind, selection)?, kind)
    }

    fn with(gradients: Gradients<T>, kind: NtkKind) -> Result<Self> {
        let chosen = gradients.chosen().to_vec();
        let forms = forms::cheapest(&gradients, kind == NtkKind::Full);
        let plan = Plan::new(&gradients, kind == NtkKind::Full, false, forms);
        Ok(Self { gradients, kind, plan, by_layer: false, chosen, spare: Arc::default() }.planned())
    }

    /// One matrix per layer, whose sum is the kernel.
    pub fn by_layer(mut self) -> Self {
        self.by_layer = true;
        let forms = self.plan.forms.clone();
        self.rebuilt(forms)
    }

    /// Uses this form for every parameter that has it, instead of the cheaper one.
    pub fn with_form(mut self, form: NtkForm) -> Self {
        let mut forms = vec![form; self.chosen.len()];
        self.gradients.choose(&self.chosen);
        if form == NtkForm::Absorbed {
            forms.fill(NtkForm::Factored);
            forms::absorb(&self.gradients, &mut forms);
        }
        self.rebuilt(forms)
    }

    fn rebuilt(mut self, forms: Vec<NtkForm>) -> Self {
        self.gradients.choose(&self.chosen);
        self.plan = Plan::new(&self.gradients, self.kind == NtkKind::Full, self.by_layer, forms);
        self.planned()
    }

    /// Absorbed biases need no gradient of their own.
    fn planned(mut self) -> Self {
        let wanted: Vec<bool> = self
            .chosen
            .iter()
            .zip(&self.plan.forms)
            .map(|(&chosen, &form)| chosen && form != NtkForm::Absorbed)
            .collect();
        self.gradients.choose(&wanted);
        self
    }

    /// The same kernel, sharing the memory of another one, which has the same graph and other weights.
    pub(crate) fn sharing(mut self, other: &Self) -> Self {
        self.gradients.share(&other.gradients);
        self.spare = Arc::clone(&other.spare);
        self
    }

    /// The weights at which the kernel is computed.
    pub fn into_weights(self) -> Weights<T> {
        self.gradients.into_weights()
    }

    /// The form chosen for each parameter.
    pub fn choices(&self) -> Vec<FormChoice> {
        self.plan.choices(&self.gradients, &self.chosen)
    }

    /// The number of outputs whose gradients the kernel compares.
    pub fn n_outputs(&self) -> usize {
        self.gradients.n_seeds()
    }

    /// Samples per shard.
    pub fn grain(&self) -> usize {
        self.gradients.grain()
    }

    /// The Gram matrix of some samples with themselves, in memory, from a single block.
    pub fn gram(&self, inputs: &[&[T]], samples: usize) -> Result<Vec<T>> {
        let block = self.prepare(inputs, samples)?;
        let side = samples * self.per_sample();
        let mut gram = vec![T::zero(); self.plan.parts.len() * side * side];
        self.contract(&block, &block, &mut gram);
        Ok(gram)
    }
}

impl<T: Real> Kernel<T> for Ntk<T> {
    fn per_sample(&self) -> usize {
        if self.plan.full { self.plan.seeds } else { 1 }
    }

    fn parts(&self) -> Vec<String> {
        self.plan.parts.iter().map(|part| part.name.clone()).collect()
    }

    fn cost(&self) -> Cost {
        Cost {
            sample_bytes: self.plan.elements() * size_of::<T>(),
            prepare_bytes: self.gradients.bytes(&self.plan.outer_flags()),
            contract_bytes: contract::scratch_elements(&self.plan) * size_of::<T>(),
            prepare_flops: self.gradients.flops(&self.plan.outer_flags()),
            pair_flops: self.plan.pair_flops(),
            ..Cost::default()
        }
    }

    fn identity(&self) -> serde_json::Value {
        let forms: Vec<NtkForm> = self.plan.forms.clone();
        serde_json::json!({
            "kernel": "ntk", "kind": self.kind.name(), "by_layer": self.by_layer, "of": self.gradients.identity(), "forms": forms,
        })
    }

    fn prepare(&self, inputs: &[&[T]], samples: usize) -> Result<Block> {
        Ok(Block::new(samples, self.plan.prepare(&self.gradients, &self.spare, inputs, samples)?))
    }

    fn contract(&self, a: &Block, b: &Block, tile: &mut [T]) {
        let (n, m, symmetric) = (a.samples(), b.samples(), std::ptr::eq(a, b));
        let (a, b) = (a.content::<Prepared<T>>(), b.content::<Prepared<T>>());
        Pair { plan: &self.plan, a, b, n, m, symmetric }.contract(tile);
    }

    fn diagonal(&self, a: &Block) -> Vec<T> {
        contract::diagonal(&self.plan, a.content::<Prepared<T>>(), a.samples())
    }
}
