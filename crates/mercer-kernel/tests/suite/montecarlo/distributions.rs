//! Random networks and limits are of the same distribution.
//!
//! With one hidden layer the expectation over networks of any width is the limit, so that the mean differs by its sampling error
//! alone. All entries must be within five standard errors: of a few hundred entries that are not independent, one beyond is
//! a matter of one in ten thousand.

use super::{limit, mean, normal, shapes};
use mercer_kernel::MonteCarlo;
use mercer_kernel::infinite::{Limit, LimitKind, Parametrisation, Rule, Variances};
use mercer_net::Network;
use mercer_net::arch::{Activation, Cnn, CnnLayer, Initialisation, Mlp};
use mercer_net::graph::{Batch, GraphBuilder};
use mercer_net::network::Values;
use mercer_net::op::{Binary, Combine, Conv, Function, MatMul, Normalise, Pool, Pooling, Reshape, Unary, Window};

/// Means against limits; the errors must be small enough to tell.
fn agree(name: &str, network: &Network, rule: &Rule, n_networks: usize, samples: usize) {
    let size: usize = shapes(network).iter().flatten().product();
    let x = normal::<f64>(name, samples * size);
    for of in [LimitKind::Nngp, LimitKind::Ntk] {
        let found = mean(network, rule, of, n_networks, (&x, samples));
        let expected = limit(network, rule, of, (&x, samples));
        let errors = found.standard_errors();
        for at in 0..samples * samples {
            let (mean, limit, error) = (found.mean()[at], expected[at], errors[at]);
            assert!(
                (mean - limit).abs() <= 5.0 * error + 1e-12,
                "{name} {of:?} {rule:?}: {mean} ± {error}, not {limit}"
            );
            let largest = (expected[at / samples * (samples + 1)] * expected[at % samples * (samples + 1)]).sqrt();
            assert!(error < 0.1 * largest, "{name} {of:?}: ± {error} of {largest} tells nothing");
        }
    }
}

fn rules() -> Vec<Rule> {
    let variances = [
        Variances::Initialisation(Initialisation::Standard),
        Variances::Initialisation(Initialisation::He),
        Variances::Initialisation(Initialisation::LeCun),
        Variances::Deviations { weight: 1.4, bias: 0.6 },
    ];
    let parametrisations = [Parametrisation::AsWritten, Parametrisation::Ntk, Parametrisation::Standard];
    let of = |variances| parametrisations.map(|parametrisation| Rule { variances, parametrisation });
    variances.into_iter().flat_map(of).collect()
}

#[test]
fn dense_networks_by_every_rule() {
    for bias in [true, false] {
        let network = Mlp::new(4, &[40], 12).bias(bias).build(0).unwrap();
        for rule in rules() {
            agree("mlp", &network, &rule, 300, 3);
        }
    }
}

/// Graphs that hold scales: of their own initialisation, and where deviations are given whatever scales there are.
#[test]
fn networks_in_ntk_parametrisation() {
    for bias in [true, false] {
        let mlp = Mlp { weight_std: Some(1.7), bias_std: Some(0.4), ..Mlp::new(4, &[40], 12).bias(bias) };
        let network = mlp.activation(Activation::Erf).initialisation(Initialisation::Ntk).build(0).unwrap();
        agree("ntk", &network, &Rule::initialisation(Initialisation::Ntk), 300, 3);
        for rule in rules().into_iter().filter(|rule| matches!(rule.variances, Variances::Deviations { .. })) {
            agree("ntk", &network, &rule, 300, 3);
        }
    }
}

#[test]
fn images() {
    let pooled = [CnnLayer::conv(24, 3), CnnLayer::GlobalAveragePool];
    for (layers, initialisation) in
        [(&[CnnLayer::conv(24, 3)][..], Initialisation::Standard), (&pooled[..], Initialisation::Ntk)]
    {
        let network = Cnn::new(&[2, 4, 4], layers, 8).initialisation(initialisation).build(0).unwrap();
        agree("cnn", &network, &Rule::initialisation(initialisation), 300, 3);
        agree("cnn", &network, &Rule::ntk(1.5, 0.3), 300, 3);
        agree("cnn", &network, &Rule::standard(1.5, 0.3), 300, 3);
    }
}

/// A graph under construction, with all parameters zero: they are drawn anew.
struct Builder(GraphBuilder);

impl Builder {
    fn finish(mut self, y: mercer_net::graph::ValueId) -> Network {
        self.0.output("y", y);
        let graph = self.0.finish();
        let zeros = |&id: &mercer_net::graph::ValueId| Values::from_slice(&vec![0.0; graph.value(id).meta.numel()]);
        let values = graph.parameters().iter().map(zeros).collect();
        Network::from_graph(graph, values).unwrap()
    }
}

/// A normalised layer, with scales and shifts if wanted, before or behind an activation.
fn normalised(affine: bool, activated: bool) -> Network {
    let mut g = GraphBuilder::new();
    let x = g.input("x", [1, 5], Batch::axis(0));
    let (w, b) = (g.parameter("w", [400, 5]), g.parameter("b", [400]));
    let h = g.node("product", MatMul { transposed: true }, &[x, w]).unwrap();
    let h = g.node("bias", Binary(Combine::Add), &[h, b]).unwrap();
    let h = g.node("half", Unary(Function::Affine { scale: 0.5, shift: 0.0 }), &[h]).unwrap();
    let mut h = g.node("norm", Normalise { axes: vec![1], epsilon: 0.0, centred: true }, &[h]).unwrap();
    if affine {
        let (scale, shift) = (g.parameter("scale", [400]), g.parameter("shift", [400]));
        h = g.node("scale", Binary(Combine::Mul), &[h, scale]).unwrap();
        h = g.node("shift", Binary(Combine::Add), &[h, shift]).unwrap();
    }
    if activated {
        h = g.node("relu", Unary(Function::Relu), &[h]).unwrap();
    }
    let v = g.parameter("v", [8, 400]);
    let y = g.node("output", MatMul { transposed: true }, &[h, v]).unwrap();
    Builder(g).finish(y)
}

