//! Batch normalisation in training: against PyTorch, finite differences, other numbers of threads, and an interruption.

use super::trainer;
use mercer_data::{Classes, Dataset, Labels};
use mercer_net::arch::{Activation, Cnn, CnnLayer, Mlp, Residual};
use mercer_net::network::{Batching, Values};
use mercer_net::run::{Keep, Reverse, Target, Weights, Workspace};
use mercer_net::train::{Loss, Optimiser, Schedule, Targets, Trainer, TrainingLoop, TrainingSamples, TrainingSettings};
use mercer_net::{NetError, Network};
use ndarray::Array4;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

type State = BTreeMap<String, Vec<f64>>;

/// What `fixtures/batch_norm.py` wrote.
#[derive(Deserialize)]
struct Fixture {
    batches: Vec<usize>,
    rates: Vec<f64>,
    x: Vec<f64>,
    y: Vec<usize>,
    start: State,
    losses: Vec<f64>,
    after: Vec<State>,
    outputs: Vec<f64>,
}

fn cnn() -> Cnn {
    let second = CnnLayer::Conv { channels: 4, kernel: 3, stride: 2, padding: Some(0) };
    let layers = [CnnLayer::conv(3, 3), second, CnnLayer::dense(5)];
    Cnn::new(&[2, 5, 5], &layers, 3).activation(Activation::Tanh).batch_norm(true)
}

/// All parameters and running statistics by name.
fn state(network: &Network, weights: &Weights<f64>) -> State {
    let graph = network.declared_graph().unwrap();
    let ids = graph.parameters().iter().chain(graph.statistics());
    let numbers = weights.parameters.iter().map(Vec::as_slice).chain(weights.statistics(&graph));
    ids.zip(numbers).map(|(&id, numbers)| (graph.value(id).name.clone(), numbers.to_vec())).collect()
}

fn compare(ours: &State, torch: &State, tolerance: f64, what: &str) {
    assert_eq!(ours.keys().collect::<Vec<_>>(), torch.keys().collect::<Vec<_>>(), "{what}");
    for (name, numbers) in ours {
        let largest = torch[name].iter().fold(0f64, |largest, x| largest.max(x.abs()));
        for (a, b) in numbers.iter().zip(&torch[name]) {
            // The gradient of a bias before a normalisation is zero up to rounding.
            assert!((a - b).abs() <= tolerance * largest.max(1e-2), "{what}, {name}: {a} against {b}");
        }
    }
}

/// Weights, running statistics and losses of five steps in double precision, and the predictions afterwards.
#[test]
fn training_is_that_of_torch() {
    let fixture: Fixture = serde_json::from_str(include_str!("../../fixtures/batch_norm.json")).unwrap();
    let mut network = cnn().build(0).unwrap();
    let graph = network.declared_graph().unwrap();
    let parameters = graph.parameters().iter().map(|&id| fixture.start[&graph.value(id).name].clone()).collect();
    let weights = Weights::new(&graph, parameters);
    compare(&state(&network, &weights), &fixture.start, 0.0, "start");
    let sgd = Optimiser::Sgd { momentum: 0.9, nesterov: false, weight_decay: 0.01 };
    let mut trainer = Trainer::new(graph.clone(), weights, Loss::CrossEntropy, sgd).unwrap();
    let mut at = 0;
    for (step, (&size, &rate)) in fixture.batches.iter().zip(&fixture.rates).enumerate() {
        let (x, y) = (&fixture.x[at * 50..(at + size) * 50], &fixture.y[at..at + size]);
        let loss = trainer.step(&[x], &Targets::classes(y), size, rate).unwrap();
        assert!((loss - fixture.losses[step]).abs() < 1e-12, "step {step}: {loss} against {}", fixture.losses[step]);
        compare(&state(&network, trainer.weights()), &fixture.after[step], 1e-11, &format!("step {step}"));
        at += size;
    }
    network.set_weights(trainer.weights());
    let outputs =
        |network: &Network| network.predict::<f64>(&[(&fixture.x[..200], &[2, 5, 5])], 4, None, None).unwrap().values;
    let ours = outputs(&network);
    for (a, b) in ours.iter().zip(&fixture.outputs) {
        assert!((a - b).abs() < 1e-12, "{a} against {b}");
    }
    // The file has the numbers in single precision, and the same parameters.
    let read = Network::from_onnx_bytes(&network.to_onnx_bytes().unwrap(), Batching::Samples).unwrap();
    let names = |network: &Network| network.parameters().iter().map(|p| p.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&read), names(&network));
    for (a, b) in outputs(&read).iter().zip(&ours) {
        assert!((a - b).abs() < 1e-6, "{a} against {b}");
    }
}

