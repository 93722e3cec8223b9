//! The tangent kernel of a trained binary classifier (NeuralEF, section 4.2.2): eigenvalues, and clusters of test images.

use crate::experiment::{Experiment, Needs};
use crate::images::{Images, two_clusters, weighted};
use crate::options::Options;
use crate::report::{Format, Report, Table};
use crate::{Fallible, row};
use mercer::kernel::{Directions, FeatureMap, Kernel, Ntk, NtkKind, Selection};
use mercer::net::Network;
use mercer::net::arch::{Cnn, CnnLayer};
use mercer::net::train::{Decay, Loss, Optimiser, Schedule, Trainer, TrainingLoop, TrainingSamples, TrainingSettings};
use mercer::run::Context;
use mercer::spectral::learnt::{Batches, Learn, LearningMethod, LearningSettings, Learnt, Matrices, tangents};
use mercer::spectral::{Comparison, Eigenfunctions, Landmarks, Nystrom, Solver, Spectrum};
use ndarray::Array2;
use std::sync::Arc;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tangent-kernel",
    group: "Eigenfunctions",
    title: "The tangent kernel of a classifier",
    paper: super::NEURALEF,
    claim: "Few eigenfunctions of the tangent kernel of a binary classifier separate its classes without labels (section 4.2.2).",
    published: "97.5 % by ten eigenfunctions, 81.3 % by random features, 67.8 % by pixels.",
    setting: "A small CNN, trained on 1000 images of airplanes and automobiles (the paper: a ResNet-20 on 10,000). Twenty functions \
        begin in its tangent space as Nyström's eigenfunctions of 500 of the images (`spectral::learnt::tangents`), take one step of \
        training, and go through the finish on all of them.",
    cost: 120,
    needs: &[Needs::Folder("cifar10_airplane_automobile_train1000_test500.npz (x_train, y_train, x_test, y_test)")],
    options: &["epochs", "steps", "rate", "extra", "landmarks"],
    threads: 1,
    run,
};

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

fn run(options: &Options) -> Fallible<Report> {
    let path = options.data()?.join("cifar10_airplane_automobile_train1000_test500.npz");
    let (train, test) = (Images::npz(&path, "train")?, Images::npz(&path, "test")?);
    let (network, trained) = classifier(&train, &test, options)?;
    let shapes = [vec![3, 32, 32]];
    let selection = Selection { combine: Some(vec![-1.0, 1.0]), ..Selection::default() };
    let ntk = Ntk::<f32>::with_selection(&network, &shapes, NtkKind::Trace, &selection)?;
    let images = train.data[0].read::<f32>()?;
    let gram = ntk.gram(&[images.as_slice().ok_or("layout")?], train.samples())?;
    let gram = Array2::from_shape_vec((train.samples(), train.samples()), gram)?;
    let truth = Spectrum::of_matrix(gram.mapv(f64::from).view(), FUNCTIONS, Solver::Lanczos, &Context::new())?;
    let learnt = learn(&network, &train, gram, options)?;
    let mut values = Table::new("Eigenvalues on the training images, and how far the learnt ones are off:")
        .column("eigenvalue", Format::Plain)
        .column("μ/μ₁, exact", Format::Percent(1))
        .column("error before the finish", Format::SignedPercent(2))
        .column("error", Format::SignedPercent(2));
    let errors = |functions: &Eigenfunctions<f32>| -> Fallible<Vec<f64>> {
        let psi = functions.eval_data(&train.data, &Context::new())?;
        Ok(Comparison::new(functions.values().view(), psi.mapv(f64::from).view(), &truth)?.value_errors.to_vec())
    };
    let (before, after) = (errors(&learnt.before[0].truncated(FUNCTIONS))?, errors(&learnt.after[0])?);
    for (at, value) in truth.values.iter().enumerate() {
        values.push(row![at + 1, value / truth.values[0], before.get(at).copied(), after.get(at).copied()]);
    }
    let functions = &learnt.after[0];
    let projected = weighted(&functions.eval_data(&test.data, &Context::new())?, functions.values());
    let pixels = test.data[0].read::<f32>()?;
    let flat = Array2::from_shape_vec((test.samples(), 3072), pixels.iter().copied().collect())?;
    let map = Directions::<f32>::new(&network, &shapes, NtkKind::Trace, &selection, FUNCTIONS, options.seed)?;
    let mut random = Array2::zeros((test.samples(), map.n_features()));
    map.features(&[flat.as_slice().ok_or("layout")?], test.samples(), random.as_slice_mut().ok_or("layout")?)?;
    let ntk: Arc<dyn Kernel<f32>> = Arc::new(ntk);
    let exact = Nystrom::new(Landmarks::All).fit(ntk, &train.data, FUNCTIONS, &Context::new())?.functions;
    let known = weighted(&exact.eval_data(&test.data, &Context::new())?, exact.values());
    let mut clusters = Table::new("k-means with two clusters on the test images:")
        .column("k-means on", Format::Plain)
        .column("right", Format::Percent(1))
        .published("ResNet-20, 10,000 images", Format::Percent(1));
    for (name, points, paper) in [
        ("√μ·ψ, ten functions", &projected, Some(0.975)),
        ("the same functions, exact", &known, None),
        ("ten random features", &random, Some(0.813)),
        ("pixels", &flat, Some(0.678)),
    ] {
        clusters.push(row![name, two_clusters(points.view(), &test.classes), paper]);
    }
    Ok(Report { tables: vec![values, clusters], notes: vec![trained], ..Report::default() })
}

