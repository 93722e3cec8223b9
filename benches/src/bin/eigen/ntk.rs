//! The tangent kernel of a trained binary classifier (NeuralEF, section 4.2.2): eigenvalues, and clusters of test images.

use crate::tools::{Fallible, Images, two_clusters, weighted};
use crate::{Options, Outcome};
use mercer_kernel::{Directions, FeatureMap, Kernel, Kind, Ntk, Selection};
use mercer_net::Network;
use mercer_net::arch::{Cnn, CnnLayer};
use mercer_net::train::{Decay, Loss, Optimiser, Schedule, Trainer, TrainingLoop, TrainingSamples, TrainingSettings};
use mercer_run::Context;
use mercer_spectral::learnt::{Batches, Learn, LearningMethod, LearningSettings, Learnt, Matrices, tangents};
use mercer_spectral::{Comparison, Landmarks, Nystrom, Solver, Spectrum};
use ndarray::Array2;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

const FUNCTIONS: usize = 10;

fn architecture() -> Cnn {
    let layers = [
        CnnLayer::conv(16, 3),
        CnnLayer::max_pool(2),
        CnnLayer::conv(32, 3),
        CnnLayer::max_pool(2),
        CnnLayer::conv(64, 3),
        CnnLayer::GlobalAveragePool,
    ];
    Cnn::new(&[3, 32, 32], &layers, 2)
}

/// Takes `--data-dir` (with the npz file of the two classes), `--epochs`, `--steps`, `--rate`, `--extra`, `--landmarks`.
pub(crate) fn clusters(options: &Options) -> Outcome {
    let folder = PathBuf::from(options.value("--data-dir").ok_or("--data-dir: the folder of the npz file")?);
    let path = folder.join("cifar10_airplane_automobile_train1000_test500.npz");
    let (train, test) = (Images::npz(&path, "train")?, Images::npz(&path, "test")?);
    let start = Instant::now();
    let network = classifier(&train, &test, options)?;
    println!("training the classifier took {:.0} s", start.elapsed().as_secs_f64());
    let shapes = [vec![3, 32, 32]];
    let selection = Selection { combine: Some(vec![-1.0, 1.0]), ..Selection::default() };
    let ntk = Ntk::<f32>::of(&network, &shapes, Kind::Trace, &selection)?;
    let images = train.data[0].read::<f32>()?;
    let gram = ntk.gram(&[images.as_slice().ok_or("layout")?], train.samples())?;
    let gram = Array2::from_shape_vec((train.samples(), train.samples()), gram)?;
    let list = |numbers: &[f64], factor: f64| {
        numbers.iter().map(|x| format!("{:.2}", factor * x)).collect::<Vec<_>>().join(" ")
    };
    let truth = Spectrum::of_matrix(gram.mapv(f64::from).view(), FUNCTIONS, Solver::Lanczos, &Context::new())?;
    println!("exact eigenvalues, % of the first: {}", list(&(&truth.values / truth.values[0]).to_vec(), 100.0));
    let start = Instant::now();
    let (steps, extra) = (options.number("--steps", 40)?, options.number("--extra", 10)?);
    let m = options.number("--landmarks", 500)?.min(train.samples());
    let landmarks: Vec<usize> = (0..m).map(|index| index * train.samples() / m).collect();
    let networks = tangents(&network, &train.data, &[-1.0, 1.0], &landmarks, FUNCTIONS + extra, &Context::new())?;
    println!(
        "{} functions in the tangent space, from {m} images: {:.0} s",
        FUNCTIONS + extra,
        start.elapsed().as_secs_f64()
    );
    let start = Instant::now();
    let mut kernel = Matrices::new(gram, 1)?;
    let mut batches = Batches::new(&train.data, &mut kernel, 256, options.seed, &Context::new())?;
    let schedule =
        Schedule { decay: Decay::Cosine { floor: 0.0 }, ..Schedule::constant(options.number("--rate", 1e-6)?) };
    let settings =
        LearningSettings::new(LearningMethod::NeuralEf).steps(steps).schedule(schedule).components(FUNCTIONS);
    let learnt: Learnt<f32> = Learn::new(settings).run(networks, &mut batches)?;
    println!("{steps} steps of NeuralEF: {:.0} s", start.elapsed().as_secs_f64());
    for (when, functions) in [("before", &learnt.before[0].truncated(FUNCTIONS)), ("after", &learnt.after[0])] {
        let psi = functions.eval_data(&train.data, &Context::new())?;
        let found = Comparison::new(functions.values().view(), psi.mapv(f64::from).view(), &truth)?;
        println!("{when} the finish: errors of the eigenvalues, %: {}", list(&found.value_errors, 100.0));
        println!("{when} the finish: cosines on the training images: {}", list(&found.cosines, 1.0));
    }
    let functions = &learnt.after[0];
    let projected = weighted(&functions.eval_data(&test.data, &Context::new())?, functions.values());
    let pixels = test.data[0].read::<f32>()?;
    let flat = Array2::from_shape_vec((test.samples(), 3072), pixels.iter().copied().collect())?;
    let map = Directions::<f32>::new(&network, &shapes, Kind::Trace, &selection, FUNCTIONS, options.seed)?;
    let mut random = Array2::zeros((test.samples(), map.n_features()));
    map.features(
        &[flat.as_slice().expect("a fresh array is contiguous")],
        test.samples(),
        random.as_slice_mut().expect("a fresh array is contiguous"),
    )?;
    println!("\n| k-means on test images | accuracy | the paper |\n|---|---:|---:|");
    let ntk: Arc<dyn Kernel<f32>> = Arc::new(ntk);
    let exact = Nystrom::new(Landmarks::All).fit(ntk, &train.data, FUNCTIONS, &Context::new())?.functions;
    let known = weighted(&exact.eval_data(&test.data, &Context::new())?, exact.values());
    println!(
        "| √μ·ψ, exact, through the kernel with all training images | {:.1} % | |",
        100.0 * two_clusters(known.view(), &test.classes)
    );
    println!("| √μ·ψ, ten functions | {:.1} % | 97.5 % |", 100.0 * two_clusters(projected.view(), &test.classes));
    println!("| ten random features | {:.1} % | 81.3 % |", 100.0 * two_clusters(random.view(), &test.classes));
    println!("| pixels | {:.1} % | 67.8 % |", 100.0 * two_clusters(flat.view(), &test.classes));
    Ok(())
}

