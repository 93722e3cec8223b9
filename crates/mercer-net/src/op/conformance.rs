//! The suite that every primitive must pass: its readings are compared with each other and with finite differences.

use super::{Binary, Combine, Op};
use crate::element::Element;
use crate::graph::{Batch, Graph, GraphBuilder, Origin};
use crate::run::{Keep, Reverse, Tangent, Target, Weights, Workspace};
use std::sync::Arc;

/// An operand of a test case.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    shape: Vec<usize>,
    batched: bool,
    /// Maps a number in (−1, 1) to one in the primitive's domain.
    domain: fn(f64) -> f64,
}

/// An operand that differs between samples.
pub(crate) fn batched(shape: &[usize]) -> Operand {
    Operand { shape: shape.to_vec(), batched: true, domain: |x| 2.0 * x }
}

/// An operand that all samples share.
pub(crate) fn shared(shape: &[usize]) -> Operand {
    Operand { batched: false, ..batched(shape) }
}

impl Operand {
    /// Restricts the values to another domain.
    pub(crate) fn within(self, domain: fn(f64) -> f64) -> Self {
        Self { domain, ..self }
    }

    fn numbers<T: Element>(&self, seed: u64, samples: usize) -> Vec<T> {
        let count = self.shape.iter().product::<usize>() * if self.batched { samples } else { 1 };
        uniform(seed, count).into_iter().map(|x| T::narrow((self.domain)(x))).collect()
    }
}