/// Scales and shifts of normalisations are one and zero and learn; a scale behind the bias belongs to the layer.
#[test]
fn normalisations_and_scales() {
    let x = normal::<f64>("norm", 15);
    for (affine, activated) in [(false, true), (true, false), (true, true)] {
        let network = normalised(affine, activated);
        for rule in [Rule::ntk(1.3, 0.4), Rule::standard(1.3, 0.4), Rule::initialisation(Initialisation::Standard)] {
            for of in [LimitKind::Nngp, LimitKind::Ntk] {
                if affine && activated && of == LimitKind::Ntk {
                    let refused = Limit::<f64>::of_network(&network, &shapes(&network), &rule, of);
                    let error = refused.unwrap_err().to_string();
                    assert!(error.contains("relu") && error.contains("scale"), "{error}");
                    continue;
                }
                let (found, expected) = (mean(&network, &rule, of, 100, (&x, 3)), limit(&network, &rule, of, (&x, 3)));
                for (at, error) in found.standard_errors().iter().enumerate() {
                    // A normalised layer of 400 units is off by O(1/400).
                    let allowed = 5.0 * error + 4.0 / 400.0 * expected[0].max(expected[at].abs());
                    let (mean, limit) = (found.mean()[at], expected[at]);
                    assert!((mean - limit).abs() < allowed, "{of:?} {rule:?}: {mean} ± {error}, not {limit}");
                }
            }
        }
    }
}

/// `max(u, v)` of two normal numbers with mean zero has the second moment `(Var u + Var v)/2`, whatever their correlation.
#[test]
fn a_max_pool_by_hand() {
    let mut g = GraphBuilder::new();
    let x = g.input("x", [1, 3, 1, 2], Batch::axis(0));
    let w = g.parameter("w", [30, 3, 1, 1]);
    let h = g.node("conv", Conv { window: Window::plain(2), groups: 1 }, &[x, w]).unwrap();
    let pool = Pool { kind: Pooling::Max, kernel: vec![1, 2], window: Window::plain(2), round_up: false };
    let h = g.node("pool", pool, &[h]).unwrap();
    let h = g.node("flat", Reshape { shape: vec![1, 30] }, &[h]).unwrap();
    let v = g.parameter("v", [10, 30]);
    let y = g.node("output", MatMul { transposed: true }, &[h, v]).unwrap();
    let network = Builder(g).finish(y);
    let x = normal::<f64>("pool", 6 * 4);
    let found = mean(&network, &Rule::ntk(1.5, 0.0), LimitKind::Nngp, 2000, (&x, 4));
    for sample in 0..4 {
        let square: f64 = x[sample * 6..sample * 6 + 6].iter().map(|x| x * x).sum();
        let expected = 1.5f64.powi(4) * square / 3.0 / 2.0;
        let (mean, error) = (found.mean()[sample * 5], found.standard_errors()[sample * 5]);
        assert!((mean - expected).abs() < 5.0 * error && error < 0.02 * expected, "{mean} ± {error}, not {expected}");
    }
    let refused = mercer_kernel::infinite::Limit::<f64>::of_network(
        &network,
        &shapes(&network),
        &Rule::ntk(1.5, 0.0),
        LimitKind::Nngp,
    );
    assert!(refused.unwrap_err().to_string().contains("MonteCarlo"));
}

/// A layer without a hidden one, so that everything is known: `K = σ² x·x'/n` and `Var y y' = K K' + K(x, x')²`. Errors
/// must be what they say: of 400 runs the mean square of (mean − K)/error is 1 ± 0.07.
#[test]
fn standard_errors_are_right() {
    let network = Mlp::new(4, &[], 3).bias(false).build(0).unwrap();
    let x = normal::<f64>("x", 8);
    let k = |a: usize, b: usize| 2.0 * (0..4).map(|i| x[4 * a + i] * x[4 * b + i]).sum::<f64>() / 4.0;
    let rule = Rule::ntk(2.0f64.sqrt(), 0.0);
    let (runs, networks) = (400, 200);
    let mut squares = 0.0;
    for seed in 0..runs {
        let kernel =
            MonteCarlo::<f64>::new(&network, &shapes(&network), &rule, LimitKind::Nngp, networks, seed).unwrap();
        let mut moments = kernel.start(2);
        kernel.extend(&mut moments, 0..networks, &[&x], 2).unwrap();
        let (mean, error) = (moments.mean()[1], moments.standard_errors()[1]);
        let known = ((k(0, 0) * k(1, 1) + k(0, 1).powi(2)) / (3 * networks) as f64).sqrt();
        // The error of an error: kurtosis of products makes it some 2/√200.
        assert!((error / known - 1.0).abs() < 0.6, "{error}, not {known}");
        squares += ((mean - k(0, 1)) / error).powi(2) / runs as f64;
    }
    assert!((squares - 1.0).abs() < 0.3, "{squares}");
}
