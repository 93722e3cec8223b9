//! The logits behind a final softmax or sigmoid, in the forms that exporters write.

use crate::writer::Attribute::{Float, Int, Ints};
use crate::writer::{FLOAT, Model};
use mercer_net::Network;
use mercer_net::graph::Graph;
use mercer_net::network::{Batching, Ending, Squash, default_logits};
use mercer_net::train::{Loss, Optimiser, Targets, Trainer};
use std::sync::Arc;

/// Logits `z` of four classes, for the nodes that follow.
fn classifier() -> Model {
    let model = Model::new().input("x", FLOAT, &["batch".into(), 3.into()]).output("y");
    model.weights("w", &[3, 4]).weights("b", &[4]).node("Gemm", &["x", "w", "b"], "z")
}

fn graph(model: &Model) -> (Network, Arc<Graph>) {
    let network = Network::from_onnx_bytes(&model.bytes(), Batching::Samples).expect("a readable model");
    let graph = network.graph(&[vec![3]]).expect("a graph");
    (network, graph)
}

/// The logits are `z`, and the squash of their values is what the network returns.
fn ends(model: &Model, squash: Squash, node: &str) {
    let (network, graph) = graph(model);
    let (value, logits) = default_logits(&graph).expect("an output");
    let logits = logits.unwrap_or_else(|| panic!("{node}: {:?}", Ending::find(&graph, graph.outputs()[0].1)));
    assert_eq!((logits.name.as_str(), logits.squash, logits.output.as_str()), ("z", squash, "y"), "{node}");
    assert_eq!(logits.value, value);
    assert!(logits.node.contains(node), "{} instead of {node}", logits.node);
    let x = [0.3, -1.0, 0.7];
    let run = |at: &str| network.predict::<f64>(&[(&x, &[3])], 1, Some(at), None).expect("runs").values;
    let z = run("z");
    let sum: f64 = z.iter().map(|z| z.exp()).sum();
    for (z, y) in z.iter().zip(run("y")) {
        let expected = match squash {
            Squash::Softmax => z.exp() / sum,
            Squash::LogSoftmax => z - sum.ln(),
            Squash::Sigmoid => 1.0 / (1.0 + (-z).exp()),
            Squash::LogSigmoid => -(1.0 + (-z).exp()).ln(),
        };
        // The largest ε that a model here adds to a probability, over the least probability.
        assert!((expected - y).abs() < 1e-6, "{node}: {y} instead of {expected}");
    }
}

#[test]
fn single_nodes_and_what_may_follow_them() {
    let softmax = || classifier().node("Softmax", &["z"], "p");
    ends(&classifier().node("Softmax", &["z"], "y"), Squash::Softmax, "\"y\" (Softmax)");
    ends(&classifier().node("LogSoftmax", &["z"], "y"), Squash::LogSoftmax, "\"y\" (LogSoftmax)");
    ends(&classifier().node("Sigmoid", &["z"], "y"), Squash::Sigmoid, "\"y\" (Sigmoid)");
    ends(&softmax().node("Identity", &["p"], "y"), Squash::Softmax, "\"p\"");
    ends(&softmax().node_with("Cast", &["p"], "y", &[Int("to", 11)]), Squash::Softmax, "\"p\"");
    ends(&softmax().node("Log", &["p"], "y"), Squash::LogSoftmax, "\"p\"");
    ends(&softmax().ints("shape", &[-1, 2, 2]).node("Reshape", &["p", "shape"], "y"), Squash::Softmax, "\"p\"");
    let small = || softmax().floats("e", &[], &[1e-9]).floats("one", &[], &[1.0]);
    ends(&small().node("Clip", &["p", "e", "one"], "y"), Squash::Softmax, "\"p\"");
    ends(&small().node("Max", &["p", "e"], "y"), Squash::Softmax, "\"p\"");
    ends(&small().node("Add", &["p", "e"], "q").node("Log", &["q"], "y"), Squash::LogSoftmax, "\"p\"");
    ends(&small().node("Clip", &["p", "e", "one"], "q").node("Log", &["q"], "y"), Squash::LogSoftmax, "\"p\"");
    let log = classifier().node("LogSoftmax", &["z"], "l").node("Exp", &["l"], "y");
    ends(&log, Squash::Softmax, "\"l\"");
    let log = classifier().node("Sigmoid", &["z"], "s").node("Log", &["s"], "y");
    ends(&log, Squash::LogSigmoid, "\"s\"");
}

