//! The conjugate kernel is the last layer's own part of the tangent kernel, whatever a network ends with.

use mercer_kernel::{Conjugate, FeatureMap, Features, Kernel, Ntk, NtkKind, Selection};
use mercer_net::Network;
use mercer_net::graph::{Batch, GraphBuilder, ValueId};
use mercer_net::network::Values;
use mercer_net::op::{
    Binary, Combine, Conv, Function, MatMul, Pool, Pooling, Reduce, Reduction, Reshape, Softmax, Transpose, Unary,
    Window,
};

const SAMPLES: usize = 4;

/// A network under construction: parameters get numbers as they come.
#[derive(Default)]
struct Making {
    builder: GraphBuilder,
    values: Vec<Values>,
}

impl Making {
    fn parameter(&mut self, name: &str, shape: &[usize]) -> ValueId {
        let count: usize = shape.iter().product();
        let seed = self.values.len() as f64;
        let numbers: Vec<f64> = (0..count).map(|at| (1.3 * at as f64 + 2.1 * seed + 0.4).sin()).collect();
        self.values.push(Values::from_slice(&numbers));
        self.builder.parameter(name, shape.to_vec())
    }

    fn constant(&mut self, shape: &[usize], data: &[f64]) -> ValueId {
        self.builder.constant("constant", shape.to_vec(), data.to_vec())
    }

    fn node(&mut self, op: impl mercer_net::op::Op + 'static, inputs: &[ValueId]) -> ValueId {
        self.builder.node("", op, inputs).expect("a node")
    }

    fn unary(&mut self, function: Function, x: ValueId) -> ValueId {
        self.node(Unary(function), &[x])
    }

    fn binary(&mut self, combine: Combine, a: ValueId, b: ValueId) -> ValueId {
        self.node(Binary(combine), &[a, b])
    }

    /// `W z` for a row of five features.
    fn product(&mut self, z: ValueId) -> ValueId {
        let weight = self.parameter("last.weight", &[5, 3]);
        self.node(MatMul { transposed: false }, &[z, weight])
    }

    fn bias(&mut self) -> ValueId {
        self.parameter("last.bias", &[3])
    }
}

/// A hidden layer `tanh(V x)` of this shape, and what a test puts behind it.
fn network(hidden: &[usize], end: impl Fn(&mut Making, ValueId) -> ValueId) -> Network {
    let mut making = Making::default();
    let size: usize = hidden.iter().product();
    let input = making.builder.input("x", vec![1, 2], Batch::Untracked);
    let weight = making.parameter("hidden.weight", &[2, size]);
    let product = making.node(MatMul { transposed: false }, &[input, weight]);
    let active = making.unary(Function::Tanh, product);
    let z = making.node(Reshape { shape: hidden.to_vec() }, &[active]);
    let output = end(&mut making, z);
    making.builder.output("y", output);
    Network::from_graph(making.builder.finish(), making.values).expect("a network")
}

fn data() -> Vec<f64> {
    (0..2 * SAMPLES).map(|at| (0.7 * at as f64 + 0.2).cos()).collect()
}

fn gram(kernel: &dyn Kernel<f64>) -> Vec<f64> {
    let block = kernel.prepare(&[&data()], SAMPLES).expect("prepares");
    let mut gram = vec![0.0; SAMPLES * SAMPLES];
    kernel.contract(&block, &block, &mut gram);
    gram
}

/// The tangent kernel by the last layer's parameters alone.
fn tangent(network: &Network, kind: NtkKind, output: Option<&str>) -> Vec<f64> {
    let selection =
        Selection { parameters: vec!["last.*".to_owned()], output: output.map(str::to_owned), ..Selection::default() };
    gram(&Ntk::<f64>::with_selection(network, &[vec![2]], kind, &selection).expect("a kernel"))
}

fn conjugate(network: &Network) -> Conjugate<f64> {
    Conjugate::new(network, &[vec![2]], None).expect("a last layer")
}

fn assert_close(found: &[f64], expected: &[f64], what: &str) {
    let largest = expected.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    for (x, y) in found.iter().zip(expected) {
        assert!((x - y).abs() <= 1e-12 * largest, "{what}: {found:?} instead of {expected:?}");
    }
}

type End = fn(&mut Making, ValueId) -> ValueId;