/// Reproducible numbers in (−1, 1) (SplitMix64).
fn uniform(seed: u64, count: usize) -> Vec<f64> {
    let mut state = (seed + 1).wrapping_mul(0xD134_2543_DE82_EF95);
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// The value of a primitive at given shared operands, for tests with hand-computed numbers.
pub(crate) fn values(op: impl Op + 'static, shapes: &[&[usize]], operands: &[&[f64]]) -> Vec<f64> {
    let op: Arc<dyn Op> = Arc::new(op);
    let shared: Vec<Operand> = shapes.iter().map(|shape| shared(shape)).collect();
    let mut case = Case::<f64>::new(&op, &shared, 1);
    for (parameter, numbers) in case.weights.parameters.iter_mut().zip(operands) {
        parameter.copy_from_slice(numbers);
    }
    case.forward()
}

struct Case<T> {
    graph: Arc<Graph>,
    weights: Weights<T>,
    inputs: Vec<Vec<T>>,
    samples: usize,
    workspace: Workspace<T>,
}

impl<T: Element> Case<T> {
    fn new(op: &Arc<dyn Op>, operands: &[Operand], samples: usize) -> Self {
        Self::build(op, operands, samples, false)
    }

    /// `y + y + z` with a further input `z`: every operand is used twice, so cotangents must be added, and the result
    /// is differentiated for several samples even if all operands are shared.
    fn twice(op: &Arc<dyn Op>, operands: &[Operand], samples: usize) -> Self {
        Self::build(op, operands, samples, true)
    }

    fn build(op: &Arc<dyn Op>, operands: &[Operand], samples: usize, twice: bool) -> Self {
        let mut builder = GraphBuilder::new();
        let (mut parameters, mut inputs) = (Vec::new(), Vec::new());
        let ids: Vec<_> = operands
            .iter()
            .enumerate()
            .map(|(index, operand)| {
                let numbers = operand.numbers(index as u64 + 1, samples);
                let name = format!("operand {index}");
                if operand.batched {
                    inputs.push(numbers);
                    builder.input(name, operand.shape.clone(), Batch::Untracked)
                } else {
                    parameters.push(numbers);
                    builder.parameter(name, operand.shape.clone())
                }
            })
            .collect();
        let mut output = builder.push_node("case", op.name(), Arc::clone(op), &ids).expect("shapes of the case fit");
        if twice {
            let shape = builder.shape(output).to_vec();
            let again = builder.push_node("again", op.name(), Arc::clone(op), &ids).expect("shapes of the case fit");
            inputs.push(batched(&shape).numbers(99, samples));
            let rest = builder.input("z", shape, Batch::Untracked);
            for other in [again, rest] {
                output = builder.node("sum", Binary(Combine::Add), &[output, other]).expect("shapes are the same");
            }
        }
        builder.output("y", output);
        let graph = Arc::new(builder.finish());
        let weights = Weights::new(&graph, parameters);
        let workspace = Workspace::new(Arc::clone(&graph), &Keep::All);
        let mut case = Self { graph, weights, inputs, samples, workspace };
        case.forward();
        case
    }

    fn forward(&mut self) -> Vec<T> {
        let inputs: Vec<&[T]> = self.inputs.iter().map(Vec::as_slice).collect();
        self.workspace.forward(&self.weights, &inputs, self.samples).expect("inputs fit");
        self.output()
    }

    fn output(&self) -> Vec<T> {
        self.workspace.get(&self.weights, self.graph.outputs()[0].1).to_vec()
    }

    fn out_size(&self) -> usize {
        self.graph.value(self.graph.outputs()[0].1).meta.numel()
    }

    fn wide(values: &[T]) -> Vec<f64> {
        values.iter().map(|x| x.wide()).collect()
    }
}

fn close(a: &[f64], b: &[f64], tolerance: f64, what: &str) {
    assert_eq!(a.len(), b.len(), "{what}: lengths");
    let norm = b.iter().map(|x| x * x).sum::<f64>().sqrt().max(1.0);
    let distance = a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt();
    assert!(distance <= tolerance * norm, "{what}: relative distance {:e} > {tolerance:e}", distance / norm);
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

const SAMPLES: usize = 3;
const SEEDS: usize = 2;

/// Runs the whole suite on one primitive and one set of operands.
pub(crate) fn check(op: impl Op + 'static, operands: &[Operand]) {
    let op: Arc<dyn Op> = Arc::new(op);
    let mut wide = Case::<f64>::new(&op, operands, SAMPLES);
    let narrow = Case::<f32>::new(&op, operands, SAMPLES);
    let y = wide.output();
    assert!(y.iter().all(|x| x.is_finite()), "finite operands give a finite result");
    // f32 carries 24 bits; primitives of a few dozen terms lose no more than three digits of its seven.
    close(&Case::wide(&narrow.output()), &y, 1e-4, "f32 against f64");
    batch_of_samples_is_samples(&op, operands, &wide);
    let differentiable = (0..operands.len()).any(|which| op.differentiable(which));
    if differentiable {
        tangents_are_differences(&mut wide);
        cotangents_are_adjoint(&wide);
        sums_are_sums(&wide);
        factors_are_gradients(&wide);
        let twice = Case::<f64>::twice(&op, operands, SAMPLES);
        cotangents_are_adjoint(&twice);
        sums_are_sums(&twice);
        factors_are_gradients(&twice);
    }
}

fn batch_of_samples_is_samples(op: &Arc<dyn Op>, operands: &[Operand], whole: &Case<f64>) {
    if whole.inputs.is_empty() {
        return;
    }
    let size = whole.out_size();
    for sample in 0..SAMPLES {
        let mut one = Case::<f64>::new(op, operands, 1);
        one.weights = whole.weights.clone();
        for (mine, all) in one.inputs.iter_mut().zip(&whole.inputs) {
            let length = mine.len();
            mine.copy_from_slice(&all[sample * length..(sample + 1) * length]);
        }
        // Products may be blocked differently for other sizes, so the last bits may differ.
        close(
            &one.forward(),
            &whole.output()[sample * size..(sample + 1) * size],
            1e-12,
            "a batch against its samples",
        );
    }
}

/// Every parameter and input in turn, as (is input, index).
fn leaves(case: &Case<f64>) -> Vec<(bool, usize)> {
    let node = &case.graph.nodes()[0];
    let smooth = |which: usize| node.op.differentiable(which);
    node.inputs
        .iter()
        .enumerate()
        .filter(|&(which, _)| smooth(which))
        .map(|(_, &id)| match case.graph.value(id).origin {
            Origin::Input(index) => (true, index),
            Origin::Parameter(index) => (false, index),
            _ => unreachable!("operands of a case are leaves"),
        })
        .collect()
}

fn leaf_mut(case: &mut Case<f64>, (input, index): (bool, usize)) -> &mut Vec<f64> {
    if input { &mut case.inputs[index] } else { &mut case.weights.parameters[index] }
}

fn tangent_along(case: &Case<f64>, (input, index): (bool, usize), direction: &[f64]) -> Vec<f64> {
    let mut parameters: Vec<&[f64]> = vec![&[]; case.weights.parameters.len()];
    let mut inputs: Vec<&[f64]> = vec![&[]; case.inputs.len()];
    if input {
        inputs[index] = direction
    } else {
        parameters[index] = direction
    }
    let mut tangent = Tangent::new(Arc::clone(&case.graph));
    tangent.run(&case.workspace, &case.weights, &parameters, &inputs);
    tangent.get(case.graph.outputs()[0].1).to_vec()
}

fn tangents_are_differences(case: &mut Case<f64>) {
    for leaf in leaves(case) {
        let start = leaf_mut(case, leaf).clone();
        let direction = uniform(77, start.len());
        let exact = tangent_along(case, leaf, &direction);
        // Central differences: error h² of curvature plus ε/h of rounding, both about 1e-10 here.
        let h = 1e-5;
        let mut shifted = |sign: f64| {
            let moved = start.iter().zip(&direction).map(|(x, d)| x + sign * h * d).collect();
            *leaf_mut(case, leaf) = moved;
            case.forward()
        };
        let (up, down) = (shifted(1.0), shifted(-1.0));
        let difference: Vec<f64> = up.iter().zip(&down).map(|(u, d)| (u - d) / (2.0 * h)).collect();
        *leaf_mut(case, leaf) = start;
        case.forward();
        close(&exact, &difference, 1e-7, "jvp against finite differences");
    }
}

fn reverse(case: &Case<f64>) -> Reverse<f64> {
    Reverse::new(Arc::clone(&case.graph), Target { inputs: true, ..Target::all(&case.graph) })
}

fn cotangents_are_adjoint(case: &Case<f64>) {
    if case.inputs.is_empty() {
        return;
    }
    let size = case.out_size();
    let seed = uniform(5, SAMPLES * SEEDS * size);
    let mut reverse = reverse(case);
    reverse.per_sample(&case.workspace, &case.weights, &seed, SEEDS);
    for leaf in leaves(case) {
        let (input, index) = leaf;
        let gradient = if input { reverse.input(index) } else { reverse.gradient(index) };
        let per_sample = gradient.len() / (SAMPLES * SEEDS);
        let length = if input { per_sample * SAMPLES } else { per_sample };
        let direction = uniform(78, length);
        let tangent = tangent_along(case, leaf, &direction);
        for sample in 0..SAMPLES {
            let along = if input { &direction[sample * per_sample..(sample + 1) * per_sample] } else { &direction[..] };
            let moved = &tangent[sample * size..(sample + 1) * size];
            for s in 0..SEEDS {
                let at = sample * SEEDS + s;
                let forward = dot(&seed[at * size..(at + 1) * size], moved);
                let backward = dot(&gradient[at * per_sample..(at + 1) * per_sample], along);
                let scale = forward.abs().max(size as f64).max(1.0);
                assert!((forward - backward).abs() <= 1e-11 * scale, "⟨v, Ju⟩ = {forward} but ⟨Jᵀv, u⟩ = {backward}");
            }
        }
    }
}

fn sums_are_sums(case: &Case<f64>) {
    if case.inputs.is_empty() {
        return;
    }
    let seed = uniform(6, SAMPLES * case.out_size());
    let (mut each, mut summed) = (reverse(case), reverse(case));
    each.per_sample(&case.workspace, &case.weights, &seed, 1);
    summed.summed(&case.workspace, &case.weights, &seed);
    for index in 0..case.weights.parameters.len() {
        let (each, summed) = (each.gradient(index), summed.gradient(index));
        if each.is_empty() {
            continue;
        }
        let size = each.len() / SAMPLES;
        let total: Vec<f64> = (0..size).map(|i| (0..SAMPLES).map(|s| each[s * size + i]).sum()).collect();
        close(summed, &total, 1e-13, "accumulate against the sum of vjp");
    }
}

fn factors_are_gradients(case: &Case<f64>) {
    if case.inputs.is_empty() || case.weights.parameters.is_empty() {
        return;
    }
    let seed = uniform(8, SAMPLES * SEEDS * case.out_size());
    let (mut each, mut factored) = (reverse(case), reverse(case));
    each.per_sample(&case.workspace, &case.weights, &seed, SEEDS);
    let outer: Vec<bool> = (0..case.weights.parameters.len()).map(|p| each.outer_shape(p).is_some()).collect();
    let factors = factored.factors(&case.workspace, &case.weights, &seed, SEEDS, &outer);
    for (index, factor) in factors.parameters.iter().enumerate() {
        let explicit = factor.as_ref().expect("all were wanted").explicit(SAMPLES, SEEDS);
        if !each.gradient(index).is_empty() {
            close(&explicit, each.gradient(index), 1e-12, "factors against gradients");
        }
    }
}
