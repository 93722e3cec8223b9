//! Networks that end in probabilities: the likelihood is that of the logits before them.

use super::nets::{STRUCTURES, dataset, saved};
use mercer_data::{Classes, Dataset, Labels};
use mercer_kernel::sketch::SketchMethod;
use mercer_learn::LearnError;
use mercer_learn::laplace::{Laplace, LaplaceSettings, Likelihood, PredictiveDraws, Structure};
use mercer_net::graph::{Batch, GraphBuilder, ValueId};
use mercer_net::network::Values;
use mercer_net::op::{Binary, Combine, Function, MatMul, Slice, Softmax, Unary};
use mercer_net::{NetError, Network};
use mercer_run::Context;
use ndarray::{Array2, Array3, Axis};

const SAMPLES: usize = 30;

/// Four inputs, five hidden units, the logits `z`, and what follows them.
fn network(outputs: usize, end: impl FnOnce(&mut GraphBuilder, ValueId) -> ValueId) -> Network {
    let mut g = GraphBuilder::new();
    let x = g.input("x", [1, 4], Batch::axis(0));
    let (w, b) = (g.parameter("stem.weight", [5, 4]), g.parameter("stem.bias", [5]));
    let (v, c) = (g.parameter("head.weight", [outputs, 5]), g.parameter("head.bias", [outputs]));
    let stem = g.node("stem", MatMul { transposed: true }, &[x, w]).expect("a product");
    let sum = g.node("sum", Binary(Combine::Add), &[stem, b]).expect("a sum");
    let hidden = g.node("tanh", Unary(Function::Tanh), &[sum]).expect("a function");
    let head = g.node("head", MatMul { transposed: true }, &[hidden, v]).expect("a product");
    let z = g.node("z", Binary(Combine::Add), &[head, c]).expect("a sum");
    let y = end(&mut g, z);
    g.output("y", y);
    let graph = g.finish();
    let numbers = |&id: &ValueId| {
        let count = graph.value(id).meta.numel();
        Values::from_slice(&(0..count).map(|i| ((i * 37 + 11) % 29) as f64 / 15.0 - 0.9).collect::<Vec<f64>>())
    };
    let values = graph.parameters().iter().map(numbers).collect();
    Network::from_graph(graph, values).expect("a network")
}

fn data(classes: usize) -> (Vec<Dataset>, Labels) {
    let x = Array2::from_shape_fn((SAMPLES, 4), |(i, j)| ((i * 13 + j * 7) % 17) as f64 / 8.0 - 1.0);
    let labels = Classes::new((0..SAMPLES).map(|i| (i * 5) % classes).collect(), classes).expect("classes");
    (vec![dataset("x", x.into_dyn())], Labels::Classes(labels))
}

fn fit(network: &Network, structure: Structure, classes: usize) -> Result<Laplace<f64>, LearnError> {
    let (x, labels) = data(classes);
    let settings = LaplaceSettings::new(structure, Likelihood::for_labels(&labels));
    Laplace::fit(network, &x, &labels, &settings, &Context::new())
}

fn structures() -> impl Iterator<Item = Structure> {
    let sketch = Structure::Sketch { method: SketchMethod::Gaussian, k: 20, seed: 1, residual: true };
    STRUCTURES.map(|(_, structure)| structure).into_iter().chain([sketch])
}

/// Everything that a machine says.
fn all(machine: &Laplace<f64>, classes: usize) -> (Array2<f64>, Array3<f64>, Array2<f64>, f64, f64) {
    let found = machine.predict(&data(classes).0, &Context::new()).expect("predicts");
    let evidence = machine.log_evidence(0.7).expect("an evidence");
    (found.mean.clone(), found.covariance.clone(), found.probit(), machine.log_likelihood(), evidence)
}

#[test]
fn a_final_softmax_changes_nothing() {
    let open = network(3, |_, z| z);
    let endings = [
        network(3, |g, z| g.node("y", Softmax { axis: 1, log: false }, &[z]).expect("a softmax")),
        network(3, |g, z| g.node("y", Softmax { axis: 1, log: true }, &[z]).expect("a softmax")),
        network(3, |g, z| {
            let p = g.node("p", Softmax { axis: 1, log: false }, &[z]).expect("a softmax");
            let p = g.node("q", Unary(Function::Clip { low: 1e-7, high: 1.0 }), &[p]).expect("a clip");
            g.node("y", Unary(Function::Log), &[p]).expect("a logarithm")
        }),
    ];
    for structure in structures() {
        let expected = fit(&open, structure, 3).expect("fits");
        assert!(expected.notes().is_empty(), "{:?}", expected.notes());
        for ended in &endings {
            let found = fit(ended, structure, 3).expect("fits");
            assert_eq!(all(&found, 3), all(&expected, 3), "{structure}");
            assert!(found.notes()[0].contains("\"z\"") && found.notes()[0].contains("Softmax"), "{:?}", found.notes());
            // The saved posterior knows what it is of.
            let folder = saved(&found);
            let content = folder.content().expect("a content");
            let loaded = Laplace::read(&folder.objects(), &content, ended, None).expect("loads");
            assert_eq!(all(&loaded, 3), all(&expected, 3), "{structure}");
        }
    }
}

