//! Networks with one output for two classes.

use super::trainer;
use mercer_data::{Dataset, Labels, synthetic};
use mercer_net::Network;
use mercer_net::arch::{Activation, Initialisation, Mlp};
use mercer_net::graph::{Batch, GraphBuilder};
use mercer_net::network::Values;
use mercer_net::op::{Function, MatMul, Softmax, Unary};
use mercer_net::run::Weights;
use mercer_net::train::{Loss, Optimiser, Schedule, Targets, Trainer, TrainingLoop, TrainingSamples, TrainingSettings};

#[test]
fn one_output_learns_two_classes() {
    let set = |seed: u64| {
        let (points, classes) = synthetic::two_moons(200, 0.1, seed).unwrap();
        (Dataset::from_array("moons", points.into_dyn().view()).unwrap(), Labels::Classes(classes))
    };
    let ((inputs, labels), (test, truth)) = (set(0), set(1));
    for loss in [Loss::CrossEntropy, Loss::SigmoidSquared] {
        let mut trainer = trainer(&Mlp::new(2, &[32], 1).build(0).unwrap(), loss.clone(), Optimiser::adam());
        let settings = TrainingSettings { batch_size: Some(20), ..TrainingSettings::new(60, Schedule::constant(0.02)) };
        let evaluation = TrainingSamples::one(&test, &truth);
        let training = TrainingLoop::new(settings).evaluation(evaluation);
        let history = training.run(&mut trainer, TrainingSamples::one(&inputs, &labels)).unwrap();
        let last = history.last().unwrap();
        let metrics = last.evaluation.unwrap();
        assert!(metrics.accuracy.unwrap() > 0.97 && metrics.loss < 0.2, "{loss:?}: {last:?}");
        assert!(last.training.accuracy.unwrap() > 0.97, "{loss:?}: {last:?}");
    }
}

/// The gradient of a batch agrees with finite differences, with one and with several outputs.
#[test]
fn gradients_agree_with_finite_differences() {
    let samples = 37;
    let inputs: Vec<f64> = (0..samples * 3).map(|i| (i as f64 * 12.9898).sin()).collect();
    for (outputs, loss) in [(1, Loss::CrossEntropy), (1, Loss::SigmoidSquared), (4, Loss::SigmoidSquared)] {
        let mlp = Mlp::new(3, &[7], outputs).activation(Activation::Tanh).initialisation(Initialisation::Normal);
        let network = mlp.build(3).unwrap();
        let graph = network.declared_graph().unwrap();
        let classes: Vec<usize> = (0..samples).map(|i| i * 5 % outputs.max(2)).collect();
        let targets = Targets::classes(&classes);
        let new = |parameters| {
            let weights = Weights::new(&graph, parameters);
            Trainer::<f64>::new(graph.clone(), weights, loss.clone(), Optimiser::sgd()).unwrap()
        };
        let start = network.weights::<f64>(&graph).parameters;
        let mut trainer = new(start.clone());
        trainer.step(&[&inputs], &targets, samples, 0.1).unwrap();
        let mut offset = 0;
        for index in 0..start.len() {
            for at in [0, start[index].len() - 1] {
                let moved = |by: f64| {
                    let mut near = start.clone();
                    near[index][at] += by;
                    new(near).evaluate(&[&inputs], &targets, samples).unwrap().loss
                };
                let estimate = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                let found = trainer.gradient()[offset + at];
                assert!((estimate - found).abs() < 1e-8, "{loss:?}, {index}: {estimate} against {found}");
            }
            offset += start[index].len();
        }
    }
}

/// `Wx`, then these functions.
fn linear(outputs: usize, functions: &[Function]) -> Network {
    let mut builder = GraphBuilder::new();
    let x = builder.input("x", [1, 2], Batch::axis(0));
    let weight = builder.parameter("weight", [outputs, 2]);
    let mut y = builder.node("z", MatMul { transposed: true }, &[x, weight]).unwrap();
    for (at, &function) in functions.iter().enumerate() {
        y = builder.node(&format!("after{at}"), Unary(function), &[y]).unwrap();
    }
    builder.output("y", y);
    let values: Vec<f32> = (0..outputs * 2).map(|at| 0.5 - at as f32).collect();
    Network::from_graph(builder.finish(), vec![Values::from_slice(&values)]).unwrap()
}

/// The loss has a sigmoid of its own: a network that ends in one learns as the one without it.
#[test]
fn training_takes_the_logits_before_a_sigmoid() {
    let step = |functions: &[Function], loss: Loss| {
        let mut trainer = trainer(&linear(1, functions), loss, Optimiser::sgd());
        let inputs = [0.3, -1.0, 0.7, 0.1, 0.2, 0.3];
        let metrics = trainer.evaluate(&[&inputs], &Targets::classes(&[0, 1, 1]), 3).unwrap();
        trainer.step(&[&inputs], &Targets::classes(&[0, 1, 1]), 3, 0.1).unwrap();
        (metrics, trainer.gradient().to_vec())
    };
    for loss in [Loss::CrossEntropy, Loss::SigmoidSquared] {
        let open = step(&[], loss.clone());
        assert_eq!(step(&[Function::Sigmoid], loss.clone()), open);
        assert_eq!(step(&[Function::Sigmoid, Function::Log], loss), open);
    }
}

#[test]
fn what_one_output_cannot_tell_apart() {
    let mut one = trainer(&linear(1, &[]), Loss::CrossEntropy, Optimiser::sgd());
    let text = one.step(&[&[0.0; 6]], &Targets::classes(&[0, 1, 2]), 3, 0.1).unwrap_err().to_string();
    assert!(text.contains("sample 2 has class 2") && text.contains("one output per class"), "{text}");
    let ends = |outputs: usize, loss: Loss| {
        let mut builder = GraphBuilder::new();
        let x = builder.input("x", [1, 2], Batch::axis(0));
        let weight = builder.parameter("weight", [outputs, 2]);
        let z = builder.node("z", MatMul { transposed: true }, &[x, weight]).unwrap();
        let y = builder.node("y", Softmax { axis: 1, log: false }, &[z]).unwrap();
        builder.output("y", y);
        let values = Values::from_slice(&vec![1.0f32; 2 * outputs]);
        let network = Network::from_graph(builder.finish(), vec![values]).unwrap();
        let graph = network.declared_graph().unwrap();
        let weights = network.weights::<f32>(&graph);
        Trainer::new(graph, weights, loss, Optimiser::sgd()).map_or_else(|error| error.to_string(), |_| String::new())
    };
    assert!(ends(1, Loss::CrossEntropy).contains("always 1"));
    assert!(ends(3, Loss::SigmoidSquared).contains("Softmax"));
    assert_eq!(ends(3, Loss::CrossEntropy), "");
}
