//! What is measured. Sizes are in the names; numbers come from a fixed sequence.

use mercer_kernel::sketch::{Sketch, Spec, parse};
use mercer_kernel::{FeatureMap, Kernel, Ntk, NtkKind};
use mercer_net::graph::{Batch, GraphBuilder, ValueId};
use mercer_net::network::{Shards, Values};
use mercer_net::op::{Binary, Combine, Conv, Function, MatMul, Pool, Pooling, Reshape, Unary, Window};
use mercer_net::run::{Keep, Reverse, Target, Workspace};
use mercer_net::{Network, Result};
use std::sync::Arc;

/// A piece of work that can be repeated.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) flops: f64,
    pub(super) run: Box<dyn FnMut()>,
}

/// Constructors of all cases, so that only one is in memory at a time.
pub(super) fn all() -> Vec<fn() -> Case> {
    vec![
        || step("step_mlp_784-512-512-10_b256", &mlp().expect("builds"), 256, false),
        || step("step_cnn_conv5x32-conv5x64_28x28_b128", &cnn(32, 64, 2).expect("builds"), 128, false),
        || step("step_conv3x3_64-64_32x32_b32", &conv().expect("builds"), 32, true),
        || step("step_resnet20_32x32_b32", &resnet20(), 32, false),
        || prepare("prepare_trace_mlp_784-512-512-10_n500", &mlp().expect("builds"), 500, NtkKind::Trace),
        || prepare("prepare_pseudo_mlp_784-512-512-10_n1000", &mlp().expect("builds"), 1000, NtkKind::Pseudo),
        || {
            prepare(
                "prepare_trace_cnn_conv5x16-conv5x32_28x28_n200",
                &cnn(16, 32, 0).expect("builds"),
                200,
                NtkKind::Trace,
            )
        },
        || {
            prepare(
                "prepare_pseudo_cnn_conv5x16-conv5x32_28x28_n500",
                &cnn(16, 32, 0).expect("builds"),
                500,
                NtkKind::Pseudo,
            )
        },
        || prepare("prepare_trace_resnet20_32x32_n16", &resnet20(), 16, NtkKind::Trace),
        || prepare("prepare_pseudo_resnet20_32x32_n64", &resnet20(), 64, NtkKind::Pseudo),
        || ntk("ntk_full_mlp_784-512-512-10_n100", &mlp().expect("builds"), 100, NtkKind::Full),
        || ntk("ntk_trace_mlp_784-512-512-10_n500", &mlp().expect("builds"), 500, NtkKind::Trace),
        || ntk("ntk_pseudo_mlp_784-512-512-10_n1000", &mlp().expect("builds"), 1000, NtkKind::Pseudo),
        || ntk("ntk_trace_cnn_conv5x16-conv5x32_28x28_n200", &cnn(16, 32, 0).expect("builds"), 200, NtkKind::Trace),
        || ntk("ntk_pseudo_cnn_conv5x16-conv5x32_28x28_n500", &cnn(16, 32, 0).expect("builds"), 500, NtkKind::Pseudo),
        || ntk("ntk_trace_resnet20_32x32_n16", &resnet20(), 16, NtkKind::Trace),
        || ntk("ntk_pseudo_resnet20_32x32_n64", &resnet20(), 64, NtkKind::Pseudo),
        || sketch("sketch_sjlt_k2048_cnn_conv5x16-conv5x32_28x28_n200", "sjlt:2048"),
        || sketch("sketch_khatri-rao_k2048_cnn_conv5x16-conv5x32_28x28_n200", "khatri-rao:2048"),
    ]
}

/// The networks that training is measured on with one and with two threads.
pub(super) fn trained() -> Vec<(&'static str, Network, usize)> {
    vec![
        ("train_mlp_784-512-512-10_b1024", mlp().expect("builds"), 1024),
        ("train_cnn_conv5x32-conv5x64_28x28_b128", cnn(32, 64, 2).expect("builds"), 128),
        ("train_resnet20_32x32_b128", resnet20(), 128),
    ]
}

