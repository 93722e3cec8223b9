//! The form of each parameter's gradient between the phases, and the reason for it.
//!
//! With `P` positions, factors `left` and `right`, `S` seeds and `S'` = S for summed kernels, S² for full ones, a pair of
//! samples costs `P²·(left + S'·right)` multiplications factored and `S'·left·right` explicit, and a sample
//! `P·(left + S·right)` and `S·left·right` numbers. Bytes count too: a block is read once per tile, at a tenth of the speed
//! of a product, and blocks of fewer than sixteen samples would make every product small.

use super::gradients::Gradients;
use super::layers::layer_name;
use crate::kernel::Real;
use mercer_net::graph::{Graph, Origin, ValueId};
use mercer_net::op::{Binary, Combine, MatMul, OuterShape, Unary};
use serde::Serialize;
use std::any::Any;

/// The form of a parameter's gradient between the phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NtkForm {
    /// Activations and deltas, multiplied out when blocks are contracted: `(A Aᵀ) ∘ (Δ Δᵀ)`.
    Factored,
    /// The gradient itself.
    Explicit,
    /// No gradient: the bias of a dense layer is a column of ones appended to the activations of its weight.
    Absorbed,
}

/// The form chosen for a parameter.
#[derive(Clone, Debug, Serialize)]
pub struct FormChoice {
    /// The parameter.
    pub parameter: String,
    /// Its layer.
    pub layer: String,
    /// The form of its gradient.
    pub form: NtkForm,
    /// The number of positions at which the weight is used.
    pub positions: usize,
    /// Bytes of a prepared sample.
    pub bytes: usize,
    /// Operations per pair of samples.
    pub pair_flops: f64,
}

/// The cost of reading a byte, in operations: ten, for the two blocks of a tile of 128 samples.
const FLOPS_PER_BYTE: f64 = 10.0 * 2.0 / 128.0;

/// Sixteen prepared samples should not take more than this.
const SIXTEEN_SAMPLES: usize = 1 << 30;

/// The cost of a parameter in one form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Price {
    /// Operations per pair of samples.
    pub(crate) flops: f64,
    /// Numbers per sample.
    pub(crate) elements: usize,
}

pub(crate) fn factored(shape: &OuterShape, seeds: usize, pairs: usize) -> Price {
    let left = if shape.one_hot { 1 } else { shape.left };
    let squared = (shape.positions * shape.positions) as f64;
    Price {
        flops: 2.0 * squared * (left as f64 + pairs as f64 * shape.right as f64),
        elements: shape.positions * (left + seeds * shape.right),
    }
}

pub(crate) fn explicit(numel: usize, seeds: usize, pairs: usize) -> Price {
    Price { flops: 2.0 * pairs as f64 * numel as f64, elements: seeds * numel }
}

/// Chooses the cheaper form for every parameter; biases are absorbed into their weight if possible.
pub(crate) fn cheapest<T: Real>(gradients: &Gradients<T>, full: bool) -> Vec<NtkForm> {
    let seeds = gradients.n_seeds();
    let pairs = if full { seeds * seeds } else { seeds };
    let shapes = gradients.outer_shapes();
    let bytes = |price: Price| (price.elements * size_of::<T>()) as f64;
    let cost = |price: Price| price.flops + FLOPS_PER_BYTE * bytes(price);
    let mut forms: Vec<NtkForm> = (0..shapes.len())
        .map(|at| match &shapes[at] {
            Some(shape) if cost(factored(shape, seeds, pairs)) <= cost(explicit(gradients.numel(at), seeds, pairs)) => {
                NtkForm::Factored
            }
            _ => NtkForm::Explicit,
        })
        .collect();
    // If the samples are too large, parameters go back to factors, starting with those that save the most memory for
    // the least work.
    let elements = |at: usize, form: NtkForm| match (&shapes[at], form) {
        (Some(shape), NtkForm::Factored) => factored(shape, seeds, pairs).elements,
        _ => explicit(gradients.numel(at), seeds, pairs).elements,
    };
    let chosen = (0..forms.len()).filter(|&at| gradients.chosen()[at]);
    let mut total: usize = chosen.map(|at| elements(at, forms[at])).sum();
    let saving = |at: usize| {
        let shape = shapes[at].as_ref().filter(|_| gradients.chosen()[at])?;
        let (now, then) = (explicit(gradients.numel(at), seeds, pairs), factored(shape, seeds, pairs));
        let saved = now.elements.checked_sub(then.elements).filter(|&saved| saved > 0)?;
        Some((then.flops - now.flops) / saved as f64)
    };
    let mut candidates: Vec<(f64, usize)> = (0..forms.len())
        .filter(|&at| forms[at] == NtkForm::Explicit)
        .filter_map(|at| saving(at).map(|cost| (cost, at)))
        .collect();
    candidates.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (_, at) in candidates {
        if 16 * size_of::<T>() * total <= SIXTEEN_SAMPLES {
            break;
        }
        total -= elements(at, NtkForm::Explicit) - elements(at, NtkForm::Factored);
        forms[at] = NtkForm::Factored;
    }
    absorb(gradients, &mut forms);
    forms
}