fn numbers(count: usize) -> Vec<f64> {
    (0..count).map(|i| ((i as f64) * 12.9898).sin()).collect()
}

/// The gradient against finite differences of the loss of a step, which uses the statistics of the batch. There are
/// more samples than one lane takes, and a pre-activated block in which a value is normalised and passed on.
#[test]
fn the_gradient_is_that_of_the_whole_batch() {
    let wide = Residual { inputs: vec![1, 4, 4], width: 2, pre_activation: true, ..Residual::new(&[1, 1], 3) };
    let wide = Residual { activation: Activation::Tanh.into(), ..wide };
    let cases = [
        (wide.build(2).unwrap(), 16, 70),
        (Mlp::new(3, &[5, 4], 3).activation(Activation::Tanh).batch_norm(true).build(3).unwrap(), 3, 300),
    ];
    for (network, size, samples) in &cases {
        let graph = network.declared_graph().unwrap();
        assert!(*samples > mercer_net::network::Shards::for_graph(&graph).grain, "more than one lane");
        let (inputs, samples) = (numbers(samples * size), *samples);
        let classes: Vec<usize> = (0..samples).map(|i| i * 7 % 3).collect();
        let weights: Vec<f64> = (0..samples).map(|i| 0.5 + (i % 3) as f64).collect();
        let targets = Targets::classes(&classes).weighted(&weights);
        let new = |parameters| {
            let weights = Weights::new(&graph, parameters);
            Trainer::new(graph.clone(), weights, Loss::CrossEntropy, Optimiser::sgd()).unwrap()
        };
        let start = network.weights::<f64>(&graph).parameters;
        let mut trainer = new(start.clone());
        trainer.step(&[&inputs], &targets, samples, 0.1).unwrap();
        let mut offset = 0;
        for index in 0..start.len() {
            for at in [0, start[index].len() / 2, start[index].len() - 1] {
                let loss = |by: f64| {
                    let mut moved = start.clone();
                    moved[index][at] += by;
                    new(moved).step(&[&inputs], &targets, samples, 0.1).unwrap()
                };
                let estimate = (loss(1e-5) - loss(-1e-5)) / 2e-5;
                let error = (estimate - trainer.gradient()[offset + at]).abs();
                assert!(error < 1e-8, "parameter {index}, element {at}: {error}");
            }
            offset += start[index].len();
        }
        assert!(trainer.gradient().iter().any(|g| g.abs() > 1e-3));
    }
}

/// Parameters and statistics after three steps, and the evaluation, on so many threads.
fn trained(network: &Network, samples: usize, size: usize, threads: usize) -> (Vec<Vec<f32>>, f64) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let graph = network.declared_graph().unwrap();
        let mut trainer = trainer(network, Loss::CrossEntropy, Optimiser::adam());
        let inputs: Vec<f32> = numbers(samples * size).iter().map(|&x| x as f32).collect();
        let classes: Vec<usize> = (0..samples).map(|i| i * 7 % 3).collect();
        for _ in 0..3 {
            trainer.step(&[&inputs], &Targets::classes(&classes), samples, 0.01).unwrap();
        }
        let metrics = trainer.evaluate(&[&inputs], &Targets::classes(&classes), samples).unwrap();
        let statistics = trainer.weights().statistics(&graph).map(<[f32]>::to_vec);
        (trainer.weights().parameters.iter().cloned().chain(statistics).collect(), metrics.loss)
    })
}