#[test]
fn under_other_shapes() {
    let image = classifier().ints("axes", &[2, 3]).node("Unsqueeze", &["z", "axes"], "i");
    let image = image.node_with("Softmax", &["i"], "p", &[Int("axis", 1)]);
    let (_, shaped) = graph(&image.clone().node("Flatten", &["p"], "y"));
    let logits = Ending::find(&shaped, shaped.outputs()[0].1).logits().expect("logits");
    assert_eq!((logits.name.as_str(), logits.squash), ("i", Squash::Softmax));
    let squeezed = image.node("Squeeze", &["p", "axes"], "y");
    assert_eq!(default_logits(&graph(&squeezed).1).and_then(|found| found.1).expect("logits").name, "i");
    // Before opset 13 a softmax is over all axes from one on.
    let old = Model::of_opset(11).input("x", FLOAT, &["batch".into(), 3.into()]).output("y");
    let old = old.weights("w", &[3, 4]).node("MatMul", &["x", "w"], "z").node("Softmax", &["z"], "y");
    ends(&old, Squash::Softmax, "\"y\"");
}

#[test]
fn written_out() {
    let axes = || classifier().ints("axes", &[1]);
    let exponentials = |model: Model, below: &str, e: &str| {
        let model = model.node_with("ReduceMax", &["z"], &format!("m{e}"), &[Ints("axes", vec![1])]);
        model.node("Sub", &["z", &format!("m{e}")], below).node("Exp", &[below], e)
    };
    let plain = axes().node("Exp", &["z"], "e").node("ReduceSum", &["e", "axes"], "s");
    ends(&plain.clone().node("Div", &["e", "s"], "y"), Squash::Softmax, "\"y\" (Div)");
    ends(&plain.clone().node("Reciprocal", &["s"], "r").node("Mul", &["e", "r"], "y"), Squash::Softmax, "(Mul)");
    ends(&plain.node("Log", &["s"], "l").node("Sub", &["z", "l"], "y"), Squash::LogSoftmax, "(Sub)");
    let shifted = exponentials(axes(), "d", "e").node("ReduceSum", &["e", "axes"], "s");
    ends(&shifted.clone().node("Div", &["e", "s"], "y"), Squash::Softmax, "(Div)");
    ends(&shifted.clone().node("Log", &["s"], "l").node("Sub", &["d", "l"], "y"), Squash::LogSoftmax, "(Sub)");
    let sum = shifted.node("Log", &["s"], "l").node("Add", &["me", "l"], "a");
    ends(&sum.node("Sub", &["z", "a"], "y"), Squash::LogSoftmax, "(Sub)");
    // The same written twice.
    let twice = exponentials(exponentials(axes(), "d", "e"), "c", "f");
    let twice = twice.node("ReduceSum", &["f", "axes"], "s").node("Div", &["e", "s"], "y");
    ends(&twice, Squash::Softmax, "(Div)");
    for keep in [1, 0] {
        let keep_dims = [Ints("axes", vec![1]), Int("keepdims", keep)];
        let model = axes().node_with("ReduceLogSumExp", &["z"], "l", &keep_dims);
        let model = if keep == 1 { model } else { model.node("Unsqueeze", &["l", "axes"], "k") };
        ends(&model.node("Sub", &["z", if keep == 1 { "l" } else { "k" }], "y"), Squash::LogSoftmax, "(Sub)");
    }
    let one = || classifier().floats("one", &[], &[1.0]).floats("half", &[], &[0.5]).node("Neg", &["z"], "n");
    let below = one().node("Exp", &["n"], "e").node("Add", &["e", "one"], "d");
    ends(&below.clone().node("Reciprocal", &["d"], "y"), Squash::Sigmoid, "(Reciprocal)");
    ends(&below.node("Div", &["one", "d"], "y"), Squash::Sigmoid, "(Div)");
    let tanh = one().node("Mul", &["z", "half"], "h").node("Tanh", &["h"], "t").node("Mul", &["t", "half"], "u");
    ends(&tanh.node("Add", &["u", "half"], "y"), Squash::Sigmoid, "(Add)");
    ends(&one().node("Softplus", &["n"], "s").node("Neg", &["s"], "y"), Squash::LogSigmoid, "(Neg)");
}

