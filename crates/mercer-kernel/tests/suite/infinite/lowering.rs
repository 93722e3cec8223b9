//! Graphs as networks of infinite width: built, described and read from files.

use super::{activation_of, distance, grams, mlp, normal, worst};
use mercer_kernel::infinite::{
    Limit, LimitActivation, LimitKind, LimitNet, Parametrisation, Patch, Rule, Scales, Variances, lower,
};
use mercer_kernel::{Kernel, Ntk, NtkKind};
use mercer_net::Network;
use mercer_net::arch::{self, Architecture, Cnn, Initialisation, Mlp};
use mercer_net::graph::{Batch, GraphBuilder, ValueId};
use mercer_net::network::Batching;
use mercer_net::op::{
    Binary, Combine, Conv, Function, Margin, MatMul, Normalise, Pad, Reduce, Reduction, Reshape, Unary, Window,
};
use std::path::PathBuf;

fn file(name: &str) -> Network {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/nets");
    Network::from_onnx(folder.join(format!("{name}.onnx"))).expect("a fixture")
}

/// Both kernels of a network's limit, for samples with themselves.
fn limits(network: &Network, rule: &Rule, x: &[f64], n: usize) -> (Vec<f64>, Vec<f64>) {
    let shapes: Vec<_> = network.inputs().iter().map(|input| input.declared_sample().expect("a shape")).collect();
    let gram = |of: LimitKind| {
        Limit::<f64>::of_network(network, &shapes, rule, of).expect("a limit").gram(&[x], n).expect("runs")
    };
    (gram(LimitKind::Nngp), gram(LimitKind::Ntk))
}

fn assert_same(found: &(Vec<f64>, Vec<f64>), expected: &(Vec<f64>, Vec<f64>), what: &str) {
    for (found, expected) in [(&found.0, &expected.0), (&found.1, &expected.1)] {
        let error = worst(found, expected);
        assert!(error < 1e-13, "{what}: off by {error:e}");
    }
}

#[test]
fn files_have_the_limits_of_the_networks_they_hold() {
    let rule = Rule::ntk(1.4, 0.3);
    let scales = Scales::ntk(1.4, 0.3);
    for (name, inputs, activation) in
        [("mlp_erf", 8, activation_of(Function::Erf)), ("mlp_tanh", 5, activation_of(Function::Tanh))]
    {
        let x = normal(21, 6 * inputs);
        let expected = grams(&mlp(inputs, 2, scales, &activation, scales), &x, 6);
        assert_same(&limits(&file(name), &rule, &x, 6), &expected, name);
    }
    // A flatten before the first layer, and 256 units twice.
    let x = normal(22, 4 * 784);
    let expected = grams(&mlp(784, 2, scales, &LimitActivation::relu(), scales), &x, 4);
    assert_same(&limits(&file("mnist-net_256x2"), &rule, &x, 4), &expected, "mnist-net_256x2");
}

/// The file of a network with one output in the parametrisation of tangent kernels, whose last bias is one number with a factor.
#[test]
fn a_bias_of_one_number_is_in_the_limit() {
    let net = Mlp { initialisation: Initialisation::Ntk, bias_std: Some(0.7), ..Mlp::new(4, &[8], 1) };
    let built = net.build(0).expect("builds");
    let bytes = built.to_onnx_bytes().expect("writes");
    let read = Network::from_onnx_bytes(&bytes, Batching::Samples).expect("reads");
    let (x, rule) = (normal(24, 5 * 4), Rule::ntk(1.0, 1.0));
    let (expected, found) = (limits(&built, &rule, &x, 5), limits(&read, &rule, &x, 5));
    // Factors are written in single precision.
    assert!(worst(&found.0, &expected.0) < 1e-6 && worst(&found.1, &expected.1) < 1e-6, "{found:?}, {expected:?}");
}

/// A network of others in two layouts: channels first, and channels last with a transpose.
#[test]
fn convolutional_files() {
    let scales = Scales::ntk(1.2, 0.2);
    let relu = LimitActivation::relu();
    let x = normal(23, 3 * 3072);
    let build = |last: bool, patch: Patch, dense: usize| {
        let mut net = LimitNet::new();
        let mut y = if last { net.image_channels_last([32, 32], 3) } else { net.image([32, 32], 3) };
        for _ in 0..2 {
            y = net.conv("conv", y, scales, patch).unwrap();
            y = net.activation("relu", y, relu.clone()).unwrap();
        }
        y = net.flatten("flatten", y);
        for _ in 0..dense {
            y = net.dense("dense", y, scales).unwrap();
            y = net.activation("relu", y, relu.clone()).unwrap();
        }
        net.dense("output", y, scales).unwrap();
        net
    };
    let plain = Patch::valid([4, 4]).stride([2, 2]);
    let padded = Patch { before: [1, 1], after: [1, 1], ..plain };
    for (name, net) in [("cifar_base_kw", build(false, padded, 1)), ("marabou_cifar10_small", build(true, plain, 2))] {
        assert_same(&limits(&file(name), &Rule::ntk(1.2, 0.2), &x, 3), &grams(&net, &x, 3), name);
    }
}