#[test]
fn the_same_bits_on_one_two_and_three_threads() {
    let resnet = Residual { inputs: vec![1, 8, 8], width: 4, ..Residual::new(&[1, 1], 3) }.build(1).unwrap();
    let mlp = Mlp::new(64, &[40], 3).batch_norm(true).build(1).unwrap();
    for (network, samples) in [(&resnet, 203), (&resnet, 5), (&resnet, 1), (&mlp, 1500), (&mlp, 2)] {
        let one = trained(network, samples, 64, 1);
        assert!(one.0.iter().flatten().all(|x| x.is_finite()));
        for threads in [2, 3] {
            assert!(trained(network, samples, 64, threads) == one, "{samples} samples, {threads} threads");
        }
    }
}

/// A single value per channel has no variance. One sample of many pixels has one.
#[test]
fn a_batch_of_one_sample_is_refused_where_it_has_one_value() {
    let mlp = Mlp::new(2, &[4], 3).batch_norm(true).build(0).unwrap();
    let mut trainer = trainer(&mlp, Loss::CrossEntropy, Optimiser::sgd());
    let before = trainer.weights().parameters.clone();
    let text = trainer.step(&[&[0.5, 1.0]], &Targets::classes(&[0]), 1, 0.1).unwrap_err().to_string();
    assert!(text.contains("layer1.norm") && text.contains("at least 2 samples"), "{text}");
    assert_eq!(trainer.weights().parameters, before);
    // At inference there is no such limit.
    trainer.evaluate(&[&[0.5, 1.0]], &Targets::classes(&[0]), 1).unwrap();
    let points = ndarray::Array2::<f32>::zeros((5, 2)).into_dyn();
    let inputs = Dataset::from_array("points", points.view()).unwrap();
    let labels = Labels::Classes(Classes::new(vec![0, 1, 2, 0, 1], 3).unwrap());
    let samples = TrainingSamples::one(&inputs, &labels);
    let run = |batch: usize, trainer: &mut Trainer<f32>| {
        let settings =
            TrainingSettings { batch_size: Some(batch), ..TrainingSettings::new(1, Schedule::constant(0.1)) };
        TrainingLoop::new(settings).run(trainer, samples)
    };
    for batch in [1, 2, 4] {
        let text = run(batch, &mut trainer).unwrap_err().to_string();
        assert!(text.contains(&format!("batch_size = {batch}")) && text.contains("last batch"), "{text}");
    }
    run(3, &mut trainer).unwrap();
}

/// Outside of training the statistics are constants: gradients are those of the file, in which they are initialisers.
#[test]
fn gradients_at_inference_are_those_of_the_file() {
    let mut network = cnn().build(5).unwrap();
    let graph = network.declared_graph().unwrap();
    let mut trainer = trainer(&network, Loss::CrossEntropy, Optimiser::adam());
    let x: Vec<f32> = numbers(9 * 50).iter().map(|&x| x as f32).collect();
    let classes: Vec<usize> = (0..9).map(|i| i % 3).collect();
    for _ in 0..5 {
        trainer.step(&[&x], &Targets::classes(&classes), 9, 0.02).unwrap();
    }
    let moved = trainer.weights().statistics(&graph).flatten().filter(|&&x| x != 0.0 && x != 1.0).count();
    assert_eq!(moved, 2 * (3 + 4 + 5));
    network.set_weights(trainer.weights());
    let file = Network::from_onnx_bytes(&network.to_onnx_bytes().unwrap(), Batching::Samples).unwrap();
    let gradients = |network: &Network| -> Vec<f64> {
        let graph = network.declared_graph().unwrap();
        let weights = network.weights::<f64>(&graph);
        let x: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
        let mut forward = Workspace::new(graph.clone(), &Keep::All);
        forward.forward(&weights, &[&x], 9).unwrap();
        let mut reverse = Reverse::new(graph.clone(), Target::all(&graph));
        reverse.per_sample(&forward, &weights, &numbers(27), 1);
        (0..graph.parameters().len()).flat_map(|parameter| reverse.gradient(parameter).to_vec()).collect()
    };
    let (ours, theirs) = (gradients(&network), gradients(&file));
    assert_eq!(ours.len(), 9 * network.n_params());
    for (a, b) in ours.iter().zip(&theirs) {
        assert!((a - b).abs() < 1e-9, "{a} against {b}");
    }
}