#[test]
fn what_is_no_ending() {
    let open = |model: Model| {
        let (_, graph) = graph(&model);
        let output = graph.outputs()[0].1;
        assert_eq!(Ending::find(&graph, output), Ending::Open);
        assert_eq!(default_logits(&graph), Some((output, None)));
    };
    open(classifier().node("Identity", &["z"], "y"));
    open(classifier().node("Relu", &["z"], "y"));
    // A gate, a softmax before another layer, a sum of others' exponentials.
    open(classifier().node("Sigmoid", &["z"], "s").node("Mul", &["s", "z"], "y"));
    open(classifier().node("Softmax", &["z"], "p").weights("v", &[4, 2]).node("MatMul", &["p", "v"], "y"));
    open(classifier().ints("axes", &[1]).node("Exp", &["z"], "e").node("ReduceSum", &["z", "axes"], "s").node(
        "Div",
        &["e", "s"],
        "y",
    ));
    open(classifier().node_with("LeakyRelu", &["z"], "y", &[Float("alpha", 0.1)]));
}

#[test]
fn probabilities_whose_logits_are_no_value_name_the_node() {
    let mixed = |model: Model, node: &str| {
        let (_, graph) = graph(&model);
        let output = graph.outputs()[0].1;
        match Ending::find(&graph, output) {
            Ending::Mixed { node: found, .. } => assert!(found.contains(node), "{found} instead of {node}"),
            other => panic!("{node}: {other:?}"),
        }
        assert_eq!(default_logits(&graph), Some((output, None)));
    };
    // A class for each of two positions.
    let positions = classifier().ints("shape", &[-1, 2, 2]).node("Reshape", &["z", "shape"], "t");
    mixed(positions.node_with("Softmax", &["t"], "y", &[Int("axis", -1)]), "\"y\" (Softmax)");
    let softmax = || classifier().node("Softmax", &["z"], "p");
    mixed(softmax().int("one", 1).node_with("Gather", &["p", "one"], "y", &[Int("axis", 1)]), "\"p\" (Softmax)");
    let pair = classifier().floats("one", &[], &[1.0]).node("Sigmoid", &["z"], "s").node("Sub", &["one", "s"], "q");
    mixed(pair.node_with("Concat", &["q", "s"], "y", &[Int("axis", 1)]), "\"s\" (Sigmoid)");
    let share = classifier().ints("axes", &[1]).node("Softplus", &["z"], "e").node("ReduceSum", &["e", "axes"], "s");
    mixed(share.node("Div", &["e", "s"], "y"), "\"y\" (Div)");
}

/// The cross-entropy has a softmax of its own: a network that ends in one learns as the one without it.
#[test]
fn training_takes_the_logits() {
    let step = |model: &Model| {
        let (network, graph) = graph(model);
        let weights = network.weights::<f64>(&graph);
        let mut trainer = Trainer::new(graph, weights, Loss::CrossEntropy, Optimiser::adam()).expect("a trainer");
        let loss =
            trainer.step(&[&[0.3, -1.0, 0.7, 0.1, 0.2, 0.3]], &Targets::classes(&[3, 1]), 2, 0.1).expect("a step");
        (loss, trainer.gradient().to_vec())
    };
    let open = step(&classifier().node("Identity", &["z"], "y"));
    assert_eq!(step(&classifier().node("Softmax", &["z"], "y")), open);
    assert_eq!(step(&classifier().node("LogSoftmax", &["z"], "y")), open);
}