#[test]
fn descriptions_have_the_limits_of_their_initialisations() {
    let text = "
        [mlp]
        inputs = [4]
        widths = [30, 50]
        outputs = 2
        activation = \"relu\"
        initialisation = \"ntk\"
        weight_std = 1.3
        bias_std = 0.2
    ";
    let x = normal(31, 20);
    let network = Architecture::from_toml(text).unwrap().build(0).unwrap();
    let expected = grams(&mlp(4, 2, Scales::ntk(1.3, 0.2), &LimitActivation::relu(), Scales::ntk(1.3, 0.2)), &x, 5);
    assert_same(&limits(&network, &Rule::initialisation(Initialisation::Ntk), &x, 5), &expected, "ntk");

    // He's rule in standard parametrisation: fan-ins 4, 30 and 50, biases that begin at zero and learn.
    let network = Mlp::new(4, &[30, 50], 2).initialisation(Initialisation::He).build(0).unwrap();
    let mut net = LimitNet::new();
    let mut y = net.input(4);
    for fan_in in [4, 30] {
        y = net.dense("dense", y, Scales::standard(2.0f64.sqrt(), Some(0.0), fan_in)).unwrap();
        y = net.activation("relu", y, LimitActivation::relu()).unwrap();
    }
    net.dense("output", y, Scales::standard(2.0f64.sqrt(), Some(0.0), 50)).unwrap();
    let expected = grams(&net, &x, 5);
    assert_same(&limits(&network, &Rule::initialisation(Initialisation::He), &x, 5), &expected, "he");
    let rule = Rule {
        variances: Variances::Deviations { weight: 2.0f64.sqrt(), bias: 0.0 },
        parametrisation: Parametrisation::Standard,
    };
    assert_same(&limits(&network, &rule, &x, 5), &expected, "standard");
}

/// With a normalised activation and weights of variance `1/n`, the variance of a sample stays that of its input,
/// whatever the activation and the depth: `E σ(z)² = 1` for `z` of variance one.
#[test]
fn normalised_activations_keep_the_variance() {
    // Samples of mean square one.
    let mut x = normal(7, 20);
    for row in x.chunks_exact_mut(4) {
        let norm = (row.iter().map(|x| x * x).sum::<f64>() / 4.0).sqrt();
        row.iter_mut().for_each(|x| *x /= norm);
    }
    for activation in [arch::Activation::Relu, arch::Activation::Tanh, arch::Activation::Erf] {
        let mlp = Mlp::new(4, &[30, 50, 20], 1).bias(false).initialisation(Initialisation::Ntk);
        let network = mlp.activation(activation.normalised()).build(0).unwrap();
        let (nngp, _) = limits(&network, &Rule::initialisation(Initialisation::Ntk), &x, 5);
        for (at, variance) in nngp.iter().enumerate().step_by(6) {
            assert!((variance - 1.0).abs() < 1e-9, "{activation}, sample {at}: {variance}");
        }
    }
}

#[test]
fn described_images() {
    let layers = [
        arch::CnnLayer::conv(8, 3),
        arch::CnnLayer::average_pool(2),
        arch::CnnLayer::conv(8, 3),
        arch::CnnLayer::GlobalAveragePool,
    ];
    let x = normal(32, 3 * 72);
    let network = Cnn::new(&[2, 6, 6], &layers, 3).initialisation(Initialisation::Ntk).build(0).unwrap();
    let scales = Scales::ntk(1.0, 1.0);
    let mut net = LimitNet::new();
    let y = net.image([6, 6], 2);
    let y = net.conv("conv", y, scales, Patch::same([3, 3])).unwrap();
    let y = net.activation("relu", y, LimitActivation::relu()).unwrap();
    let y = net.average_pool("pool", y, Patch::valid([2, 2]).stride([2, 2]), false).unwrap();
    let y = net.conv("conv", y, scales, Patch::same([3, 3])).unwrap();
    let y = net.activation("relu", y, LimitActivation::relu()).unwrap();
    let y = net.global_average_pool("pool", y);
    net.dense("output", y, scales).unwrap();
    let found = limits(&network, &Rule::initialisation(Initialisation::Ntk), &x, 3);
    assert_same(&found, &grams(&net, &x, 3), "cnn");
}

