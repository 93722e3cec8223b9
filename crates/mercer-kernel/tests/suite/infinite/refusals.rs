//! What has no limit is refused by name, and another way is offered.

use mercer_kernel::KernelError;
use mercer_kernel::infinite::{Limit, LimitActivation, LimitKind, LimitNet, Rule, Scales, lower};
use mercer_net::Network;
use mercer_net::arch::{Cnn, CnnLayer, Resnet};
use mercer_net::graph::{Batch, Graph, GraphBuilder, ValueId};
use mercer_net::network::{Batching, Values};
use mercer_net::op::{Binary, Combine, Conv, Function, MatMul, Normalise, Softmax, Unary, Window};

fn dense(g: &mut GraphBuilder, name: &str, x: ValueId, w: ValueId) -> ValueId {
    g.node(name, MatMul { transposed: true }, &[x, w]).unwrap()
}

/// The same graph, written as a file and read again; none where there is no exporter for it.
fn through_a_file(graph: Graph) -> Option<Network> {
    let numbers = |&id: &ValueId| Values::from_slice(&vec![0.1; graph.value(id).meta.numel()]);
    let values = graph.parameters().iter().map(numbers).collect();
    let network = Network::from_graph(graph, values).expect("a network");
    Some(Network::from_onnx_bytes(&network.to_onnx_bytes().ok()?, Batching::Samples).expect("a network"))
}

/// The refusal of a graph: it must name the node and offer the Monte-Carlo kernel, also if the graph comes from a file.
fn refused(node: &str, reason: &str, build: impl FnOnce(&mut GraphBuilder, ValueId) -> ValueId) {
    let mut g = GraphBuilder::new();
    let x = g.input("x", [1, 6], Batch::axis(0));
    let w = g.parameter("stem.weight", [6, 6]);
    let h = dense(&mut g, "stem", x, w);
    let y = build(&mut g, h);
    g.output("y", y);
    let graph = g.finish();
    let error = lower(&graph, &Rule::ntk(1.0, 0.1)).expect_err(node);
    let KernelError::NoLimit { node: found, .. } = &error else { panic!("{error}") };
    assert!(found.contains(node), "{error}");
    let text = error.to_string();
    assert!(text.contains(reason) && text.contains("MonteCarlo"), "{text}");
    // The last node has the name of the output there.
    if let Some(network) = through_a_file(graph) {
        refused_network(&network, "node", reason);
    }
}

#[test]
fn branches_that_depend_on_each_other() {
    refused("sum", "not independent", |g, h| {
        let relu = g.node("relu", Unary(Function::Relu), &[h]).unwrap();
        g.node("sum", Binary(Combine::Add), &[h, relu]).unwrap()
    });
    refused("sum", "not independent", |g, h| {
        let tanh = g.node("tanh", Unary(Function::Tanh), &[h]).unwrap();
        g.node("sum", Binary(Combine::Sub), &[tanh, h]).unwrap()
    });
    // Two activations of different layers: independent, but neither has mean zero.
    refused("sum", "mean zero", |g, h| {
        let w = g.parameter("w", [6, 6]);
        let a = g.node("a", Unary(Function::Relu), &[h]).unwrap();
        let b = dense(g, "second", a, w);
        let b = g.node("b", Unary(Function::Relu), &[b]).unwrap();
        let v = g.parameter("v", [6, 6]);
        let sum = g.node("sum", Binary(Combine::Add), &[a, b]).unwrap();
        dense(g, "output", sum, v)
    });
    // A shortcut past two layers that meets what it came from.
    refused("product", "multiplies", |g, h| {
        let w = g.parameter("w", [6, 6]);
        let gate = dense(g, "gate", h, w);
        g.node("product", Binary(Combine::Mul), &[h, gate]).unwrap()
    });
}

#[test]
fn activations_of_what_is_not_gaussian() {
    // The shortcut of a ResNet of the first kind goes around a layer, but begins behind an activation.
    refused("last", "not Gaussian", |g, h| {
        let (w, v) = (g.parameter("w", [6, 6]), g.parameter("v", [6, 6]));
        let a = g.node("relu", Unary(Function::Relu), &[h]).unwrap();
        let b = dense(g, "branch", a, w);
        let sum = g.node("sum", Binary(Combine::Add), &[a, b]).unwrap();
        let last = g.node("last", Unary(Function::Relu), &[sum]).unwrap();
        dense(g, "output", last, v)
    });
    refused("norm", "mean is not zero", |g, h| {
        let relu = g.node("relu", Unary(Function::Relu), &[h]).unwrap();
        g.node("norm", Normalise { axes: vec![1], epsilon: 1e-5, centred: true }, &[relu]).unwrap()
    });
}

#[test]
fn weights_that_are_used_twice() {
    refused("again", "stem.weight", |g, h| {
        let w = g.graph().parameters()[0];
        let relu = g.node("relu", Unary(Function::Relu), &[h]).unwrap();
        dense(g, "again", relu, w)
    });
}