/// Endings whose outputs are alike: the kernel is that of each output, and the trace kernel is three times it.
#[test]
fn the_last_layers_own_part() {
    let row: &[(&str, End)] = &[
        ("product alone", |m, z| m.product(z)),
        ("bias", |m, z| {
            let (product, bias) = (m.product(z), m.bias());
            m.binary(Combine::Add, product, bias)
        }),
        ("weight stored transposed", |m, z| {
            let (weight, bias) = (m.parameter("last.weight", &[3, 5]), m.bias());
            let product = m.node(MatMul { transposed: true }, &[z, weight]);
            m.binary(Combine::Add, bias, product)
        }),
        ("Gemm with alpha and beta", |m, z| {
            let (product, bias) = (m.product(z), m.bias());
            let product = m.unary(Function::Affine { scale: 0.3, shift: 0.0 }, product);
            let bias = m.unary(Function::Affine { scale: -2.5, shift: 0.0 }, bias);
            m.binary(Combine::Add, product, bias)
        }),
        ("temperature", |m, z| {
            let (product, bias, heat) = (m.product(z), m.bias(), m.constant(&[], &[1.7]));
            let sum = m.binary(Combine::Add, product, bias);
            m.binary(Combine::Div, sum, heat)
        }),
        ("scaled bias", |m, z| {
            let (product, bias, factor) = (m.product(z), m.bias(), m.constant(&[1], &[0.1]));
            let bias = m.binary(Combine::Mul, factor, bias);
            m.binary(Combine::Add, product, bias)
        }),
        ("scaled weight", |m, z| {
            let (weight, factor) = (m.parameter("last.weight", &[5, 3]), m.constant(&[], &[0.25]));
            let weight = m.binary(Combine::Mul, weight, factor);
            m.node(MatMul { transposed: false }, &[z, weight])
        }),
        ("bias less product", |m, z| {
            let (product, bias) = (m.product(z), m.bias());
            let product = m.unary(Function::Neg, product);
            let difference = m.binary(Combine::Sub, bias, product);
            m.unary(Function::Affine { scale: 2.0, shift: 5.0 }, difference)
        }),
        ("one bias for all", |m, z| {
            let (product, bias) = (m.product(z), m.parameter("last.bias", &[1]));
            m.binary(Combine::Sub, product, bias)
        }),
        ("two biases", |m, z| {
            let (product, one, two) = (m.product(z), m.bias(), m.parameter("last.other", &[1, 3]));
            let sum = m.binary(Combine::Add, product, one);
            let sum = m.unary(Function::Affine { scale: 0.5, shift: 0.0 }, sum);
            m.binary(Combine::Add, two, sum)
        }),
        ("the same bias twice", |m, z| {
            let (product, bias) = (m.product(z), m.bias());
            let sum = m.binary(Combine::Add, product, bias);
            m.binary(Combine::Add, sum, bias)
        }),
        ("constants are no bias", |m, z| {
            let (product, constant) = (m.product(z), m.constant(&[3], &[1.0, 2.0, 3.0]));
            m.binary(Combine::Add, product, constant)
        }),
    ];
    let image: &[(&str, End)] = &[
        ("convolution and global pool", |m, z| {
            let (weight, bias) = (m.parameter("last.weight", &[3, 5, 1, 1]), m.bias());
            let y = m.node(Conv { window: Window::plain(2), groups: 1 }, &[z, weight, bias]);
            let y = m.node(Reduce { kind: Reduction::Mean, axes: vec![2, 3], keep: true }, &[y]);
            m.node(Reshape { shape: vec![1, 3] }, &[y])
        }),
        ("without bias, flattened, summed, scaled", |m, z| {
            let weight = m.parameter("last.weight", &[3, 5, 1, 1]);
            let y = m.node(Conv { window: Window::plain(2), groups: 1 }, &[z, weight]);
            let y = m.node(Reshape { shape: vec![1, 3, 6] }, &[y]);
            let y = m.node(Reduce { kind: Reduction::Sum, axes: vec![2], keep: false }, &[y]);
            m.unary(Function::Affine { scale: 0.2, shift: 0.0 }, y)
        }),
        ("channels last, one axis after the other, a bias behind the first", |m, z| {
            let (weight, bias) = (m.parameter("last.weight", &[3, 5, 1, 1]), m.bias());
            let y = m.node(Conv { window: Window::plain(2), groups: 1 }, &[z, weight]);
            let y = m.node(Transpose { perm: vec![0, 2, 3, 1] }, &[y]);
            let y = m.node(Reduce { kind: Reduction::Mean, axes: vec![1], keep: false }, &[y]);
            let y = m.binary(Combine::Add, y, bias);
            m.node(Reduce { kind: Reduction::Sum, axes: vec![1], keep: false }, &[y])
        }),
        ("average pool over all", |m, z| {
            let (weight, bias) = (m.parameter("last.weight", &[3, 5, 1, 1]), m.parameter("last.bias", &[3, 1, 1]));
            let y = m.node(Conv { window: Window::plain(2), groups: 1 }, &[z, weight]);
            let y = m.binary(Combine::Add, y, bias);
            let kind = Pooling::Average { count_padding: false };
            let pool = Pool { kind, kernel: vec![2, 3], window: Window::plain(2), round_up: false };
            m.node(pool, &[y])
        }),
        ("a window of the whole image", |m, z| {
            let (weight, bias) = (m.parameter("last.weight", &[3, 5, 2, 3]), m.bias());
            m.node(Conv { window: Window::plain(2), groups: 1 }, &[z, weight, bias])
        }),
        ("a sequence whose outputs are averaged", |m, z| {
            let z = m.node(Reshape { shape: vec![1, 5, 6] }, &[z]);
            let z = m.node(Transpose { perm: vec![0, 2, 1] }, &[z]);
            let product = m.product(z);
            let bias = m.bias();
            let y = m.binary(Combine::Add, product, bias);
            m.node(Reduce { kind: Reduction::Mean, axes: vec![1], keep: false }, &[y])
        }),
        ("a weight from the left", |m, z| {
            let z = m.node(Reshape { shape: vec![5, 6] }, &[z]);
            let weight = m.parameter("last.weight", &[3, 5]);
            let y = m.node(MatMul { transposed: false }, &[weight, z]);
            m.node(Reduce { kind: Reduction::Mean, axes: vec![1], keep: false }, &[y])
        }),
    ];
    let cases = row.iter().map(|case| (vec![1, 5], case)).chain(image.iter().map(|case| (vec![1, 5, 2, 3], case)));
    for (hidden, (name, end)) in cases {
        let network = network(&hidden, end);
        let found = gram(&Features(conjugate(&network)));
        let trace: Vec<f64> = tangent(&network, NtkKind::Trace, None).iter().map(|x| x / 3.0).collect();
        assert_close(&found, &trace, name);
        assert_close(&found, &tangent(&network, NtkKind::Logit(2), None), name);
        // Without the bias it is the part of the weight.
        let weight = Selection { parameters: vec!["last.weight".to_owned()], ..Selection::default() };
        let weight = Ntk::<f64>::with_selection(&network, &[vec![2]], NtkKind::Logit(0), &weight).expect("a kernel");
        assert_close(&gram(&Features(conjugate(&network).without_bias())), &gram(&weight), name);
    }
}