/// Half of the units sine, half cosine: the mean of both kernels.
#[test]
fn units_side_by_side() {
    let x = normal(33, 12);
    let network = Mlp::new(3, &[10], 1).activation(arch::Activation::SinCos).initialisation(Initialisation::Ntk);
    let found = limits(&network.build(0).unwrap(), &Rule::initialisation(Initialisation::Ntk), &x, 4);
    let part =
        |function| grams(&mlp(3, 1, Scales::ntk(1.0, 1.0), &activation_of(function), Scales::ntk(1.0, 1.0)), &x, 4);
    let (sin, cos) = (part(Function::Sin), part(Function::Cos));
    let mean = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| 0.5 * (a + b)).collect::<Vec<_>>();
    assert_same(&found, &(mean(&sin.0, &cos.0), mean(&sin.1, &cos.1)), "sin-cos");
}

/// A graph in the making, with samples of one vector or image.
struct Draft(GraphBuilder);

impl Draft {
    fn new(shape: &[usize]) -> (Self, ValueId) {
        let mut builder = GraphBuilder::new();
        let x = builder.input("x", shape, Batch::axis(0));
        (Self(builder), x)
    }

    fn dense(&mut self, name: &str, x: ValueId, width: usize) -> ValueId {
        let fan_in = *self.0.shape(x).last().unwrap();
        let w = self.0.parameter(format!("{name}.weight"), [width, fan_in]);
        let b = self.0.parameter(format!("{name}.bias"), [width]);
        let y = self.0.node(name, MatMul { transposed: true }, &[x, w]).unwrap();
        self.0.node(name, Binary(Combine::Add), &[y, b]).unwrap()
    }

    fn unary(&mut self, name: &str, function: Function, x: ValueId) -> ValueId {
        self.0.node(name, Unary(function), &[x]).unwrap()
    }

    fn binary(&mut self, name: &str, combine: Combine, a: ValueId, b: ValueId) -> ValueId {
        self.0.node(name, Binary(combine), &[a, b]).unwrap()
    }

    fn limit(mut self, y: ValueId) -> LimitNet {
        self.0.output("y", y);
        lower(&self.0.finish(), &Rule::ntk(1.4, 0.3)).expect("a limit").net
    }
}

#[test]
fn an_exported_gelu_is_one_activation() {
    let (mut draft, x) = Draft::new(&[1, 4]);
    let h = draft.dense("hidden", x, 8);
    let (root, one, half) = (draft.0.scalar(2.0f64.sqrt()), draft.0.scalar(1.0), draft.0.scalar(0.5));
    let inner = draft.binary("div", Combine::Div, h, root);
    let erf = draft.unary("erf", Function::Erf, inner);
    let sum = draft.binary("add", Combine::Add, erf, one);
    let product = draft.binary("mul", Combine::Mul, h, sum);
    let gelu = draft.binary("half", Combine::Mul, product, half);
    let y = draft.dense("output", gelu, 2);
    let net = draft.limit(y);
    let x = normal(41, 20);
    let scales = Scales::ntk(1.4, 0.3);
    assert_same(&grams(&net, &x, 5), &grams(&mlp(4, 1, scales, &activation_of(Function::Gelu), scales), &x, 5), "gelu");
}

#[test]
fn residual_sums_and_normalisation() {
    let (mut draft, x) = Draft::new(&[1, 4]);
    let h = draft.dense("stem", x, 8);
    let norm = draft.0.node("norm", Normalise { axes: vec![1], epsilon: 1e-5, centred: true }, &[h]).unwrap();
    let relu = draft.unary("relu", Function::Relu, norm);
    let branch = draft.dense("branch", relu, 8);
    let sum = draft.binary("sum", Combine::Add, branch, h);
    let last = draft.unary("last", Function::Relu, sum);
    let y = draft.dense("output", last, 2);
    let found = draft.limit(y);
    let scales = Scales::ntk(1.4, 0.3);
    let mut net = LimitNet::new();
    let x = net.input(4);
    let h = net.dense("stem", x, scales).unwrap();
    let norm = net.layer_norm("norm", h, 1e-5, true).unwrap();
    let relu = net.activation("relu", norm, LimitActivation::relu()).unwrap();
    let branch = net.dense("branch", relu, scales).unwrap();
    let sum = net.sum("sum", &[branch, h]).unwrap();
    let last = net.activation("last", sum, LimitActivation::relu()).unwrap();
    net.dense("output", last, scales).unwrap();
    let x = normal(42, 20);
    assert_same(&grams(&found, &x, 5), &grams(&net, &x, 5), "residual");
}