#[test]
fn softmax_and_slopes_that_learn() {
    refused("softmax", "Softmax", |g, h| {
        let softmax = g.node("softmax", Softmax { axis: 1, log: false }, &[h]).unwrap();
        let w = g.parameter("head.weight", [6, 6]);
        dense(g, "head", softmax, w)
    });
    refused("shift", "each unit", |g, h| {
        let shift = g.parameter("shift", [1]);
        g.node("shift", Binary(Combine::Add), &[h, shift]).unwrap()
    });
    refused("slopes", "slopes", |g, h| {
        let slope = g.parameter("slopes", [6]);
        g.node("slopes", Binary(Combine::PRelu), &[h, slope]).unwrap()
    });
}

/// A classifier's limit is that of its logits.
#[test]
fn a_final_softmax_is_not_refused() {
    let build = |ends: bool| {
        let mut g = GraphBuilder::new();
        let x = g.input("x", [1, 6], Batch::axis(0));
        let w = g.parameter("stem.weight", [6, 6]);
        let h = dense(&mut g, "stem", x, w);
        let y = if ends { g.node("softmax", Softmax { axis: 1, log: true }, &[h]).unwrap() } else { h };
        g.output("y", y);
        lower(&g.finish(), &Rule::ntk(1.0, 0.1)).expect("a limit")
    };
    assert_eq!(format!("{:?}", build(true)), format!("{:?}", build(false)));
}

#[test]
fn products_of_tokens() {
    let mut g = GraphBuilder::new();
    let x = g.input("x", [1, 3, 6], Batch::axis(0));
    let (q, k) = (g.parameter("q", [6, 6]), g.parameter("k", [6, 6]));
    let (queries, keys) = (dense(&mut g, "queries", x, q), dense(&mut g, "keys", x, k));
    let scores = g.node("scores", MatMul { transposed: true }, &[queries, keys]).unwrap();
    g.output("y", scores);
    let error = lower(&g.finish(), &Rule::ntk(1.0, 0.0)).unwrap_err().to_string();
    assert!(error.contains("scores") && error.contains("depend on the data"), "{error}");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/nets/");
    let attention = Network::from_onnx(format!("{folder}tiny_vit.onnx")).unwrap();
    refused_network(&attention, "node", "");
}

#[test]
fn grouped_convolutions() {
    let mut g = GraphBuilder::new();
    let x = g.input("x", [1, 2, 4, 4], Batch::axis(0));
    let w = g.parameter("w", [2, 1, 3, 3]);
    let y = g.node("depthwise", Conv { window: Window::plain(2), groups: 2 }, &[x, w]).unwrap();
    g.output("y", y);
    let error = lower(&g.finish(), &Rule::ntk(1.0, 0.0)).unwrap_err().to_string();
    assert!(error.contains("depthwise") && error.contains("groups"), "{error}");
}

fn refused_network(network: &Network, node: &str, reason: &str) {
    let shapes: Vec<_> = network.inputs().iter().map(|input| input.declared_sample().unwrap()).collect();
    let error =
        Limit::<f32>::of_network(network, &shapes, &Rule::ntk(1.0, 0.1), LimitKind::Ntk).unwrap_err().to_string();
    assert!(error.contains(node) && error.contains(reason) && error.contains("MonteCarlo"), "{error}");
}

#[test]
fn max_pools_and_residual_networks_of_the_first_kind() {
    let pooled = Cnn::new(&[1, 6, 6], &[CnnLayer::conv(4, 3), CnnLayer::max_pool(2)], 2).build(0).unwrap();
    refused_network(&pooled, "layer2", "max-pool");
    refused_network(&Resnet::new(8, 10).build(0).unwrap(), "stage1", "not Gaussian");
    let normalised = Cnn::new(&[1, 6, 6], &[CnnLayer::conv(4, 3)], 2).batch_norm(true).build(0).unwrap();
    refused_network(&normalised, "layer1.norm", "nothing is known of BatchNorm");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/nets/verivital_Convnet_maxpool.onnx");
    refused_network(&Network::from_onnx(file).unwrap(), "MaxPool_2", "max-pool");
}

#[test]
fn networks_built_in_code() {
    let mut net = LimitNet::new();
    assert!(Limit::<f64>::new(net.clone(), LimitKind::Ntk).is_err());
    let x = net.image([2, 2], 3);
    assert!(net.activation("early", x, LimitActivation::relu()).is_err());
    let h = net.dense("dense", x, Scales::ntk(1.0, 0.1)).unwrap();
    assert!(Limit::<f64>::new(net.clone(), LimitKind::Ntk).unwrap_err().to_string().contains("positions"));
    assert!(net.dense("nothing", x, Scales::ntk(0.0, 0.1)).is_err());
    assert!(net.sum("twice", &[h, h]).is_err());
    let flat = net.flatten("flatten", h);
    assert!(net.activation("late", flat, LimitActivation::relu()).is_err(), "units of unequal variance");
}