fn images() -> (Dataset, Labels) {
    let images = Array4::from_shape_fn((42, 2, 5, 5), |(row, c, y, x)| ((row * 31 + c * 7 + y * 13 + x) as f32).sin());
    let labels = Classes::new((0..42).map(|row| row % 3).collect(), 3).unwrap();
    (Dataset::from_array("images", images.view().into_dyn()).unwrap(), Labels::Classes(labels))
}

fn run(epochs: usize, folder: &Path) -> Result<Trainer<f32>, NetError> {
    let (inputs, labels) = images();
    let mut trainer = trainer(&cnn().build(3).unwrap(), Loss::CrossEntropy, Optimiser::adam());
    let settings = TrainingSettings {
        batch_size: Some(16),
        checkpoints: vec![0, 2, 4],
        ..TrainingSettings::new(epochs, Schedule::constant(0.01))
    };
    let checkpoints = settings.checkpoints.iter().copied().filter(|&epoch| epoch <= epochs).collect();
    let training = TrainingLoop::new(TrainingSettings { checkpoints, ..settings }).folder(folder).resume(true);
    training.run(&mut trainer, TrainingSamples::one(&inputs, &labels))?;
    Ok(trainer)
}

/// Running statistics are part of state and checkpoints, and checkpoints can be loaded into the exported network.
#[test]
fn a_resumed_run_ends_with_the_same_bits() {
    let graph = cnn().build(3).unwrap().declared_graph().unwrap();
    let all = |trainer: &Trainer<f32>| -> Vec<Vec<f32>> {
        let statistics = trainer.weights().statistics(&graph).map(<[f32]>::to_vec);
        trainer.weights().parameters.iter().cloned().chain(statistics).collect()
    };
    let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let trained = run(4, whole.path()).unwrap();
    let half = run(2, parts.path()).unwrap();
    assert_ne!(all(&half), all(&trained));
    let resumed = run(4, parts.path()).unwrap();
    assert_eq!(all(&resumed), all(&trained));
    assert_eq!(resumed.state(), trained.state());
    let mut network = cnn().build(3).unwrap();
    network.set_weights(trained.weights());
    let mut file = Network::from_onnx_bytes(&network.to_onnx_bytes().unwrap(), Batching::Samples).unwrap();
    assert_eq!(file.statistics().len(), network.statistics().len());
    let x: Vec<f32> = numbers(3 * 50).iter().map(|&x| x as f32).collect();
    let outputs = |network: &Network| network.predict::<f32>(&[(&x, &[2, 5, 5])], 3, None, None).unwrap().values;
    let mut seen = vec![outputs(&network)];
    for epoch in [0, 2, 4] {
        let path = whole.path().join(format!("epoch-{epoch:05}.safetensors"));
        let other = parts.path().join(format!("epoch-{epoch:05}.safetensors"));
        assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(other).unwrap());
        network.load_safetensors(&path).unwrap();
        file.load_safetensors(&path).unwrap();
        let (built, read) = (outputs(&network), outputs(&file));
        for (a, b) in built.iter().zip(&read) {
            assert!((a - b).abs() < 1e-5, "epoch {epoch}: {a} against {b}");
        }
        assert_eq!(seen.contains(&built), epoch == 4);
        seen.push(built);
    }
    // What is saved comes back.
    let path = whole.path().join("again.safetensors");
    file.save_safetensors(&path).unwrap();
    let mut again = cnn().build(9).unwrap();
    again.load_safetensors(&path).unwrap();
    let numbers = |network: &Network| -> Vec<Values> {
        network.parameters().iter().chain(network.statistics()).map(|p| p.values().clone()).collect()
    };
    assert_eq!(numbers(&again), numbers(&network));
    let graph = again.declared_graph().unwrap();
    let print = |network: &Network| network.weights::<f32>(&graph).fingerprint(&graph);
    assert_eq!(print(&again), print(&network));
    let mut weights = again.weights::<f32>(&graph);
    let before = weights.fingerprint(&graph);
    weights.parameters.iter_mut().flatten().take(1).for_each(|x| *x += 1.0);
    assert_ne!(weights.fingerprint(&graph), before);
}
