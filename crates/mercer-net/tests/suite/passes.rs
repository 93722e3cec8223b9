//! Factors of a block by passes over a few samples at a time: the same numbers as in one pass, in the memory that was
//! promised.

use mercer_net::arch::{Activation, Cnn, CnnLayer, Mlp, Resnet};
use mercer_net::run::{Factor, Factors, Keep, Reverse, Target, Weights, Workspace};
use mercer_net::{Element, Network};
use std::sync::Arc;

fn networks() -> Vec<(&'static str, Network)> {
    let layers = [
        CnnLayer::conv(8, 3),
        CnnLayer::max_pool(2),
        CnnLayer::conv(8, 3),
        CnnLayer::average_pool(2),
        CnnLayer::dense(8),
    ];
    let resnet = Resnet { inputs: vec![1, 16, 16], width: 8, ..Resnet::new(8, 3) };
    vec![
        ("mlp", Mlp::new(256, &[20, 20], 3).activation(Activation::Gelu).build(0).unwrap()),
        ("cnn", Cnn::new(&[1, 16, 16], &layers, 3).build(0).unwrap()),
        ("resnet", resnet.build(0).unwrap()),
    ]
}

fn numbers<T: Element>(count: usize) -> Vec<T> {
    (0..count).map(|i| T::narrow((i as f64 * 0.7).sin())).collect()
}

/// Samples of a pass.
const GRAIN: usize = 16;

/// Fills the factors of a block, a few samples at a time.
fn passes<T: Element>(
    (workspace, reverse): (&mut Workspace<T>, &mut Reverse<T>),
    weights: &Weights<T>,
    x: &[T],
    factors: &mut Factors<T>,
) {
    for (pass, x) in x.chunks(GRAIN * 256).enumerate() {
        let samples = x.len() / 256;
        workspace.forward(weights, &[x], samples).unwrap();
        let cotangent = one_hot::<T>(SEEDS).repeat(samples);
        reverse.factors_into(workspace, weights, &cotangent, factors, pass * GRAIN);
    }
}

const SEEDS: usize = 3;

/// Bytes of the strips of a convolution, in both passes.
const STRIPS: usize = 8 << 20;

/// The cotangents `[seeds, outputs]` of each output on its own.
fn one_hot<T: Element>(outputs: usize) -> Vec<T> {
    (0..outputs * outputs).map(|at| if at % (outputs + 1) == 0 { T::one() } else { T::zero() }).collect()
}

#[test]
fn passes_over_a_few_samples_give_what_one_pass_gives() {
    for (name, network) in networks() {
        let graph = network.declared_graph().unwrap();
        let weights = network.weights::<f64>(&graph);
        for use_outer in [false, true] {
            let outer = vec![use_outer; graph.parameters().len()];
            let target = Target::all(&graph);
            let samples = 2 * GRAIN + 1;
            let x = numbers::<f64>(samples * 256);
            let mut workspace = Workspace::new(Arc::clone(&graph), &Keep::All);
            let mut reverse = Reverse::new(Arc::clone(&graph), target);
            let mut found = reverse.factors_of(samples, SEEDS, &outer);
            passes((&mut workspace, &mut reverse), &weights, &x, &mut found);
            workspace.forward(&weights, &[&x], samples).unwrap();
            let cotangent = one_hot::<f64>(SEEDS).repeat(samples);
            reverse.per_sample(&workspace, &weights, &cotangent, SEEDS);
            for (index, factor) in found.parameters.iter().enumerate() {
                let found = factor.as_ref().expect("all are wanted").explicit(samples, SEEDS);
                let expected = reverse.gradient(index);
                assert_eq!(found.len(), expected.len());
                let size = expected.iter().fold(0.0f64, |size, x| size.max(x.abs()));
                let error = found.iter().zip(expected).fold(0.0f64, |error, (a, b)| error.max((a - b).abs()));
                // Products of other sizes add in another order.
                assert!(error <= 1e-13 * size, "{name}, parameter {index}: {error} of {size}");
            }
        }
    }
}

#[test]
fn memory_is_what_was_promised_and_is_used_again() {
    for (name, network) in networks() {
        let graph = network.declared_graph().unwrap();
        let weights = network.weights::<f32>(&graph);
        let outer: Vec<bool> = (0..graph.parameters().len()).map(|index| index % 2 == 0).collect();
        let mut workspace = Workspace::new(Arc::clone(&graph), &Keep::All);
        let mut reverse = Reverse::new(Arc::clone(&graph), Target::all(&graph));
        let samples = GRAIN + 1;
        let promised = workspace.bytes(GRAIN) + reverse.bytes(GRAIN, SEEDS);
        let promised_factors = reverse.factors_bytes(samples, SEEDS, &outer);
        let x = numbers::<f32>(samples * 256);
        let mut factors = reverse.factors_of(samples, SEEDS, &outer);
        passes((&mut workspace, &mut reverse), &weights, &x, &mut factors);
        let allocated = workspace.allocated() + reverse.allocated();
        assert!(allocated <= promised, "{name}: {allocated} bytes, {promised} promised");
        // What a primitive takes for itself, at most a few cached strips, is a bound, twice; the rest is exact.
        assert!(promised <= 2 * allocated + STRIPS, "{name}: {allocated} bytes, {promised} promised");
        let places = |factors: &Factors<f32>| -> (usize, Vec<*const f32>) {
            let parts = factors.parameters.iter().flatten().flat_map(|factor| match factor {
                Factor::Explicit(gradient) => vec![gradient],
                Factor::Outer { left, right, .. } => vec![left, right],
            });
            let parts: Vec<&Vec<f32>> = parts.collect();
            (parts.iter().map(|part| part.capacity() * 4).sum(), parts.iter().map(|part| part.as_ptr()).collect())
        };
        let before = places(&factors);
        assert_eq!(before.0, promised_factors, "{name}");
        for count in [1, samples] {
            reverse.fit_factors(&mut factors, count, SEEDS, &outer);
            passes((&mut workspace, &mut reverse), &weights, &x[..count * 256], &mut factors);
        }
        assert_eq!(places(&factors), before, "{name}");
        assert_eq!(workspace.allocated() + reverse.allocated(), allocated, "{name}");
    }
}
