//! Networks: outputs, training and uncertainty.

use super::arrays::{InputArrays, TargetArrays};
use crate::Error;
use crate::job::train::TrainingSpec;
use mercer_data::{Dataset, Labels, RowBlock};
use mercer_kernel::Real;
use mercer_learn::laplace::{Laplace, LaplaceSettings, Likelihood, Structure};
use mercer_linalg::Scalar;
use mercer_net::Network;
use mercer_net::network::{largest, threshold};
use mercer_net::train::{Epoch, Trainer, TrainingLoop, TrainingSamples};
use mercer_run::Context;
use ndarray::ArrayD;

/// The first output of a network, `[samples, …]`.
///
/// ```
/// let network = mercer::net::arch::Mlp::new(2, &[8], 3).build(0)?;
/// let outputs = mercer::predict(&network, &ndarray::Array2::<f32>::zeros((5, 2)))?;
/// assert_eq!(outputs.shape(), [5, 3]);
/// # Ok::<(), mercer::Error>(())
/// ```
///
/// # Errors
/// If the samples do not fit the network.
pub fn predict<X: InputArrays>(network: &Network, x: X) -> Result<ArrayD<X::Scalar>, Error> {
    predict_on(network, &x.into_datasets()?, None)
}

/// The first output of a network, or another node, on data sets, which may be files.
///
/// # Errors
/// As [`predict`], and for a node that does not exist.
pub fn predict_on<T: Real>(network: &Network, inputs: &[Dataset], node: Option<&str>) -> Result<ArrayD<T>, Error> {
    let samples = inputs.first().map_or(0, Dataset::n_samples);
    let block = RowBlock::<T>::read(inputs, 0..samples)?;
    let slices: Vec<_> = block.slices().into_iter().zip(inputs.iter().map(Dataset::sample_shape)).collect();
    let prediction = network.predict(&slices, samples, node, None)?;
    let shape: Vec<usize> = std::iter::once(samples).chain(prediction.shape).collect();
    ArrayD::from_shape_vec(shape, prediction.values).map_err(|error| Error::with_code("shape", error.to_string()))
}

/// The class of every sample: the one with the largest output. Of a single output, class 1 where the logit is above 0
/// or its sigmoid above ½.
///
/// # Errors
/// As [`predict`].
pub fn classify<X: InputArrays>(network: &Network, x: X) -> Result<Vec<usize>, Error> {
    let inputs = x.into_datasets()?;
    let outputs: ArrayD<X::Scalar> = predict_on(network, &inputs, None)?;
    let shapes: Vec<Vec<usize>> = inputs.iter().map(|input| input.sample_shape().to_vec()).collect();
    let graph = network.graph(&shapes)?;
    let threshold = threshold(&graph, graph.outputs()[0].1);
    let class = |row: Vec<X::Scalar>| match row[..] {
        [single] => usize::from(Scalar::wide(single) > threshold),
        _ => largest(&row),
    };
    Ok(outputs.outer_iter().map(|row| class(row.iter().copied().collect())).collect())
}

/// Trains a network in place, in the precision of the samples, and returns the measurements of every epoch. Settings
/// that `how` leaves open have the defaults of `mercer train`: Adam, batches of 128, cross-entropy for classes and
/// squared errors for numbers.
///
/// ```
/// use mercer::prelude::*;
///
/// let (x, classes) = mercer::data::synthetic::two_moons(200, 0.1, 0)?;
/// let mut network = Mlp::new(2, &[16], 2).build(0)?;
/// let how = TrainingSpec { learning_rate: Some(0.05), ..TrainingSpec::default() };
/// let history = mercer::train(&mut network, &x, &classes, &how)?;
/// assert!(history[9].training.loss < history[0].training.loss);
/// # Ok::<(), mercer::Error>(())
/// ```
///
/// # Errors
/// If settings or labels do not fit, or the network has several inputs.
pub fn train<X: InputArrays, Y: TargetArrays + ?Sized>(
    network: &mut Network,
    x: X,
    y: &Y,
    how: &TrainingSpec,
) -> Result<Vec<Epoch>, Error> {
    let (inputs, labels) = (x.into_datasets()?, y.labels()?);
    train_on::<X::Scalar>(network, (&inputs, &labels), how, &Context::new())
}

/// As [`train`], on data sets, which may be files, and within a context.
///
/// # Errors
/// As [`train`], and if the work is cancelled.
pub fn train_on<T: Real>(
    network: &mut Network,
    (inputs, labels): (&[Dataset], &Labels),
    how: &TrainingSpec,
    context: &Context,
) -> Result<Vec<Epoch>, Error> {
    how.check()?;
    let how = how.completed(matches!(labels, Labels::Classes(_)));
    let shapes: Vec<Vec<usize>> = inputs.iter().map(|set| set.sample_shape().to_vec()).collect();
    let graph = network.graph(&shapes)?;
    let weights = network.weights::<T>(&graph);
    let mut trainer = Trainer::new(graph, weights, how.loss(), how.optimiser())?;
    let training = TrainingLoop::new(how.settings()).context(context);
    let history = training.run(&mut trainer, TrainingSamples { inputs, labels })?;
    network.set_weights(trainer.weights());
    Ok(history)
}

/// The Laplace approximation to the posterior of a trained network. The prior precision maximises the evidence.
///
/// ```
/// use mercer::prelude::*;
///
/// let x = ndarray::Array1::linspace(-1.0, 1.0, 30).insert_axis(ndarray::Axis(1));
/// let mut network = Mlp::new(1, &[8], 1).build(0)?;
/// mercer::train(&mut network, &x, &x, &TrainingSpec::default())?;
/// let posterior = mercer::posterior(&network, &x, &x, Structure::Full)?;
/// let far = posterior.evaluate(&ndarray::array![[0.0], [9.0]])?.variances();
/// assert!(far[[1, 0]] > far[[0, 0]]);
/// # Ok::<(), mercer::Error>(())
/// ```
///
/// # Errors
/// If labels or samples do not fit the network, or the network does not support the structure.
pub fn posterior<X: InputArrays, Y: TargetArrays + ?Sized>(
    network: &Network,
    x: X,
    y: &Y,
    structure: Structure,
) -> Result<Laplace<X::Scalar>, Error> {
    let (inputs, labels, context) = (x.into_datasets()?, y.labels()?, Context::new());
    let settings = LaplaceSettings::new(structure, Likelihood::for_labels(&labels));
    let mut laplace = Laplace::fit(network, &inputs, &labels, &settings, &context)?;
    laplace.maximise_evidence(&context)?;
    Ok(laplace)
}