/// Trains as `mercer train` does.
fn classifier(train: &Images, test: &Images, options: &Options) -> Fallible<Network> {
    let mut network = architecture().build(options.seed)?;
    let graph = network.declared_graph()?;
    let weights = network.weights::<f32>(&graph);
    let mut trainer = Trainer::new(graph, weights, Loss::CrossEntropy, Optimiser::adam())?;
    let schedule = Schedule { decay: Decay::Cosine { floor: 0.0 }, ..Schedule::constant(2e-3) };
    let epochs = options.number("--epochs", 120)?;
    let settings = TrainingSettings { epochs, batch_size: Some(64), seed: options.seed, schedule, checkpoints: vec![] };
    let (labels, test_labels) = (train.labels()?, test.labels()?);
    let evaluation = TrainingSamples { inputs: &test.data[0], labels: &test_labels };
    let fit = TrainingLoop::new(settings).evaluation(evaluation);
    let history = fit.run(&mut trainer, TrainingSamples { inputs: &train.data[0], labels: &labels })?;
    let last = history.last().ok_or("no epochs")?;
    println!(
        "a CNN of {} parameters: accuracy {:.1} % on {} training images, {:.1} % on {} test images",
        network.n_params(),
        100.0 * last.training.accuracy.unwrap_or(0.0),
        train.samples(),
        100.0 * last.evaluation.and_then(|metrics| metrics.accuracy).unwrap_or(0.0),
        test.samples()
    );
    network.set_weights(trainer.weights());
    Ok(network)
}