/// A scale of a layer that something else reads too must not become part of the layer.
#[test]
fn scales_belong_to_their_branch() {
    let (mut draft, x) = Draft::new(&[1, 3]);
    let h = draft.dense("stem", x, 8);
    let scaled = draft.unary("scale", Function::Affine { scale: 3.0, shift: 0.0 }, h);
    let relu = draft.unary("relu", Function::Relu, scaled);
    let branch = draft.dense("branch", relu, 8);
    let sum = draft.binary("sum", Combine::Add, branch, h);
    let found = draft.limit(sum);
    let scales = Scales::ntk(1.4, 0.3);
    let mut net = LimitNet::new();
    let x = net.input(3);
    let h = net.dense("stem", x, scales).unwrap();
    let scaled = net.dense("scale", h, Scales::factor(3.0)).unwrap();
    let relu = net.activation("relu", scaled, LimitActivation::relu()).unwrap();
    let branch = net.dense("branch", relu, scales).unwrap();
    net.sum("sum", &[branch, h]).unwrap();
    let x = normal(43, 12);
    assert_same(&grams(&found, &x, 4), &grams(&net, &x, 4), "scaled branch");
}

/// Scales and shifts of a normalisation begin at one and zero and learn: `Θ` grows by `K` and by one.
#[test]
fn normalisations_that_learn() {
    let (mut draft, x) = Draft::new(&[1, 3]);
    let h = draft.dense("stem", x, 8);
    let norm = draft.0.node("norm", Normalise { axes: vec![1], epsilon: 0.0, centred: true }, &[h]).unwrap();
    let (scale, shift) = (draft.0.parameter("scale", [8]), draft.0.parameter("shift", [8]));
    let scaled = draft.binary("scaled", Combine::Mul, norm, scale);
    let shifted = draft.binary("shifted", Combine::Add, scaled, shift);
    let net = draft.limit(shifted);
    let x: [f64; 3] = [0.4, -1.0, 2.0];
    let (nngp, ntk) = grams(&net, &x, 1);
    // The layer itself has Θ = K, which the normalisation divides by K.
    assert!((nngp[0] - 1.0).abs() < 1e-14 && (ntk[0] - 3.0).abs() < 1e-14, "{nngp:?} {ntk:?}");
}

#[test]
fn circular_padding_and_fixed_features() {
    let (mut draft, x) = Draft::new(&[1, 4, 4, 2]);
    // Channels last and shifted: a fixed function before the first layer.
    let shifted = draft.unary("shift", Function::Affine { scale: 2.0, shift: -0.5 }, x);
    let image = draft.0.node("turn", mercer_net::op::Transpose { perm: vec![0, 3, 1, 2] }, &[shifted]).unwrap();
    let w = draft.0.parameter("w", [5, 2, 1, 1]);
    let h = draft.0.node("first", Conv { window: Window::plain(2), groups: 1 }, &[image, w]).unwrap();
    let pad = Pad { before: vec![0, 0, 1, 1], after: vec![0, 0, 1, 1], mode: Margin::Wrap };
    let relu = draft.unary("relu", Function::Relu, h);
    let padded = draft.0.node("pad", pad, &[relu]).unwrap();
    let w = draft.0.parameter("v", [5, 5, 3, 3]);
    let h = draft.0.node("second", Conv { window: Window::plain(2), groups: 1 }, &[padded, w]).unwrap();
    let relu = draft.unary("relu", Function::Relu, h);
    let mean = draft.0.node("mean", Reduce { kind: Reduction::Mean, axes: vec![2, 3], keep: true }, &[relu]).unwrap();
    let flat = draft.0.node("flat", Reshape { shape: vec![1, 5] }, &[mean]).unwrap();
    let y = draft.dense("output", flat, 1);
    draft.0.output("y", y);
    let lowered = lower(&draft.0.finish(), &Rule::ntk(1.4, 0.3)).unwrap();
    assert!(!lowered.features.is_empty());
    let network = {
        let mut draft = LimitNet::new();
        let i = draft.image([4, 4], 2);
        let h = draft.conv("first", i, Scales::ntk(1.4, 0.0), Patch::valid([1, 1])).unwrap();
        let h = draft.activation("relu", h, LimitActivation::relu()).unwrap();
        let h = draft.conv("second", h, Scales::ntk(1.4, 0.0), Patch::same([3, 3]).circular()).unwrap();
        let h = draft.activation("relu", h, LimitActivation::relu()).unwrap();
        let h = draft.global_average_pool("mean", h);
        draft.dense("output", h, Scales::ntk(1.4, 0.3)).unwrap();
        draft
    };
    let x = normal(44, 2 * 32);
    let limit = Limit::<f64>::from_lowered(lowered, LimitKind::Ntk).unwrap();
    let found = limit.gram(&[&x], 2).unwrap();
    let mut turned = vec![0.0; 64];
    for (at, value) in x.iter().enumerate() {
        let (sample, position, channel) = (at / 32, at % 32 / 2, at % 2);
        turned[sample * 32 + channel * 16 + position] = 2.0 * value - 0.5;
    }
    assert!(worst(&found, &grams(&network, &turned, 2).1) < 1e-13);
}