/// One output is the logit of the second of two classes, with a sigmoid after it or without: the same as two logits of which the
/// first is zero, as far as probabilities and evidence go.
#[test]
fn a_final_sigmoid_is_bernoulli() {
    let ended = network(1, |g, z| g.node("y", Unary(Function::Sigmoid), &[z]).expect("a sigmoid"));
    let open = network(1, |_, z| z);
    for structure in structures() {
        let (found, expected) = (fit(&ended, structure, 2).expect("fits"), fit(&open, structure, 2).expect("fits"));
        assert_eq!(found.settings().likelihood, Likelihood::Bernoulli);
        assert_eq!(all(&found, 2), all(&expected, 2), "{structure}");
        let predicted = found.predict(&data(2).0, &Context::new()).expect("predicts");
        let p = predicted.map();
        assert_eq!(p.dim(), (SAMPLES, 2));
        for (row, mean) in p.outer_iter().zip(&predicted.mean) {
            assert!((row[1] - 1.0 / (1.0 + (-mean).exp())).abs() < 1e-14 && (row.sum() - 1.0).abs() < 1e-14);
        }
        let drawn = predicted
            .monte_carlo(&PredictiveDraws { draws: 4000, ..PredictiveDraws::default() }, &Context::new())
            .expect("draws");
        // The probit's formula is accurate to about a hundredth; 4000 draws to less.
        assert!((&drawn - &predicted.probit()).iter().all(|difference| difference.abs() < 0.03), "{structure}");
    }
    // The slope of the evidence is that of a curvature Σ Jᵀ p(1−p) J: checked for the full structure by its trace.
    let machine = fit(&open, Structure::Full, 2).expect("fits");
    let step = 1e-4;
    let value = |at: f64| machine.log_evidence(at).expect("an evidence");
    let slope = machine.log_evidence_slope(1.0).expect("a slope");
    assert!(((value(1.0 + step) - value(1.0 - step)) / (2.0 * step) - slope).abs() < 1e-6);
    assert!(fit(&open, Structure::Full, 3).is_err());
}

#[test]
fn what_has_no_logits_is_refused_by_node() {
    let refused = |network: &Network, node: &str, more: &str| match fit(network, Structure::Diagonal, 2) {
        Err(LearnError::Network(error)) => match *error {
            NetError::Unsupported { node: found, reason } => {
                assert!(found.contains(node) && reason.contains(more), "{found}: {reason}");
            }
            other => panic!("{other}"),
        },
        other => panic!("{node}: {:?}", other.map(|_| "fits")),
    };
    let several = network(3, |g, z| g.node("y", Unary(Function::Sigmoid), &[z]).expect("a sigmoid"));
    refused(&several, "Unary", "\"z\"");
    let part = network(3, |g, z| {
        let p = g.node("p", Softmax { axis: 1, log: false }, &[z]).expect("a softmax");
        g.node("y", Slice::along(&[1, 3], 1, 1, 2), &[p]).expect("a slice")
    });
    refused(&part, "\"p\" (Softmax)", "logits");
}

/// A value that is chosen by name stays what it is; if it looks like probabilities, that is said.
#[test]
fn probabilities_that_are_named_are_told() {
    let ended = network(3, |g, z| g.node("y", Softmax { axis: 1, log: false }, &[z]).expect("a softmax"));
    let (x, labels) = data(3);
    let named = LaplaceSettings {
        output: Some("y".to_owned()),
        ..LaplaceSettings::new(Structure::Diagonal, Likelihood::Categorical)
    };
    let machine = Laplace::<f64>::fit(&ended, &x, &labels, &named, &Context::new()).expect("fits");
    assert!(machine.notes().iter().any(|note| note.contains("look like probabilities")), "{:?}", machine.notes());
    let sums = machine.predict(&x, &Context::new()).expect("predicts").mean.sum_axis(Axis(1));
    assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-12));
    // Numbers may well be probabilities: a regression takes what the network returns.
    let targets = Labels::Targets(Array2::from_elem((SAMPLES, 3), 0.3));
    let settings = LaplaceSettings::new(Structure::Diagonal, Likelihood::for_labels(&targets));
    let machine = Laplace::<f64>::fit(&ended, &x, &targets, &settings, &Context::new()).expect("fits");
    let sums = machine.predict(&x, &Context::new()).expect("predicts").mean.sum_axis(Axis(1));
    assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-12) && machine.notes().is_empty());
}
