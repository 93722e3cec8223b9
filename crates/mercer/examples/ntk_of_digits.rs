//! Trains a small network on the embedded digits and draws its tangent kernel before and after.
//!
//! `cargo run --release -p mercer --example ntk_of_digits -- docs/ntk-of-digits.svg`

use mercer::data::{Dataset, Existing, Labels, digits};
use mercer::kernel::{Ntk, NtkKind};
use mercer::net::Network;
use mercer::net::arch::{Cnn, CnnLayer};
use mercer::net::train::{Loss, Optimiser, Schedule, Trainer, TrainingLoop, TrainingSamples, TrainingSettings};
use mercer::report::{Figure, Panel};

/// Digits of each class in the picture.
const PER_CLASS: usize = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "ntk-of-digits.svg".to_owned());
    let (train, test) = digits::split()?;
    let pixels = train.pixels()?.into_shape_with_order((train.classes.indices().len(), 1, 8, 8))?;
    let inputs = Dataset::from_array("digits", pixels.view().into_dyn())?;
    let labels = Labels::Classes(train.classes.clone());

    // The same few test digits, sorted by class.
    let images = test.pixels()?;
    let chosen: Vec<usize> = (0..10)
        .flat_map(|class| {
            let of_class = test.classes.indices().iter().enumerate().filter(move |&(_, &c)| c == class);
            of_class.map(|(index, _)| index).take(PER_CLASS)
        })
        .collect();
    let x: Vec<f32> = chosen.iter().flat_map(|&index| images.index_axis(ndarray::Axis(0), index).to_owned()).collect();

    let layers = [CnnLayer::conv(16, 3), CnnLayer::max_pool(2), CnnLayer::conv(32, 3), CnnLayer::dense(64)];
    let mut network = Cnn::new(&[1, 8, 8], &layers, 10).build(0)?;
    let before = cosines(&network, &x, chosen.len())?;
    let graph = network.declared_graph()?;
    let weights = network.weights::<f32>(&graph);
    let mut trainer = Trainer::new(graph, weights, Loss::CrossEntropy, Optimiser::adam())?;
    let settings = TrainingSettings { batch_size: Some(32), ..TrainingSettings::new(20, Schedule::constant(2e-3)) };
    TrainingLoop::new(settings).run(&mut trainer, TrainingSamples::one(&inputs, &labels))?;
    network.set_weights(trainer.weights());
    let after = cosines(&network, &x, chosen.len())?;

    let panel = |title: &str, kernel: Vec<f32>| {
        let classes = (0..10).map(|class| (class.to_string(), PER_CLASS));
        Panel::heat_map(title, chosen.len(), kernel.into_iter().map(f64::from), classes)
    };
    let figure = Figure::new("").panel(panel("before training", before)).panel(panel("after training", after));
    figure.panel_size(380, 340).write(path.as_ref(), Existing::Replace)?;
    println!("{path}: the tangent kernel of {} digits before and after training", chosen.len());
    Ok(())
}

/// The trace-NTK, cosine-normalised.
fn cosines(network: &Network, x: &[f32], n: usize) -> Result<Vec<f32>, Box<dyn std::error::Error>> {
    let gram = Ntk::<f32>::new(network, &[vec![1, 8, 8]], NtkKind::Trace)?.gram(&[x], n)?;
    let norm = |i: usize| gram[i * n + i].sqrt();
    Ok((0..n * n).map(|at| gram[at] / (norm(at / n) * norm(at % n))).collect())
}