/// Finite networks come near: the kernel of one of 2000 units fluctuates by some 10 %, `√(5/2000)` for every layer and product,
/// the mean of eight by a third of that.
#[test]
fn wide_networks_are_near_their_limits() {
    let x = normal(51, 4 * 6);
    let single: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    for (initialisation, bias) in
        [(Initialisation::Ntk, true), (Initialisation::Standard, true), (Initialisation::He, false)]
    {
        let description = Mlp::new(6, &[2000, 2000], 1).initialisation(initialisation).bias(bias);
        let mut mean = vec![0.0; 16];
        for seed in 0..8 {
            let network = description.build(seed).unwrap();
            let gram = Ntk::<f32>::new(&network, &[vec![6]], NtkKind::Trace).unwrap().gram(&[&single], 4).unwrap();
            mean.iter_mut().zip(gram).for_each(|(mean, value)| *mean += f64::from(value) / 8.0);
        }
        let (_, ntk) = limits(&description.build(0).unwrap(), &Rule::initialisation(initialisation), &x, 4);
        let error = distance(&mean, &ntk);
        assert!(error < 0.08, "{initialisation:?}: {error}\n{mean:?}\n{ntk:?}");
    }
}

/// The same for images, in standard parametrisation: fan-ins of patches, padding, and a pool.
#[test]
fn wide_convolutions_are_near_their_limits() {
    let x = normal(52, 3 * 72);
    let single: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    let layers = [arch::CnnLayer::conv(200, 3), arch::CnnLayer::conv(200, 3), arch::CnnLayer::GlobalAveragePool];
    for initialisation in [Initialisation::He, Initialisation::Ntk] {
        let description = Cnn::new(&[2, 6, 6], &layers, 1).initialisation(initialisation);
        let mut mean = vec![0.0; 9];
        for seed in 0..16 {
            let network = description.build(seed).unwrap();
            let gram =
                Ntk::<f32>::new(&network, &[vec![2, 6, 6]], NtkKind::Trace).unwrap().gram(&[&single], 3).unwrap();
            mean.iter_mut().zip(gram).for_each(|(mean, value)| *mean += f64::from(value) / 16.0);
        }
        let (_, ntk) = limits(&description.build(0).unwrap(), &Rule::initialisation(initialisation), &x, 3);
        let error = distance(&mean, &ntk);
        // 16 networks of 200 channels: √(5/3200) per layer and product.
        assert!(error < 0.1, "{initialisation:?}: {error}\n{mean:?}\n{ntk:?}");
    }
}

#[test]
fn blocks_do_not_matter() {
    let network = file("mlp_erf");
    let limit = Limit::<f32>::of_network(&network, &[vec![8]], &Rule::ntk(1.0, 0.1), LimitKind::Ntk).unwrap();
    let x: Vec<f32> = normal(61, 8 * 90).into_iter().map(|x| x as f32).collect();
    let whole = limit.gram(&[&x], 90).unwrap();
    let (a, b) = (limit.prepare(&[&x[..8 * 33]], 33).unwrap(), limit.prepare(&[&x[8 * 33..]], 57).unwrap());
    let mut tile = vec![0.0; 33 * 57];
    limit.contract(&a, &b, &mut tile);
    for i in 0..33 {
        for j in 0..57 {
            let (found, expected) = (tile[i * 57 + j], whole[i * 90 + 33 + j]);
            assert!((found - expected).abs() <= 2e-6 * whole[0], "{found} {expected}");
        }
    }
    assert_eq!(limit.identity()["kernel"], "limit");
    assert!(limit.cost().sample_bytes > 0 && limit.cost().pair_flops > 0.0);
}