/// Functions that begin in the tangent space as Nyström's of some images, then learn.
fn learn(network: &Network, train: &Images, gram: Array2<f32>, options: &Options) -> Fallible<Learnt<f32>> {
    let (steps, extra) = (options.number("steps", 1, 1)?, options.number("extra", 10, 10)?);
    let m = options.number("landmarks", 500, 500)?.min(train.samples());
    let landmarks: Vec<usize> = (0..m).map(|index| index * train.samples() / m).collect();
    let networks = tangents(network, &train.data, &[-1.0, 1.0], &landmarks, FUNCTIONS + extra, &Context::new())?;
    let mut kernel = Matrices::new(gram, 1)?;
    let mut batches = Batches::new(&train.data, &mut kernel, 256, options.seed, &Context::new())?;
    let rate = options.number("rate", 1e-6, 1e-6)?;
    let schedule = Schedule { decay: Decay::Cosine { floor: 0.0 }, ..Schedule::constant(rate) };
    let settings =
        LearningSettings::new(LearningMethod::NeuralEf).steps(steps).schedule(schedule).components(FUNCTIONS);
    Ok(Learn::new(settings).run(networks, &mut batches)?)
}

/// Trains as `mercer train` does; says how accurate the network is.
fn classifier(train: &Images, test: &Images, options: &Options) -> Fallible<(Network, String)> {
    let mut network = architecture().build(options.seed)?;
    let graph = network.declared_graph()?;
    let weights = network.weights::<f32>(&graph);
    let mut trainer = Trainer::new(graph, weights, Loss::CrossEntropy, Optimiser::adam())?;
    let schedule = Schedule { decay: Decay::Cosine { floor: 0.0 }, ..Schedule::constant(2e-3) };
    let epochs = options.number("epochs", 120, 1)?;
    let settings =
        TrainingSettings { batch_size: Some(64), seed: options.seed, ..TrainingSettings::new(epochs, schedule) };
    let (labels, test_labels) = (train.labels()?, test.labels()?);
    let evaluation = TrainingSamples::one(&test.data[0], &test_labels);
    let fit = TrainingLoop::new(settings).evaluation(evaluation);
    let history = fit.run(&mut trainer, TrainingSamples::one(&train.data[0], &labels))?;
    let last = history.last().ok_or("no epochs")?;
    let trained = format!(
        "The classifier is a CNN of {} parameters: accuracy {:.1} % on {} training images, {:.1} % on {} test images.",
        network.n_params(),
        100.0 * last.training.accuracy.unwrap_or(0.0),
        train.samples(),
        100.0 * last.evaluation.and_then(|metrics| metrics.accuracy).unwrap_or(0.0),
        test.samples()
    );
    network.set_weights(trainer.weights());
    Ok((network, trained))
}