/// Numbers in (−1, 1) of a Weyl sequence: fixed, and free of patterns that flatter a cache.
pub(super) fn numbers(count: usize, scale: f32) -> Vec<f32> {
    (0..count).map(|i| ((i as f64 * 0.618_033_988_749_895 + 0.5).fract() as f32 * 2.0 - 1.0) * scale).collect()
}

fn dense(g: &mut GraphBuilder, name: &str, x: ValueId, width: usize) -> Result<ValueId> {
    let inputs = g.shape(x)[1];
    let w = g.parameter(format!("{name}.weight"), [width, inputs]);
    let b = g.parameter(format!("{name}.bias"), [width]);
    let y = g.node(name, MatMul { transposed: true }, &[x, w])?;
    g.node(name, Binary(Combine::Add), &[y, b])
}

fn conv_layer(g: &mut GraphBuilder, name: &str, x: ValueId, out: usize, kernel: usize, pad: usize) -> Result<ValueId> {
    let channels = g.shape(x)[1];
    let w = g.parameter(format!("{name}.weight"), [out, channels, kernel, kernel]);
    let b = g.parameter(format!("{name}.bias"), [out]);
    let window = Window { before: vec![pad; 2], after: vec![pad; 2], ..Window::plain(2) };
    g.node(name, Conv { window, groups: 1 }, &[x, w, b])
}

fn finish(mut g: GraphBuilder, y: ValueId) -> Result<Network> {
    g.output("y", y);
    let graph = g.finish();
    let sizes: Vec<usize> = graph.parameters().iter().map(|&id| graph.value(id).meta.numel()).collect();
    let fan = |size: usize| 1.0 / (size as f32).sqrt();
    let values = sizes.iter().map(|&size| Values::from_slice(&numbers(size, fan(size)))).collect();
    Network::from_graph(graph, values)
}

pub(super) fn mlp() -> Result<Network> {
    let mut g = GraphBuilder::new();
    let mut x = g.input("x", [1, 784], Batch::axis(0));
    for (name, width) in [("first", 512), ("second", 512)] {
        x = dense(&mut g, name, x, width)?;
        x = g.node("relu", Unary(Function::Relu), &[x])?;
    }
    let y = dense(&mut g, "head", x, 10)?;
    finish(g, y)
}

fn cnn(first: usize, second: usize, pad: usize) -> Result<Network> {
    let mut g = GraphBuilder::new();
    let mut x = g.input("x", [1, 1, 28, 28], Batch::axis(0));
    for (name, channels) in [("first", first), ("second", second)] {
        x = conv_layer(&mut g, name, x, channels, 5, pad)?;
        x = g.node("relu", Unary(Function::Relu), &[x])?;
        let window = Window { strides: vec![2, 2], ..Window::plain(2) };
        x = g.node("pool", Pool { kind: Pooling::Max, kernel: vec![2, 2], window, round_up: false }, &[x])?;
    }
    let size = g.shape(x).iter().product();
    x = g.node("flatten", Reshape { shape: vec![1, size] }, &[x])?;
    x = dense(&mut g, "hidden", x, 128)?;
    x = g.node("relu", Unary(Function::Relu), &[x])?;
    let y = dense(&mut g, "head", x, 10)?;
    finish(g, y)
}

fn conv() -> Result<Network> {
    let mut g = GraphBuilder::new();
    let x = g.input("x", [1, 64, 32, 32], Batch::axis(0));
    let y = conv_layer(&mut g, "conv", x, 64, 3, 1)?;
    finish(g, y)
}

fn resnet20() -> Network {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/nets/cifar10_resnet20.onnx");
    Network::from_onnx(path).expect("the fixture opens")
}

