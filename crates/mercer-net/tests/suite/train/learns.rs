//! Training learns.

use super::trainer;
use mercer_data::{Dataset, Labels, Preprocess, digits, synthetic};
use mercer_net::arch::{Activation, Cnn, CnnLayer, Initialisation, Mlp, TwoLayer};
use mercer_net::train::{Decay, Loss, Optimiser, Schedule, TrainingLoop, TrainingSamples, TrainingSettings};

fn settings(epochs: usize, batch_size: usize, learning_rate: f64) -> TrainingSettings {
    let schedule = Schedule { decay: Decay::Cosine { floor: 0.0 }, warm_up: 0.5, ..Schedule::constant(learning_rate) };
    TrainingSettings { batch_size: Some(batch_size), ..TrainingSettings::new(epochs, schedule) }
}

#[test]
fn two_moons() {
    let set = |seed| {
        let (points, classes) = synthetic::two_moons(1000, 0.1, seed).unwrap();
        (Dataset::from_array("moons", points.into_dyn().view()).unwrap(), Labels::Classes(classes))
    };
    let ((inputs, labels), (test_inputs, test_labels)) = (set(1), set(2));
    let test = TrainingSamples::one(&test_inputs, &test_labels);
    for (activation, initialisation) in [
        (Activation::Relu, Initialisation::He),
        (Activation::SinCos, Initialisation::Standard),
        (Activation::Tanh, Initialisation::Ntk),
    ] {
        let network = Mlp::new(2, &[32, 32], 2).activation(activation).initialisation(initialisation).build(0).unwrap();
        let mut trainer = trainer(&network, Loss::CrossEntropy, Optimiser::adam());
        let rate = if initialisation == Initialisation::Ntk { 0.1 } else { 0.01 };
        let fit = TrainingLoop::new(settings(40, 50, rate)).evaluation(test);
        let history = fit.run(&mut trainer, TrainingSamples::one(&inputs, &labels)).unwrap();
        let accuracy = history.last().unwrap().evaluation.unwrap().accuracy.unwrap();
        println!("two moons, {activation}: {accuracy}");
        assert!(accuracy > 0.97, "{activation}: {accuracy}");
    }
}

#[test]
fn the_digits() {
    let (train, test) = digits::split().unwrap();
    let scaled = |images: Dataset| images.with_preprocess(Preprocess::new().scale(1.0 / 16.0)).unwrap();
    let (inputs, labels) = (scaled(train.images), Labels::Classes(train.classes));
    let (test_inputs, test_labels) = (scaled(test.images), Labels::Classes(test.classes));
    let layers = [
        CnnLayer::conv(16, 3),
        CnnLayer::max_pool(2),
        CnnLayer::conv(32, 3),
        CnnLayer::max_pool(2),
        CnnLayer::dense(64),
    ];
    let network = Cnn::new(&[1, 8, 8], &layers, 10).initialisation(Initialisation::He).build(0).unwrap();
    let mut trainer = trainer(&network, Loss::CrossEntropy, Optimiser::adam_w());
    let fit = TrainingLoop::new(settings(8, 64, 0.003)).evaluation(TrainingSamples::one(&test_inputs, &test_labels));
    let history = fit.run(&mut trainer, TrainingSamples::one(&inputs, &labels)).unwrap();
    let last = history.last().unwrap();
    println!("digits: {last:?}");
    assert!(last.evaluation.unwrap().accuracy.unwrap() > 0.95, "{last:?}");
    assert!(last.training.loss < history[0].training.loss);
}

#[test]
fn a_regression_by_gradient_descent_on_the_whole_set() {
    let points = synthetic::uniform(200, 5, -1.0, 1.0, 0).unwrap();
    let values = points.rows().into_iter().map(|x| (2.0 * x[0]).sin() + x[1] * x[2]).collect();
    let labels = Labels::Targets(ndarray::Array2::from_shape_vec((200, 1), values).unwrap());
    let inputs = Dataset::from_array("points", points.into_dyn().view()).unwrap();
    let network = TwoLayer::new(5, 256).activation(Activation::Tanh).build(0).unwrap();
    let mut trainer = trainer(&network, Loss::squared(), Optimiser::Gd { weight_decay: 0.0 });
    let whole = TrainingSettings { batch_size: None, schedule: Schedule::constant(1.0), ..settings(400, 1, 1.0) };
    let history = TrainingLoop::new(whole).run(&mut trainer, TrainingSamples::one(&inputs, &labels)).unwrap();
    let (first, last) = (history[0].training.loss, history[399].training.loss);
    println!("regression: {first} to {last}");
    assert!(last < 0.25 * first, "{first} to {last}");
    assert_eq!(history[0].training.accuracy, None);
}