/// Outputs with different factors: the mean over them.
#[test]
fn different_factors_are_averaged() {
    let network = network(&[1, 5], |m, z| {
        let (product, bias, factors) = (m.product(z), m.bias(), m.constant(&[3], &[0.5, 2.0, -1.0]));
        let sum = m.binary(Combine::Add, product, bias);
        m.binary(Combine::Mul, sum, factors)
    });
    let trace: Vec<f64> = tangent(&network, NtkKind::Trace, None).iter().map(|x| x / 3.0).collect();
    assert_close(&gram(&Features(conjugate(&network))), &trace, "factors");
}

/// Behind a function that is not linear the kernel is that of the logits, and what comes later does not change it.
#[test]
fn the_logits_of_a_softmax() {
    let network = network(&[1, 5], |m, z| {
        let (product, bias, heat) = (m.product(z), m.bias(), m.constant(&[], &[0.5]));
        let sum = m.binary(Combine::Add, product, bias);
        let logits = m.binary(Combine::Mul, sum, heat);
        m.builder.rename(logits, "logits");
        let y = m.node(Softmax { axis: 1, log: true }, &[logits]);
        let y = m.unary(Function::Affine { scale: -3.0, shift: 0.0 }, y);
        m.unary(Function::Exp, y)
    });
    assert_close(
        &gram(&Features(conjugate(&network))),
        &tangent(&network, NtkKind::Logit(1), Some("logits")),
        "softmax",
    );
    assert_eq!(FeatureMap::<f64>::n_features(&conjugate(&network)), 6);
}

/// Where there is no feature vector, no kernel is made up.
#[test]
fn other_endings_are_refused() {
    let convolution = |m: &mut Making, z, kernel: usize, window: Window| {
        let weight = m.parameter("last.weight", &[3, 5, kernel, kernel]);
        m.node(Conv { window, groups: 1 }, &[z, weight])
    };
    let padded = || Window { before: vec![1, 1], after: vec![1, 1], ..Window::plain(2) };
    let mean = |axes: Vec<usize>| Reduce { kind: Reduction::Mean, axes, keep: true };
    let refused = |end: &dyn Fn(&mut Making, ValueId) -> ValueId, word: &str| {
        let network = network(&[1, 5, 2, 3], end);
        let error = Conjugate::<f64>::new(&network, &[vec![2]], None).expect_err("refused").to_string();
        assert!(error.contains(word) && error.contains("embedding"), "{error}");
    };
    refused(&|m, z| convolution(m, z, 1, Window::plain(2)), "convolution");
    refused(
        &|m, z| {
            let y = convolution(m, z, 3, padded());
            m.node(mean(vec![2, 3]), &[y])
        },
        "convolution",
    );
    // Over the outputs, not over positions.
    refused(
        &|m, z| {
            let y = convolution(m, z, 1, Window::plain(2));
            m.node(mean(vec![1]), &[y])
        },
        "convolution",
    );
    refused(
        &|m, z| {
            let y = convolution(m, z, 1, Window::plain(2));
            let y = m.unary(Function::Relu, y);
            m.node(mean(vec![2, 3]), &[y])
        },
        "not linear",
    );
    refused(
        &|m, z| {
            let (y, bias) = (convolution(m, z, 1, Window::plain(2)), m.parameter("last.bias", &[3, 2, 3]));
            let y = m.binary(Combine::Add, y, bias);
            m.node(mean(vec![2, 3]), &[y])
        },
        "position",
    );
    refused(
        &|m, z| {
            let y = convolution(m, z, 1, Window::plain(2));
            let y = m.node(Reshape { shape: vec![1, 2, 9] }, &[y]);
            m.node(mean(vec![2]), &[y])
        },
        "merges",
    );
}