/// A forward and a reverse pass over a batch, in the shards that training uses.
fn step(name: &'static str, network: &Network, batch: usize, inputs: bool) -> Case {
    let graph = network.graph(&[sample(network)]).expect("declared sizes");
    let weights = network.weights::<f32>(&graph);
    let grain = Shards::for_graph(&graph).grain;
    let size: usize = sample(network).iter().product();
    let outputs = graph.value(graph.outputs()[0].1).meta.numel();
    let (x, seed) = (numbers(batch * size, 1.0), numbers(batch * outputs, 1.0));
    let mut workspace = Workspace::new(Arc::clone(&graph), &Keep::All);
    let mut reverse = Reverse::new(Arc::clone(&graph), Target { inputs, ..Target::all(&graph) });
    let first = graph.nodes().iter().find(|node| node.inputs.contains(&graph.inputs()[0]));
    let first_flops = first.map_or(0, |node| {
        let metas: Vec<_> = node.inputs.iter().map(|&id| &graph.value(id).meta).collect();
        node.op.flops(&metas, &graph.value(node.output).meta)
    });
    let per_sample = 3 * graph.flops() - if inputs { 0 } else { first_flops };
    let run = move || {
        for start in (0..batch).step_by(grain) {
            let count = grain.min(batch - start);
            let x = &x[start * size..(start + count) * size];
            workspace.forward(&weights, &[x], count).expect("sizes fit");
            reverse.summed(&workspace, &weights, &seed[start * outputs..(start + count) * outputs]);
        }
        std::hint::black_box(reverse.gradient(0));
    };
    Case { name, flops: (per_sample * batch as u64) as f64, run: Box::new(run) }
}

fn sample(network: &Network) -> Vec<usize> {
    network.inputs()[0].declared_sample().expect("declared sizes")
}

/// The Gram matrix of `n` samples. The operations counted are those of the passes, as a plain sum would need them, and of one
/// triangle of the contraction; convolutions by rows need fewer.
fn ntk(name: &'static str, network: &Network, n: usize, kind: NtkKind) -> Case {
    let kernel = Ntk::<f32>::new(network, &[sample(network)], kind).expect("a kernel");
    let x = numbers(n * sample(network).iter().product::<usize>(), 1.0);
    let (cost, pairs) = (kernel.cost(), (n * (n + 1) / 2) as f64);
    let flops = n as f64 * cost.prepare_flops + pairs * cost.pair_flops;
    let run = move || {
        std::hint::black_box(kernel.gram(&[&x], n).expect("runs"));
    };
    Case { name, flops, run: Box::new(run) }
}

/// The passes of `n` samples without their contraction: forward once, and for each seed both cotangents.
fn prepare(name: &'static str, network: &Network, n: usize, kind: NtkKind) -> Case {
    let kernel = Ntk::<f32>::new(network, &[sample(network)], kind).expect("a kernel");
    let x = numbers(n * sample(network).iter().product::<usize>(), 1.0);
    let flops = n as f64 * kernel.cost().prepare_flops;
    let run = move || {
        std::hint::black_box(kernel.prepare(&[&x], n).expect("runs"));
    };
    Case { name, flops, run: Box::new(run) }
}

/// The features of 200 samples, one gradient each. The operations counted are those of the passes.
fn sketch(name: &'static str, method: &str) -> Case {
    const N: usize = 200;
    let network = cnn(16, 32, 0).expect("builds");
    let (method, k) = parse(method).expect("a method");
    let sketch = Sketch::<f32>::from_spec(&network, &[sample(&network)], &Spec::new(method, k, NtkKind::Pseudo));
    let sketch = sketch.expect("a sketch");
    let graph = network.graph(&[sample(&network)]).expect("declared sizes");
    let x = numbers(N * sample(&network).iter().product::<usize>(), 1.0);
    let mut features = vec![0.0; N * sketch.n_features()];
    let run = move || {
        sketch.features(&[&x], N, &mut features).expect("runs");
        std::hint::black_box(&features);
    };
    Case { name, flops: (N as u64 * 3 * graph.flops()) as f64, run: Box::new(run) }
}