/// Marks the biases whose gradient is the delta of a factored dense layer.
pub(crate) fn absorb<T: Real>(gradients: &Gradients<T>, forms: &mut [NtkForm]) {
    for bias in 0..forms.len() {
        if let Some(weight) = weight_of_bias(gradients, bias)
            && forms[weight] == NtkForm::Factored
        {
            forms[bias] = NtkForm::Absorbed;
        }
    }
}

/// The weight `W` if a parameter is used only as `b` in `x·W + b` with one position, and both are selected.
pub(crate) fn weight_of_bias<T: Real>(gradients: &Gradients<T>, bias: usize) -> Option<usize> {
    let graph = gradients.graph();
    let id = graph.parameters()[bias];
    let add = graph.nodes().get(only_use(graph, id)?)?;
    let is_sum = add.op.as_any().downcast_ref::<Binary>().is_some_and(|op| op.0 == Combine::Add);
    let product = *add.inputs.iter().find(|&&input| input != id)?;
    let size = graph.value(id).meta.numel();
    if !is_sum || graph.value(product).meta.numel() != size || graph.value(add.output).meta.numel() != size {
        return None;
    }
    let Origin::Node(index) = graph.value(product).origin else { return None };
    only_use(graph, product)?;
    let node = &graph.nodes()[index];
    if !node.op.as_any().is::<MatMul>() || product == gradients.output() {
        return None;
    }
    let weight = node.inputs.iter().find_map(|&input| match graph.value(input).origin {
        Origin::Parameter(at) => Some(at),
        _ => None,
    })?;
    only_use(graph, graph.parameters()[weight])?;
    let shape = gradients.outer_shape_of(weight)?;
    let both = gradients.chosen()[weight] && gradients.chosen()[bias];
    let same_layer = layer_name(graph, weight) == layer_name(graph, bias);
    (both && shape.positions == 1 && shape.right == size && same_layer).then_some(weight)
}

/// Directions `v_c / ‖v‖` per element, `[seeds, right]`, where the deltas of a dense layer are `v_c ∘ f'(x)`: the layer is followed
/// by a function `f` of single numbers and then by the last product, `W f(x) + b`, so that `v_c` is a row of `W` for the
/// seed of output c. Then `Σ_c δ_c·δ'_c = Σ_h ‖v_h‖² f'(x_h) f'(x'_h)`, and one number per element covers all seeds.
pub(crate) fn shared_directions<T: Real>(
    gradients: &Gradients<T>,
    parameter: usize,
    shape: &OuterShape,
) -> Option<Vec<f64>> {
    let (graph, seeds) = (gradients.graph(), gradients.n_seeds());
    if seeds == 1 || shape.positions != 1 || shape.one_hot {
        return None;
    }
    // From the weight forward: the product, perhaps its bias, the function, the last product, perhaps its bias, the output.
    let mut value = follow(graph, graph.parameters()[parameter], |op| op.is::<MatMul>())?;
    let is_sum = |op: &dyn Any| op.downcast_ref::<Binary>().is_some_and(|op| op.0 == Combine::Add);
    value = follow(graph, value, is_sum).unwrap_or(value);
    value = follow(graph, value, |op| op.is::<Unary>())?;
    let last = graph.nodes().get(only_use(graph, value)?)?;
    let product = follow(graph, value, |op| op.is::<MatMul>())?;
    let weight = *last.inputs.iter().find(|&&input| input != value)?;
    let Origin::Parameter(weight) = graph.value(weight).origin else { return None };
    let end = follow(graph, product, is_sum).unwrap_or(product);
    let (inputs, outputs) = (shape.right, graph.value(end).meta.numel());
    let numel = gradients.numel(weight);
    let fits = graph.value(value).meta.numel() == inputs && graph.value(product).meta.numel() == outputs;
    let unused = graph.uses(end).is_empty();
    if end != gradients.output() || !unused || !fits || numel != inputs * outputs {
        return None;
    }
    // A reverse pass through the last product alone gives the deltas before the function for every seed.
    let last_shape = gradients.outer_shape_of(weight).filter(|shape| shape.positions == 1 && shape.left == inputs)?;
    let numbers = &gradients.weights().parameters[weight];
    let weight_of = |output: usize, input: usize| {
        let at = if last_shape.right_major { output * inputs + input } else { input * outputs + output };
        numbers[at].wide()
    };
    let mut directions = vec![0.0; seeds * inputs];
    for (seed, row) in gradients.seeds().chunks_exact(outputs).enumerate() {
        for input in 0..inputs {
            let terms = row.iter().enumerate().map(|(output, x)| x.wide() * weight_of(output, input));
            directions[seed * inputs + input] = terms.sum();
        }
    }
    for input in 0..inputs {
        let norm = (0..seeds).map(|seed| directions[seed * inputs + input].powi(2)).sum::<f64>().sqrt();
        if norm > 0.0 {
            (0..seeds).for_each(|seed| directions[seed * inputs + input] /= norm);
        }
    }
    Some(directions)
}

/// The result of the only node that uses a value, if it has the right kind and does not mix samples.
fn follow(graph: &Graph, id: ValueId, kind: impl Fn(&dyn Any) -> bool) -> Option<ValueId> {
    let node = &graph.nodes()[only_use(graph, id)?];
    kind(node.op.as_any()).then_some(node.output)
}

/// The node that uses a value, if there is exactly one use.
fn only_use(graph: &Graph, id: ValueId) -> Option<usize> {
    if let [only] = graph.uses(id) { Some(*only) } else { None }
}
